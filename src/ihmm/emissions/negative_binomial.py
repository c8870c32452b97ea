"""Overdispersed counts: y | μ, r ~ NegativeBinomial with mean μ and size r; μ ~ Gamma, r ~ Gamma."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._counts import whole_counts
from ihmm.emissions._gamma import expectation, gamma_nodes, log_density_of_log, log_gamma_density
from ihmm.emissions._protocol import Emission
from ihmm.emissions._slice import slice_step

LARGEST_TABLE = 4096  # largest count up to which densities are looked up in a table
LARGEST_SIZE = 1e12  # from which counts are Poisson to all digits


class NegativeBinomialPhi(NamedTuple):
    rate: FloatArray
    size: FloatArray


@dataclass(frozen=True)
class NegativeBinomial(Emission):
    """One count per time step, with mean μ and variance μ + μ²/r in each state.

    Poisson counts whose rate varies within a state: the rate is Gamma distributed with mean μ and shape r, the size.
    Counts with a large size are nearly Poisson.

    Parameters
    ----------
    shape, rate
        The mean μ of each state is Gamma(shape, rate).
    size_shape, size_rate
        The size r of each state is Gamma(size_shape, size_rate).
    """

    shape: float = 1.0
    rate: float = 1.0
    size_shape: float = 2.0
    size_rate: float = 0.4

    def __post_init__(self) -> None:
        _checks.positive("NegativeBinomial shape", self.shape)
        _checks.positive("NegativeBinomial rate", self.rate)
        _checks.positive("NegativeBinomial size_shape", self.size_shape)
        _checks.positive("NegativeBinomial size_rate", self.size_rate)

    def validate(self, y: Array) -> IntArray:
        return whole_counts(y, "NegativeBinomial")

    def log_density(self, y: IntArray, phi: NegativeBinomialPhi) -> FloatArray:
        if y.max(initial=0) > LARGEST_TABLE:
            return log_probability(y[:, None], phi.rate, phi.size)
        table = log_probability(np.arange(y.max(initial=0) + 1), phi.rate[:, None], phi.size[:, None])
        return np.asarray(np.take(table, y, axis=1).T)

    def log_density_at(self, y: IntArray, states: IntArray, phi: NegativeBinomialPhi) -> FloatArray:
        return log_probability(y, phi.rate[states], phi.size[states])

    def log_marginal(self, y: IntArray) -> FloatArray:
        counts, place = np.unique(y, return_inverse=True)
        rate, log_weight = gamma_nodes(self.shape, self.rate)
        sizes, log_weights = gamma_nodes(self.size_shape, self.size_rate)

        def log_given_size(counts: FloatArray) -> FloatArray:
            given = [partial(log_probability, rate=rate[:, None], size=size) for size in sizes]
            return np.stack([expectation(log_given_both, log_weight, counts) for log_given_both in given])

        return np.asarray(expectation(log_given_size, log_weights, counts.astype(np.float64))[place])

    def sample_prior(self, rng: np.random.Generator, n: int) -> NegativeBinomialPhi:
        rate = rng.standard_gamma(self.shape, n) / self.rate
        size = rng.standard_gamma(self.size_shape, n) / self.size_rate
        return NegativeBinomialPhi(np.maximum(rate, FLOOR), np.clip(size, FLOOR, LARGEST_SIZE))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> NegativeBinomialPhi:
        # by the method of moments, or from the prior where there are no observations
        number = np.bincount(states, minlength=n_states)
        mean = (self.shape + np.bincount(states, y, n_states)) / (self.rate + number)
        excess = np.bincount(states, np.square(y - mean[states]) - mean[states], n_states) / np.maximum(number, 1)
        size = np.square(mean) / np.maximum(excess, 1e-3 * np.square(mean))
        prior = self.sample_prior(rng, n_states)
        start = NegativeBinomialPhi(np.where(number > 0, mean, prior.rate), np.where(number > 0, size, prior.size))
        return self.update(rng, y, states, start)

    def update(
        self, rng: np.random.Generator, y: IntArray, states: IntArray, phi: NegativeBinomialPhi
    ) -> NegativeBinomialPhi:
        """A step of r given μ, then one of μ given r; the likelihood hardly correlates the two."""
        counts, column = np.unique(y, return_inverse=True)
        n_states = len(phi.rate)
        number = np.bincount(states * len(counts) + column, minlength=n_states * len(counts)).reshape(n_states, -1)

        def log_likelihood(rate: FloatArray, size: FloatArray) -> FloatArray:
            return np.asarray((number * log_probability(counts, rate[:, None], size[:, None])).sum(axis=1))

        def log_posterior_size(log_size: FloatArray) -> FloatArray:
            log_prior = log_density_of_log(log_size, self.size_shape, self.size_rate)
            return log_prior + log_likelihood(phi.rate, np.exp(log_size))

        def log_posterior_rate(log_rate: FloatArray) -> FloatArray:
            return log_density_of_log(log_rate, self.shape, self.rate) + log_likelihood(np.exp(log_rate), size)

        steps = number.sum(axis=1)
        size = np.exp(slice_step(rng, log_posterior_size, np.log(phi.size), 3 / np.sqrt(1 + 0.1 * steps)))
        size = np.clip(size, FLOOR, LARGEST_SIZE)
        # about three standard deviations of log μ, from the data and r alone: the width must not depend on μ
        mean = (self.shape + number @ counts) / (self.rate + steps)
        width = np.clip(3 * np.sqrt((1 / mean + 1 / size) / (1 + steps)), 1e-3, 3.0)
        rate = np.exp(slice_step(rng, log_posterior_rate, np.log(phi.rate), width))
        return NegativeBinomialPhi(np.maximum(rate, FLOOR), size)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: NegativeBinomialPhi) -> IntArray:
        size = phi.size[states]
        return rng.poisson(phi.rate[states] * rng.standard_gamma(size) / size)

    def log_prior(self, phi: NegativeBinomialPhi) -> FloatArray:
        rate = log_gamma_density(phi.rate, self.shape, self.rate)
        return rate + log_gamma_density(phi.size, self.size_shape, self.size_rate)


def log_probability(y: Array, rate: FloatArray, size: FloatArray) -> FloatArray:
    """log C(y + r − 1, y) + r log(r/(r + μ)) + y log(μ/(r + μ))."""
    log_choose = -betaln(size, y + 1.0) - np.log(y + size)
    return np.asarray(log_choose - size * np.log1p(rate / size) - y * np.log1p(size / rate))
