"""Gaussian rows with independent columns: one `Normal` per column."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions import normal
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._missing import density_of_known
from ihmm.emissions._parameters import take
from ihmm.emissions.normal import Moments, Normal, NormalPhi, combine_moments, log_normal_given
from ihmm.kernels.families import CompiledFamily, dispatch


class DiagonalPhi(NamedTuple):
    mean: FloatArray  # (K, D)
    variance: FloatArray  # (K, D)


@dataclass(frozen=True)
class DiagonalNormal:
    """`MultivariateNormal` with covariance="diagonal". Missing values are left out of the density of their column."""

    columns: tuple[Normal, ...]

    def log_density(self, y: FloatArray, phi: DiagonalPhi) -> FloatArray:
        out = np.zeros((len(phi.mean), len(y)))
        for d, column in enumerate(self.columns):
            out += density_of_known(column.log_density(y[:, d], _column(phi, d)).T)
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: DiagonalPhi) -> FloatArray:
        out = np.zeros(len(y))
        for d, column in enumerate(self.columns):
            out += density_of_known(column.log_density_at(y[:, d], states, _column(phi, d)))
        return out

    def log_marginal(self, y: FloatArray) -> FloatArray:
        out = np.zeros(len(y))
        for d, column in enumerate(self.columns):
            out += density_of_known(column.log_marginal(y[:, d]))
        return out

    def sample_prior(self, rng: np.random.Generator, n: int) -> DiagonalPhi:
        return DiagonalPhi(*_stack([column.sample_prior(rng, n) for column in self.columns]))

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> DiagonalPhi:
        return self._draw(rng, statistics(y, states, n_states))

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

    def conjugate(self, y: FloatArray) -> Conjugate:
        prior = np.array([[column.mean, column.strength, column.shape, column.rate] for column in self.columns])
        compiled = CompiledFamily(
            dispatch.DIAGONAL_NORMAL, np.ascontiguousarray(prior.T), y, size=1 + 3 * len(self.columns)
        )
        return Conjugate(statistics, combine_moments, self._draw, log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: Moments) -> DiagonalPhi:
        moments = [take(statistics, np.s_[:, d]) for d in range(len(self.columns))]
        columns = zip(self.columns, moments, strict=True)
        return DiagonalPhi(*_stack([column.draw_posterior(rng, own.number, *own) for column, own in columns]))


def statistics(y: FloatArray, states: IntArray, n_states: int) -> Moments:
    """The statistics of `Normal` with a further axis, (K, D)."""
    known = ~np.isnan(y)
    columns = [known[:, d] for d in range(y.shape[1])]
    each = [normal.statistics(y[here, d], states[here], n_states) for d, here in enumerate(columns)]
    return Moments(*_stack(each))


def log_likelihood(statistics: Moments, phi: DiagonalPhi) -> float:
    return log_normal_given(statistics, phi.mean, phi.variance)


def _column(phi: DiagonalPhi, d: int) -> NormalPhi:
    return NormalPhi(phi.mean[:, d], phi.variance[:, d])


def _stack(columns: Sequence[Iterable[Array]]) -> Iterator[Array]:
    """The arrays of all columns side by side."""
    return (np.stack(arrays, axis=1) for arrays in zip(*columns, strict=True))
