"""Zeros and ones: each column is 1 with a probability of its own, which is Beta(a, b)."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import betaln

from ihmm import _checks
from ihmm._random import FLOOR, dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._base import Collapsed, ConjugateEmission, sums_by_state


class BernoulliPhi(NamedTuple):
    probs: FloatArray  # (K, D): of a 1


@dataclass(frozen=True)
class Bernoulli(ConjugateEmission):
    """Zeros and ones in `n_features` columns that are independent within a state.

    The probability of a 1 is Beta(a, b) in every state and column, of mean a/(a + b). Single values of a row may be
    NaN: they are missing, and the row is judged by the others.
    """

    n_features: int = 1
    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _checks.count("Bernoulli n_features", self.n_features)
        _checks.positive("Bernoulli a", self.a)
        _checks.positive("Bernoulli b", self.b)

    def validate(self, y: Array) -> Array:
        size = self.n_features
        if y.shape[1:] != self._shape:
            got = "one number" if y.ndim == 1 else f"{y.shape[1]} columns"
            rows = "one number a step, shape (T,)" if size == 1 else f"rows of that length, shape (T, {size})"
            raise ValueError(f"Bernoulli with n_features = {size} takes {rows}; got {got}")
        values = y.reshape(len(y), size)
        wrong = ~((values == 0) | (values == 1) | np.isnan(values))
        if wrong.any():
            t, column = np.argwhere(wrong)[0]
            raise ValueError(
                f"Bernoulli expects zeros and ones, got {values[t, column]} at t = {t} ({wrong.sum()} such values); "
                "for more than two kinds see Categorical, for counts Poisson"
            )
        return y.astype(self._dtype)

    def log_density(self, y: Array, phi: BernoulliPhi) -> FloatArray:
        log_probs = np.hstack([np.log(phi.probs), np.log(_other(phi.probs))])
        out: FloatArray = np.einsum("kd,td->kt", log_probs, np.hstack(self._ones_and_zeros(y)))
        return out.T

    def log_density_at(self, y: Array, states: IntArray, phi: BernoulliPhi) -> FloatArray:
        ones, zeros = self._ones_and_zeros(y)
        each = ones * np.log(phi.probs)[states] + zeros * np.log(_other(phi.probs))[states]
        return np.asarray(each.sum(axis=1))

    def log_marginal(self, y: Array) -> FloatArray:
        ones, zeros = self._ones_and_zeros(y)
        mass = self.a + self.b
        return np.asarray(ones.sum(axis=1) * np.log(self.a / mass) + zeros.sum(axis=1) * np.log(self.b / mass))

    def sample_prior(self, rng: np.random.Generator, n: int) -> BernoulliPhi:
        nothing = np.zeros((n, self.n_features))
        return self._draw(rng, nothing, nothing)

    def resample(self, rng: np.random.Generator, y: Array, states: IntArray, n_states: int) -> BernoulliPhi:
        return self._draw(rng, *(sums_by_state(part, states, n_states) for part in self._ones_and_zeros(y)))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: BernoulliPhi) -> Array:
        y = rng.random((len(states), self.n_features)) < phi.probs[states]
        return y.reshape(len(states), *self._shape).astype(self._dtype)

    def log_prior(self, phi: BernoulliPhi) -> FloatArray:
        log_beta = (self.a - 1) * np.log(phi.probs) + (self.b - 1) * np.log(_other(phi.probs))
        return np.asarray((log_beta - betaln(self.a, self.b)).sum(axis=1))

    def log_evidence(self, y: Array) -> float:
        return sum(
            float(betaln(self.a + n, self.b + m) - betaln(self.a, self.b))
            for n, m in zip(*(part.sum(axis=0) for part in self._ones_and_zeros(y)), strict=True)
        )

    def collapsed(self, y: Array) -> Collapsed:
        prior = np.tile([[self.a], [self.b]], self.n_features)
        values = y.reshape(len(y), self.n_features).astype(np.float64)
        return Collapsed("bernoulli", prior, values, size=1 + 2 * self.n_features)

    @property
    def _shape(self) -> tuple[int, ...]:
        """Of a step: one column comes as a series of numbers, several as rows."""
        return () if self.n_features == 1 else (self.n_features,)

    @property
    def _dtype(self) -> type:
        """Several columns may have NaN among them; steps without any value do not come here."""
        return np.int64 if self.n_features == 1 else np.float64

    def _ones_and_zeros(self, y: Array) -> tuple[FloatArray, FloatArray]:
        """(T, D) each: 1.0 where the value is a 1, and where it is a 0; neither where it is missing."""
        rows = y.reshape(len(y), self.n_features)
        return (rows == 1).astype(np.float64), (rows == 0).astype(np.float64)

    def _draw(self, rng: np.random.Generator, ones: FloatArray, zeros: FloatArray) -> BernoulliPhi:
        return BernoulliPhi(dirichlet(rng, np.stack([self.a + ones, self.b + zeros], axis=-1))[..., 0])


def _other(probs: FloatArray) -> FloatArray:
    return np.maximum(1 - probs, FLOOR)
