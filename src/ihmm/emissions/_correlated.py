"""Noise that is correlated between columns: B e_t has independent columns, B = I − W with W strictly lower triangular.

    e_td = Σ_{j<d} w_dj e_tj + e'_td

w_dj says how much of the noise of column j is in that of a later column d, and e' = B e is what each has of its own. In
the coordinates y' = B y levels are μ' = B μ, and a density there is one of y, as |B| = 1. The w_dj of a state are one
vector, row by row: w_21, w_31, w_32, …
"""

from collections.abc import Iterator, Sequence

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions import _noise
from ihmm.emissions._missing import patterns


def matrices(regression: FloatArray, n_columns: int) -> FloatArray:
    """(K, D, D): B of every state."""
    out = np.tile(np.eye(n_columns), (len(regression), 1, 1))
    out[:, *np.tril_indices(n_columns, -1)] = -regression
    return out


def different(matrix: FloatArray) -> Iterator[tuple[FloatArray, IntArray]]:
    """Matrices that differ, and the states that have them: fits that are compared have one each."""
    _, first, group = np.unique(matrix, axis=0, return_index=True, return_inverse=True)
    for number, state in enumerate(first):
        yield matrix[state], np.flatnonzero(group == number)


def coordinates(values: FloatArray, matrix: FloatArray) -> FloatArray:
    """B y for rows of values, (n, lags, D): NaN where one of the columns up to it is missing. B may differ between the
    n steps."""
    turn, missing = np.swapaxes(matrix, -1, -2), np.isnan(values)
    if not missing.any():
        return np.asarray(values @ turn)
    missing = np.logical_or.accumulate(missing, axis=-1)
    return np.where(missing, np.nan, np.where(missing, 0.0, values) @ turn)


def draw_levels(
    rng: np.random.Generator,
    columns: Sequence[_noise.Steps],
    weights: Sequence[FloatArray],
    coefficients: FloatArray,
    matrix: FloatArray,
    spread: FloatArray,
    n_states: int,
) -> FloatArray:
    """The levels of all columns jointly given everything else, (K, D), under the prior N(0, spread²) of each column.

    Coordinates are independent but for the prior of μ'_k = B μ_k, whose precision is B⁻ᵀ diag(spread⁻²) B⁻¹.
    """
    back = np.linalg.inv(matrix)
    precision = np.kron(back.T / np.square(spread) @ back, np.eye(n_states))
    information = np.empty((len(columns), n_states))
    for d, (steps, weight) in enumerate(zip(columns, weights, strict=True)):
        own = slice(d * n_states, (d + 1) * n_states)
        precision[own, own], information[d] = _noise.add_steps(precision[own, own], steps, weight, coefficients[d])
    drawn = _noise.draw_normal(rng, precision, information.ravel(), 1)[0]
    return np.asarray((back @ drawn.reshape(information.shape)).T)


def draw_regression(
    rng: np.random.Generator, residual: FloatArray, weight: FloatArray, coefficients: FloatArray, spread: FloatArray
) -> FloatArray:
    """w_d given everything else, under the prior N(0, spread²), from the noise e of the columns up to d, (n, p + 1, d).

    What is white is not e'_d but its innovations: column d is a regression on those before it, all of them filtered by
    the memory of e'_d.
    """
    innovation = np.append(1.0, -coefficients) @ residual
    earlier, now = innovation[:, :-1], innovation[:, -1]
    weighted = earlier * weight[:, None]
    precision = earlier.T @ weighted + np.diag(1 / np.square(spread))
    return np.asarray(_noise.draw_normal(rng, precision, weighted.T @ now, 1)[0])


def covariances(matrix: FloatArray, variance: FloatArray) -> FloatArray:
    """(K, D, D): B⁻¹ diag(variance) B⁻ᵀ, from the variances of the coordinates, (K, D)."""
    back = np.linalg.inv(matrix)
    return np.asarray((back * variance[:, None]) @ back.swapaxes(1, 2))


def given_known(drawn: FloatArray, y: FloatArray, covariance: FloatArray) -> FloatArray:
    """Rows of y with their missing values drawn, from rows that were drawn as a whole and the covariance of each.

    x_m = x̃_m + Σ_mk Σ_kk⁻¹ (y_k − x̃_k): exact for normal noise, which other noise is taken for.
    """
    out = np.where(np.isnan(y), drawn, y)
    for rows, known in patterns(y):
        if not isinstance(known, slice) and len(known):
            missing = np.setdiff1d(np.arange(y.shape[1]), known)
            here = covariance[rows]
            away = np.linalg.solve(here[:, known][:, :, known], (y - drawn)[rows][:, known, None])
            out[np.ix_(rows, missing)] += (here[:, missing][:, :, known] @ away)[:, :, 0]
    return out
