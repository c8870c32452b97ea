"""Symbols 0 … n_symbols − 1 with a Dirichlet prior on each state's probabilities (T15 §2.2, "multinomial")."""

from dataclasses import dataclass
from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import xlogy

from ihmm import _checks
from ihmm._random import dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate, add
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.kernels.families import CompiledFamily, dispatch


class CategoricalPhi(NamedTuple):
    probs: FloatArray


class CategoricalStatistics(NamedTuple):
    number: IntArray  # (K, n_symbols)


@dataclass(frozen=True)
class Categorical(ConjugateEmission):
    """One symbol per time step; the probabilities of each state are Dirichlet(concentration, …, concentration)."""

    n_symbols: int
    concentration: float = 1.0

    def __post_init__(self) -> None:
        _checks.count("Categorical n_symbols", self.n_symbols, least=1, most=_checks.MAX_SIZE)
        _checks.positive("Categorical concentration", self.concentration)

    def validate(self, y: Array) -> IntArray:
        if y.ndim != 1:
            raise ValueError(f"Categorical takes one symbol per time step, shape (T,); got {y.shape[1]} columns")
        wrong = np.flatnonzero(~self._is_symbol(y))
        if wrong.size:
            raise ValueError(
                f"Categorical expects whole numbers from 0 to {self.n_symbols - 1} (n_symbols = {self.n_symbols}), "
                f"got {y[wrong[0]]} at t = {wrong[0]} ({wrong.size} such values); "
                "recode the symbols or raise n_symbols"
            )
        return y.astype(np.int64)

    def log_density(self, y: IntArray, phi: CategoricalPhi) -> FloatArray:
        return np.take(np.log(phi.probs), y, axis=1).T

    def log_density_at(self, y: IntArray, states: IntArray, phi: CategoricalPhi) -> FloatArray:
        return np.asarray(np.log(phi.probs)[states, y])

    def log_marginal(self, y: IntArray) -> FloatArray:
        return np.full(len(y), -np.log(self.n_symbols))

    def sample_prior(self, rng: np.random.Generator, n: int) -> CategoricalPhi:
        return CategoricalPhi(dirichlet(rng, np.full((n, self.n_symbols), self.concentration)))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> CategoricalPhi:
        return self._draw(rng, self._statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: CategoricalPhi) -> IntArray:
        cumulative = phi.probs.cumsum(axis=1)
        u = rng.random(len(states)) * cumulative[states, -1]
        return np.asarray((u[:, None] >= cumulative[states, :-1]).sum(axis=1))

    def log_prior(self, phi: CategoricalPhi) -> FloatArray:
        constant = lgamma(self.n_symbols * self.concentration) - self.n_symbols * lgamma(self.concentration)
        return np.asarray(constant + (self.concentration - 1) * np.log(phi.probs).sum(axis=1))

    def log_evidence(self, y: IntArray) -> float:
        count = np.bincount(y, minlength=self.n_symbols)
        mass = self.n_symbols * self.concentration
        each = sum(lgamma(self.concentration + n) - lgamma(self.concentration) for n in count.tolist())
        return lgamma(mass) - lgamma(mass + len(y)) + each

    def conjugate(self, y: IntArray) -> Conjugate:
        prior = np.array([self.concentration, self.n_symbols])
        compiled = CompiledFamily(dispatch.CATEGORICAL, prior, y.astype(np.float64), size=1 + self.n_symbols)
        return Conjugate(self._statistics, add, self._draw, log_likelihood, self.log_evidence, compiled)

    def _statistics(self, y: IntArray, states: IntArray, n_states: int) -> CategoricalStatistics:
        count = np.bincount(states * self.n_symbols + y, minlength=n_states * self.n_symbols)
        return CategoricalStatistics(count.reshape(n_states, self.n_symbols))

    def _draw(self, rng: np.random.Generator, statistics: CategoricalStatistics) -> CategoricalPhi:
        return CategoricalPhi(dirichlet(rng, self.concentration + statistics.number))

    def _is_symbol(self, values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray((values >= 0) & (values < self.n_symbols) & (values == np.floor(values)))


def log_likelihood(statistics: CategoricalStatistics, phi: CategoricalPhi) -> float:
    return float(xlogy(statistics.number, phi.probs).sum())
