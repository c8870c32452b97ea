"""Sufficient statistics of complete rows, and the normal-inverse-Wishart posterior they give.

Scatter matrices are kept as triangular roots, found by QR: their products would lose the directions in which the rows
hardly vary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.emissions._matrices import cholesky, log_det, triangle
from ihmm.emissions._parameters import take
from ihmm.emissions.normal import LOG_2PI, pool

MIN_CHI_SQUARE = 1e-200  # a smaller value would make the variance overflow


class Scatter(NamedTuple):
    """Sufficient statistics of each state's rows; all 0 for a state without any."""

    number: IntArray  # (K,)
    average: FloatArray  # (K, D)
    root: FloatArray  # (K, D, D): upper triangular R with RᵀR = Σ (y_t − average)(y_t − average)ᵀ


def scatter(y: FloatArray, states: IntArray, n_states: int) -> Scatter:
    """Sufficient statistics of complete rows."""
    number, size = np.bincount(states, minlength=n_states), y.shape[1]
    average, root = np.zeros((n_states, size)), np.zeros((n_states, size, size))
    ordered, least = y[np.argsort(states, kind="stable")], np.zeros((size, size))
    for k, block in enumerate(np.split(ordered, np.cumsum(number)[:-1])):
        if len(block):
            average[k] = block.sum(axis=0) / len(block)
            root[k] = triangle(np.concatenate([block - average[k], least]))
    return Scatter(number, average, root)


def combine_scatters(parts: Sequence[Scatter]) -> Scatter:
    """R of the stacked rows of every R_i and √n_i (a_i − a); n and a as in `combine_moments`."""
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
    `root` is the root of S."""
    n, average = statistics.number[:, None], statistics.average
    gap = np.sqrt(strength * n / (strength + n)) * (average - mean)
    before = np.broadcast_to(root, statistics.root.shape)
    found = triangle(np.concatenate([before, statistics.root, gap[:, None]], axis=1))
    # S_n − S is positive semidefinite: only rounding can make the diagonal of R_n smaller than that of R
    at = np.arange(len(mean))
    found[:, at, at] = np.maximum(found[:, at, at], np.diag(root))
    return (strength * mean + n * average) / (strength + n), found


def visited(statistics: Scatter, phi: Phi) -> tuple[Scatter, Phi]:
    """Restricted to visited states: the parameters of others may be too large to be squared."""
    here = statistics.number > 0
    return take(statistics, here), take(phi, here)


def log_normal_given(statistics: Scatter, mean: FloatArray, covariance: FloatArray) -> float:
    """log Π_t N(y_t | μ_k, Σ_k), k = s_t, from sufficient statistics; R need not be triangular."""
    number, average, root = statistics
    factor = cholesky(covariance)
    # Σ_t |L⁻¹(y_t − μ)|² = |L⁻¹ (Rᵀ, √n (ȳ − μ))|²
    gap = np.sqrt(number)[:, None] * (average - mean)
    square = np.square(np.linalg.solve(factor, np.concatenate([root.swapaxes(1, 2), gap[:, :, None]], axis=2)))
    return -0.5 * float(square.sum() + np.sum(number * (average.shape[1] * LOG_2PI + log_det(factor))))


def draw_root(rng: np.random.Generator, dof: FloatArray, root: FloatArray) -> FloatArray:
    """X with XᵀX ~ InverseWishart(dof, RᵀR), for each of K states.

    By Bartlett's decomposition UUᵀ is Wishart with scale I if U is upper triangular, standard normal above the diagonal
    and the root of χ²(dof − D + 1), …, χ²(dof) on it. Then Rᵀ (UUᵀ)⁻¹ R = XᵀX with X = U⁻¹R.
    """
    n_states, size = root.shape[:2]
    at = np.arange(size)
    upper = rng.standard_normal((n_states, size, size)) * (at[:, None] < at)
    chi_square = 2 * rng.standard_gamma((dof[:, None] - at[::-1]) / 2)
    upper[:, at, at] = np.sqrt(np.maximum(chi_square, MIN_CHI_SQUARE))
    return np.asarray(np.linalg.solve(upper, root))


def rows_prior(mean: FloatArray, strength: float, dof: float, scale: FloatArray, given: int = 0) -> FloatArray:
    """The prior as the compiled full normal family reads it; the first `given` columns are predictors."""
    size, root = len(mean), cholesky(scale).T
    log_scale, log_given = log_det(root[given:, given:]), log_det(root[:given, :given])
    numbers = np.repeat([[strength], [dof], [given], [float(log_scale)], [float(log_given)]], size, axis=1)
    return np.vstack([numbers, mean, np.diag(root) ** 2, scale])
