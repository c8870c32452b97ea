"""Hierarchical clustering of a few objects. SciPy's takes 17 MB and longer to import than to run."""

from collections.abc import Callable

import numpy as np

from ihmm._typing import FloatArray, IntArray


class Hierarchy:
    """Groups of objects that are merged one by one, always the two that are closest.

    `distance`, (n, n), is symmetric. `between` has the distance of a merged group to others, from those of its two
    parts and their sizes: `average` or `complete`.
    """

    def __init__(self, distance: FloatArray, between: Callable[..., FloatArray]) -> None:
        n = len(distance)
        size, label = np.ones(n), np.arange(n)
        distance = distance.astype(np.float64)
        np.fill_diagonal(distance, np.inf)
        self._labels = [label]
        self._heights = [0.0]
        for _ in range(n - 1):
            a, b = sorted(np.unravel_index(int(np.argmin(distance)), distance.shape))
            self._heights.append(max(float(distance[a, b]), self._heights[-1]))
            merged = between(distance[a], distance[b], size[a], size[b])
            distance[a], distance[:, a] = merged, merged
            distance[b], distance[:, b], distance[a, a] = np.inf, np.inf, np.inf
            size[a] += size[b]
            label = np.where(label == b, a, label)
            self._labels.append(label)

    def within(self, height: float) -> IntArray:
        """(n,): groups after all merges of groups up to this distance."""
        last = max(i for i, each in enumerate(self._heights) if each <= height)
        return np.unique(self._labels[last], return_inverse=True)[1]

    def at_most(self, n_groups: int) -> IntArray:
        """(n,): groups after as few merges as it takes to have at most `n_groups`; equal distances count as one."""
        return self.within(self._heights[max(len(self._heights) - n_groups, 0)])


def average(left: FloatArray, right: FloatArray, n_left: float, n_right: float) -> FloatArray:
    """Mean distance of the objects of two groups."""
    return np.asarray((n_left * left + n_right * right) / (n_left + n_right))


def complete(left: FloatArray, right: FloatArray, n_left: float, n_right: float) -> FloatArray:
    """Largest distance between objects of two groups."""
    return np.maximum(left, right)
