"""Normal rows with independent columns: `Normal`, once for each of them."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._base import Collapsed, take
from ihmm.emissions.normal import Moments, Normal, NormalPhi, combine_moments, log_normal_given


class DiagonalPhi(NamedTuple):
    mean: FloatArray  # (K, D)
    variance: FloatArray  # (K, D)


@dataclass(frozen=True)
class DiagonalNormal:
    """What `MultivariateNormal` does with covariance="diagonal". A missing value is left out of its column."""

    columns: tuple[Normal, ...]

    def log_density(self, y: FloatArray, phi: DiagonalPhi) -> FloatArray:
        out = np.zeros((len(phi.mean), len(y)))
        for d, column in enumerate(self.columns):
            out += _known(column.log_density(y[:, d], _column(phi, d)).T)
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: DiagonalPhi) -> FloatArray:
        out = np.zeros(len(y))
        for d, column in enumerate(self.columns):
            out += _known(column.log_density_at(y[:, d], states, _column(phi, d)))
        return out

    def log_marginal(self, y: FloatArray) -> FloatArray:
        out = np.zeros(len(y))
        for d, column in enumerate(self.columns):
            out += _known(column.log_marginal(y[:, d]))
        return out

    def sample_prior(self, rng: np.random.Generator, n: int) -> DiagonalPhi:
        return DiagonalPhi(*_stack([column.sample_prior(rng, n) for column in self.columns]))

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> DiagonalPhi:
        return self.resample_given(rng, self.statistics(y, states, n_states))

    def statistics(self, y: FloatArray, states: IntArray, n_states: int) -> Moments:
        """Those of `Normal` with a further axis, (K, D)."""
        known = ~np.isnan(y)
        return Moments(
            *_stack(
                [
                    column.statistics(y[known[:, d], d], states[known[:, d]], n_states)
                    for d, column in enumerate(self.columns)
                ]
            )
        )

    def combine(self, parts: Sequence[Moments]) -> Moments:
        return combine_moments(parts)

    def resample_given(self, rng: np.random.Generator, statistics: Moments) -> DiagonalPhi:
        each = enumerate(self.columns)
        return DiagonalPhi(*_stack([column.resample_given(rng, take(statistics, np.s_[:, d])) for d, column in each]))

    def log_likelihood_given(self, statistics: Moments, phi: DiagonalPhi) -> float:
        return log_normal_given(statistics, phi.mean, phi.variance)

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: DiagonalPhi) -> DiagonalPhi:
        return self.resample(rng, y, states, len(phi.mean))

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: DiagonalPhi) -> FloatArray:
        return np.where(np.isnan(y), self.sample_observations(rng, states, phi), y)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: DiagonalPhi) -> FloatArray:
        noise = rng.standard_normal((len(states), len(self.columns)))
        return phi.mean[states] + np.sqrt(phi.variance)[states] * noise

    def log_prior(self, phi: DiagonalPhi) -> FloatArray:
        return np.asarray(np.sum([column.log_prior(_column(phi, d)) for d, column in enumerate(self.columns)], axis=0))

    def log_evidence(self, y: FloatArray) -> float:
        return sum(column.log_evidence(y[~np.isnan(y[:, d]), d]) for d, column in enumerate(self.columns))

    def collapsed(self, y: FloatArray) -> Collapsed:
        prior = np.array([[column.mean, column.strength, column.shape, column.rate] for column in self.columns])
        return Collapsed("diagonal_normal", np.ascontiguousarray(prior.T), y, size=1 + 3 * len(self.columns))


def _column(phi: DiagonalPhi, d: int) -> NormalPhi:
    return NormalPhi(phi.mean[:, d], phi.variance[:, d])


def _stack(columns: Sequence[Iterable[Array]]) -> Iterator[Array]:
    """The arrays of all columns beside each other."""
    return (np.stack(arrays, axis=1) for arrays in zip(*columns, strict=True))


def _known(log_density: FloatArray) -> FloatArray:
    """What is missing says nothing: its density is 1."""
    return np.where(np.isnan(log_density), 0.0, log_density)
