"""The model, the data as it sees them, and one draw of everything unknown."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ihmm import _checks
from ihmm._threads import share_out
from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi, Statistics
from ihmm.emissions._base import REQUIRED, Collapsed, Emission, log_density_at, log_marginal, provides, sums_up
from ihmm.emissions.choose import choose
from ihmm.kernels.counts import rename
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior, HDPPrior
from ihmm.sequences import Sequences

Prior = HDPPrior | FinitePrior


class Hyper(NamedTuple):
    """γ, c = α + κ and ρ = κ/(α + κ). γ is infinite where β is fixed to equal weights."""

    gamma: float
    concentration: float
    stickiness: float

    @property
    def alpha(self) -> float:
        return (1 - self.stickiness) * self.concentration

    @property
    def kappa(self) -> float:
        return self.stickiness * self.concentration


class Transitions(NamedTuple):
    """β, π_0 and π_j over the K states visited; the last entry of each is the mass not broken yet."""

    beta: FloatArray  # (K + 1,)
    initial: FloatArray  # (K + 1,)
    rows: FloatArray  # (K, K + 1)


class Draw(NamedTuple):
    """One state of the Markov chain: the path, the transitions, the emission parameters, the hyperparameters.

    `components` has the component of every step within its state if the emission is a mixture. Draws that are kept
    have forgotten it.
    """

    states: IntArray
    transitions: Transitions
    phi: Phi
    hyper: Hyper
    components: IntArray | None = None

    @property
    def n_states(self) -> int:
        return len(self.transitions.rows)


class Sums(NamedTuple):
    """What the conditionals ask of a path: its transitions, and the statistics of what its states emitted."""

    counts: IntArray  # (K + 1, K), as `count_transitions` has them
    statistics: Statistics | None  # None if the emission has none


class Away(Protocol):
    """A path that those who work on the data keep with them."""

    def fetch(self) -> IntArray: ...


@dataclass(frozen=True, eq=False)
class Distant:
    """The path of a draw that is away, in other numbers there, and what was summed up of it."""

    away: Away
    label: IntArray  # what those numbers are called here
    sums: Sums

    @cached_property
    def states(self) -> IntArray:
        path = self.away.fetch()
        states = np.empty(len(path), np.int64)
        rename(path, self.label, states)
        return states


class DistantDraw(Draw):
    """A draw whose path is fetched when somebody looks at it."""

    @property
    def states(self) -> IntArray:
        return fetched(self)


def distant(draw: tuple[Any, ...]) -> Distant | None:
    """The path of a draw, which comes first, if it is away."""
    return draw[0] if isinstance(draw[0], Distant) else None


def fetched(draw: tuple[Any, ...]) -> IntArray:
    """The path of a draw, wherever it is."""
    there = distant(draw)
    return draw[0] if there is None else there.states


class Stretch(Protocol):
    """Consecutive steps of the data."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...


JOB = 25_000  # steps worked on at a time: few enough that threads are done at about the same time

Job = TypeVar("Job", bound=Stretch)
Result = TypeVar("Result")


class Team(Protocol):
    """Those who work on the data of a chain at the same time."""

    @property
    def threads(self) -> int:
        """How many threads this process itself may use."""
        ...

    def parts(self, n_steps: int) -> int:
        """Into how many parts so many steps are best cut."""
        ...

    def over(self, function: "Callable[[Data, Job], Result]", data: "Data", jobs: Sequence[Job]) -> list[Result]:
        """The function of every job and the part of the data that it is about, in order."""
        ...

    @property
    def keeper(self) -> "Keeper | None":
        """The team itself, if it keeps paths where it works on the data."""
        ...


class Keeper(Protocol):
    """A team that keeps paths where it works on the data."""

    def renew(
        self,
        function: "Callable[[Data, IntArray, Job], tuple[IntArray, Result]]",
        data: "Data",
        path: IntArray | Away,
        stretches: Sequence[Job],
    ) -> tuple[Away, list[Result]]:
        """The path that a function makes of another, stretch by stretch, given the data there; and what else it says
        of each stretch."""
        ...


@dataclass(frozen=True)
class Threads:
    """Threads of this process."""

    threads: int = 1

    def parts(self, n_steps: int) -> int:
        return jobs_for(self.threads, n_steps)

    def over(self, function: "Callable[[Data, Job], Result]", data: "Data", jobs: Sequence[Job]) -> list[Result]:
        return share_out(lambda job: function(data.take(slice(job.begin, job.end)), job), jobs, self.threads)

    @property
    def keeper(self) -> None:
        return None


def jobs_for(members: int, n_steps: int) -> int:
    """How many jobs to make of so many steps: as many for each member of a team, and none too long."""
    return members * math.ceil(n_steps / (members * JOB))


class Data(NamedTuple):
    """Observations in the form the emission expects, with log ∫ f(y_t|φ) H(dφ) computed once.

    `missing` marks the steps that have no value at all, None if there are none; `y` has a stand-in there, which is
    never looked at. In a row of several columns single values may be missing too: those are NaN in `y`, and the
    emission deals with them. `with_past` is what the emission made of them, if its density depends on the past.

    If `sums_up`, a path says through a few statistics of each state all that there is to know about φ. The `team` is
    who works on the data; no result depends on it.
    """

    y: Array
    offsets: IntArray
    log_marginal: FloatArray
    missing: BoolArray | None = None
    with_past: tuple[Array, BoolArray] | None = None
    sums_up: bool = False
    team: Team = Threads()

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)

    def take(self, steps: slice | IntArray) -> "Data":
        """Some steps by themselves, as one sequence."""
        y, log_marginal = self.y[steps], self.log_marginal[steps]
        missing = self.missing[steps] if self.missing is not None else None
        with_past = (self.with_past[0][steps], self.with_past[1][steps]) if self.with_past is not None else None
        return Data(y, np.array([0, len(y)]), log_marginal, missing, with_past, self.sums_up)

    def part(self, begin: int, end: int) -> "Data":
        """Consecutive steps with the sequences they are of; those that are cut begin or end there."""
        first, last = np.searchsorted(self.offsets, begin, "right"), np.searchsorted(self.offsets, end)
        offsets = np.concatenate([[begin], self.offsets[first:last], [end]]) - begin
        return self.take(slice(begin, end))._replace(offsets=offsets)

    @property
    def seen(self) -> Array:
        """What the emission sees of each step: y, or y with its past."""
        return self.y if self.with_past is None else self.with_past[0]

    @property
    def silent(self) -> BoolArray | None:
        """Steps that say nothing about their state: without a value, or with too little of their past known."""
        return self.missing if self.with_past is None else self.with_past[1]

    @property
    def observed(self) -> BoolArray:
        """Steps that say something about their state."""
        return np.ones(len(self.y), bool) if self.silent is None else ~self.silent

    @property
    def values(self) -> Array:
        """The observations with NaN where they are missing."""
        if self.missing is None:
            return self.y
        values = self.y.astype(np.float64)
        values[self.missing] = np.nan
        return values


@dataclass(frozen=True)
class Model:
    """A hidden Markov model: a family of emissions and a prior on transitions, infinite or finite (T15 §2)."""

    emission: Emission
    prior: Prior = field(default_factory=HDPPrior)

    def __post_init__(self) -> None:
        if isinstance(self.emission, type):
            raise TypeError(f"emission must be an instance, got the class; call it: {self.emission.__name__}(…)")
        missing = [name for name in REQUIRED if not provides(self.emission, name)]
        if missing:
            raise TypeError(
                f"emission must be an Emission such as ihmm.Normal(), got {self.emission!r}, "
                f"which does not define {', '.join(missing)}"
            )
        if not isinstance(self.prior, (HDPPrior, FinitePrior)):
            raise TypeError(f"prior must be an HDPPrior or a FinitePrior, got {self.prior!r}")

    def observe(self, y: Any, *, shortest: int = 2) -> Data:
        """Check raw series against the emission; every error about data is raised here, before any sampling."""
        sequences = Sequences.of(y, shortest=shortest)
        parts = []
        for i, part in enumerate(np.split(sequences.values, sequences.offsets[1:-1])):
            try:
                parts.append(self.emission.validate(part))
            except ValueError as error:
                if len(sequences.lengths) > 1:
                    raise ValueError(f"sequence {i}: {error}") from error
                raise
        return self.describe(np.concatenate(parts), sequences.offsets, sequences.missing)

    def describe(self, y: Array, offsets: IntArray, missing: BoolArray | None = None) -> Data:
        """Data of observations that have been checked."""
        with_past = self.emission.with_past(y, offsets, missing) if provides(self.emission, "with_past") else None
        data = Data(y, offsets, np.empty(0), missing, with_past)
        marginal = log_marginal(self.emission, data.seen)
        if data.silent is not None:
            marginal[data.silent] = 0.0
        data = data._replace(log_marginal=marginal)
        one_state = np.zeros(len(y), np.int64)
        return data._replace(sums_up=sums_up(self.emission) and self.statistics(data, one_state, 1) is not None)

    # What the emission says of the data. A step that says nothing about its state has a density of 1.

    def log_density(self, data: Data, phi: Phi, steps: slice = slice(None)) -> FloatArray:
        """log f(y_t | φ_k), shape (T, K)."""
        table = self.emission.log_density(data.seen[steps], phi)
        if data.silent is not None:
            table[data.silent[steps]] = 0.0
        return table

    def log_density_at(self, data: Data, states: IntArray, phi: Phi) -> FloatArray:
        """log f(y_t | φ_{s_t}), shape (T,)."""
        values = log_density_at(self.emission, data.seen, states, phi)
        if data.silent is not None:
            values[data.silent] = 0.0
        return values

    def resample_phi(
        self, rng: np.random.Generator, data: Data, states: IntArray, n_states: int, phi: Phi | None
    ) -> Phi:
        """φ | y, s: a draw, or a step from the present `phi` for emissions that can do no better."""
        y, states = audible(data, states)
        if phi is not None and provides(self.emission, "update"):
            return self.emission.update(rng, y, states, phi)
        return self.emission.resample(rng, y, states, n_states)

    def statistics(self, data: Data, states: IntArray, n_states: int) -> Statistics | None:
        """What φ | y, s depends on, if it can be summed up."""
        return self.emission.statistics(*audible(data, states), n_states)

    # Mixtures within states

    @property
    def is_mixture(self) -> bool:
        return provides(self.emission, "sliced")

    def sliced(self, rng: np.random.Generator, data: Data, draw: Draw) -> "tuple[Data, Model, Draw]":
        """Data, model and draw as Step 1 sees them, given slices."""
        sliced, phi = self.emission.sliced(rng, data.y, draw.states, draw.components, draw.phi)  # type: ignore[attr-defined]
        steps = data._replace(y=np.arange(len(data.y)))
        return steps, replace(self, emission=sliced), draw._replace(phi=phi)

    def resample_mixtures(
        self,
        rng: np.random.Generator,
        data: Data,
        states: IntArray,
        components: IntArray | None,
        n_states: int,
        phi: Phi | None,
    ) -> tuple[Phi, IntArray]:
        """φ | y, s, z, and z in the numbers of the components in it."""
        observed = data.observed
        out = np.full(len(states), -1)
        phi, out[observed] = self.emission.resample_mixtures(  # type: ignore[attr-defined]
            rng,
            data.y[observed],
            states[observed],
            None if components is None else components[observed],
            n_states,
            phi,
        )
        return phi, out

    def collapsed(self, data: Data) -> Collapsed | None:
        """The data as compiled code reads them when φ is integrated out, NaN where silent; None if it cannot be."""
        if not provides(self.emission, "collapsed"):
            return None
        collapsed: Collapsed | None = self.emission.collapsed(data.seen)  # type: ignore[attr-defined]
        if collapsed is None or data.silent is None:
            return collapsed
        values = np.array(collapsed.values)
        values[data.silent] = np.nan
        return collapsed._replace(values=values)


def audible(data: Data, states: IntArray) -> tuple[Array, IntArray]:
    """What the emission sees, and the states, without the steps that say nothing about their state."""
    if data.silent is None:
        return data.seen, states
    return data.seen[~data.silent], states[~data.silent]


def model_for(values: Array, emission: str | Emission = "auto", sticky: bool | float = True, order: int = 1) -> Model:
    """A model for data nobody has said much about: `values`, (T, D), NaN where missing.

    The emission is chosen by `ihmm.emissions.choose`. The prior prefers few states to many, and rows may be alike or
    not; how much states like to stay is learned if `sticky` is True, and fixed if it is a number.
    """
    if sticky is True:
        stickiness: float | BetaPrior = BetaPrior(1, 1)
    else:
        stickiness = _checks.fraction("sticky (True, False or a number in [0, 1))", 0.0 if sticky is False else sticky)
    return Model(choose(emission, values, order), HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), stickiness))
