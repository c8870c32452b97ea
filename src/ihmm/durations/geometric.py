"""Geometric durations: a staying probability of its own for every state."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations._protocol import Runs

LEAST = 1e-12  # of p and 1 − p


class GeometricOmega(NamedTuple):
    p: FloatArray  # (K,): probability of leaving at every step from the minimum on


@dataclass(frozen=True)
class Geometric:
    """D = minimum + G with P(G = g) = p (1 − p)^g, p ~ Beta(a, b).

    It is memoryless beyond the minimum: the model is the hidden Markov model in which every state has a staying
    probability of its own (the "disentangled sticky" HDP-HMM), at the price of the plain one.

    Parameters
    ----------
    a, b
        Prior of the probability p of leaving. The default expects states to last for about ten steps or longer.
    minimum
        Least number of steps that a state lasts. A segment that the end of the data cuts off may be shorter.
    """

    a: float = 1.0
    b: float = 10.0
    minimum: int = 1

    def __post_init__(self) -> None:
        _checks.positive("Geometric a", self.a)
        _checks.positive("Geometric b", self.b)
        _checks.count("Geometric minimum", self.minimum)

    @property
    def constant_from(self) -> int:
        return self.minimum

    def sample_prior(self, rng: np.random.Generator, n: int) -> GeometricOmega:
        return GeometricOmega(np.clip(rng.beta(self.a, self.b, n), LEAST, 1 - LEAST))

    def log_probability(self, d: Array, omega: GeometricOmega) -> FloatArray:
        known = np.log(omega.p) + (d - self.minimum) * np.log1p(-omega.p)
        return np.where(np.less(d, self.minimum), -np.inf, known)

    def log_survivor(self, d: Array, omega: GeometricOmega) -> FloatArray:
        return np.asarray(np.maximum(d - self.minimum, 0) * np.log1p(-omega.p))

    def hazard(self, n_ages: int, omega: GeometricOmega) -> FloatArray:
        return np.where(np.arange(1, n_ages + 1) < self.minimum, 0.0, omega.p[:, None])

    def sample(self, rng: np.random.Generator, omega: GeometricOmega) -> IntArray:
        return np.asarray(self.minimum - 1 + rng.geometric(omega.p))

    def update(self, rng: np.random.Generator, runs: Runs, omega: GeometricOmega) -> GeometricOmega:
        """An exact draw: every step from the minimum on is a Bernoulli trial, whether or not the run is censored."""
        n_states = len(omega.p)
        left = np.bincount(runs.state[~runs.censored], minlength=n_states)
        stayed = np.bincount(runs.state, np.maximum(runs.length - self.minimum, 0), n_states)
        return GeometricOmega(np.clip(rng.beta(self.a + left, self.b + stayed), LEAST, 1 - LEAST))

    def mean(self, omega: GeometricOmega) -> FloatArray:
        return np.asarray(self.minimum - 1 + 1 / omega.p)
