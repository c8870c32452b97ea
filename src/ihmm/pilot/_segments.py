"""Levels of a recording that climbs or falls in steps, of which there may be more than a search starts from."""

from itertools import pairwise

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.pilot._fit import Fit, Series, Structure, improve, start
from ihmm.pilot._search import CAREFUL, CLOSE, reduce

CHANGE = 6.0  # log T by which a change of level reduces the sum of squares, in units of the noise
SHORTEST = 4  # steps of a segment
MOST, LEAST_STEPS = 50, 20  # segments, and steps of each on average


def levels_of_segments(series: Series) -> Fit | None:
    """Levels in white noise that start from the means of segments; None if there are too many for a staircase."""
    y = _filled(series.y)
    noise = np.median(np.abs(np.diff(y, axis=0)), axis=0) / (0.6745 * np.sqrt(2))  # of normal values
    if np.any(noise == 0):
        return None
    segments = _segments(y / noise, series.offsets)
    n_segments = int(segments.max()) + 1
    if not 1 < n_segments <= min(MOST, len(y) // LEAST_STEPS):
        return None
    total = np.stack([np.bincount(segments, column) for column in (y / noise).T], axis=1)
    path = _similar(total / np.bincount(segments)[:, None])[segments]
    return reduce(series, improve(series, start(series, Structure(), path, int(path.max()) + 1), CAREFUL))


def _filled(y: FloatArray) -> FloatArray:
    """The series with the latest value where one is missing, and the first known one before that."""
    known = ~np.isnan(y)
    latest = np.maximum.accumulate(np.where(known, np.arange(len(y))[:, None], known.argmax(axis=0)), axis=0)
    return np.asarray(np.take_along_axis(y, latest, axis=0))


def _segments(y: FloatArray, offsets: IntArray) -> IntArray:
    """(T,): segments found by binary segmentation; y has noise of unit variance."""
    total = np.concatenate([np.zeros((1, y.shape[1])), np.cumsum(y, axis=0)])
    least, cuts = CHANGE * np.log(len(y)), list(offsets[1:-1])
    pieces = list(pairwise(offsets))
    while pieces and len(cuts) <= MOST:
        begin, end = pieces.pop()
        if end - begin < 2 * SHORTEST:
            continue
        # splitting n steps into m and n − m reduces the sum of squares by n / (m (n − m)) · (Σ_m (y − ȳ))²
        n, m = end - begin, np.arange(SHORTEST, end - begin - SHORTEST + 1)
        left = total[begin + m] - total[begin] - m[:, None] * (total[end] - total[begin]) / n
        gain = np.square(left).sum(axis=1) * n / (m * (n - m))
        if gain.max() > least:
            cut = int(begin + m[gain.argmax()])
            cuts.append(cut)
            pieces += [(begin, cut), (cut, end)]
    return np.searchsorted(np.sort(cuts), np.arange(len(y)), side="right")


def _similar(mean: FloatArray) -> IntArray:
    """(segments,): the level of each; segments whose means are close are on the same one."""
    from scipy.cluster.hierarchy import fcluster, linkage  # slow to import

    return np.asarray(fcluster(linkage(mean, "average"), CLOSE, "distance") - 1, np.int64)
