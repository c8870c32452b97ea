"""Switching autoregressions: y_t = b + A (y_{t−1}, …, y_{t−r}) + noise, with b, A and the noise covariance Σ per state.

An observation is one row: its past x = (y_{t−1}, …, y_{t−r}), then y_t. Prior and posterior of the regression on x are
those of a full Gaussian over such rows, of which only the conditional law of y_t given x is used. With R upper
triangular and RᵀR the scale matrix,

    R = [ R_x  R_xy ]     Σ ~ InverseWishart(ν, R_yᵀR_y),  Aᵀ | Σ ~ matrix-normal, mean R_x⁻¹R_xy, precision R_xᵀR_x,
        [ 0    R_y  ]     b + A m_x | A, Σ ~ N(m_y, Σ/κ).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._full import BLOCK, SMALL
from ihmm.emissions._matrices import cholesky, log_det, log_multigamma
from ihmm.emissions._protocol import ConjugateEmission, Emission
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
from ihmm.emissions._validation import LARGEST, is_covariance, plain, real_rows
from ihmm.emissions.multivariate_normal import Numbers
from ihmm.emissions.normal import LOG_2PI
from ihmm.kernels.families import CompiledFamily, dispatch


class AutoregressivePhi(NamedTuple):
    """With a single column the axes of length D are dropped."""

    intercept: FloatArray  # (K, D)
    coefficients: FloatArray  # (K, D, D·order): coefficients of y_{t−1} first
    covariance: FloatArray  # (K, D, D): of the noise


@dataclass(frozen=True)
class Autoregressive(ConjugateEmission):
    """Autoregressive dynamics that differ between states, under the conjugate matrix-normal inverse-Wishart prior.

    In state k, y_t is Gaussian with mean intercept + coefficients · (y_{t−1}, …, y_{t−order}) and covariance Σ. The
    model is conditional on the first `order` values of each sequence, which are uninformative about their states. A row
    with a missing value ends the history; the first `order` values after it are again conditioned on.

    Parameters
    ----------
    order
        Number of past values that a value depends on.
    n_features
        D, the number of columns; 1 for a series of shape (T,).
    mean
        Prior mean of the level, for a value and its past alike: a number, or one for each column.
    strength
        Weight of the prior level in observations; small values let the levels of states spread far.
    coefficients
        Prior mean of the coefficients, (D, D·order), those of y_{t−1} first; a number stands for a multiple of the
        identity for y_{t−1} and 0 for the other lags.
    precision
        The prior covariance of the coefficients is Σ ⊗ precision⁻¹, as if past values with these sums of squares and
        products had been observed. A number is a multiple of the identity, D·order numbers are a diagonal.
    dof, scale
        Σ ~ InverseWishart(dof, scale), with mean scale/(dof − D − 1), which equals `scale` for the default dof = D + 2.
        A number is a multiple of the identity, D numbers are a diagonal.
    """

    order: int
    n_features: int = 1
    mean: float | Numbers = 0.0
    strength: float = 0.1
    coefficients: float | Numbers | Sequence[Numbers] = 0.0
    precision: float | Numbers | Sequence[Numbers] = 1.0
    dof: float | None = None
    scale: float | Numbers | Sequence[Numbers] = 1.0

    def __post_init__(self) -> None:
        name, most = "Autoregressive", _checks.MAX_MATRIX
        size = _checks.count(f"{name} n_features", self.n_features, most=most)
        past = size * _checks.count(f"{name} order", self.order, most=most // size)
        _checks.positive(f"{name} strength", self.strength)
        if self.dof is not None and _checks.finite(f"{name} dof", self.dof) <= size - 1:
            raise ValueError(f"{name} dof must be above n_features − 1 = {size - 1}, got {self.dof!r}")
        for setting, shapes in {
            "mean": [(), (size,)],
            "coefficients": [(), (size, past)] + [(past,)] * (size == 1),
            "precision": [(), (past,), (past, past)],
            "scale": [(), (size,), (size, size)],
        }.items():
            object.__setattr__(self, setting, plain(f"{name} {setting}", getattr(self, setting), shapes))
        for setting, length in {"precision": past, "scale": size}.items():
            if not is_covariance(_matrix(getattr(self, setting), length)):
                raise ValueError(
                    f"{name} {setting} must be positive, and a matrix symmetric and positive definite, "
                    f"got {getattr(self, setting)!r}"
                )

    def validate(self, y: Array) -> FloatArray:
        values = real_rows(y, self.n_features, "Autoregressive")
        return values[:, 0] if self.n_features == 1 else values

    def with_past(self, y: FloatArray, offsets: IntArray, missing: BoolArray | None) -> tuple[FloatArray, BoolArray]:
        """Rows (y_{t−1}, …, y_{t−order}, y_t), and the steps at which such a row is incomplete."""
        values = y.reshape(len(y), -1)
        unknown = np.isnan(values).any(axis=1)
        if missing is not None:
            unknown |= missing
        age = np.arange(len(y)) - np.repeat(offsets[:-1], np.diff(offsets))
        incomplete = unknown | (age < self.order)
        shifted = []
        for lag in range(self.order, 0, -1):
            shifted.append(np.roll(values, lag, axis=0))
            incomplete |= np.roll(unknown, lag)
        rows = np.concatenate([*shifted[::-1], values], axis=1)
        rows[incomplete] = 0.0
        return rows, incomplete

    def log_density(self, y: FloatArray, phi: AutoregressivePhi) -> FloatArray:
        intercept, coefficients, covariance = self._by_row(phi)
        factor = cholesky(covariance)
        # with Σ = LLᵀ, L⁻¹(y_t − b − Ax) = L⁻¹(−A, I)(x, y_t) − L⁻¹b
        identity = np.broadcast_to(np.eye(self.n_features), covariance.shape)
        whiten = np.linalg.solve(factor, np.concatenate([-coefficients, identity, intercept[:, :, None]], axis=2))
        out = np.empty((len(whiten), len(y)))
        step = max(1, min(SMALL // whiten[0].size, BLOCK // max(whiten[:, :, 0].size, 1)))
        for t in range(0, len(y), step):
            z = whiten[:, :, :-1] @ y[t : t + step].T
            z -= whiten[:, :, -1:]
            np.einsum("kdt,kdt->kt", z, z, out=out[:, t : t + step])
        out += (self.n_features * LOG_2PI + log_det(factor))[:, None]
        out *= -0.5
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: AutoregressivePhi) -> FloatArray:
        if len(y) * phi.coefficients.size < SMALL:  # the whole table costs less than a loop over the states
            return np.asarray(self.log_density(y, phi)[np.arange(len(y)), states])
        return Emission.log_density_at(self, y, states, phi)

    def log_marginal(self, y: FloatArray) -> FloatArray:
        # Student t, wider the further the past lies from its mean
        size, past, dof = self.n_features, self._past, self._dof
        z = np.linalg.solve(self._root.T, (y - self._center).T)
        spread = 1 + 1 / self.strength + np.square(z[:past]).sum(axis=0)
        constant = lgamma((dof + 1) / 2) - lgamma((dof + 1 - size) / 2) - 0.5 * float(self._log_dets[1])
        distance = np.square(z[past:]).sum(axis=0)
        return np.asarray(
            constant - 0.5 * size * np.log(np.pi * spread) - 0.5 * (dof + 1) * np.log1p(distance / spread)
        )

    def sample_prior(self, rng: np.random.Generator, n: int) -> AutoregressivePhi:
        center, root = np.tile(self._center, (n, 1)), np.tile(self._root, (n, 1, 1))
        return self._draw(rng, center, np.full(n, self.strength), np.full(n, self._dof), root)

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> AutoregressivePhi:
        return self._draw_given(rng, scatter(y, states, n_states))

    def sample_observations(
        self, rng: np.random.Generator, states: IntArray, phi: AutoregressivePhi, past: FloatArray | None = None
    ) -> FloatArray:
        """A sequence whose initial values are `mean`, or the continuation of `past`."""
        order, size = self.order, self.n_features
        known: FloatArray = np.empty((0, size)) if past is None else past[-order:].reshape(-1, size)
        if past is not None and (len(known) < order or np.isnan(known).any()):
            raise ValueError(
                f"Autoregressive continues from the last {order} value(s) of a sequence, and some of them are missing; "
                "drop the steps after the last complete ones"
            )
        intercept, coefficients, covariance = self._by_row(phi)
        begin = len(known)
        y = np.empty((begin + len(states), size))
        y[:begin], y[begin:order] = known, self._center[:size]
        noise = rng.standard_normal((len(states), size, 1))
        noise = (cholesky(covariance)[states] @ noise)[:, :, 0] + intercept[states]
        for t in range(order, len(y)):
            state = states[t - begin]
            y[t] = coefficients[state] @ y[t - order : t][::-1].ravel() + noise[t - begin]
            y[t] = np.clip(y[t], -LARGEST, LARGEST)  # a state may be explosive
        return y[begin:, 0] if size == 1 else y[begin:]

    def log_prior(self, phi: AutoregressivePhi) -> FloatArray:
        size, past, dof = self.n_features, self._past, self._dof
        intercept, coefficients, covariance = self._by_row(phi)
        factor, (log_given, log_scale) = cholesky(covariance), self._log_dets
        # tr(SΣ⁻¹) + tr((A − B)V(A − B)ᵀΣ⁻¹) + κ|L⁻¹(b + A m_x − m_y)|² = |L⁻¹ (R_yᵀ, A R_xᵀ − R_xyᵀ, √κ (…))|²
        level = intercept + coefficients @ self._center[:past] - self._center[past:]
        columns = np.empty((len(intercept), size, size + past + 1))
        columns[:, :, :size] = self._root[past:, past:].T
        columns[:, :, size:-1] = coefficients @ self._root[:past, :past].T - self._root[:past, past:].T
        columns[:, :, -1] = np.sqrt(self.strength) * level
        square = np.square(np.linalg.solve(factor, columns)).sum(axis=(1, 2))
        constant = dof * (log_scale - size * np.log(2)) - 2 * log_multigamma(dof, size)
        constant += size * (log_given + np.log(self.strength) - (past + 1) * LOG_2PI)
        return np.asarray(0.5 * (constant - (dof + size + past + 2) * log_det(factor) - square))

    def log_evidence(self, y: FloatArray) -> float:
        if len(y) == 0:
            return 0.0
        size, n, before = self.n_features, len(y), self._log_dets
        dof = self._dof + n
        _, (root,) = posterior(self._center, self.strength, self._root, scatter(y, np.zeros(n, np.int64), 1))
        after = self._log_dets_of(root)
        log_scale = self._dof * before[1] - dof * after[1]
        log_given = before[0] - after[0] + np.log(self.strength / (self.strength + n)) - n * np.log(np.pi)
        log_evidence = 0.5 * (log_scale + size * log_given)
        return float(log_evidence + log_multigamma(dof, size) - log_multigamma(self._dof, size))

    def conjugate(self, y: FloatArray) -> Conjugate:
        prior, width = rows_prior(self._center, self.strength, self._dof, self._scale, self._past), y.shape[1]
        compiled = CompiledFamily(dispatch.FULL_NORMAL, prior, y, size=3 + width + 2 * width**2)
        return Conjugate(scatter, combine_scatters, self._draw_given, self._log_likelihood, self.log_evidence, compiled)

    def _draw_given(self, rng: np.random.Generator, statistics: Scatter) -> AutoregressivePhi:
        center, root = posterior(self._center, self.strength, self._root, statistics)
        return self._draw(rng, center, self.strength + statistics.number, self._dof + statistics.number, root)

    def _log_likelihood(self, statistics: Scatter, phi: AutoregressivePhi) -> float:
        (number, average, root), phi = visited(statistics, self._by_row(phi))
        # y_t − Ax = (−A, I)(x, y_t) is Gaussian with mean b
        identity = np.broadcast_to(np.eye(self.n_features), phi.covariance.shape)
        rest = np.concatenate([-phi.coefficients, identity], axis=2)
        noise = Scatter(number, (rest @ average[:, :, None])[:, :, 0], root @ rest.swapaxes(1, 2))
        return log_normal_given(noise, phi.intercept, phi.covariance)

    def _draw(
        self, rng: np.random.Generator, center: FloatArray, strength: FloatArray, dof: FloatArray, root: FloatArray
    ) -> AutoregressivePhi:
        size, past, n = self.n_features, self._past, len(center)
        x = draw_root(rng, dof, root[:, past:, past:])
        slope = root[:, :past, past:] + rng.standard_normal((n, past, size)) @ x
        coefficients = np.linalg.solve(root[:, :past, :past], slope).swapaxes(1, 2)
        level = center[:, past:] + (rng.standard_normal((n, 1, size)) @ x)[:, 0] / np.sqrt(strength)[:, None]
        intercept = level - (coefficients @ center[:, :past, None])[:, :, 0]
        covariance = x.swapaxes(1, 2) @ x
        if size == 1:
            return AutoregressivePhi(intercept[:, 0], coefficients[:, 0], covariance[:, 0, 0])
        return AutoregressivePhi(intercept, np.ascontiguousarray(coefficients), covariance)

    def _by_row(self, phi: AutoregressivePhi) -> AutoregressivePhi:
        """φ with all axes."""
        n, size = len(phi.intercept), self.n_features
        return AutoregressivePhi(
            phi.intercept.reshape(n, size),
            phi.coefficients.reshape(n, size, self._past),
            phi.covariance.reshape(n, size, size),
        )

    @property
    def _past(self) -> int:
        return self.n_features * self.order

    @property
    def _dof(self) -> float:
        return float(self.n_features + 2 if self.dof is None else self.dof)

    @cached_property
    def _center(self) -> FloatArray:
        """(m_x, m_y)."""
        mean = np.asarray(self.mean, np.float64)
        return np.tile(np.broadcast_to(mean, self.n_features), self.order + 1)

    @cached_property
    def _root(self) -> FloatArray:
        """R of the prior."""
        size, past = self.n_features, self._past
        coefficients = np.asarray(self.coefficients, np.float64)
        if coefficients.ndim == 0:
            coefficients = coefficients * np.eye(size, past)
        root = np.zeros((past + size, past + size))
        root[:past, :past] = cholesky(_matrix(self.precision, past)).T
        root[:past, past:] = root[:past, :past] @ coefficients.reshape(size, past).T
        root[past:, past:] = cholesky(_matrix(self.scale, size)).T
        return root

    @property
    def _scale(self) -> FloatArray:
        return np.asarray(self._root.T @ self._root)

    @property
    def _log_dets(self) -> tuple[FloatArray, FloatArray]:
        return self._log_dets_of(self._root)

    def _log_dets_of(self, root: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log |V| and log |S|."""
        past = self._past
        return log_det(root[:past, :past]), log_det(root[past:, past:])


def _matrix(value: float | Numbers | Sequence[Numbers], size: int) -> FloatArray:
    """A number is a multiple of the identity, several are a diagonal."""
    given = np.asarray(value, np.float64)
    return given if given.ndim == 2 else np.diag(np.broadcast_to(given, size))
