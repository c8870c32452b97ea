"""Student t emissions: y | μ, σ² ~ t(dof, μ, σ²) with μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate).

A t is a Gaussian whose precision varies between time steps: y_t | λ_t ~ N(μ, σ²/λ_t), λ_t ~ Gamma(dof/2, dof/2). Given
the λ_t, (μ, σ²) has the posterior of `Normal` with weighted observations.
"""

from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._gamma import expectation, gamma_nodes
from ihmm.emissions._protocol import Emission
from ihmm.emissions._validation import real_values
from ihmm.emissions.normal import Normal, NormalPhi


class StudentTPhi(NamedTuple):
    location: FloatArray
    scale2: FloatArray  # σ²; the variance is dof/(dof − 2) times as large


@dataclass(frozen=True)
class StudentT(Emission):
    """Observations with heavy tails, so that outliers do not create states of their own.

    Parameters
    ----------
    dof
        Degrees of freedom, the same for all states; fewer mean heavier tails. With 4, one value in 130 is more than
        five scales from the location; with 30 the density is nearly Gaussian.
    mean
        Prior mean of the locations.
    strength
        Weight of the prior mean in observations; small values let the locations spread far.
    shape, rate
        The squared scale is InvGamma(shape, rate), with mean rate/(shape − 1).
    """

    dof: float = 4.0
    mean: float = 0.0
    strength: float = 0.1
    shape: float = 2.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _checks.finite("StudentT mean", self.mean)
        for name in ("dof", "strength", "shape", "rate"):
            _checks.positive(f"StudentT {name}", getattr(self, name))

    def validate(self, y: Array) -> FloatArray:
        return real_values(y, "StudentT")

    def log_density(self, y: FloatArray, phi: StudentTPhi) -> FloatArray:
        out = y - phi.location[:, None]
        out *= out
        out *= (1 / (self.dof * phi.scale2))[:, None]
        np.log1p(out, out=out)
        out *= -0.5 * (self.dof + 1)
        out += self._log_peak(phi.scale2)[:, None]
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: StudentTPhi) -> FloatArray:
        distance = np.square(y - phi.location[states]) * (1 / (self.dof * phi.scale2))[states]
        return np.asarray(self._log_peak(phi.scale2)[states] - 0.5 * (self.dof + 1) * np.log1p(distance))

    def log_marginal(self, y: FloatArray) -> FloatArray:
        # given λ, a t with 2·shape degrees of freedom: y ~ N(mean, σ²(1/λ + 1/strength)), σ² ~ InvGamma
        precision, log_weight = gamma_nodes(self.dof / 2, self.dof / 2)
        scale = 2 * self.rate * (1 / precision + 1 / self.strength)
        constant = lgamma(self.shape + 0.5) - lgamma(self.shape) - 0.5 * np.log(np.pi * scale)

        def log_student(y: FloatArray) -> FloatArray:
            distance = np.square(y - self.mean) / scale[:, None]
            return np.asarray(constant[:, None] - (self.shape + 0.5) * np.log1p(distance))

        return expectation(log_student, log_weight, y)

    def sample_prior(self, rng: np.random.Generator, n: int) -> StudentTPhi:
        return StudentTPhi(*self._normal.sample_prior(rng, n))

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> StudentTPhi:
        """As if all observations had the same weight, which is good enough to start from."""
        return StudentTPhi(*self._normal.resample(rng, y, states, n_states))

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: StudentTPhi) -> StudentTPhi:
        """Draw the λ_t given φ, then φ given the λ_t."""
        distance = np.square(y - phi.location[states]) / phi.scale2[states]
        weight = 2 * rng.standard_gamma(0.5 * (self.dof + 1), len(y)) / (self.dof + distance)
        return self._given_weights(rng, y, states, np.maximum(weight, FLOOR), len(phi.location))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: StudentTPhi) -> FloatArray:
        return phi.location[states] + np.sqrt(phi.scale2)[states] * rng.standard_t(self.dof, len(states))

    def log_prior(self, phi: StudentTPhi) -> FloatArray:
        return self._normal.log_prior(NormalPhi(*phi))

    @cached_property
    def _normal(self) -> Normal:
        return Normal(self.mean, self.strength, self.shape, self.rate)

    def _log_peak(self, scale2: FloatArray) -> FloatArray:
        constant = lgamma(0.5 * (self.dof + 1)) - lgamma(0.5 * self.dof) - 0.5 * np.log(np.pi * self.dof)
        return np.asarray(constant - 0.5 * np.log(scale2))

    def _given_weights(
        self, rng: np.random.Generator, y: FloatArray, states: IntArray, weight: FloatArray, n_states: int
    ) -> StudentTPhi:
        """φ given y_t ~ N(μ, σ²/weight_t)."""
        count = np.bincount(states, minlength=n_states)
        total = np.bincount(states, weights=weight, minlength=n_states)
        average = np.bincount(states, weights=weight * y, minlength=n_states) / np.maximum(total, FLOOR)
        square = np.bincount(states, weights=weight * np.square(y - average[states]), minlength=n_states)
        return StudentTPhi(*self._normal.draw_posterior(rng, count, total, average, square))
