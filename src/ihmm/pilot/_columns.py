"""Columns whose noise is correlated, and coordinates in which it is not."""

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions.choose import MAX_CORRELATED
from ihmm.pilot._fit import Fit, Series

CORRELATED = 0.25  # correlation of the noise of two columns from which it matters
MAX_INCOMPLETE = 0.01  # share of the rows that may lack some of their values


def decorrelation(series: Series, fit: Fit) -> FloatArray | None:
    """(D, D): the matrix whose product with a row of values has independent noise of variance 1.

    The noise is what neither the levels of a fit nor its memory predict. The matrix is lower triangular. None if the
    columns are independent already, or if there are too many of them.
    """
    missing, n_columns = np.isnan(series.y), series.y.shape[1]
    if not 1 < n_columns <= MAX_CORRELATED or np.mean(missing.any(axis=1) & ~missing.all(axis=1)) > MAX_INCOMPLETE:
        return None
    away = series.y - fit.level[fit.path(series)]
    noise = Series(away, series.offsets).unpredicted(fit.coefficients)
    noise = noise[~np.isnan(noise).any(axis=1)]
    if len(noise) < 2 or np.any(noise.std(axis=0) == 0):
        return None
    correlation = np.atleast_2d(np.corrcoef(noise, rowvar=False))
    if np.abs(correlation - np.eye(n_columns)).max() < CORRELATED:
        return None
    return np.asarray(np.linalg.inv(np.linalg.cholesky(_shrunk(correlation, len(noise)))) / noise.std(axis=0))


def _shrunk(correlation: FloatArray, n: float) -> FloatArray:
    """As if there were one more value, of independent columns with variance 1: columns may be equal."""
    return np.asarray((n * correlation + np.eye(len(correlation))) / (n + 1))


def transformed(series: Series, matrix: FloatArray) -> Series:
    return Series(series.y @ matrix.T, series.offsets)


def log_volume(series: Series, matrix: FloatArray) -> float:
    """What the log likelihood of the transformed series is lower by because of the other units."""
    known = ~np.isnan(series.unpredicted(np.empty((0, series.y.shape[1]))))
    return float(np.linalg.slogdet(matrix)[1] * known.all(axis=1).sum())


def differ(series: Series, fit: Fit, path: IntArray) -> bool:
    """Whether covariances of each state's own explain white noise better than one matrix for all, by the criterion.

    Series and fit are those of the coordinates in which the noise is independent if there is one matrix.
    """
    known = ~np.isnan(series.y).any(axis=1)
    away, states = (series.y - fit.level[path])[known], path[known]
    n_states, n_columns = fit.level.shape
    n = np.bincount(states, minlength=n_states).astype(np.float64)
    if n_states == 1 or n.min() <= n_columns:
        return False
    each = [_shrunk(np.cov(away[states == k], rowvar=False, bias=True), n[k]) for k in range(n_states)]
    assumed = np.array([np.log(np.diag(covariance)).sum() for covariance in each])
    parameters = 0.5 * n_columns * (n_columns - 1) * (n_states - 1)
    if fit.structure.shared:
        assumed[:] = np.log(np.square(away).mean(axis=0)).sum()
        parameters += n_columns * (n_states - 1)
    gain = n @ (assumed - np.array([np.linalg.slogdet(covariance)[1] for covariance in each]))
    return bool(gain > parameters * np.log(n.sum()))
