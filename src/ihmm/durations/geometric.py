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
        _checks.count("Geometric minimum", self.minimum, most=_checks.MAX_SIZE)

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
        if self.minimum > 1 and runs.left_censored.any():
            more_left, more_stayed = self._before_the_data(rng, runs, omega)
            left, stayed = left + more_left, stayed + more_stayed
        return GeometricOmega(np.clip(rng.beta(self.a + left, self.b + stayed), LEAST, 1 - LEAST))

    def _before_the_data(
        self, rng: np.random.Generator, runs: Runs, omega: GeometricOmega
    ) -> tuple[IntArray, IntArray]:
        """Auxiliary trials that stand for what the left-censored runs have in addition to the others.

        Their 1/E[D] is p/(1 + (m−1)p): the p is that of leaving, and the rest is Σ_j ((1 − p)(m − 1)/m)^j / m, j trials
        of staying. One that is cut off at both ends after d < m steps has a factor 1 + (m−d)p: a trial of leaving, or
        none.
        """
        m, n_states = self.minimum, len(omega.p)
        first = np.bincount(runs.state[runs.left_censored], minlength=n_states)
        stayed = rng.negative_binomial(np.maximum(first, 1), 1 - (1 - omega.p) * (m - 1) / m)
        both = runs.left_censored & runs.censored
        odds = np.maximum(m - runs.length[both], 0) * omega.p[runs.state[both]]
        left = rng.random(len(odds)) * (1 + odds) < odds
        return np.bincount(runs.state[both], left, n_states).astype(np.int64), np.where(first > 0, stayed, 0)

    def mean(self, omega: GeometricOmega) -> FloatArray:
        return np.asarray(self.minimum - 1 + 1 / omega.p)

    def mean_residual(self, d: Array, omega: GeometricOmega) -> FloatArray:
        return np.asarray(np.maximum(self.minimum - d, 0) + 1 / omega.p)
