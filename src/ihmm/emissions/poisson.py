"""Counts: y | rate ~ Poisson(rate), rate ~ Gamma(shape, rate)."""

from dataclasses import dataclass
from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate, add
from ihmm.emissions._counts import log_factorial, whole_counts
from ihmm.emissions._gamma import log_gamma_density
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.kernels.families import CompiledFamily, dispatch


class PoissonPhi(NamedTuple):
    rate: FloatArray


class PoissonStatistics(NamedTuple):
    number: IntArray  # of time steps
    total: Array
    log_factorials: Array  # Σ log y_t!


@dataclass(frozen=True)
class Poisson(ConjugateEmission):
    """One count per time step; the rate of each state is Gamma(shape, rate), with mean shape/rate."""

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _checks.positive("Poisson shape", self.shape)
        _checks.positive("Poisson rate", self.rate)

    def validate(self, y: Array) -> IntArray:
        return whole_counts(y, "Poisson")

    def log_density(self, y: IntArray, phi: PoissonPhi) -> FloatArray:
        out = np.log(phi.rate)[:, None] * y.astype(np.float64)
        out -= phi.rate[:, None]
        out -= log_factorial(y)
        return out.T

    def log_density_at(self, y: IntArray, states: IntArray, phi: PoissonPhi) -> FloatArray:
        return np.asarray(y * np.log(phi.rate)[states] - phi.rate[states] - log_factorial(y))

    def log_marginal(self, y: IntArray) -> FloatArray:
        # negative binomial
        rise = gammaln(self.shape + y) - lgamma(self.shape) - log_factorial(y)
        return np.asarray(rise - self.shape * np.log1p(1 / self.rate) - y * np.log1p(self.rate))

    def sample_prior(self, rng: np.random.Generator, n: int) -> PoissonPhi:
        return PoissonPhi(np.maximum(rng.standard_gamma(self.shape, n) / self.rate, FLOOR))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> PoissonPhi:
        return self._draw(rng, statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: PoissonPhi) -> IntArray:
        return rng.poisson(phi.rate[states])

    def log_prior(self, phi: PoissonPhi) -> FloatArray:
        return log_gamma_density(phi.rate, self.shape, self.rate)

    def log_evidence(self, y: IntArray) -> float:
        shape, rate = self.shape + float(y.sum()), self.rate + len(y)
        log_gamma = lgamma(shape) - lgamma(self.shape) + self.shape * np.log(self.rate) - shape * np.log(rate)
        return float(log_gamma - log_factorial(y).sum())

    def conjugate(self, y: IntArray) -> Conjugate:
        compiled = CompiledFamily(dispatch.POISSON, np.array([self.shape, self.rate]), y.astype(np.float64), size=2)
        return Conjugate(statistics, add, self._draw, log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: PoissonStatistics) -> PoissonPhi:
        shape, rate = self.shape + statistics.total, self.rate + statistics.number
        return PoissonPhi(np.maximum(rng.standard_gamma(shape) / rate, FLOOR))


def statistics(y: IntArray, states: IntArray, n_states: int) -> PoissonStatistics:
    return PoissonStatistics(
        np.bincount(states, minlength=n_states),
        np.bincount(states, weights=y, minlength=n_states),
        np.bincount(states, weights=log_factorial(y), minlength=n_states),
    )


def log_likelihood(statistics: PoissonStatistics, phi: PoissonPhi) -> float:
    number, total, log_factorials = statistics
    return float(np.sum(xlogy(total, phi.rate) - number * phi.rate - log_factorials))
