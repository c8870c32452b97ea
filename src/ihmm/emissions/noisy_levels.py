"""Levels in noise that the states share: y_t = μ_{s_t} + e_t, white or with a memory, Gaussian or heavy-tailed.

    e_t = a_1 e_{t−1} + … + a_p e_{t−p} + η_t,     η_t = σ ε_t,   ε_t ~ N(0, 1) or Student t with ν degrees of freedom
    μ_k ~ N(mean, spread²),   σ² ~ InvGamma(shape, rate),   a ~ N(0, τ²) where stationary,   ν uniform on a grid

Columns have levels, coefficients and scales of their own; ν is common. Given the states they are independent, or so are
the coordinates B y with a matrix B for all states, in which their noise is as above: see `_correlated`.

A Student t is a Gaussian whose precision varies between time steps: η_t | λ_t ~ N(0, σ²/λ_t), λ_t ~ Gamma(ν/2, ν/2). An
update draws ν with the λ_t integrated out, then the λ_t, then μ, B, a and σ given them, and discards the λ_t.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import lgamma
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.emissions import _correlated, _noise
from ihmm.emissions._missing import density_of_known
from ihmm.emissions._noise_update import Noise, NoisePrior, update
from ihmm.emissions._parameters import take
from ihmm.emissions._protocol import Emission
from ihmm.emissions._validation import plain, real_rows
from ihmm.emissions.multivariate_normal import Numbers
from ihmm.kernels import densities
from ihmm.kernels.memory import AfterChange

MAX_ORDER = 10
MARGINAL_DOF = 4.0  # of the density by which new states are proposed
FIRST_DOF = 10.0  # where a chain starts
ROUNDS = 3  # updates of an initial guess

Given = FloatArray | tuple[()]  # a parameter that some settings do not have: () in its place


class NoisyLevelsPhi(NamedTuple):
    """With a single column the axes of length D are dropped. Parameters shared by all states are repeated."""

    mean: FloatArray  # (K, D): the levels μ
    scale: FloatArray  # (K, D): σ
    coefficients: Given  # (K, D, order): a; () if order = 0
    dof: Given  # (K,): ν; () if tails are normal
    regression: Given = ()  # (K, D (D − 1) / 2): w_21, w_31, w_32, …; () if columns are independent


@dataclass(frozen=True)
class NoisyLevels(Emission):
    """A level for each state, and noise that the states share: recordings of channels, molecules or sensors.

    Noise with a memory (``order`` above 0) is not mistaken for states. It needs a model whose states last at least
    `order` steps: ``ihmm.Model(NoisyLevels(1), prior, duration=…)``. The first `order` values of each sequence are
    conditioned on and uninformative about their states, as are the first ones after a missing value.

    Parameters
    ----------
    order
        Number of past values that the noise depends on, 0 for white noise and at most 10. The coefficients are the same
        in all states.
    scale
        ``"shared"``: one noise scale σ for all states. ``"own"``: each state has its own.
    tails
        ``"normal"``, or ``"student-t"`` for noise with outliers, with degrees of freedom learned from the data.
    n_features
        D, the number of columns; 1 for a series of shape (T,).
    mean, spread
        Levels are N(mean, spread²): numbers, or one for each column.
    shape, rate
        σ² is InvGamma(shape, rate), with mean rate/(shape − 1); the rate is a number, or one for each column.
    coefficient_spread
        τ: coefficients are N(0, τ²), restricted to those for which the noise is stationary.
    dof
        Degrees of freedom that Student t tails may have, all equally likely a priori; a number fixes them.
    filtered
        False: levels change at once, and only the noise has a memory. True: levels pass through the same filter as the
        noise, y_t = μ_{s_t} + Σ_l a_l (y_{t−l} − μ_{s_t}) + η_t, and are reached a few steps after a change, as in
        low-pass filtered recordings. The states before do not matter then, and any model will do.
    correlated
        True: the noise of the columns is correlated, in the same way in all states (with ``scale="own"``, up to the
        scales). That of column d is Σ_{j<d} w_dj times that of the columns before it, and noise of its own, which has
        scale, coefficients and tails as above. Without a memory any covariance can be written like this. Where a
        column is missing (NaN), so is what the columns after it have of their own: put columns with gaps last.
    regression_spread
        τ_w: w_dj ~ N(0, τ_w² rate_d/rate_j). The rates say how noisy columns are, so that units do not matter: with 1,
        half of the correlations of two columns are beyond ±0.56, a priori.
    """

    order: int = 0
    scale: str = "shared"
    tails: str = "normal"
    n_features: int = 1
    mean: float | Numbers = 0.0
    spread: float | Numbers = 1.0
    shape: float = 2.0
    rate: float | Numbers = 1.0
    coefficient_spread: float = 1.0
    dof: float | Numbers = (3.0, 4.0, 6.0, 10.0, 20.0, 50.0)
    filtered: bool = False
    correlated: bool = False
    regression_spread: float = 1.0

    def __post_init__(self) -> None:
        name = "NoisyLevels"
        n_features = _checks.count(f"{name} n_features", self.n_features, most=_checks.MAX_SIZE)
        if _checks.count(f"{name} order", self.order, least=0) > MAX_ORDER:
            raise ValueError(f"{name} order must be at most {MAX_ORDER}, got {self.order}")
        _checks.one_of(f"{name} scale", self.scale, ("shared", "own"))
        _checks.one_of(f"{name} tails", self.tails, ("normal", "student-t"))
        _checks.positive(f"{name} shape", self.shape)
        _checks.positive(f"{name} coefficient_spread", self.coefficient_spread)
        _checks.positive(f"{name} regression_spread", self.regression_spread)
        if self.correlated and n_features == 1:
            raise ValueError(f"{name} correlated is for two columns or more, got n_features=1")
        shapes = [(), (n_features,)]
        any_number = (len(self.dof),) if isinstance(self.dof, (list, tuple)) else np.shape(self.dof)
        settings = {"mean": shapes, "spread": shapes, "rate": shapes, "dof": [(), any_number]}
        for setting, allowed in settings.items():
            value = plain(f"{name} {setting}", getattr(self, setting), allowed)
            if setting != "mean" and (np.size(value) == 0 or not np.all(np.asarray(value) > 0)):
                raise ValueError(f"{name} {setting} must be positive, got {value!r}")
            object.__setattr__(self, setting, value)

    @property
    def memory(self) -> int | None:
        """Number of past states that the density of a step depends on; None if on past values only."""
        return None if self.filtered and self.order else self.order

    def without_memory(self) -> "NoisyLevels":
        """The same with white noise."""
        return replace(self, order=0)

    def validate(self, y: Array) -> FloatArray:
        values = real_rows(y, self.n_features, "NoisyLevels")
        return values[:, 0] if self.n_features == 1 else values

    def with_past(self, y: FloatArray, offsets: IntArray, missing: BoolArray | None) -> tuple[FloatArray, BoolArray]:
        """(T, order + 1, D): y_t, y_{t−1}, …, NaN where not known; and the steps without a column that is complete."""
        values = np.array(y, np.float64).reshape(len(y), self.n_features)
        if missing is not None:
            values[missing] = np.nan
        age = np.arange(len(y)) - np.repeat(offsets[:-1], np.diff(offsets))
        rows = np.full((len(y), self.order + 1, self.n_features), np.nan)
        for lag in range(self.order + 1):
            rows[lag:, lag] = values[: len(y) - lag]
            rows[age < lag, lag] = np.nan
        if self.correlated:
            rows[np.logical_or.accumulate(np.isnan(rows), axis=2)] = np.nan
        return rows, np.asarray(np.isnan(rows).any(axis=1).all(axis=1))

    # Densities

    def log_density(self, y: FloatArray, phi: NoisyLevelsPhi) -> FloatArray:
        """The density once a state has lasted longer than `order` steps."""
        if self.correlated:
            own, out = self._separated(phi), np.empty((len(phi.mean), len(y)))
            for matrix, here in _correlated.different(self._matrices(phi)):
                out[here] = self._separate.log_density(self._coordinates(y, matrix), take(own, here)).T
            return out.T
        values, (mean, scale, coefficients, dof) = self._lags(y), self._by_column(phi)
        settled, peak = mean * (1 - coefficients.sum(axis=2)), _noise.log_peak(dof)  # (1 − A) μ_k
        out = np.zeros((len(mean), len(values)))
        for d in range(self.n_features):
            lags, a = np.ascontiguousarray(values[:, :, d].T), np.ascontiguousarray(coefficients[:, d])
            center, width = np.ascontiguousarray(settled[:, d]), np.ascontiguousarray(scale[:, d])
            densities.add_log_noise(lags, center, a, width, peak, dof, out)
        return out.T

    def log_density_at(self, y: FloatArray, states: IntArray, phi: NoisyLevelsPhi) -> FloatArray:
        if self.correlated:
            matrix = self._matrices(phi)[self._path(states)[:, 0]]
            return self._separate.log_density_at(self._coordinates(y, matrix), states, self._separated(phi))
        values, path, (mean, scale, coefficients, dof) = self._lags(y), self._path(states), self._by_column(phi)
        now, out, peak = path[:, 0], np.zeros(len(values)), _noise.log_peak(dof)
        for d in range(self.n_features):
            residual = _noise.Steps(values[:, :, d], path).residuals(mean[:, d])
            innovation = residual[:, 0]
            for lag in range(self.order):
                innovation = innovation - coefficients[now, d, lag] * residual[:, lag + 1]
            square = np.square(innovation / scale[now, d])[:, None]
            out += density_of_known(_noise.log_shape(square, dof[now])[:, 0] + (peak - np.log(scale[:, d]))[now])
        return out

    def after_change(self, y: FloatArray, phi: NoisyLevelsPhi) -> AfterChange:
        """What compiled code needs for the first `order` steps after a change of state."""
        if self.correlated:
            y = self._coordinates(y, self._matrices(phi)[0])
            return self._separate.after_change(y, self._separated(phi))
        mean, scale, coefficients, dof = self._by_column(phi)
        shared = coefficients[0]
        return AfterChange(
            np.ascontiguousarray(np.einsum("nld,dl->nd", self._lags(y), np.insert(-shared, 0, 1.0, axis=1))),
            np.zeros(len(y)),
            mean * (1 - shared.sum(axis=1)),
            mean,
            np.ascontiguousarray(np.cumsum(shared[:, ::-1], axis=1)[:, ::-1].T),
            scale,
            float(dof[0]),
        )

    def log_marginal(self, y: FloatArray) -> FloatArray:
        """A Student t as wide as levels and noise together: a change to a new state, whatever the past.

        Levels differ by more than the noise, and independently between columns, even if the noise is correlated.
        """
        square = np.square(self._lags(y)[:, 0] - self._mean)
        width = self._spread**2 + self._rate / self.shape
        column = _noise.log_shape((square / width).T.copy(), np.full(self.n_features, MARGINAL_DOF))
        column += (_noise.log_peak(np.array(MARGINAL_DOF)) - 0.5 * np.log(width))[:, None]
        return np.asarray(density_of_known(column).sum(axis=0))

    # Parameters

    def sample_prior(self, rng: np.random.Generator, n: int) -> NoisyLevelsPhi:
        spread, spreads = self.coefficient_spread, self._regression_spread
        coefficients = np.array([_noise.draw_stationary(rng, self.order, spread) for _ in range(self.n_features)])
        scale, dof = self._prior_scales(rng, 1), float(rng.choice(self._grid, 1)[0])
        regression = spreads * rng.standard_normal(len(spreads)) if self.correlated else spreads
        return self._sample_states(rng, n, Noise(np.empty_like(scale), scale, coefficients, dof, regression))

    def sample_new(self, rng: np.random.Generator, n: int, phi: NoisyLevelsPhi) -> NoisyLevelsPhi:
        return self._sample_states(rng, n, self._noise(phi))

    def resample(self, rng: np.random.Generator, y: FloatArray, states: IntArray, n_states: int) -> NoisyLevelsPhi:
        """A few updates from the averages of the states with white noise, which is good enough to start from."""
        values, now = self._lags(y)[:, 0], self._path(states)[:, 0]
        mean, scale = np.tile(self._mean, (n_states, 1)), np.tile(np.sqrt(self._rate / self.shape), (n_states, 1))
        for d in range(self.n_features):
            here = ~np.isnan(values[:, d])
            count, total = (np.bincount(now[here], w, n_states) for w in (np.ones(here.sum()), values[here, d]))
            mean[:, d] = np.where(count > 0, total / np.maximum(count, 1), mean[:, d])
            square = np.square(values[here, d] - mean[now[here], d]).sum() + self._rate[d]
            scale[:, d] = np.sqrt(square / (here.sum() + self.shape))
        coefficients = np.zeros((self.n_features, self.order))
        dof = self._grid[np.argmin(np.abs(self._grid - FIRST_DOF))]
        regression = np.zeros(len(self._regression_spread))
        phi = self._pack(Noise(mean, scale, coefficients, float(dof), regression))
        for _ in range(ROUNDS):
            phi = self.update(rng, y, states, phi)
        return phi

    def update(self, rng: np.random.Generator, y: FloatArray, states: IntArray, phi: NoisyLevelsPhi) -> NoisyLevelsPhi:
        """Gibbs steps, see `_noise_update`."""
        noise = self._noise(phi)
        noise = noise._replace(level=noise.level - self._mean)
        noise = update(rng, self._prior, self._lags(y) - self._mean, self._path(states), noise)
        return self._pack(noise._replace(level=noise.level + self._mean))

    def log_prior(self, phi: NoisyLevelsPhi) -> FloatArray:
        """Densities of μ_k and, if it is its own, σ_k. Those of shared parameters are in the first entry, so that the
        sum has them once; that of the coefficients is up to the probability of the stationary region."""
        mean, scale, coefficients, _ = self._by_column(phi)
        out = -0.5 * np.square((mean - self._mean) / self._spread) - np.log(self._spread) - _noise.HALF_LOG_2PI
        log_scale = np.log(2.0) + self.shape * np.log(self._rate) - lgamma(self.shape)
        log_scale = log_scale - (2 * self.shape + 1) * np.log(scale) - self._rate / np.square(scale)
        if self.scale == "own":
            out += log_scale
        else:
            out[0] += log_scale[0]
        a, spread = coefficients[0], self.coefficient_spread
        out[0] -= (0.5 * np.square(a / spread) + np.log(spread) + _noise.HALF_LOG_2PI).sum(axis=1)
        total, spreads = np.asarray(out.sum(axis=1)), self._regression_spread
        if self.correlated:
            square = np.square(self._regression(phi)[0] / spreads)
            total[0] -= (0.5 * square + np.log(spreads) + _noise.HALF_LOG_2PI).sum()
        if self.tails == "student-t":
            total[0] -= np.log(len(self._grid))
        return total

    # Observations

    def sample_observations(
        self,
        rng: np.random.Generator,
        states: IntArray,
        phi: NoisyLevelsPhi,
        past: FloatArray | None = None,
        before: IntArray | None = None,
    ) -> FloatArray:
        """A sequence whose first `order` values are `mean`, or the continuation of `past`.

        `before` are the states of the last `order` steps of the past; by default, the first of `states`.
        """
        order, columns = self.order, self.n_features
        if self.correlated:
            matrix = self._matrices(phi)[0]
            earlier = None if past is None else past.reshape(-1, columns) @ matrix.T
            separate = replace(self._separate, mean=tuple(matrix @ self._mean))
            own = separate.sample_observations(rng, states, self._separated(phi), earlier, before)
            return own @ np.linalg.inv(matrix).T
        mean, scale, coefficients, dof = self._by_column(phi)
        shape = len(states), columns
        y = rng.standard_normal(shape) if np.isinf(dof[0]) else rng.standard_t(dof[0], shape)
        y = mean[states] + scale[states] * y
        if order:
            first = states[:order] if past is None else np.full(order, states[0]) if before is None else before[-order:]
            known = np.tile(self._mean, (len(first), 1)) if past is None else self._recent(past)
            e = np.concatenate([known - mean[first], (y - mean[states])[order * (past is None) :]])
            backwards = coefficients[0, :, ::-1].T
            level = mean[np.concatenate([first, states[order * (past is None) :]])]
            for t in range(order, len(e)):
                earlier = e[t - order : t]
                if self.filtered:  # values before are compared with the level of this step
                    earlier = earlier + level[t - order : t] - level[t]
                e[t] += (backwards * earlier).sum(axis=0)
            y = mean[states] + e[len(e) - len(states) :]
        return y[:, 0] if columns == 1 else y

    def complete(self, rng: np.random.Generator, y: Array, states: IntArray, phi: NoisyLevelsPhi) -> FloatArray:
        return self.given_known(self.sample_observations(rng, states, phi), y, states, phi)

    def given_known(self, drawn: FloatArray, y: FloatArray, states: IntArray, phi: NoisyLevelsPhi) -> FloatArray:
        """y with its missing values taken from rows that were `drawn` as a whole, given the values that are known."""
        if not self.correlated:
            return np.where(np.isnan(y), drawn, y)
        return _correlated.given_known(drawn, y, self._covariance(phi, np.square(phi.scale))[states])

    def column(self, d: int) -> tuple[Emission, Callable[[NoisyLevelsPhi], NoisyLevelsPhi]]:
        """One column around its levels. Noise with a memory: its stationary law, with the tails of its innovations."""
        mean, spread, rate = float(self._mean[d]), float(self._spread[d]), float(self._rate[d])
        own = replace(self, order=0, n_features=1, mean=mean, spread=spread, rate=rate, correlated=False)

        def select(phi: NoisyLevelsPhi) -> NoisyLevelsPhi:
            parts = np.linalg.inv(self._matrices(phi))[:, d] * self._stationary(phi)  # of the coordinates
            return NoisyLevelsPhi(self._by_column(phi)[0][:, d], np.hypot.reduce(parts, axis=1), (), phi.dof)

        return own, select

    def row(self) -> tuple[Emission, Callable[[NoisyLevelsPhi], NoisyLevelsPhi]]:
        """A row around its levels, all columns together: the law of noise without a memory, as wide as in `column`."""
        return self.without_memory(), lambda phi: phi._replace(
            scale=self._stationary(phi).reshape(phi.scale.shape), coefficients=()
        )

    def covariance(self, phi: NoisyLevelsPhi) -> FloatArray:
        """(K, D, D): stationary covariances around the levels."""
        tails = 1 + 2 / np.maximum(self._by_column(phi)[3] - 2, FLOOR)  # ν/(ν − 2)
        return self._covariance(phi, np.square(self._stationary(phi)) * tails[:, None])

    # Layout

    def _stationary(self, phi: NoisyLevelsPhi) -> FloatArray:
        """(K, D): scales of stationary noise, of the coordinates if columns are correlated."""
        _, scale, coefficients, _ = self._by_column(phi)
        factor = np.column_stack([_noise.stationary_factor(coefficients[:, d]) for d in range(self.n_features)])
        return np.asarray(scale * factor)

    def _covariance(self, phi: NoisyLevelsPhi, variance: FloatArray) -> FloatArray:
        """(K, D, D), from variances of the coordinates, (K, D)."""
        return _correlated.covariances(self._matrices(phi), variance)

    def _regression(self, phi: NoisyLevelsPhi) -> FloatArray:
        """(K, D (D − 1) / 2), or (K, 0) if columns are independent."""
        return np.reshape(phi.regression, (len(phi.mean), len(self._regression_spread)))

    def _matrices(self, phi: NoisyLevelsPhi) -> FloatArray:
        """(K, D, D): B, the identity if columns are independent."""
        n_columns = self.n_features
        return _correlated.matrices(self._regression(phi), n_columns) if self.correlated else np.eye(n_columns)[None]

    def _coordinates(self, y: FloatArray, matrix: FloatArray) -> FloatArray:
        return _correlated.coordinates(self._lags(y), matrix)

    def _separated(self, phi: NoisyLevelsPhi) -> NoisyLevelsPhi:
        """φ of the coordinates, whose noise is independent."""
        return phi._replace(mean=(self._matrices(phi) @ phi.mean[:, :, None])[:, :, 0], regression=())

    @cached_property
    def _separate(self) -> "NoisyLevels":
        """The law of the coordinates given φ."""
        return replace(self, correlated=False)

    def _lags(self, y: FloatArray) -> FloatArray:
        """(n, order + 1, D)."""
        return y.reshape(len(y), self.order + 1, self.n_features)

    def _path(self, states: IntArray) -> IntArray:
        """(n, order + 1): the states of a step and of those before it; the same state if they are not given."""
        return states if states.ndim == 2 else np.repeat(states[:, None], self.order + 1, axis=1)

    def _by_column(self, phi: NoisyLevelsPhi) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """φ with all axes, and with what it leaves out."""
        n, columns = len(phi.mean), self.n_features
        coefficients = np.reshape(phi.coefficients, (n, columns, self.order))
        dof = phi.dof if self.tails == "student-t" else np.full(n, np.inf)
        return phi.mean.reshape(n, columns), phi.scale.reshape(n, columns), coefficients, np.asarray(dof)

    def _noise(self, phi: NoisyLevelsPhi) -> Noise:
        """φ with what the states share once."""
        level, scale, coefficients, dof = self._by_column(phi)
        if self.scale == "shared":
            scale = np.tile(scale[0], (len(scale), 1))
        return Noise(level, scale, coefficients[0], float(dof[0]), self._regression(phi)[0])

    def _pack(self, noise: Noise) -> NoisyLevelsPhi:
        """φ, with what the states share repeated for each."""
        mean, scale, coefficients, dof, regression = noise
        n = len(mean)
        a = np.tile(coefficients, (n, 1, 1))
        if self.n_features == 1:
            mean, scale, a = mean[:, 0], scale[:, 0], a[:, 0]
        dofs: Given = np.full(n, dof) if self.tails == "student-t" else ()
        return NoisyLevelsPhi(
            mean, scale, a if self.order else (), dofs, np.tile(regression, (n, 1)) if self.correlated else ()
        )

    def _recent(self, past: FloatArray) -> FloatArray:
        """The last `order` values of a sequence, (order, D)."""
        recent: FloatArray = past[-self.order :].reshape(-1, self.n_features)
        if len(recent) < self.order or np.isnan(recent).any():
            raise ValueError(
                f"NoisyLevels continues from the last {self.order} value(s) of a sequence, and some of them are "
                "missing; drop the steps after the last complete ones"
            )
        return recent

    def _sample_states(self, rng: np.random.Generator, n: int, shared: Noise) -> NoisyLevelsPhi:
        """Levels of n states, and scales of their own, from the prior; shared parameters are those given."""
        mean = self._mean + self._spread * rng.standard_normal((n, self.n_features))
        scale = self._prior_scales(rng, n) if self.scale == "own" else np.tile(shared.scale[0], (n, 1))
        return self._pack(shared._replace(level=mean, scale=scale))

    def _prior_scales(self, rng: np.random.Generator, n: int) -> FloatArray:
        nothing, nowhere, own = np.empty(0), np.empty(0, np.int64), self.scale == "own"
        return np.column_stack(
            [_noise.draw_scales(rng, nothing, nowhere, n, self.shape, rate, own) for rate in self._rate.tolist()]
        )

    @cached_property
    def _prior(self) -> NoisePrior:
        return NoisePrior(
            self._spread,
            self.shape,
            self._rate,
            self.scale == "own",
            self.coefficient_spread,
            self._grid,
            self._regression_spread if self.correlated else None,
        )

    @cached_property
    def _mean(self) -> FloatArray:
        return np.array(np.broadcast_to(np.asarray(self.mean, np.float64), self.n_features))

    @cached_property
    def _spread(self) -> FloatArray:
        return np.array(np.broadcast_to(np.asarray(self.spread, np.float64), self.n_features))

    @cached_property
    def _rate(self) -> FloatArray:
        return np.array(np.broadcast_to(np.asarray(self.rate, np.float64), self.n_features))

    @cached_property
    def _regression_spread(self) -> FloatArray:
        """(D (D − 1) / 2,), or (0,) if columns are independent."""
        if not self.correlated:
            return np.empty(0)
        row, column = np.tril_indices(self.n_features, -1)
        return np.asarray(self.regression_spread * np.sqrt(self._rate[row] / self._rate[column]))

    @cached_property
    def _grid(self) -> FloatArray:
        return np.atleast_1d(np.asarray(self.dof, np.float64)) if self.tails == "student-t" else np.array([np.inf])
