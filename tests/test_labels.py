"""One segmentation that agrees best with the draws, and labels that mean the same in every draw."""

import itertools

import numpy as np
import pytest

import ihmm
from ihmm.summaries import labels
from ihmm.testing import set_partitions


def agreement(a, b):
    """The largest number of steps at which two state sequences agree, over all ways to pair their states."""
    a, b = np.asarray(a), np.asarray(b)
    size = max(a.max(), b.max()) + 1
    return max(np.sum(np.array(names)[a] == b) for names in itertools.permutations(range(size)))


# The segmentation


@pytest.mark.parametrize("seed", range(5))
def test_no_draw_agrees_better_with_the_draws_than_the_segmentation(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2, 0, 1], 8)
    draws = np.array([np.where(rng.random(40) < 0.15, rng.integers(4, size=40), truth) for _ in range(30)])
    draws = np.array([np.unique(draw, return_inverse=True)[1] for draw in draws])

    def score(candidate):
        return np.mean([agreement(draw, candidate) for draw in draws])

    found = labels.segmentation(draws)
    assert score(found) >= max(map(score, draws))
    assert ihmm.testing.canonical(found) == tuple(truth)


def test_the_segmentation_of_a_tiny_series_is_the_best_of_all_partitions():
    rng = np.random.default_rng(3)
    draws = np.array([[0, 0, 1, 1, 2, 2]] * 6 + [[0, 0, 1, 1, 1, 1]] * 3 + [[0, 1, 1, 1, 2, 2]] * 2)
    draws = np.array([rng.permutation(3)[draw] for draw in draws])
    scores = {p: np.mean([agreement(d, p) for d in draws]) for p in set_partitions(6)}
    found = labels.segmentation(draws)
    assert ihmm.testing.canonical(found) == max(scores, key=scores.get) == (0, 0, 1, 1, 2, 2)


def test_states_that_overlap_are_not_merged():
    """Four tenths of the steps of a draw are random, but all draws have three states, and so does the segmentation."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 100)
    draws = np.array([np.where(rng.random(300) < 0.4, rng.integers(3, size=300), truth) for _ in range(50)])
    np.testing.assert_array_equal(labels.segmentation(draws), truth)


def test_a_state_that_is_split_at_random_is_not_split_and_a_rare_state_is_kept():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [200, 197, 3])
    draws = np.array([np.where((truth == 0) & (rng.random(400) < 0.4), 3, truth) for _ in range(49)] + [truth])
    np.testing.assert_array_equal(labels.segmentation(draws), truth)


def test_states_are_numbered_by_use():
    assert labels.order_by_use(np.array([7, 3, 3, 5, 3, 5])).tolist() == [2, 0, 0, 1, 0, 1]


def test_labels_are_aligned_with_a_reference():
    other = np.repeat([0, 1, 2], [4, 5, 6])
    renamed = np.repeat([2, 0, 1], [4, 5, 6])
    assert labels.align_labels(renamed, other).tolist() == other.tolist()
    more = np.repeat([3, 0, 1, 2], [4, 3, 2, 6])  # 1 is split: the smaller part comes last
    assert labels.align_labels(more, other).tolist() == np.repeat([0, 1, 3, 2], [4, 3, 2, 6]).tolist()


# Matching


def test_permuted_labels_are_matched():
    reference = np.repeat([0, 1, 2], [5, 4, 3])
    found = labels.match(np.array([2, 0, 1])[reference], 3, reference, 3)
    assert found.state.tolist() == [2, 0, 1]
    assert found.label.tolist() == [1, 2, 0]


def test_both_parts_of_a_split_state_get_its_label_and_the_larger_part_is_matched():
    reference = np.repeat([0, 1], [10, 5])
    draw = np.repeat([0, 2, 1], [7, 3, 5])
    found = labels.match(draw, 3, reference, 2)
    assert found.label.tolist() == [0, 1, 0]
    assert found.state.tolist() == [0, 1]


def test_a_stray_state_is_not_matched_to_an_absent_label():
    reference = np.repeat([0, 1, 2], [10, 8, 6])
    draw = np.repeat([0, 1], [10, 14])  # 1 and 2 are one state here
    draw[0] = 2  # and one step of 0 is a separate state
    found = labels.match(draw, 3, reference, 3)
    assert found.label.tolist() == [0, 1, 0]
    assert found.state.tolist() == [0, 1, -1]
