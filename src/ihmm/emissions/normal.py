"""Gaussian emissions, mean and variance unknown: μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate)."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate, total
from ihmm.emissions._parameters import take
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.emissions._validation import real_values
from ihmm.kernels import densities
from ihmm.kernels.counts import moments
from ihmm.kernels.families import CompiledFamily, dispatch

LOG_2PI = float(np.log(2 * np.pi))


class NormalPhi(NamedTuple):
    mean: FloatArray
    variance: FloatArray


class Moments(NamedTuple):
    """Sufficient statistics of each state's values; all 0 for a state without any."""

    number: IntArray
    average: FloatArray
    square: FloatArray  # Σ (y_t − average)²


@dataclass(frozen=True)
class Normal(ConjugateEmission):
    """Gaussian observations under the conjugate normal-inverse-gamma prior (T15 §2.2).

    Parameters
    ----------
    mean
        Prior mean of the state means.
    strength
        Weight of the prior mean in observations; small values let the state means spread far.
    shape, rate
        σ² ~ InvGamma(shape, rate), of mean rate/(shape − 1).
    """

    mean: float = 0.0
    strength: float = 0.1
    shape: float = 2.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _checks.finite("Normal mean", self.mean)
        for name in ("strength", "shape", "rate"):
            _checks.positive(f"Normal {name}", getattr(self, name))

    def validate(self, y: Array) -> FloatArray:
        return real_values(y, "Normal")

    def log_density(self, y: FloatArray, phi: NormalPhi) -> FloatArray:
        return log_normal(y, phi.mean, phi.variance)

    def log_density_at(self, y: FloatArray, states: IntArray, phi: NormalPhi) -> FloatArray:
        return log_normal_at(y, states, phi.mean, phi.variance)

    def log_marginal(self, y: FloatArray) -> FloatArray:
        # Student t with 2·shape degrees of freedom
        scale = 2 * self.rate * (1 + 1 / self.strength)
        constant = lgamma(self.shape + 0.5) - lgamma(self.shape) - 0.5 * np.log(np.pi * scale)
        return np.asarray(constant - (self.shape + 0.5) * np.log1p((y - self.mean) ** 2 / scale))

    def sample_prior(self, rng: np.random.Generator, n: int) -> NormalPhi:
        variance = self.rate / np.maximum(rng.standard_gamma(self.shape, n), FLOOR)
        return NormalPhi(self.mean + rng.standard_normal(n) * np.sqrt(variance / self.strength), variance)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> NormalPhi:
        return self._draw(rng, statistics(y, states, n_states))

    def draw_posterior(
        self, rng: np.random.Generator, count: IntArray, weight: Array, average: FloatArray, square: Array
    ) -> NormalPhi:
        """φ given each state's number of observations, their total weight, weighted average and weighted sum of squares
        about it; an observation of weight w has variance σ²/w."""
        center, strength, shape, rate = self._posterior(count, weight, average, square)
        variance = rate / np.maximum(rng.standard_gamma(shape), FLOOR)
        return NormalPhi(center + rng.standard_normal(len(count)) * np.sqrt(variance / strength), variance)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: NormalPhi) -> FloatArray:
        return phi.mean[states] + np.sqrt(phi.variance)[states] * rng.standard_normal(len(states))

    def log_prior(self, phi: NormalPhi) -> FloatArray:
        precision = 1 / phi.variance
        log_gamma = self.shape * np.log(self.rate) - lgamma(self.shape) + (self.shape + 1) * np.log(precision)
        residual = phi.mean - self.mean
        log_normal = 0.5 * (np.log(self.strength * precision) - LOG_2PI - self.strength * precision * residual**2)
        return np.asarray(log_gamma - self.rate * precision + log_normal)

    def log_evidence(self, y: FloatArray) -> float:
        if len(y) == 0:
            return 0.0
        n, average = len(y), y.mean()
        square = np.square(y - average).sum()
        _, strength, shape, rate = self._posterior(np.array(n), np.array(n), average, square)
        log_evidence = (
            lgamma(float(shape))
            - lgamma(self.shape)
            + self.shape * np.log(self.rate)
            - shape * np.log(rate)
            + 0.5 * np.log(self.strength / strength)
            - 0.5 * n * LOG_2PI
        )
        return float(log_evidence)

    def conjugate(self, y: FloatArray) -> Conjugate:
        prior = np.array([self.mean, self.strength, self.shape, self.rate])
        compiled = CompiledFamily(dispatch.NORMAL, prior, y, size=7)
        return Conjugate(statistics, combine_moments, self._draw, log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: Moments) -> NormalPhi:
        return self.draw_posterior(rng, statistics.number, *statistics)

    def _posterior(
        self, count: IntArray, weight: Array, average: FloatArray, square: Array
    ) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        strength = self.strength + weight
        center = (self.strength * self.mean + weight * average) / strength
        shape = self.shape + 0.5 * count
        rate = self.rate + 0.5 * square + 0.5 * self.strength * weight / strength * (average - self.mean) ** 2
        return center, strength, shape, rate


def statistics(y: FloatArray, states: IntArray, n_states: int) -> Moments:
    return Moments(*moments(states, y, n_states))


def combine_moments(parts: Sequence[Moments]) -> Moments:
    """n = Σ n_i, a = Σ n_i a_i / n and S = Σ S_i + n_i (a_i − a)²: large squares do not cancel."""
    number, average, square = map(np.stack, zip(*parts, strict=True))
    together, center = pool(number, average)
    return Moments(together, center, total(square + number * np.square(average - center)))


def pool(number: IntArray, average: FloatArray) -> tuple[IntArray, FloatArray]:
    """Number and average of the values of all parts, (P, …)."""
    together = number.sum(axis=0)
    return together, total(number * average) / np.maximum(together, 1)


def log_likelihood(statistics: Moments, phi: NormalPhi) -> float:
    return log_normal_given(statistics, phi.mean, phi.variance)


def log_normal_given(statistics: Moments, mean: FloatArray, variance: FloatArray) -> float:
    """log Π_t N(y_t | mean_k, variance_k), k = s_t, from sufficient statistics."""
    here = statistics.number > 0  # the parameters of unvisited states may be too large to be squared
    if not here.all():
        statistics, mean, variance = take(statistics, here), mean[here], variance[here]
    number, average, square = statistics
    distance = (square + number * np.square(average - mean)) / variance
    return -0.5 * float((distance + number * (LOG_2PI + np.log(variance))).sum())


def log_normal(y: FloatArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """log N(y_t | mean_k, variance_k), (T, K)."""
    out = np.empty((len(mean), len(y)))
    densities.log_normal(np.ascontiguousarray(y), *_constants(mean, variance), out)
    return out.T


def log_normal_at(y: FloatArray, states: IntArray, mean: FloatArray, variance: FloatArray) -> FloatArray:
    """log N(y_t | mean_k, variance_k), k = s_t, shape (T,)."""
    out = np.empty(len(y))
    densities.log_normal_at(np.ascontiguousarray(y), states, *_constants(mean, variance), out)
    return out


def _constants(mean: FloatArray, variance: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    return np.ascontiguousarray(mean), -0.5 / variance, 0.5 * (LOG_2PI + np.log(variance))
