"""Binary columns: each is 1 with its own probability, which is Beta(a, b)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from ihmm import _checks
from ihmm._random import FLOOR, dirichlet
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._conjugate import Conjugate, add, sums_by_state
from ihmm.emissions._protocol import ConjugateEmission, Emission
from ihmm.kernels.families import CompiledFamily, dispatch


class BernoulliPhi(NamedTuple):
    probs: FloatArray  # (K, D): of a 1


class BernoulliStatistics(NamedTuple):
    number: FloatArray  # (K, 2D): ones in every column, then zeros


@dataclass(frozen=True)
class Bernoulli(ConjugateEmission):
    """Zeros and ones in `n_features` columns that are independent within a state.

    The probability of a 1 is Beta(a, b) in every state and column, with mean a/(a + b). Single values of a row may be
    missing (NaN); the density of the row is then that of its observed values.
    """

    n_features: int = 1
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _checks.count("Bernoulli n_features", self.n_features, most=_checks.MAX_SIZE)
        _checks.positive("Bernoulli a", self.a)
        _checks.positive("Bernoulli b", self.b)

    def validate(self, y: Array) -> Array:
        size = self.n_features
        if y.shape[1:] != self._shape:
            got = "one number per time step" if y.ndim == 1 else f"{y.shape[1]} columns"
            expected = (
                "one number per time step, shape (T,)" if size == 1 else f"rows of that length, shape (T, {size})"
            )
            raise ValueError(f"Bernoulli with n_features = {size} takes {expected}; got {got}")
        values = y.reshape(len(y), size)
        wrong = ~((values == 0) | (values == 1) | np.isnan(values))
        if wrong.any():
            t, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"Bernoulli expects zeros and ones, got {values[t, column]} at t = {t} ({wrong.sum()} such values); "
                "use Categorical for more than two values, Poisson for counts"
            )
        return y.astype(self._dtype)

    def log_density(self, y: Array, phi: BernoulliPhi) -> FloatArray:
        out: FloatArray = np.einsum("kd,td->kt", _log_both(phi), self._ones_and_zeros(y))
        return out.T

    def log_density_at(self, y: Array, states: IntArray, phi: BernoulliPhi) -> FloatArray:
        return np.asarray(np.einsum("td,td->t", self._ones_and_zeros(y), _log_both(phi)[states]))

    def log_marginal(self, y: Array) -> FloatArray:
        log_both = np.log(np.repeat([self.a, self.b], self.n_features) / (self.a + self.b))
        return np.asarray(self._ones_and_zeros(y) @ log_both)

    def sample_prior(self, rng: np.random.Generator, n: int) -> BernoulliPhi:
        return self._draw(rng, BernoulliStatistics(np.zeros((n, 2 * self.n_features))))

    def resample(self, rng: np.random.Generator, y: Array, states: IntArray, n_states: int) -> BernoulliPhi:
        return self._draw(rng, self._statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: BernoulliPhi) -> Array:
        y = rng.random((len(states), self.n_features)) < phi.probs[states]
        return y.reshape(len(states), *self._shape).astype(self._dtype)

    def column(self, d: int) -> tuple[Emission, Callable[[Phi], Phi]]:
        return replace(self, n_features=1), lambda phi: BernoulliPhi(phi.probs[:, d : d + 1])

    def log_prior(self, phi: BernoulliPhi) -> FloatArray:
        powers = np.repeat([self.a - 1, self.b - 1], self.n_features)
        return np.asarray(_log_both(phi) @ powers - self.n_features * betaln(self.a, self.b))

    def log_evidence(self, y: Array) -> float:
        ones, zeros = np.split(self._ones_and_zeros(y).sum(axis=0), 2)
        return float((betaln(self.a + ones, self.b + zeros) - betaln(self.a, self.b)).sum())

    def conjugate(self, y: Array) -> Conjugate:
        prior = np.tile([[self.a], [self.b]], self.n_features)
        values = y.reshape(len(y), self.n_features).astype(np.float64)
        compiled = CompiledFamily(dispatch.BERNOULLI, prior, values, size=1 + 2 * self.n_features)
        return Conjugate(self._statistics, add, self._draw, log_likelihood, self.log_evidence, compiled)

    def _statistics(self, y: Array, states: IntArray, n_states: int) -> BernoulliStatistics:
        return BernoulliStatistics(sums_by_state(self._ones_and_zeros(y), states, n_states))

    def _draw(self, rng: np.random.Generator, statistics: BernoulliStatistics) -> BernoulliPhi:
        counts = statistics.number.reshape(-1, 2, self.n_features)
        both = np.array([[self.a], [self.b]]) + counts
        return BernoulliPhi(dirichlet(rng, both.swapaxes(1, 2))[..., 0])

    @property
    def _shape(self) -> tuple[int, ...]:
        """Shape of one observation: a number for one column, a row for several."""
        return () if self.n_features == 1 else (self.n_features,)

    @property
    def _dtype(self) -> type:
        """Rows may contain NaN; steps without any value are not passed to an emission."""
        return np.int64 if self.n_features == 1 else np.float64

    def _ones_and_zeros(self, y: Array) -> FloatArray:
        """(T, 2D): 1.0 where a value is a 1, then where it is a 0; neither where it is missing."""
        rows = y.reshape(len(y), self.n_features)
        return np.hstack([rows == 1, rows == 0]).astype(np.float64)


def log_likelihood(statistics: BernoulliStatistics, phi: BernoulliPhi) -> float:
    return float(np.sum(statistics.number * _log_both(phi)))


def _log_both(phi: BernoulliPhi) -> FloatArray:
    """(K, 2D): log probability of a 1 in every column, then of a 0."""
    return np.asarray(np.log(np.hstack([phi.probs, np.maximum(1 - phi.probs, FLOOR)])))
