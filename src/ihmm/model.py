"""The model, and one draw of everything unknown in it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from ihmm import _checks, _html
from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import REQUIRED as DURATION_REQUIRED
from ihmm.durations import Duration, Omega
from ihmm.durations import choose as choose_duration
from ihmm.emissions._conjugate import Conjugate, conjugate
from ihmm.emissions._parameters import size
from ihmm.emissions._protocol import REQUIRED, Emission, has_past, log_density_at, log_marginal, memory, provides
from ihmm.emissions._validation import checked_density, checked_marginal
from ihmm.emissions.choose import choose
from ihmm.emissions.log_scale import LogScale
from ihmm.kernels.memory import AfterChange
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior, HDPPrior
from ihmm.series.clock import Clock
from ihmm.series.sequences import Sequences
from ihmm.trajectory import Trajectory, by_piece

Prior = HDPPrior | FinitePrior
NOTHING = np.empty((0, 0))
NO_MEMORY = AfterChange(NOTHING, np.empty(0), NOTHING, NOTHING, NOTHING, NOTHING, np.inf)


class Hyper(NamedTuple):
    """γ, c = α + κ and ρ = κ/(α + κ). γ is infinite if β is fixed to equal weights."""

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
    """β, π_0 and π_j over the K visited states; the last entry of each is the mass of all other states."""

    beta: FloatArray  # (K + 1,)
    initial: FloatArray  # (K + 1,)
    rows: FloatArray  # (K, K + 1)


class Draw(NamedTuple):
    """One state of the Markov chain: trajectory, transitions, emission parameters and hyperparameters.

    `components` is the mixture component of every time step if the emission is a mixture; draws that are kept do not
    store it. `durations` are the parameters ω of the duration laws of the states, if the model has durations.
    """

    trajectory: Trajectory
    transitions: Transitions
    phi: Phi
    hyper: Hyper
    components: IntArray | None = None
    durations: Omega | None = None

    @property
    def states(self) -> IntArray:
        return self.trajectory.states

    @property
    def n_states(self) -> int:
        return len(self.transitions.rows)


@dataclass(frozen=True)
class Model:
    """A hidden Markov model: a family of emissions and a prior on transitions, infinite or finite (T15 §2).

    With a `duration`, such as ``ihmm.durations.Geometric()``, it is a hidden semi-Markov model: a state lasts as long
    as its duration law says and is then followed by another one. The last segment of a sequence is cut off by the end
    of the data. The first one begins with them; if `left_censored`, it may have begun before: the sequence is a window
    of a process that has been running for long.
    """

    emission: Emission
    prior: Prior = field(default_factory=HDPPrior)
    duration: Duration | None = None
    left_censored: bool = False

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
        if self.duration is not None:
            self._check_duration()
        elif self.left_censored:
            raise ValueError(
                "left_censored is for models with durations: a hidden Markov model does not remember how long a state "
                "has lasted; leave it out, or give a duration such as ihmm.durations.NegativeBinomial()"
            )
        if self.memory > (self.duration.minimum if self.duration is not None else 0):
            raise ValueError(
                f"{type(self.emission).__name__} has noise with a memory of {self.memory} step(s), so every state must "
                f"last at least as long; use duration=ihmm.durations.Geometric(minimum={self.memory}) or greater"
            )

    def _check_duration(self) -> None:
        example = "ihmm.durations.Geometric()"
        if isinstance(self.duration, type):
            raise TypeError(f"duration must be an instance, got the class; call it: {self.duration.__name__}(…)")
        missing = [name for name in DURATION_REQUIRED if not callable(getattr(self.duration, name, None))]
        if missing:
            raise TypeError(
                f"duration must be None or a Duration such as {example}, got {self.duration!r}, "
                f"which does not define {', '.join(missing)}"
            )
        if self.left_censored and not callable(getattr(self.duration, "mean_residual", None)):
            raise TypeError(
                f"left_censored=True needs a duration law that defines mean_residual, see ihmm.durations.Duration; "
                f"{self.duration!r} does not"
            )
        if self.prior.stickiness != 0.0:
            raise ValueError(
                f"with a duration the stickiness must be 0, got {self.prior.stickiness!r}: how long a state lasts is "
                f"decided by {self.duration!r}; leave the stickiness out of the prior"
            )
        if isinstance(self.prior, FinitePrior) and self.prior.n_states < 2:
            raise ValueError("with a duration a finite model needs at least 2 states, as no state follows itself")

    def _repr_html_(self) -> str:
        parts = {"emission": self.emission, "prior": self.prior, "duration": self.duration}
        rows = [(name, repr(part)) for name, part in parts.items() if part is not None]
        return _html.paragraph("Model", bold=True) + _html.settings(rows)

    # Data

    def observe(
        self,
        y: Any,
        *,
        shortest: int = 2,
        columns: Sequence[str] | None = None,
        clock: Clock | None = None,
        symbols: Sequence[str] | None = None,
    ) -> Data:
        """Validate raw series; every error about data is raised here, before any sampling.

        Columns of data frames are matched by name to `columns`, if given, and texts to `symbols`. The `clock` is by
        default that of the data.
        """
        sequences = Sequences.of(y, shortest=shortest, columns=columns, clock=clock, symbols=symbols)
        if sequences.symbols and not hasattr(self.emission, "n_symbols"):
            letters = ", ".join(sequences.symbols[:5]) + ", …" * (len(sequences.symbols) > 5)
            raise TypeError(
                f"the series holds texts ({letters}), but {type(self.emission).__name__} expects numbers; "
                f"use ihmm.Categorical(n_symbols={len(sequences.symbols)})"
            )
        names = getattr(self.emission, "names", ())
        if sequences.columns and sequences.columns != names and sorted(sequences.columns) == sorted(names):
            raise ValueError(
                f"the columns {', '.join(sequences.columns)} have the names of the parts of the emission in another "
                f"order: {', '.join(names)}; select them in this order"
            )
        parts = []
        for i, part in enumerate(np.split(sequences.values, sequences.offsets[1:-1])):
            try:
                parts.append(self.emission.validate(part))
            except ValueError as error:
                if len(sequences.lengths) > 1:
                    raise ValueError(f"sequence {i}: {error}") from error
                raise
        data = self.describe(np.concatenate(parts), sequences.offsets, sequences.missing)
        if shortest > 1 and not data.informative.any():  # a fit would only return the prior
            raise ValueError(
                f"no time step is informative: {self.emission} needs more past values than any of the sequences has "
                f"without a gap; the longest has {data.lengths.max()} steps"
            )
        return data._replace(
            columns=sequences.columns,
            clock=sequences.clock,
            symbols=sequences.symbols,
            baseline=sequences.baseline,
        )

    def describe(self, y: Array, offsets: IntArray, missing: BoolArray | None = None) -> Data:
        """Data made of validated observations."""
        data = self.arrange(y, offsets, missing)
        marginal = log_marginal(self.emission, data.observations)
        if data.uninformative is not None:
            marginal[data.uninformative] = 0.0
        marginal = checked_marginal(self.emission, marginal, data.observations)
        return data._replace(log_marginal=marginal, conjugate=self._conjugate(data))

    def arrange(self, y: Array, offsets: IntArray, missing: BoolArray | None = None) -> Data:
        """Validated observations with their past, if the density depends on it: enough to score them, not to sample."""
        with_past = self.emission.with_past(y, offsets, missing) if has_past(self.emission) else None
        return Data(y, offsets, np.empty(0), missing, with_past)

    def _conjugate(self, data: Data) -> Conjugate | None:
        """φ integrated out; compiled code reads NaN at uninformative time steps."""
        found = conjugate(self.emission, data.observations)
        if found is None or found.compiled is None or data.uninformative is None:
            return found
        values = np.array(found.compiled.values)
        values[data.uninformative] = np.nan
        return replace(found, compiled=found.compiled._replace(values=values))

    # Emissions of these data. The density of an uninformative time step is 1.

    def log_density(self, data: Data, phi: Phi, steps: slice = slice(None)) -> FloatArray:
        """log f(y_t | φ_k), shape (T, K)."""
        y = data.observations[steps]
        table = self.emission.log_density(y, phi)
        if data.uninformative is not None:
            table[data.uninformative[steps]] = 0.0
        return checked_density(self.emission, table, y, phi, data.first + (steps.start or 0), size(phi))

    def log_density_at(self, data: Data, states: IntArray, phi: Phi) -> FloatArray:
        """log f(y_t | φ_{s_t}), shape (T,)."""
        values = log_density_at(self.emission, data.observations, self.with_previous(states), phi)
        if data.uninformative is not None:
            values[data.uninformative] = 0.0
        return checked_density(self.emission, values, data.observations, phi, data.first, None)

    @property
    def memory(self) -> int:
        """p, the number of steps for which the noise remembers the previous state; 0 for most emissions."""
        return memory(self.emission) or 0

    def after_change(self, data: Data, phi: Phi, steps: slice) -> AfterChange:
        """What the densities of the first p steps after a change of state depend on."""
        if self.memory == 0:
            return NO_MEMORY
        after = self.emission.after_change(data.observations[steps], phi)
        assert after is not None  # an emission with memory has it
        value, offset, *arrays, dof = after
        if data.uninformative is not None:
            value = np.where(data.uninformative[steps, None], np.nan, value)
            offset = np.where(data.uninformative[steps], 0.0, offset)
        mean, level, factor, scale = map(np.ascontiguousarray, arrays)
        return AfterChange(np.ascontiguousarray(value), offset, mean, level, factor, scale, float(dof))

    def log_likelihood(self, data: Data, states: IntArray, phi: Phi) -> float:
        """log p(y | s, φ)."""

        states = self.with_previous(states)

        def one(piece: slice) -> float:
            part = data if piece == slice(0, len(data.y)) else data.take(piece)
            return float(self.log_density_at(part, states[piece], phi).sum())

        return sum(by_piece(data, one))

    def with_previous(self, states: IntArray) -> IntArray:
        """The states that the density of each step depends on: (T, p + 1) if that includes the p states before.

        States before the beginning of a sequence are arbitrary: its first p steps are uninformative.
        """
        order = self.memory
        if order == 0 or states.ndim == 2:
            return states
        steps = np.arange(len(states))
        return np.stack([states[np.maximum(steps - lag, 0)] for lag in range(order + 1)], axis=1)

    def resample_phi(
        self, rng: np.random.Generator, data: Data, states: IntArray, n_states: int, phi: Phi | None
    ) -> Phi:
        """φ | y, s: an exact draw, or a transition from the current `phi` if the emission has `update`."""
        y, states = data.pair(self.with_previous(states))
        if phi is not None and provides(self.emission, "update"):
            return self.emission.update(rng, y, states, phi)
        return self.emission.resample(rng, y, states, n_states)

    # Mixtures within states

    @property
    def is_mixture(self) -> bool:
        return provides(self.emission, "sliced")

    def sliced(self, rng: np.random.Generator, data: Data, draw: Draw) -> "tuple[Data, Model, Draw]":
        """Data, model and draw for Step 1, given slice variables."""
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
        """φ | y, s, z, and z relabelled to match."""
        informative = data.informative
        out = np.full(len(states), -1)
        phi, out[informative] = self.emission.resample_mixtures(  # type: ignore[attr-defined]
            rng,
            data.y[informative],
            states[informative],
            None if components is None else components[informative],
            n_states,
            phi,
        )
        return phi, out


def on_additive_scale(model: Model, data: Data) -> tuple[Model, Data]:
    """The model and data on the scale on which noise is added to levels: the logarithms, if these are modelled."""
    if not isinstance(model.emission, LogScale):
        return model, data
    model = replace(model, emission=model.emission.emission)
    logs = model.arrange(np.log(data.y), data.offsets, data.missing)
    return model, logs._replace(columns=data.columns, clock=data.clock)


def model_for(
    values: Array,
    emission: str | Emission = "auto",
    sticky: bool | float = True,
    order: int | None = None,
    duration: str | Duration | None = None,
    min_dwell: int | None = None,
) -> Model:
    """The default model for `values`, (T, D), NaN where missing.

    The emission is chosen by `ihmm.emissions.choose`. The prior favours few states and leaves open how similar the rows
    are. If `sticky` is True the stickiness has a uniform prior; a number fixes it. It has no effect if states have
    durations: with a `duration`, with `min_dwell`, or if the noise remembers the previous state.
    """
    if sticky is True:
        stickiness: float | BetaPrior = BetaPrior(1, 1)
    else:
        stickiness = _checks.fraction("sticky (True, False or a number in [0, 1))", 0.0 if sticky is False else sticky)
    chosen = choose(emission, values, order)
    lasts = None
    if duration is not None or min_dwell is not None or memory(chosen):
        if min_dwell is None and (duration is None or isinstance(duration, str)):
            min_dwell = memory(chosen) or None
        lasts, stickiness = choose_duration(duration, min_dwell), 0.0
    return Model(chosen, HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), stickiness), lasts)
