"""Columns whose noise is correlated, and coordinates in which it is not."""

from dataclasses import replace

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions.choose import MAX_CORRELATED
from ihmm.pilot._fit import Fit, Series, improve
from ihmm.pilot._search import QUICK, criterion, downwards

CORRELATED = 0.25  # correlation of the noise of two columns from which it matters
MAX_INCOMPLETE = 0.01  # share of the rows that may lack some of their values


def decorrelation(series: Series, fit: Fit, best: float) -> FloatArray | None:
    """(D, D): the lower triangular matrix whose product with a row of values has independent noise of variance 1.

    None if the columns are independent already. Noise that is taken for independent looks like further levels, and
    less correlated around these. Correlations may therefore be those around fewer levels, if the criterion of these
    in the coordinates is above the `best`.
    """
    found = around(series, fit)
    if fit.n_states > 1:
        for fewer in downwards(series, fit):
            matrix = around(series, fewer)
            if matrix is not None:
                start = replace(fewer, level=fewer.level @ matrix.T, scale=np.ones_like(fewer.scale))
                value = criterion(improve(transformed(series, matrix), start, QUICK)) + cost(series, matrix)
                if value > best:
                    found, best = matrix, value
    return found


def around(series: Series, fit: Fit) -> FloatArray | None:
    """The same from what neither the levels of a fit nor its memory predict; None if there are too many columns."""
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


def cost(series: Series, matrix: FloatArray) -> float:
    """What the criterion of the transformed series is lower by, because of its units and for the correlations."""
    n_columns = len(matrix)
    log_volume = np.linalg.slogdet(matrix)[1] * series.counted.sum()
    return float(log_volume - 0.25 * n_columns * (n_columns - 1) * np.log(len(series.y)))  # half of log n for each


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
    spread = np.array([away[states == k].std(axis=0) for k in range(n_states)])
    parameters = 0.5 * n_columns * (n_columns - 1) * (n_states - 1)
    if fit.structure.shared:
        spread[:] = away.std(axis=0)
        parameters += n_columns * (n_states - 1)
    away = away / (spread[states] + 1e-9)
    each = [_log_det(away[states == k]) for k in range(n_states)]
    gain = len(away) * _log_det(away) - n @ each
    return bool(gain > parameters * np.log(len(away)))


def _log_det(values: FloatArray) -> float:
    covariance = np.cov(values, rowvar=False, bias=True)
    return float(np.linalg.slogdet(_shrunk(covariance, len(values)))[1])
