"""Rows of counts: Multinomial(total of the row, probabilities), with Dirichlet probabilities."""

from dataclasses import dataclass
from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from ihmm import _checks
from ihmm._random import dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate, add, sums_by_state
from ihmm.emissions._counts import LARGEST_COUNT, log_dirichlet_multinomial, log_factorial
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.kernels.families import CompiledFamily, dispatch


class MultinomialPhi(NamedTuple):
    probs: FloatArray  # (K, D)


class MultinomialStatistics(NamedTuple):
    total: FloatArray  # (K, D)
    log_coefficients: Array  # (K,): sum of the rows' log multinomial coefficients


@dataclass(frozen=True)
class Multinomial(ConjugateEmission):
    """Rows of `n_categories` counts; each state's probabilities are Dirichlet(concentration, …, concentration).

    The model is conditional on the total of each row: only the proportions are informative about the state, and a row
    of zeros is uninformative. A row is either complete or entirely missing (NaN).

    `total` is the total of simulated rows: in `ihmm.simulate`, in forecasts, and for missing rows. Nothing else depends
    on it.
    """

    n_categories: int
    concentration: float = 1.0
    total: int = 100

    def __post_init__(self) -> None:
        _checks.count("Multinomial n_categories", self.n_categories, least=2, most=_checks.MAX_SIZE)
        _checks.positive("Multinomial concentration", self.concentration)
        _checks.count("Multinomial total", self.total)

    def validate(self, y: Array) -> IntArray:
        size = self.n_categories
        if y.shape[1:] != (size,):
            got = "one number per time step" if y.ndim == 1 else f"{y.shape[1]} columns"
            raise ValueError(
                f"Multinomial with n_categories = {size} takes rows of that length, shape (T, {size}); got {got}"
            )
        partly = np.flatnonzero(np.isnan(y).any(axis=1))
        if partly.size:
            raise ValueError(
                f"Multinomial expects complete rows, got {partly.size} with single counts missing (first at "
                f"t = {partly[0]}), so that their totals are unknown; set the whole row to NaN"
            )
        wrong = ~((y >= 0) & (y == np.floor(y))).all(axis=1) | (y.sum(axis=1, dtype=np.float64) > LARGEST_COUNT)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise ValueError(
                f"Multinomial expects non-negative whole numbers, got {y[t].tolist()} at t = {t} "
                f"({wrong.sum()} such rows); for proportions or real numbers use MultivariateNormal"
            )
        return y.astype(np.int64)

    def log_density(self, y: IntArray, phi: MultinomialPhi) -> FloatArray:
        out: FloatArray = np.einsum("kd,td->kt", np.log(phi.probs), y.astype(np.float64))
        out += _log_coefficients(y)
        return out.T

    def log_density_at(self, y: IntArray, states: IntArray, phi: MultinomialPhi) -> FloatArray:
        return np.asarray(np.einsum("td,td->t", y.astype(np.float64), np.log(phi.probs)[states]) + _log_coefficients(y))

    def log_marginal(self, y: IntArray) -> FloatArray:
        return log_dirichlet_multinomial(self._concentrations, y) + _log_coefficients(y)

    def sample_prior(self, rng: np.random.Generator, n: int) -> MultinomialPhi:
        return MultinomialPhi(dirichlet(rng, np.tile(self._concentrations, (n, 1))))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> MultinomialPhi:
        return self._draw(rng, statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: MultinomialPhi) -> IntArray:
        return np.asarray(rng.multinomial(self.total, phi.probs[states]))

    def log_prior(self, phi: MultinomialPhi) -> FloatArray:
        size, concentration = self.n_categories, self.concentration
        constant = lgamma(size * concentration) - size * lgamma(concentration)
        return np.asarray(constant + (concentration - 1) * np.log(phi.probs).sum(axis=1))

    def log_evidence(self, y: IntArray) -> float:
        totals = y.sum(axis=0, dtype=np.float64)
        return float(log_dirichlet_multinomial(self._concentrations, totals) + _log_coefficients(y).sum())

    def conjugate(self, y: IntArray) -> Conjugate:
        prior = self._concentrations[None]
        compiled = CompiledFamily(dispatch.MULTINOMIAL, prior, y.astype(np.float64), size=1 + self.n_categories)
        return Conjugate(statistics, add, self._draw, log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: MultinomialStatistics) -> MultinomialPhi:
        return MultinomialPhi(dirichlet(rng, self.concentration + statistics.total))

    @property
    def _concentrations(self) -> FloatArray:
        return np.full(self.n_categories, self.concentration)


def statistics(y: IntArray, states: IntArray, n_states: int) -> MultinomialStatistics:
    log_coefficients = np.bincount(states, weights=_log_coefficients(y), minlength=n_states)
    return MultinomialStatistics(sums_by_state(y, states, n_states), log_coefficients)


def log_likelihood(statistics: MultinomialStatistics, phi: MultinomialPhi) -> float:
    return float(xlogy(statistics.total, phi.probs).sum() + statistics.log_coefficients.sum())


def _log_coefficients(y: IntArray) -> FloatArray:
    """Log multinomial coefficient of every row of counts."""
    # einsum takes a fifth of the time of np.sum over few columns
    return np.asarray(log_factorial(np.einsum("td->t", y)) - np.einsum("td->t", log_factorial(y)))
