"""Columns whose noise is correlated, and coordinates in which it is not."""

import numpy as np

from ihmm._typing import FloatArray
from ihmm.pilot._fit import Fit, Series

CORRELATED = 0.25  # correlation of the noise of two columns from which it matters
MAX_INCOMPLETE = 0.01  # share of the rows that may lack some of their values


def decorrelation(series: Series, fit: Fit) -> FloatArray | None:
    """(D, D): the matrix whose product with a row of values has independent noise; None if that of columns is already.

    The noise is what neither the levels of a fit nor its memory predict.
    """
    missing = np.isnan(series.y)
    if series.y.shape[1] == 1 or np.mean(missing.any(axis=1) & ~missing.all(axis=1)) > MAX_INCOMPLETE:
        return None
    away = series.y - fit.level[fit.path(series)]
    noise = Series(away, series.offsets).unpredicted(fit.coefficients)
    noise = noise[~np.isnan(noise).any(axis=1)]
    if len(noise) < 2 or np.any(noise.std(axis=0) == 0):
        return None
    correlation = np.atleast_2d(np.corrcoef(noise, rowvar=False))
    if np.abs(correlation - np.eye(len(correlation))).max() < CORRELATED:
        return None
    shrunk = 0.99 * correlation + 0.01 * np.eye(len(correlation))  # columns may be equal
    return np.linalg.inv(np.linalg.cholesky(shrunk))


def transformed(series: Series, matrix: FloatArray) -> Series:
    return Series(series.y @ matrix.T, series.offsets)


def log_volume(series: Series, matrix: FloatArray) -> float:
    """What the log likelihood of the transformed series is lower by because of the other units."""
    known = ~np.isnan(series.unpredicted(np.empty((0, series.y.shape[1]))))
    return float(np.linalg.slogdet(matrix)[1] * known.all(axis=1).sum())


def spread_before(spread: FloatArray, matrix: FloatArray) -> FloatArray:
    """(K, D): standard deviations of the columns, given those of the independent coordinates."""
    return np.asarray(np.sqrt(np.square(spread) @ np.square(np.linalg.inv(matrix)).T))
