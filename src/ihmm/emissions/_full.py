"""Normal rows with full covariance: μ | Σ ~ N(m, Σ/κ), Σ ~ InverseWishart(ν, S)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import Any, NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.emissions._base import Collapsed, Emission, take
from ihmm.emissions.normal import LOG_2PI, pool

BLOCK = 1 << 17  # numbers whitened at a time: they fit the cache
# Multiplications up to which BLAS does not call on threads of its own: chains are threads already, and would be held up
SMALL = 1 << 18
LEAST = 1e-200  # χ² below which a variance would no longer be a number
EPSILON = float(np.finfo(np.float64).eps)


class FullPhi(NamedTuple):
    mean: FloatArray  # (K, D)
    covariance: FloatArray  # (K, D, D)


class Scatter(NamedTuple):
    """Of each state's rows. Where there are none, all is 0."""

    number: IntArray  # (K,)
    average: FloatArray  # (K, D)
    root: FloatArray  # (K, D, D): upper triangular R with RᵀR = Σ (y_t − average)(y_t − average)ᵀ


@dataclass(frozen=True, eq=False)
class FullNormal:
    """What `MultivariateNormal` does with covariance="full".

    A row with missing values has the density of its others. Given φ, the missing ones are normal too: `update` draws
    them, and then φ from its conjugate posterior, which together leave the law of φ | y, s invariant.
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
        if len(y) * phi.covariance.size < SMALL:  # then the whole table costs less than going through the states
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
        """A missing value is taken for the average of its column in its state: good enough to begin with."""
        return self.resample_given(rng, scatter(fill_averages(y, states, n_states, self.mean), states, n_states))

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: FullPhi) -> FullPhi:
        return self.resample_given(rng, scatter(self.complete(rng, y, states, phi), states, len(phi.mean)))

    def statistics(self, y: FloatArray, states: IntArray, n_states: int) -> Scatter | None:
        return None if np.isnan(y).any() else scatter(y, states, n_states)

    def combine(self, parts: Sequence[Scatter]) -> Scatter:
        return combine_scatters(parts)

    def resample_given(self, rng: np.random.Generator, statistics: Scatter) -> FullPhi:
        mean, root = posterior(self.mean, self.strength, self._root, statistics)
        return draw(rng, mean, self.strength + statistics.number, self.dof + statistics.number, root)

    def log_likelihood_given(self, statistics: Scatter, phi: FullPhi) -> float:
        return log_normal_given(*visited(statistics, phi))

    def complete(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: FullPhi) -> FloatArray:
        y = y.copy()
        for rows, known in patterns(y):
            missing = np.delete(np.arange(y.shape[1]), known)
            if len(missing) == 0:
                continue
            order, n = np.append(known, missing), len(known)
            for k in np.unique(states[rows]):
                here = rows[states[rows] == k]
                # with the known columns first, y − μ = Lz: of z the first n are known, and the others normal
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

    def collapsed(self, y: FloatArray) -> Collapsed | None:
        if np.isnan(y).any():
            return None
        size = len(self.mean)
        prior = rows_prior(self.mean, self.strength, self.dof, self.scale)
        return Collapsed("full_normal", prior, y, size=3 + size + 2 * size**2)

    @cached_property
    def _root(self) -> FloatArray:
        """Upper triangular R with RᵀR = S."""
        return cholesky(self.scale).T


def scatter(y: FloatArray, states: IntArray, n_states: int) -> Scatter:
    """Statistics of complete rows.

    R comes from the rows themselves, by QR: their products would lose the directions in which y hardly varies.
    """
    number, size = np.bincount(states, minlength=n_states), y.shape[1]
    average, root = np.zeros((n_states, size)), np.zeros((n_states, size, size))
    ordered, least = y[np.argsort(states, kind="stable")], np.zeros((size, size))
    for k, block in enumerate(np.split(ordered, np.cumsum(number)[:-1])):
        if len(block):
            average[k] = block.sum(axis=0) / len(block)
            root[k] = triangle(np.concatenate([block - average[k], least]))
    return Scatter(number, average, root)


def combine_scatters(parts: Sequence[Scatter]) -> Scatter:
    """R of the rows of every R_i and √n_i (a_i − a), with n and a as `combine_moments` has them."""
    number, average, root = map(np.stack, zip(*parts, strict=True))
    n_states, size = average.shape[1:]
    together, center = pool(number[:, :, None], average)
    gap = np.sqrt(number)[:, :, None] * (average - center)
    rows = np.concatenate([root, gap[:, :, None]], axis=2).swapaxes(0, 1).reshape(n_states, -1, size)
    return Scatter(together[:, 0], center, triangle(rows))


def posterior(
    mean: FloatArray, strength: float, root: FloatArray, statistics: Scatter
) -> tuple[FloatArray, FloatArray]:
    """m_n, and R_n with R_nᵀR_n = S_n = S + Σ (y_t − ȳ)(y_t − ȳ)ᵀ + κn/(κ+n) (ȳ − m)(ȳ − m)ᵀ, for each of K states;
    `root` is that of S."""
    n, average = statistics.number[:, None], statistics.average
    gap = np.sqrt(strength * n / (strength + n)) * (average - mean)
    before = np.broadcast_to(root, statistics.root.shape)
    found = triangle(np.concatenate([before, statistics.root, gap[:, None]], axis=1))
    # What is added to S is nowhere negative: only rounding can make R's diagonal smaller than it was
    at = np.arange(len(mean))
    found[:, at, at] = np.maximum(found[:, at, at], np.diag(root))
    return (strength * mean + n * average) / (strength + n), found


def visited(statistics: Scatter, phi: Phi) -> tuple[Scatter, Phi]:
    """Those of states that have steps: parameters of others may be too large to be squared."""
    here = statistics.number > 0
    return take(statistics, here), take(phi, here)


def log_normal_given(statistics: Scatter, phi: FullPhi) -> float:
    """log Π_t N(y_t | μ_k, Σ_k), k the state of step t, of rows that are summed up; R need not be triangular."""
    number, average, root = statistics
    factor = cholesky(phi.covariance)
    # Σ_t |L⁻¹(y_t − μ)|² = |L⁻¹ (Rᵀ, √n (ȳ − μ))|²
    gap = np.sqrt(number)[:, None] * (average - phi.mean)
    square = np.square(np.linalg.solve(factor, np.concatenate([root.swapaxes(1, 2), gap[:, :, None]], axis=2)))
    return -0.5 * float(square.sum() + np.sum(number * (average.shape[1] * LOG_2PI + log_det(factor))))


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


def draw_root(rng: np.random.Generator, dof: FloatArray, root: FloatArray) -> FloatArray:
    """X with XᵀX ~ InverseWishart(dof, RᵀR), for each of K states.

    After Bartlett UUᵀ is Wishart with scale I, if U is upper triangular, normal above its diagonal and with roots of
    χ²(dof − D + 1), …, χ²(dof) on it. Then Rᵀ (UUᵀ)⁻¹ R = XᵀX with X = U⁻¹R.
    """
    n_states, size = root.shape[:2]
    at = np.arange(size)
    upper = rng.standard_normal((n_states, size, size)) * (at[:, None] < at)
    chi_square = 2 * rng.standard_gamma((dof[:, None] - at[::-1]) / 2)
    upper[:, at, at] = np.sqrt(np.maximum(chi_square, LEAST))
    return np.asarray(np.linalg.solve(upper, root))


def rows_prior(mean: FloatArray, strength: float, dof: float, scale: FloatArray, given: int = 0) -> FloatArray:
    """The prior as `kernels.families.full_normal` reads it; the first `given` columns are covariates."""
    size, root = len(mean), cholesky(scale).T
    log_scale, log_given = log_det(root[given:, given:]), log_det(root[:given, :given])
    numbers = np.repeat([[strength], [dof], [given], [float(log_scale)], [float(log_given)]], size, axis=1)
    return np.vstack([numbers, mean, np.diag(root) ** 2, scale])


def fill_averages(y: FloatArray, states: IntArray, n_states: int, mean: FloatArray) -> FloatArray:
    """y with averages by state and column for what is missing, or `mean` where there is nothing to average."""
    missing = np.isnan(y)
    if not missing.any():
        return y
    y = y.copy()
    for d in np.flatnonzero(missing.any(axis=0)):
        gaps = missing[:, d]
        count = np.bincount(states[~gaps], minlength=n_states)
        total = np.bincount(states[~gaps], weights=y[~gaps, d], minlength=n_states)
        y[gaps, d] = np.where(count > 0, total / np.maximum(count, 1), mean[d])[states[gaps]]
    return y


def patterns(y: FloatArray) -> Iterator[tuple[Any, Any]]:
    """The rows in which the same columns are known, and these columns, for each such set."""
    missing = np.isnan(y)
    if not missing.any():
        yield slice(None), slice(None)
        return
    bits = np.packbits(missing, axis=1)
    codes = bits.view(np.dtype((np.void, bits.shape[1])))[:, 0]
    _, first, group = np.unique(codes, return_index=True, return_inverse=True)
    ordered, sizes = np.argsort(group, kind="stable"), np.bincount(group)
    for t, rows in zip(first, np.split(ordered, np.cumsum(sizes)[:-1]), strict=True):
        yield rows, np.flatnonzero(~missing[t])


def cholesky(covariance: FloatArray) -> FloatArray:
    """Lower triangular factors; a matrix that rounding has made singular is taken for the nearest one that is not."""
    try:
        return np.asarray(np.linalg.cholesky(covariance))
    except np.linalg.LinAlgError:
        if covariance.ndim == 3:
            return np.stack([cholesky(matrix) for matrix in covariance])
    deviation = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(deviation, deviation))
    half = vectors * np.sqrt(np.maximum(values, EPSILON * len(values)))
    return np.asarray(deviation[:, None] * triangle(half.T).T)


def triangle(matrix: FloatArray) -> FloatArray:
    """Upper triangular R with RᵀR = AᵀA and nothing negative on its diagonal, of A or of each A in a stack; a tall A is
    reduced block by block."""
    *stack, _, size = matrix.shape
    height = max(2 * size, 4096 // size)
    while (n := matrix.shape[-2]) > height:
        padded = np.concatenate([matrix, np.zeros((*stack, -n % height, size))], axis=-2)
        matrix = np.reshape(np.linalg.qr(padded.reshape(*stack, -1, height, size), mode="r"), (*stack, -1, size))
    root = np.asarray(np.linalg.qr(matrix, mode="r"))
    return root * np.where(np.diagonal(root, axis1=-2, axis2=-1) < 0, -1.0, 1.0)[..., None]


def log_det(factor: FloatArray) -> FloatArray:
    """log |LLᵀ| of triangular factors."""
    return np.asarray(2 * np.log(np.diagonal(factor, axis1=-2, axis2=-1)).sum(axis=-1))


def log_multigamma(dof: float, size: int) -> float:
    """log Γ_D(dof/2)."""
    return size * (size - 1) / 4 * float(np.log(np.pi)) + sum(lgamma((dof - i) / 2) for i in range(size))
