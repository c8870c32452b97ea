"""Single values of a row that are missing (NaN)."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from ihmm._typing import FloatArray, IntArray


def density_of_known(log_density: FloatArray) -> FloatArray:
    """Missing values are uninformative: their density is 1."""
    return np.where(np.isnan(log_density), 0.0, log_density)


def patterns(y: FloatArray) -> Iterator[tuple[Any, Any]]:
    """For each pattern of missing values: the rows that have it, and the observed columns."""
    missing = np.isnan(y)
    if not missing.any():
        yield slice(None), slice(None)
        return
    bits = np.packbits(missing, axis=1)
    codes = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    ordered, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    for t, rows in zip(first, np.split(ordered, np.cumsum(sizes)[:-1]), strict=True):
        yield rows, np.flatnonzero(~missing[t])


def fill_averages(y: FloatArray, states: IntArray, n_states: int, mean: FloatArray) -> FloatArray:
    """y with missing values replaced by averages by state and column, or by `mean` where a state has no value."""
    missing = np.isnan(y)
    if not missing.any():
        return y
    y = y.copy()
    for d in np.flatnonzero(missing.any(axis=0)):
        gaps = missing[:, d]
        count = np.bincount(states[~gaps], minlength=n_states)
        total = np.bincount(states[~gaps], weights=y[~gaps, d], minlength=n_states)
        y[gaps, d] = np.where(count > 0, total / np.maximum(count, 1), mean[d])[states[gaps]]
    return y
