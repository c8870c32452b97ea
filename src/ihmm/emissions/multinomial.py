"""Vectors of counts: each row is Multinomial(its total, probabilities), and those are Dirichlet."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from ihmm import _checks
from ihmm._random import dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._base import Collapsed, ConjugateEmission, add, sums_by_state
from ihmm.emissions._counts import LARGEST_COUNT, log_factorial


class MultinomialPhi(NamedTuple):
    probs: FloatArray  # (K, D)


class MultinomialStatistics(NamedTuple):
    total: FloatArray  # (K, D)
    log_orders: Array  # (K,): Σ log of the number of orders of a row's counts


@dataclass(frozen=True)
class Multinomial(ConjugateEmission):
    """Rows of `n_categories` counts; each state's probabilities are Dirichlet(concentration, …, concentration).

    The total of a row is taken as given: it says nothing about the state, only the shares do, and a row of zeros is
    as good as none. A row is known altogether, or all of it is NaN.

    `total` is the total of rows that are simulated: by `ihmm.simulate`, in forecasts, and in place of missing rows.
    Nothing else depends on it.
    """

    n_categories: int
    concentration: float = 1.0
    total: int = 100

    def __post_init__(self) -> None:
        _checks.count("Multinomial n_categories", self.n_categories, least=2)
        _checks.positive("Multinomial concentration", self.concentration)
        _checks.count("Multinomial total", self.total)

    def validate(self, y: Array) -> IntArray:
        size = self.n_categories
        if y.shape[1:] != (size,):
            got = "one number" if y.ndim == 1 else f"{y.shape[1]} columns"
            raise ValueError(
                f"Multinomial with n_categories = {size} takes rows of that length, shape (T, {size}); got {got}"
            )
        partly = np.flatnonzero(np.isnan(y).any(axis=1))
        if partly.size:
            raise ValueError(
                f"Multinomial expects complete rows, got {partly.size} in which single counts are missing (first at "
                f"t = {partly[0]}): their totals are not known; make the whole row NaN"
            )
        wrong = ~((y >= 0) & (y == np.floor(y))).all(axis=1) | (y.sum(axis=1, dtype=np.float64) > LARGEST_COUNT)
        if wrong.any():
            t = int(np.argmax(wrong))
            raise ValueError(
                f"Multinomial expects counts, whole numbers from 0 up, got {y[t].tolist()} at t = {t} "
                f"({wrong.sum()} such rows); for shares or other numbers see MultivariateNormal"
            )
        return y.astype(np.int64)

    def log_density(self, y: IntArray, phi: MultinomialPhi) -> FloatArray:
        out: FloatArray = np.einsum("kd,td->kt", np.log(phi.probs), y.astype(np.float64))
        out += _log_orders(y)
        return out.T

    def log_density_at(self, y: IntArray, states: IntArray, phi: MultinomialPhi) -> FloatArray:
        return np.asarray(np.einsum("td,td->t", y.astype(np.float64), np.log(phi.probs)[states]) + _log_orders(y))

    def log_marginal(self, y: IntArray) -> FloatArray:
        return np.asarray(self._log_rises(y) + _log_orders(y))

    def sample_prior(self, rng: np.random.Generator, n: int) -> MultinomialPhi:
        return MultinomialPhi(dirichlet(rng, np.full((n, self.n_categories), self.concentration)))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> MultinomialPhi:
        return self.resample_given(rng, self.statistics(y, states, n_states))

    def statistics(self, y: IntArray, states: IntArray, n_states: int) -> MultinomialStatistics:
        log_orders = np.bincount(states, weights=_log_orders(y), minlength=n_states)
        return MultinomialStatistics(sums_by_state(y, states, n_states), log_orders)

    def combine(self, parts: Sequence[MultinomialStatistics]) -> MultinomialStatistics:
        return add(parts)

    def resample_given(self, rng: np.random.Generator, statistics: MultinomialStatistics) -> MultinomialPhi:
        return MultinomialPhi(dirichlet(rng, self.concentration + statistics.total))

    def log_likelihood_given(self, statistics: MultinomialStatistics, phi: MultinomialPhi) -> float:
        return float(xlogy(statistics.total, phi.probs).sum() + statistics.log_orders.sum())

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: MultinomialPhi) -> IntArray:
        return np.asarray(rng.multinomial(self.total, phi.probs[states]))

    def log_prior(self, phi: MultinomialPhi) -> FloatArray:
        size, concentration = self.n_categories, self.concentration
        constant = lgamma(size * concentration) - size * lgamma(concentration)
        return np.asarray(constant + (concentration - 1) * np.log(phi.probs).sum(axis=1))

    def log_evidence(self, y: IntArray) -> float:
        return float(self._log_rises(y.sum(axis=0, dtype=np.float64)) + _log_orders(y).sum())

    def collapsed(self, y: IntArray) -> Collapsed:
        prior = np.full((1, self.n_categories), self.concentration)
        return Collapsed("multinomial", prior, y.astype(np.float64), size=1 + self.n_categories)

    def _log_rises(self, counts: Array) -> FloatArray:
        """log E[Π p_d^{n_d}] over the prior, for every row of counts."""
        mass = self.n_categories * self.concentration
        each = gammaln(self.concentration + counts) - lgamma(self.concentration)
        return np.asarray(each.sum(axis=-1) + lgamma(mass) - gammaln(mass + counts.sum(axis=-1)))


def _log_orders(y: IntArray) -> FloatArray:
    """log of the number of orders in which the counts of a row can have come about."""
    # a sum over few columns takes a fifth of the time this way
    return np.asarray(log_factorial(np.einsum("td->t", y)) - np.einsum("td->t", log_factorial(y)))
