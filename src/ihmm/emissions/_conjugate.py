"""Conjugacy as one object: everything the library does with φ integrated out goes through `Conjugate`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi, Statistics
from ihmm.emissions._parameters import fields, rebuild
from ihmm.emissions._protocol import Emission
from ihmm.kernels.families import CompiledFamily

# Methods that define the law of an emission. If a subclass overrides one of them, what its parent class says about
# conjugacy no longer holds.
LAW = (
    "log_density",
    "log_density_at",
    "log_marginal",
    "sample_prior",
    "log_prior",
    "resample",
    "update",
    "with_past",
    "sample_new",
)

Summed = TypeVar("Summed", bound=tuple[Any, ...])


@dataclass(frozen=True, eq=False)
class Conjugate:
    """An emission whose parameter φ can be integrated out.

    Sufficient statistics are a NamedTuple of arrays with leading axis K, as φ is. The statistics of consecutive parts
    of the data are computed where these are, and combined in order.

    Attributes
    ----------
    statistics
        ``(y, states, n_states)``: the sufficient statistics of every state, also of an empty `y`.
    combine
        Statistics of several parts of the data, all with the same number of states, taken together in this order.
    draw
        ``(rng, statistics)``: one draw of φ | y, s.
    log_likelihood
        ``(statistics, phi)``: log Π_t f(y_t | φ_{s_t}).
    log_evidence
        ``(y)``: log ∫ Π_t f(y_t | φ) H(dφ).
    compiled
        What compiled samplers and moves need; None if the family has no compiled code.
    given
        ``(self, phi)``: for a prior H with parameters that are inferred, the same with these fixed at their current
        values, which `phi` has; `draw` then takes a step from them. None if H is fixed.
    """

    statistics: Callable[[Array, IntArray, int], Statistics]
    combine: Callable[[Sequence[Statistics]], Statistics]
    draw: Callable[[np.random.Generator, Statistics], Phi]
    log_likelihood: Callable[[Statistics, Phi], float]
    log_evidence: Callable[[Array], float]
    compiled: CompiledFamily | None = None
    given: "Callable[[Conjugate, Phi], Conjugate] | None" = None

    def without_compiled(self) -> "Conjugate":
        """The same without the data that compiled code reads."""
        return self if self.compiled is None else replace(self, compiled=None)


def conjugate(emission: Emission, y: Array) -> Conjugate | None:
    """φ of this emission integrated out for data like `y`; None if that is not possible.

    A subclass that overrides part of the law, but not `conjugate`, is not treated as conjugate.
    """
    kind = type(emission)
    owner = next((base for base in kind.__mro__ if "conjugate" in vars(base)), None)
    if owner in (None, Emission):
        return None
    if any(getattr(kind, name, None) is not getattr(owner, name, None) for name in LAW):
        return None
    return emission.conjugate(y)


def add(parts: Sequence[Summed]) -> Summed:
    """Combine statistics that are plain sums."""
    arrays = zip(*(fields(part).values() for part in parts), strict=True)
    together: Summed = rebuild(parts[0], map(total, arrays))
    return together


def total(parts: Sequence[Array] | Array) -> Array:
    """Sum over the first axis, added up in order: the order of `np.sum` depends on the shape."""
    return np.asarray(np.cumsum(parts, axis=0)[-1])


def sums_by_state(y: Array, states: IntArray, n_states: int) -> FloatArray:
    """The rows of y, (T, D), summed for every state: (n_states, D)."""
    out = np.zeros((n_states, y.shape[1]))
    order = np.argsort(states, kind="stable")
    visited, first = np.unique(states[order], return_index=True)
    if len(y):
        out[visited] = np.add.reduceat(y[order], first, axis=0, dtype=np.float64)
    return out
