"""Autoregressive noise around levels: e_t = a_1 e_{t−1} + … + a_p e_{t−p} + η_t, η_t of scale σ. One column at a time.

Steps are passed with their past: values (n, p + 1) are y_t, y_{t−1}, …, y_{t−p}, and the path has the states of these
steps. A step of weight w has noise of variance 1/w.
"""

from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm._random import FLOOR
from ihmm._typing import BoolArray, FloatArray, IntArray

HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
TRIES = 100  # draws of the coefficients, of which the first stationary one is taken
BATCH = 100  # the same from the prior, until one is stationary


def log_peak(dof: FloatArray) -> FloatArray:
    """Log density at 0 of a Student t of scale 1; Gaussian if dof is infinite."""
    half, where = np.unique(0.5 * np.atleast_1d(dof), return_inverse=True)
    values = [-HALF_LOG_2PI if np.isinf(h) else lgamma(h + 0.5) - lgamma(h) - 0.5 * np.log(2 * np.pi * h) for h in half]
    return np.array(values)[where]


def log_shape(square: FloatArray, dof: FloatArray) -> FloatArray:
    """Log density relative to its peak, from squared residuals in units of the scale, with one dof for each row; in
    place."""
    if np.isinf(dof[0]):
        square *= -0.5
        return square
    square *= 1 / dof[:, None]
    np.log1p(square, out=square)
    square *= -0.5 * (dof + 1)[:, None]
    return square


def partial_autocorrelations(coefficients: FloatArray) -> FloatArray:
    """(m, p), from coefficients (m, p), by the Levinson recursion backwards; all within ±1 if and only if the noise is
    stationary. Its variance is then σ² / Π_l (1 − κ_l²)."""
    left, out = coefficients, np.empty_like(coefficients)
    for lag in range(coefficients.shape[1] - 1, -1, -1):
        last = out[:, lag] = left[:, lag]
        spread = 1 - last**2
        spread = np.where(np.abs(spread) > FLOOR, spread, FLOOR)
        left = (left[:, :lag] + last[:, None] * left[:, :lag][:, ::-1]) / spread[:, None]
    return out


def is_stationary(coefficients: FloatArray) -> BoolArray:
    return np.asarray((np.abs(partial_autocorrelations(coefficients)) < 1).all(axis=1))


def stationary_factor(coefficients: FloatArray) -> FloatArray:
    """Standard deviation of the noise in units of σ, for each row of coefficients."""
    return np.asarray(np.prod(np.maximum(1 - partial_autocorrelations(coefficients) ** 2, FLOOR), axis=1) ** -0.5)


def draw_stationary(rng: np.random.Generator, order: int, spread: float) -> FloatArray:
    """Coefficients from N(0, spread²), restricted to the stationary region."""
    while True:
        drawn = spread * rng.standard_normal((BATCH, order))
        stationary = is_stationary(drawn)
        if stationary.any():
            return np.asarray(drawn[stationary.argmax()])


class Steps(NamedTuple):
    """The steps at which a column and its past are known."""

    values: FloatArray
    path: IntArray

    @classmethod
    def known(cls, values: FloatArray, path: IntArray) -> "Steps":
        unknown = np.isnan(values).any(axis=1)
        return cls(values[~unknown], path[~unknown]) if unknown.any() else cls(values, path)

    def residuals(self, level: FloatArray) -> FloatArray:
        """e_t, e_{t−1}, …, e_{t−p}: (n, p + 1)."""
        return np.asarray(self.values - level[self.path])


def innovations(residual: FloatArray, coefficients: FloatArray) -> FloatArray:
    """η_t = e_t − Σ_l a_l e_{t−l}."""
    return np.asarray(residual[:, 0] - residual[:, 1:] @ coefficients)


def draw_levels(
    rng: np.random.Generator,
    steps: Steps,
    weight: FloatArray,
    coefficients: FloatArray,
    spread: float,
    n_states: int,
) -> FloatArray:
    """All levels jointly given everything else, under the prior N(0, spread²)."""
    precision, information = add_steps(np.eye(n_states) / spread**2, steps, weight, coefficients)
    return np.asarray(draw_normal(rng, precision, information, 1)[0])


def add_steps(
    precision: FloatArray, steps: Steps, weight: FloatArray, coefficients: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Precision and information of the levels, (K, K) and (K,), given that of their prior, which is centred at 0.

    z_t = y_t − Σ_l a_l y_{t−l} is a regression on the levels of the last p + 1 steps, with factors 1, −a_1, …, −a_p.
    """
    n_states = len(precision)
    factors = np.append(1.0, -coefficients)
    z = steps.values @ factors
    visits = np.ascontiguousarray(steps.path.T)
    precision, information = precision.copy(), np.zeros(n_states)
    for lag, factor in enumerate(factors):
        information += np.bincount(visits[lag], factor * weight * z, n_states)
        own = np.bincount(visits[lag], factor**2 * weight, n_states)
        precision[np.diag_indices(n_states)] += own
        for other in range(lag):
            pair = visits[lag] * n_states + visits[other]
            cross = np.bincount(pair, factor * factors[other] * weight, n_states**2).reshape(n_states, n_states)
            precision += cross + cross.T
    return precision, information


def draw_coefficients(
    rng: np.random.Generator, residual: FloatArray, weight: FloatArray, spread: float, current: FloatArray
) -> FloatArray:
    """a given the residuals: Gaussian, restricted to the stationary region.

    If none of a number of draws is stationary the current value is kept. Accepted draws do not depend on it, so that
    this is a mixture of an exact draw and no change, and leaves the law invariant.
    """
    past = residual[:, 1:]
    weighted = past * weight[:, None]
    precision = past.T @ weighted + np.eye(len(current)) / spread**2
    drawn = draw_normal(rng, precision, weighted.T @ residual[:, 0], TRIES)
    stationary = is_stationary(drawn)
    return np.asarray(drawn[stationary.argmax()] if stationary.any() else current)


def draw_scales(
    rng: np.random.Generator, square: FloatArray, states: IntArray, n_states: int, shape: float, rate: float, own: bool
) -> FloatArray:
    """σ of every state given squared innovations of weight 1, σ² ~ InvGamma(shape, rate): its own, or one for all."""
    if own:
        count, total = np.bincount(states, minlength=n_states), np.bincount(states, square, n_states)
    else:
        count, total = np.array([len(square)]), np.array([square.sum()])
    gamma = np.maximum(rng.standard_gamma(shape + 0.5 * count), FLOOR)
    return np.broadcast_to(np.sqrt((rate + 0.5 * total) / gamma), n_states)


def draw_dof(rng: np.random.Generator, square: FloatArray, grid: FloatArray) -> float:
    """ν from its grid given squared innovations in units of the scale: those are Student t, so that the weights of the
    steps are integrated out."""
    peaks = log_peak(grid) * len(square)
    log_odds = [
        peak + log_shape(square[None].copy(), np.array([dof])).sum() for dof, peak in zip(grid, peaks, strict=True)
    ]
    return float(grid[np.argmax(log_odds + rng.gumbel(size=len(grid)))])


def draw_weights(rng: np.random.Generator, square: FloatArray, dof: float) -> FloatArray:
    """λ_t given squared innovations in units of the scale and ν."""
    return np.maximum(2 * rng.standard_gamma(0.5 * (dof + 1), len(square)) / (dof + square), FLOOR)


def draw_normal(rng: np.random.Generator, precision: FloatArray, information: FloatArray, n: int) -> FloatArray:
    """n draws from N(P⁻¹ b, P⁻¹), (n, len(b))."""
    factor = np.linalg.cholesky(precision)
    whitened = np.linalg.solve(factor, information)
    noise = rng.standard_normal((len(information), n))
    return np.asarray(np.linalg.solve(factor.T, whitened[:, None] + noise).T)
