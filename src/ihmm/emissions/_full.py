"""Gaussian rows with full covariance: μ | Σ ~ N(m, Σ/κ), Σ ~ InverseWishart(ν, S)."""

from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._matrices import cholesky, log_det, log_multigamma
from ihmm.emissions._missing import fill_averages, patterns
from ihmm.emissions._protocol import Emission
from ihmm.emissions._scatter import (
    Scatter,
    combine_scatters,
    draw_root,
    log_normal_given,
    posterior,
    rows_prior,
    scatter,
    visited,
)
from ihmm.emissions.normal import LOG_2PI
from ihmm.kernels.families import CompiledFamily, dispatch

BLOCK = 1 << 17  # numbers whitened at a time, so that they fit in the cache
# Below this number of multiplications BLAS does not start threads, which would compete with those of the chains
SMALL = 1 << 18


class FullPhi(NamedTuple):
    mean: FloatArray  # (K, D)
    covariance: FloatArray  # (K, D, D)


@dataclass(frozen=True, eq=False)
class FullNormal:
    """`MultivariateNormal` with covariance="full".

    The density of a row with missing values is that of its observed ones. Given φ the missing values are Gaussian:
    `update` draws them, then φ from its conjugate posterior, which together leave φ | y, s invariant.
    """

    mean: FloatArray  # (D,)
    strength: float
    dof: float
    scale: FloatArray  # (D, D)

    def log_density(self, y: FloatArray, phi: FullPhi) -> FloatArray:
        out = np.empty((len(phi.mean), len(y)))
        for rows, known in patterns(y):
            block, mean = y[rows][:, known], phi.mean[:, known]
            factor = cholesky(phi.covariance[:, known][:, :, known])
            constant = mean.shape[1] * LOG_2PI + log_det(factor)
            out[:, rows] = square_distances(block, mean, factor) + constant[:, None]
        out *= -0.5
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: FullPhi) -> FloatArray:
        if len(y) * phi.covariance.size < SMALL:  # the whole table costs less than a loop over the states
            return np.asarray(self.log_density(y, phi)[np.arange(len(y)), states])
        return Emission.log_density_at(self, y, states, phi)  # type: ignore[arg-type]

    def log_marginal(self, y: FloatArray) -> FloatArray:
        # Student t with ν − D + 1 degrees of freedom, in as many dimensions as the row has values
        dof, spread = self.dof - len(self.mean) + 1, 1 + 1 / self.strength
        out = np.empty(len(y))
        for rows, known in patterns(y):
            gap = y[rows][:, known] - self.mean[known]
            factor, size = cholesky(self.scale[known][:, known]), gap.shape[1]
            constant = lgamma((dof + size) / 2) - lgamma(dof / 2)
            constant -= 0.5 * (size * np.log(np.pi * spread) + float(log_det(factor)))
            distance = np.square(np.linalg.solve(factor, gap.T)).sum(axis=0)
            out[rows] = constant - 0.5 * (dof + size) * np.log1p(distance / spread)
        return out

    def sample_prior(self, rng: np.random.Generator, n: int) -> FullPhi:
        size = len(self.mean)
        root = np.broadcast_to(self._root, (n, size, size))
        return draw(rng, np.broadcast_to(self.mean, (n, size)), np.full(n, self.strength), np.full(n, self.dof), root)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> FullPhi:
        """Missing values are replaced by the average of their column and state, which is good enough to start from."""
        return self._draw(rng, scatter(fill_averages(y, states, n_states, self.mean), states, n_states))

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: FullPhi) -> FullPhi:
        return self._draw(rng, scatter(self.complete(rng, y, states, phi), states, len(phi.mean)))

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: FullPhi) -> FloatArray:
        y = y.copy()
        for rows, known in patterns(y):
            missing = np.delete(np.arange(y.shape[1]), known)
            if len(missing) == 0:
                continue
            order, n = np.append(known, missing), len(known)
            for k in np.unique(states[rows]):
                here = rows[states[rows] == k]
                # with the observed columns first, y − μ = Lz: the first n of z are known, the others standard normal
                factor = cholesky(phi.covariance[k][np.ix_(order, order)])
                z = rng.standard_normal((len(order), len(here)))
                z[:n] = np.linalg.solve(factor[:n, :n], (y[np.ix_(here, known)] - phi.mean[k, known]).T)
                y[np.ix_(here, missing)] = phi.mean[k, missing] + (factor[n:] @ z).T
        return y

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: FullPhi) -> FloatArray:
        y = rng.standard_normal((len(states), len(self.mean)))
        factor = cholesky(phi.covariance)
        for k in np.unique(states):
            here = states == k
            y[here] = phi.mean[k] + y[here] @ factor[k].T
        return y

    def log_prior(self, phi: FullPhi) -> FloatArray:
        size, dof = len(self.mean), self.dof
        factor = cholesky(phi.covariance)
        # tr(S Σ⁻¹) + κ (μ − m)ᵀ Σ⁻¹ (μ − m) = |L⁻¹ (Rᵀ, √κ (μ − m))|²
        columns = np.empty((len(phi.mean), size, size + 1))
        columns[:, :, :size] = self._root.T
        columns[:, :, size] = np.sqrt(self.strength) * (phi.mean - self.mean)
        square = np.square(np.linalg.solve(factor, columns)).sum(axis=(1, 2))
        constant = dof * float(log_det(self._root)) - dof * size * np.log(2) - 2 * log_multigamma(dof, size)
        constant += size * (np.log(self.strength) - LOG_2PI)
        return np.asarray(0.5 * (constant - (dof + size + 2) * log_det(factor) - square))

    def log_evidence(self, y: FloatArray) -> float:
        if np.isnan(y).any():
            raise ValueError("with full covariance, rows with missing values have no evidence in closed form")
        if len(y) == 0:
            return 0.0
        size, n = len(self.mean), len(y)
        strength, dof = self.strength + n, self.dof + n
        _, (root,) = posterior(self.mean, self.strength, self._root, scatter(y, np.zeros(n, np.int64), 1))
        log_scale = self.dof * log_det(self._root) - dof * log_det(root)
        log_evidence = 0.5 * (log_scale + size * np.log(self.strength / strength) - n * size * np.log(np.pi))
        return float(log_evidence + log_multigamma(dof, size) - log_multigamma(self.dof, size))

    def conjugate(self, y: FloatArray) -> Conjugate | None:
        if np.isnan(y).any():
            return None
        size = len(self.mean)
        prior = rows_prior(self.mean, self.strength, self.dof, self.scale)
        compiled = CompiledFamily(dispatch.FULL_NORMAL, prior, y, size=3 + size + 2 * size**2)
        return Conjugate(scatter, combine_scatters, self._draw, log_likelihood, self.log_evidence, compiled)

    def _draw(self, rng: np.random.Generator, statistics: Scatter) -> FullPhi:
        mean, root = posterior(self.mean, self.strength, self._root, statistics)
        return draw(rng, mean, self.strength + statistics.number, self.dof + statistics.number, root)

    @cached_property
    def _root(self) -> FloatArray:
        """Upper triangular R with RᵀR = S."""
        return cholesky(self.scale).T


def log_likelihood(statistics: Scatter, phi: FullPhi) -> float:
    statistics, phi = visited(statistics, phi)
    return log_normal_given(statistics, phi.mean, phi.covariance)


def square_distances(y: FloatArray, mean: FloatArray, factor: FloatArray) -> FloatArray:
    """|L_k⁻¹(y_t − μ_k)|², shape (K, T)."""
    out = np.empty((len(mean), len(y)))
    whiten = np.linalg.inv(factor).swapaxes(1, 2)
    size = max(mean.shape[1], 1)
    step = max(1, min(SMALL // size**2, BLOCK // (len(mean) * size)))
    for t in range(0, len(y), step):
        z = (y[t : t + step] - mean[:, None]) @ whiten
        np.einsum("ktd,ktd->kt", z, z, out=out[:, t : t + step])
    return out


def draw(
    rng: np.random.Generator, mean: FloatArray, strength: FloatArray, dof: FloatArray, root: FloatArray
) -> FullPhi:
    """Σ ~ InverseWishart(dof, RᵀR) and μ | Σ ~ N(mean, Σ/strength), for each of K states."""
    x = draw_root(rng, dof, root)
    noise = (rng.standard_normal((len(x), 1, x.shape[2])) @ x)[:, 0]
    return FullPhi(mean + noise / np.sqrt(strength)[:, None], x.swapaxes(1, 2) @ x)
