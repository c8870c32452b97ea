"""Poisson durations."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import gammainc, gammaln

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations._protocol import Runs, complete
from ihmm.durations._tails import hazards, log_tail, mean_residual_life

LEAST = 1e-12


class PoissonOmega(NamedTuple):
    rate: FloatArray  # (K,)


@dataclass(frozen=True)
class Poisson:
    """D = minimum + G, G ~ Poisson(λ), λ ~ Gamma(shape, rate): states last about equally long each time.

    Parameters
    ----------
    shape, rate
        Prior of λ. The default expects about ten steps, and leaves room for a hundred.
    minimum
        Least number of steps that a state lasts. A segment that the end of the data cuts off may be shorter.
    """

    shape: float = 1.0
    rate: float = 0.1
    minimum: int = 1

    def __post_init__(self) -> None:
        _checks.positive("Poisson shape", self.shape)
        _checks.positive("Poisson rate", self.rate)
        _checks.count("Poisson minimum", self.minimum, most=_checks.MAX_SIZE)

    @property
    def constant_from(self) -> None:
        return None

    def sample_prior(self, rng: np.random.Generator, n: int) -> PoissonOmega:
        return PoissonOmega(np.maximum(rng.gamma(self.shape, 1 / self.rate, n), LEAST))

    def log_probability(self, d: Array, omega: PoissonOmega) -> FloatArray:
        g = np.maximum(d - self.minimum, 0)
        return np.where(np.less(d, self.minimum), -np.inf, g * np.log(omega.rate) - omega.rate - gammaln(g + 1))

    def log_survivor(self, d: Array, omega: PoissonOmega) -> FloatArray:
        g = np.maximum(d - self.minimum, 0)
        survivor = np.where(g > 0, gammainc(np.maximum(g, 1), omega.rate), 1.0)
        log_p = partial(self.log_probability, g + self.minimum, omega)
        return log_tail(g, survivor, log_p, lambda g: np.asarray(omega.rate / (g + 1)))

    def hazard(self, n_ages: int, omega: PoissonOmega) -> FloatArray:
        def log_last(g: int) -> FloatArray:
            d = np.array(self.minimum + g)
            return np.asarray(self.log_survivor(d, omega) - self.log_probability(d, omega))

        return hazards(n_ages, self.minimum, lambda g: omega.rate[:, None] / (g + 1), log_last)

    def sample(self, rng: np.random.Generator, omega: PoissonOmega) -> IntArray:
        return np.asarray(self.minimum + rng.poisson(omega.rate))

    def update(self, rng: np.random.Generator, runs: Runs, omega: PoissonOmega) -> PoissonOmega:
        n_states = len(omega.rate)
        excess = complete(rng, self, runs, omega) - self.minimum
        shape = self.shape + np.bincount(runs.state, excess, n_states)
        rate = self.rate + np.bincount(runs.state, minlength=n_states)
        # 1/E[D]^n ∝ ∫ u^(n−1) exp(−u (minimum + λ)) du for n runs that may have begun before the data
        rate = rate + rng.standard_gamma(np.bincount(runs.state[runs.left_censored], minlength=n_states)) / self.mean(
            omega
        )
        return PoissonOmega(np.maximum(rng.standard_gamma(shape) / rate, LEAST))

    def mean(self, omega: PoissonOmega) -> FloatArray:
        return np.asarray(self.minimum + omega.rate)

    def mean_residual(self, d: Array, omega: PoissonOmega) -> FloatArray:
        """E[G; G ≥ g] = λ P(G ≥ g − 1)."""
        g = np.maximum(d - self.minimum, 0)
        log_ratio = self.log_survivor(g + self.minimum - 1, omega) - self.log_survivor(g + self.minimum, omega)
        return mean_residual_life(d, self.minimum, omega.rate * np.exp(log_ratio))
