"""Observations as the model uses them."""

from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.emissions._conjugate import Conjugate
from ihmm.series.clock import Clock
from ihmm.workers import Threads, Workers


class Data(NamedTuple):
    """Validated observations of all sequences end to end, with everything that is computed from them once."""

    y: Array  # in the form the emission expects; a placeholder where missing, NaN where part of a row is missing
    offsets: IntArray  # first step of every sequence, and the total length
    log_marginal: FloatArray  # log ∫ f(y_t | φ) H(dφ)
    missing: BoolArray | None = None  # time steps without any value; None if there are none
    with_past: tuple[Array, BoolArray] | None = None  # `Emission.with_past`, if the density depends on the past
    conjugate: Conjugate | None = None  # φ integrated out, if the emission and these data allow it
    workers: Workers = Threads()  # who resamples the sequences; no result depends on it
    columns: tuple[str, ...] | None = None  # names of several columns, if they have names
    symbols: tuple[str, ...] | None = None  # what integers stand for, if the series were texts
    clock: Clock | None = None  # times of the steps, if they are known
    baseline: FloatArray | None = None  # (T, D): what was subtracted from the observations, if anything was
    first: int = 0  # number of the first time step in the whole data, for messages

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    @property
    def observations(self) -> Array:
        """What the emission scores at each time step: y, or y with its past."""
        return self.y if self.with_past is None else self.with_past[0]

    @property
    def uninformative(self) -> BoolArray | None:
        """Time steps that are uninformative about their state: no value, or too little of the past known."""
        return self.missing if self.with_past is None else self.with_past[1]

    @property
    def informative(self) -> BoolArray:
        """Time steps that are informative about their state."""
        return np.ones(len(self.y), bool) if self.uninformative is None else ~self.uninformative

    @property
    def values(self) -> Array:
        """The observations with NaN where they are missing."""
        if self.missing is None:
            return self.y
        values = self.y.astype(np.float64)
        values[self.missing] = np.nan
        return values

    def given(self, phi: Phi) -> "Data":
        """The same with parameters of H that are inferred fixed at their current values, which `phi` has."""
        if self.conjugate is None or self.conjugate.given is None:
            return self
        return self._replace(conjugate=self.conjugate.given(self.conjugate, phi))

    def pair(self, states: IntArray) -> tuple[Array, IntArray]:
        """The informative observations and their states."""
        if self.uninformative is None:
            return self.observations, states
        return self.observations[~self.uninformative], states[~self.uninformative]

    def take(self, steps: slice | IntArray) -> "Data":
        """Some time steps as a single sequence, for one worker: without what compiled moves need."""
        y = self.y[steps]
        return Data(
            y,
            np.array([0, len(y)]),
            self.log_marginal[steps],
            self.missing[steps] if self.missing is not None else None,
            (self.with_past[0][steps], self.with_past[1][steps]) if self.with_past is not None else None,
            self.conjugate.without_compiled() if self.conjugate is not None else None,
            first=self.first + (steps.start or 0) if isinstance(steps, slice) else self.first,
        )

    def part(self, begin: int, end: int) -> "Data":
        """Consecutive time steps with their division into sequences; a sequence that is cut begins or ends there."""
        first, last = np.searchsorted(self.offsets, begin, "right"), np.searchsorted(self.offsets, end)
        offsets = np.concatenate([[begin], self.offsets[first:last], [end]]) - begin
        return self.take(slice(begin, end))._replace(offsets=offsets)
