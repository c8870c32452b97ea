"""Symbols 0 … n_symbols − 1 with a Dirichlet prior on each state's probabilities (T15 §2.2, "multinomial")."""

from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import lgamma
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln, xlogy

from ihmm import _checks
from ihmm._random import FLOOR, dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._conjugate import Conjugate, add
from ihmm.emissions._counts import log_dirichlet_multinomial
from ihmm.emissions._gamma import log_density_of_log, log_gamma_density
from ihmm.emissions._protocol import ConjugateEmission
from ihmm.emissions._slice import slice_step
from ihmm.emissions._validation import plain
from ihmm.kernels.families import CompiledFamily, dispatch
from ihmm.priors import GammaPrior

LARGEST_CONCENTRATION = 1e6  # beyond which all states have practically the same probabilities


class CategoricalPhi(NamedTuple):
    probs: FloatArray  # (K, n_symbols)
    concentration: FloatArray | tuple[()] = ()  # (K,): of the prior, the same for all states, if it is inferred


class CategoricalStatistics(NamedTuple):
    number: IntArray  # (K, n_symbols)


@dataclass(frozen=True)
class Categorical(ConjugateEmission):
    """One symbol per time step; the probabilities of each state are Dirichlet(c·n·b_1, …, c·n·b_n), n symbols in all.

    Parameters
    ----------
    n_symbols
        Symbols are 0, 1, …, n_symbols − 1.
    concentration
        c: small values let a state emit few of the symbols; with 1, and all symbols expected equally often, all
        probabilities are equally likely beforehand. A number fixes it, a `GammaPrior` lets it be resampled: one
        concentration for all states, learned from them.
    base
        b: how often each symbol is expected, on average over states; in proportion to these numbers. Equally often if
        None.
    """

    n_symbols: int
    concentration: float | GammaPrior = 1.0
    base: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        _checks.count("Categorical n_symbols", self.n_symbols, least=1, most=_checks.MAX_SIZE)
        if not isinstance(self.concentration, GammaPrior):
            name = "Categorical concentration (a number fixes it, a GammaPrior lets it be resampled)"
            _checks.positive(name, self.concentration)
        if self.base is not None:
            object.__setattr__(self, "base", plain("Categorical base", self.base, [(self.n_symbols,)]))
            for value in self.base:
                _checks.positive("Categorical base", value)

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
        return np.asarray(np.log(self._weights / self.n_symbols)[y])

    def sample_prior(self, rng: np.random.Generator, n: int) -> CategoricalPhi:
        return self._sample_states(rng, n, self._sample_concentration(rng))

    def sample_new(self, rng: np.random.Generator, n: int, phi: CategoricalPhi) -> CategoricalPhi:
        return self._sample_states(rng, n, self._current(phi))

    def resample(self, rng: np.random.Generator, y: IntArray, states: IntArray, n_states: int) -> CategoricalPhi:
        return self._draw(self._mean, rng, self._statistics(y, states, n_states))

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: CategoricalPhi) -> IntArray:
        cumulative = phi.probs.cumsum(axis=1)
        u = rng.random(len(states)) * cumulative[states, -1]
        return np.asarray((u[:, None] >= cumulative[states, :-1]).sum(axis=1))

    def log_prior(self, phi: CategoricalPhi) -> FloatArray:
        """Densities of the probabilities; that of a concentration that is inferred is in the first entry, so that the
        sum has it once."""
        concentration = self._current(phi)
        each = concentration * self._weights
        constant = lgamma(each.sum()) - gammaln(each).sum()
        out = np.asarray(constant + np.log(phi.probs) @ (each - 1))
        if isinstance(self.concentration, GammaPrior):
            out[0] += log_gamma_density(np.array(concentration), self.concentration.shape, self.concentration.rate)
        return out

    def log_evidence(self, y: IntArray) -> float:
        """With a concentration that is inferred: at its prior mean."""
        return float(log_dirichlet_multinomial(self._mean * self._weights, np.bincount(y, minlength=self.n_symbols)))

    # With the probabilities integrated out

    def conjugate(self, y: IntArray) -> Conjugate:
        return Conjugate(
            self._statistics,
            add,
            partial(self._draw, self._mean),
            log_likelihood,
            self.log_evidence,
            CompiledFamily(dispatch.CATEGORICAL, self._prior(self._mean), y.astype(np.float64), 1 + self.n_symbols),
            self._given if self._is_inferred else None,
        )

    def _given(self, conjugate: Conjugate, phi: CategoricalPhi) -> Conjugate:
        """With the current concentration, from which `draw` takes a step."""
        concentration, compiled = self._current(phi), conjugate.compiled
        if compiled is not None:
            compiled = compiled._replace(prior=self._prior(concentration))
        return replace(conjugate, draw=partial(self._draw, concentration), compiled=compiled)

    def _prior(self, concentration: float) -> FloatArray:
        each = concentration * self._weights
        return np.append(each.sum(), each)

    def _statistics(self, y: IntArray, states: IntArray, n_states: int) -> CategoricalStatistics:
        count = np.bincount(states * self.n_symbols + y, minlength=n_states * self.n_symbols)
        return CategoricalStatistics(count.reshape(n_states, self.n_symbols))

    def _draw(
        self, concentration: float, rng: np.random.Generator, statistics: CategoricalStatistics
    ) -> CategoricalPhi:
        """A step from the concentration, if it is inferred, with the probabilities integrated out; then these."""
        prior = self.concentration
        if isinstance(prior, GammaPrior):
            concentration = resample_concentration(rng, prior, self._weights, concentration, statistics.number)
        return self._pack(dirichlet(rng, concentration * self._weights + statistics.number), concentration)

    @cached_property
    def _weights(self) -> FloatArray:
        """(n_symbols,): n·b, of average 1."""
        weights = np.ones(self.n_symbols) if self.base is None else np.array(self.base)
        return np.asarray(weights / weights.mean())

    # The concentration: fixed, or inferred and then part of φ

    @property
    def _is_inferred(self) -> bool:
        return isinstance(self.concentration, GammaPrior)

    @property
    def _mean(self) -> float:
        return self.concentration.mean if isinstance(self.concentration, GammaPrior) else self.concentration

    def _current(self, phi: CategoricalPhi) -> float:
        prior = self.concentration
        return float(np.asarray(phi.concentration)[0]) if isinstance(prior, GammaPrior) else prior

    def _sample_concentration(self, rng: np.random.Generator) -> float:
        prior = self.concentration
        if not isinstance(prior, GammaPrior):
            return prior
        return float(np.clip(rng.standard_gamma(prior.shape) / prior.rate, FLOOR, LARGEST_CONCENTRATION))

    def _sample_states(self, rng: np.random.Generator, n: int, concentration: float) -> CategoricalPhi:
        return self._pack(dirichlet(rng, np.tile(concentration * self._weights, (n, 1))), concentration)

    def _pack(self, probs: FloatArray, concentration: float) -> CategoricalPhi:
        return CategoricalPhi(probs, np.full(len(probs), concentration) if self._is_inferred else ())

    def _is_symbol(self, values: Array) -> Array:
        with np.errstate(invalid="ignore"):
            return np.asarray((values >= 0) & (values < self.n_symbols) & (values == np.floor(values)))


def log_likelihood(statistics: CategoricalStatistics, phi: CategoricalPhi) -> float:
    return float(xlogy(statistics.number, phi.probs).sum())


def resample_concentration(
    rng: np.random.Generator, prior: GammaPrior, weights: FloatArray, concentration: float, number: IntArray
) -> float:
    """A slice step of the logarithm of the concentration, given how often each symbol was observed in each state."""

    def log_posterior(log_concentration: FloatArray) -> FloatArray:
        concentrations = np.exp(log_concentration[0]) * weights
        log_prior = log_density_of_log(log_concentration, prior.shape, prior.rate)
        return np.asarray(log_prior + log_dirichlet_multinomial(concentrations, number).sum())

    stepped = slice_step(rng, log_posterior, np.log([concentration]))
    return float(np.clip(np.exp(stepped[0]), FLOOR, LARGEST_CONCENTRATION))
