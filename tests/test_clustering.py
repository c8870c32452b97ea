"""Hierarchical clustering is that of SciPy wherever no two distances are equal."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import fcluster, linkage

from ihmm.clustering import Hierarchy, average, complete


def same_groups(left, right):
    return np.array_equal(left[:, None] == left, right[:, None] == right)


@pytest.mark.parametrize("between", [average, complete])
@pytest.mark.parametrize("n", [2, 3, 7, 15])
def test_groups_are_those_of_scipy(between, n):
    rng = np.random.default_rng(n)
    for _ in range(20):
        distance = rng.random((n, n))
        distance = 0.5 * (distance + distance.T)
        tree = linkage(distance[np.triu_indices(n, 1)], between.__name__)
        hierarchy = Hierarchy(distance, between)
        for height in (0.2, 0.5, 0.8):
            assert same_groups(hierarchy.within(height), fcluster(tree, height, "distance"))
        for n_groups in range(1, n + 1):
            assert same_groups(hierarchy.at_most(n_groups), fcluster(tree, n_groups, "maxclust"))


def test_a_single_object_is_a_group():
    assert Hierarchy(np.zeros((1, 1)), average).within(0.5).tolist() == [0]
    assert Hierarchy(np.zeros((1, 1)), average).at_most(1).tolist() == [0]


def test_equal_distances_are_merged_together():
    far = 1.0 - np.kron(np.eye(3), np.ones((2, 2)))
    hierarchy = Hierarchy(far, complete)
    assert hierarchy.within(0.5).tolist() == [0, 0, 1, 1, 2, 2]
    assert hierarchy.at_most(2).tolist() == [0] * 6
