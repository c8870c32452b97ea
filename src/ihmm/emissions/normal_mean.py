"""Gaussian emissions with known noise: y | μ ~ N(μ, noise²), μ ~ N(mean, scale²) (T15 §4.1)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.emissions._validation import real_values
from ihmm.emissions.normal import (
    LOG_2PI,
    Moments,
    combine_moments,
    log_normal,
    log_normal_at,
    log_normal_given,
    statistics,
)
from ihmm.kernels.families import CompiledFamily, dispatch


class NormalMeanPhi(NamedTuple):
    mean: FloatArray


@dataclass(frozen=True)
class NormalMean(ConjugateEmission):
    """Gaussian observations whose standard deviation `noise` is known and shared by all states."""

    noise: float = 1.0
    mean: float = 0.0
    scale: float = 1.0

    def __post_init__(self) -> None:
        _checks.positive("NormalMean noise", self.noise)
        _checks.finite("NormalMean mean", self.mean)
        _checks.positive("NormalMean scale", self.scale)

    def validate(self, y: Array) -> FloatArray:
        return real_values(y, "NormalMean")

    def log_density(self, y: FloatArray, phi: NormalMeanPhi) -> FloatArray:
        return log_normal(y, phi.mean, np.full(len(phi.mean), self.noise**2))

    def log_density_at(self, y: FloatArray, states: IntArray, phi: NormalMeanPhi) -> FloatArray:
        return log_normal_at(y, states, phi.mean, np.full(len(phi.mean), self.noise**2))

    def log_marginal(self, y: FloatArray) -> FloatArray:
        return self._log_normal(y - self.mean, self.noise**2 + self.scale**2)

    def sample_prior(self, rng: np.random.Generator, n: int) -> NormalMeanPhi:
        return NormalMeanPhi(rng.normal(self.mean, self.scale, n))

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> NormalMeanPhi:
        return self._draw(rng, statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: NormalMeanPhi) -> FloatArray:
        return phi.mean[states] + self.noise * rng.standard_normal(len(states))

    def log_prior(self, phi: NormalMeanPhi) -> FloatArray:
        return self._log_normal(phi.mean - self.mean, self.scale**2)

    def log_evidence(self, y: FloatArray) -> float:
        if len(y) == 0:
            return 0.0
        # y ~ N(mean, noise² I + scale² 11ᵀ), factored into the average and the deviations from it
        n, centred = len(y), y - self.mean
        average = centred.mean()
        deviation = self._log_normal(centred - average, self.noise**2).sum()
        spread = self.noise**2 / n
        at_average = self._log_normal(average, spread + self.scale**2) - self._log_normal(np.zeros(()), spread)
        return float(deviation + at_average)

    def conjugate(self, y: FloatArray) -> Conjugate:
        prior = np.array([self.noise**2, self.mean, self.scale**2])
        compiled = CompiledFamily(dispatch.NORMAL_MEAN, prior, y, size=7)
        return Conjugate(statistics, combine_moments, self._draw, self._log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: Moments) -> NormalMeanPhi:
        weight = statistics.number / self.noise**2
        precision = 1 / self.scale**2 + weight
        center = (self.mean / self.scale**2 + weight * statistics.average) / precision
        return NormalMeanPhi(center + rng.standard_normal(len(center)) / np.sqrt(precision))

    def _log_likelihood(self, statistics: Moments, phi: NormalMeanPhi) -> float:
        return log_normal_given(statistics, phi.mean, np.full(len(phi.mean), self.noise**2))

    @staticmethod
    def _log_normal(residual: FloatArray, variance: float) -> FloatArray:
        out = residual * residual
        out *= -0.5 / variance
        out -= 0.5 * (LOG_2PI + np.log(variance))
        return out
