"""Angles: y | μ, κ ~ VonMises(μ, κ) with μ ~ VonMises(direction, strength) and κ ~ Gamma(shape, rate)."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy.special import i0e

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._gamma import expectation, gamma_nodes, log_density_of_log, log_gamma_density
from ihmm.emissions._protocol import Emission
from ihmm.emissions._slice import slice_step
from ihmm.emissions._validation import real_values
from ihmm.emissions.normal import LOG_2PI


class VonMisesPhi(NamedTuple):
    direction: FloatArray
    concentration: FloatArray

    @property
    def angles(self) -> tuple[str, ...]:
        return ("direction",)


@dataclass(frozen=True)
class VonMises(Emission):
    """Angles in radians, one per time step. They may be unwrapped; they are wrapped into ±π.

    Means and intervals of forecast or imputed angles are taken on the circle.

    Parameters
    ----------
    shape, rate
        The concentration κ of each state is Gamma(shape, rate). For large κ angles are nearly Gaussian with variance
        1/κ; for κ = 0 they are uniform.
    direction, strength
        Mean directions are von Mises with mean `direction` and concentration `strength`; 0 makes all of them equally
        likely.
    """

    circular: ClassVar[bool] = True  # observations are angles

    shape: float = 1.0
    rate: float = 0.05
    direction: float = 0.0
    strength: float = 0.0

    def __post_init__(self) -> None:
        _checks.positive("VonMises shape", self.shape)
        _checks.positive("VonMises rate", self.rate)
        _checks.finite("VonMises direction", self.direction)
        _checks.not_negative("VonMises strength", self.strength)

    def validate(self, y: Array) -> FloatArray:
        angles = real_values(y, "VonMises")
        largest = float(np.abs(angles).max())
        # An unwrapped angle may be large, but then it does not jump
        if 4 * np.pi < largest <= 360 and np.abs(np.diff(angles)).max(initial=0) > np.pi:
            raise ValueError(
                f"VonMises expects radians, and values up to {largest:g} that jump look like degrees; "
                "convert them with np.deg2rad(y), or, if they are radians, wrap them with np.angle(np.exp(1j * y))"
            )
        return np.where(np.abs(angles) <= np.pi, angles, wrap(angles))

    def log_density(self, y: FloatArray, phi: VonMisesPhi) -> FloatArray:
        # κ cos(y − μ) = κ − 2κ sin²((y − μ)/2), which keeps its digits when κ is large
        half = phi.direction / 2
        out = np.multiply.outer(np.cos(half), np.sin(y / 2))
        out -= np.multiply.outer(np.sin(half), np.cos(y / 2))
        out *= out
        out *= (-2 * phi.concentration)[:, None]
        out -= log_normaliser(phi.concentration)[:, None]
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: VonMisesPhi) -> FloatArray:
        square = np.square(np.sin((y - phi.direction[states]) / 2))
        return np.asarray(-2 * phi.concentration[states] * square - log_normaliser(phi.concentration)[states])

    def log_marginal(self, y: FloatArray) -> FloatArray:
        if self.strength == 0:
            return np.full(len(y), -LOG_2PI)
        concentration, log_weight = gamma_nodes(self.shape, self.rate)

        def log_given_concentration(y: FloatArray) -> FloatArray:
            return self._log_evidence(concentration[:, None], Resultant(1, np.ones(1), np.zeros(1), y))

        return expectation(log_given_concentration, log_weight, y)

    def sample_prior(self, rng: np.random.Generator, n: int) -> VonMisesPhi:
        concentration = np.maximum(rng.standard_gamma(self.shape, n) / self.rate, FLOOR)
        return VonMisesPhi(rng.vonmises(self.direction, self.strength, n), concentration)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> VonMisesPhi:
        # for large κ, y is nearly Gaussian with variance 1/κ
        seen = resultant(y, states, n_states)
        concentration = rng.standard_gamma(self.shape + 0.5 * seen.number) / (self.rate + seen.shortfall)
        return self.update(rng, y, states, VonMisesPhi(seen.direction, np.maximum(concentration, FLOOR)))

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: VonMisesPhi) -> VonMisesPhi:
        """A step of κ with μ integrated out, then μ given κ."""
        seen = resultant(y, states, len(phi.direction))

        def log_posterior(log_concentration: FloatArray) -> FloatArray:
            log_prior = log_density_of_log(log_concentration, self.shape, self.rate)
            return log_prior + self._log_evidence(np.exp(log_concentration), seen)

        width = 3 / np.sqrt(self.shape + 0.5 * seen.number)  # three standard deviations, if κ is large
        concentration = np.exp(slice_step(rng, log_posterior, np.log(phi.concentration), width))
        pull = concentration * seen.length
        together = pull * np.exp(1j * seen.direction) + self.strength * np.exp(1j * self.direction)
        return VonMisesPhi(rng.vonmises(np.angle(together), np.abs(together)), np.maximum(concentration, FLOOR))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: VonMisesPhi) -> FloatArray:
        return rng.vonmises(phi.direction[states], phi.concentration[states])

    def log_prior(self, phi: VonMisesPhi) -> FloatArray:
        log_gamma = log_gamma_density(phi.concentration, self.shape, self.rate)
        square = np.square(np.sin((phi.direction - self.direction) / 2))
        return np.asarray(log_gamma - 2 * self.strength * square - log_normaliser(np.asarray(self.strength)))

    def _log_evidence(self, concentration: FloatArray, seen: "Resultant") -> FloatArray:
        """log ∫ Π f(y_t | μ, κ) p(μ) dμ = log I₀(|κR + strength|) − log I₀(strength) − n log 2πI₀(κ), R and strength
        taken as vectors. I₀ is scaled by its exponent, of which what is left is written without cancellation."""
        pull = concentration * seen.length
        square = 4 * pull * self.strength * np.square(np.sin((seen.direction - self.direction) / 2))
        together = np.sqrt(np.maximum((pull + self.strength) ** 2 - square, 0.0))
        exponent = -concentration * seen.shortfall - square / np.maximum(together + pull + self.strength, FLOOR)
        scaled = np.log(i0e(together)) - np.log(i0e(self.strength))
        return np.asarray(scaled + exponent - seen.number * log_normaliser(concentration))


class Resultant(NamedTuple):
    """The sum of unit vectors."""

    number: Array | int
    length: FloatArray
    shortfall: FloatArray  # number − length, which would cancel where all angles are nearly the same
    direction: FloatArray


def resultant(y: FloatArray, states: IntArray, n_states: int) -> Resultant:
    """That of each state's angles."""
    number = np.bincount(states, minlength=n_states)
    x, z = (np.bincount(states, weights=side, minlength=n_states) for side in (np.cos(y), np.sin(y)))
    direction = np.arctan2(z, x)
    # 1 − cos = 2 sin² of the half
    each = 2 * np.square(np.sin((y - direction[states]) / 2))
    shortfall = np.asarray(np.bincount(states, weights=each, minlength=n_states), np.float64)
    return Resultant(number, np.hypot(x, z), shortfall, direction)


def log_normaliser(concentration: FloatArray) -> FloatArray:
    """log 2πI₀(κ) − κ."""
    return np.asarray(LOG_2PI + np.log(i0e(concentration)))


def wrap(angles: FloatArray) -> FloatArray:
    """The same angles within ±π."""
    return np.asarray((angles + np.pi) % (2 * np.pi) - np.pi)
