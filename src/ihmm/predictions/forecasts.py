"""Simulations from single draws: forecasts, replications of the data, and missing values."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ihmm._threads import in_threads
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.emissions import DPMixture, LogScale, NoisyLevels
from ihmm.emissions._angles import circular_mean, unwrap
from ihmm.emissions._parameters import join
from ihmm.emissions._protocol import Emission, complete, has_past, provides, sample_new
from ihmm.kernels.forward_backward import walk
from ihmm.kernels.segment_chain import walk_segments
from ihmm.model import Draw, Model, on_additive_scale
from ihmm.predictions.predict import (
    UNSEEN,
    FiniteHMM,
    LabelledDraw,
    finite_hmm,
    run_filter,
    run_segment_filter,
    shared_out,
)
from ihmm.predictions.segment_chain import build_chain, node_of
from ihmm.series.clock import Clock
from ihmm.trajectory import runs


@dataclass(frozen=True, eq=False)
class Samples:
    """Posterior samples of unknown observations.

    Attributes
    ----------
    y
        (draws, …) or (draws, …, D): one sample per draw.
    circular
        (D,): which columns are angles. Their means and intervals are taken on the circle.
    """

    y: Array
    circular: BoolArray | bool = field(default=False, kw_only=True)

    @property
    def unwrapped(self) -> Array:
        """`y` with every angle within ±π of its mean direction, so that quantiles over the draws are meaningful."""
        return np.where(self.circular, unwrap(self.y), self.y) if np.any(self.circular) else self.y

    @property
    def mean(self) -> FloatArray:
        """Posterior mean; of angles, the mean direction."""
        linear = self.y.mean(axis=0)
        return np.asarray(np.where(self.circular, circular_mean(self.y), linear) if np.any(self.circular) else linear)

    def interval(self, probability: float = 0.95) -> FloatArray:
        """Lower and upper bounds of the central interval with that probability, (2, …).

        An interval of angles may extend beyond ±π, as in (3.0, 3.4).
        """
        return np.asarray(np.quantile(self.unwrapped, [(1 - probability) / 2, (1 + probability) / 2], axis=0))


@dataclass(frozen=True, eq=False)
class Forecast(Samples):
    """Simulated continuations of one sequence, one per draw.

    Attributes
    ----------
    y
        (draws, steps) or (draws, steps, D): observations.
    states
        (draws, steps): labels of the states, −1 for states not visited so far.
    clock
        How long a step lasts.
    columns
        Names of the columns, if they have names.
    """

    states: IntArray
    clock: Clock = field(default=Clock(), kw_only=True)
    columns: tuple[str, ...] | None = field(default=None, kw_only=True)

    def state_probabilities(self, n_states: int) -> FloatArray:
        """(steps, n_states + 1): the last column is the probability of states not visited so far."""
        labels = np.where(self.states == UNSEEN, n_states, self.states)
        return np.stack([np.mean(labels == k, axis=0) for k in range(n_states + 1)], axis=1)


def forecast(
    model: Model, fitted: Data, items: Iterable[LabelledDraw], steps: int, data: Data | None
) -> list[Forecast]:
    """Continue every sequence of `data`, or of the fitted data if None, once per draw."""
    known = fitted if data is None else data
    pasts = np.split(known.values, known.offsets[1:-1])

    def one_draw(item: LabelledDraw) -> list[tuple[Array, IntArray]]:
        hmm = finite_hmm(model, item)
        if model.duration is not None:
            return continue_segments(model, known, hmm, item, steps, pasts, fitted=data is None)
        if data is None:
            first = hmm.rows[item.draw.states[fitted.offsets[1:] - 1]]
        else:
            first = run_filter(model, data, hmm)[0][data.offsets[1:] - 1] @ hmm.rows
        rng = np.random.default_rng([*item.seed, 1])
        return [
            simulate_from(rng, model, hmm, weights, steps, past) for weights, past in zip(first, pasts, strict=True)
        ]

    futures = list(in_threads(one_draw, items))
    circular = angular_columns(model.emission, known.values[0].size)
    clock, columns = fitted.clock or Clock(), fitted.columns
    return [
        Forecast(
            np.stack([y for y, _ in draws]),
            np.stack([states for _, states in draws]),
            circular=circular,
            clock=clock,
            columns=columns,
        )
        for draws in zip(*futures, strict=True)
    ]


def simulate_from(
    rng: np.random.Generator, model: Model, hmm: FiniteHMM, first: FloatArray, steps: int, past: Array | None = None
) -> tuple[Array, IntArray]:
    """Simulate observations and state labels. `first` are the probabilities of the first state, `past` the preceding
    observations, for emissions that depend on them."""
    n_states = len(hmm.initial)
    states = np.empty(steps, np.int64)
    walk(n_states, np.cumsum(np.vstack([hmm.rows, first]), axis=1), rng.random(steps), states)
    return observe_states(rng, model, hmm, states, past)


def simulate_anew(rng: np.random.Generator, model: Model, hmm: FiniteHMM, steps: int) -> tuple[Array, IntArray]:
    """Simulate observations and state labels of a new sequence."""
    if model.duration is None:
        return simulate_from(rng, model, hmm, hmm.initial, steps)
    chain, _ = build_chain(model, hmm.initial, hmm.rows, hmm.omega, steps, hmm.open_ended)
    first, states = np.zeros(len(chain.state)), np.empty(steps, np.int64)
    first[chain.start] = hmm.initial
    walk_segments(chain, first, rng.integers(0, 2**63, dtype=np.uint64), states)
    return observe_states(rng, model, hmm, states, None)


def replicate(model: Model, data: Data, items: Sequence[LabelledDraw]) -> tuple[Array, IntArray]:
    """New series as long as those of the data, simulated from each draw, and the labels of their states.

    Shapes are (draws, T) or (draws, T, D), and (draws, T).
    """

    def one_draw(item: LabelledDraw) -> tuple[Array, IntArray]:
        rng, hmm = np.random.default_rng([*item.seed, 4]), finite_hmm(model, item)
        parts = [simulate_anew(rng, model, hmm, int(n)) for n in data.lengths]
        return np.concatenate([y for y, _ in parts]), np.concatenate([labels for _, labels in parts])

    replicated = list(shared_out(one_draw, items))
    return np.array([y for y, _ in replicated]), np.array([labels for _, labels in replicated])


def continue_segments(
    model: Model, data: Data, hmm: FiniteHMM, item: LabelledDraw, steps: int, pasts: list[Array], fitted: bool
) -> list[tuple[Array, IntArray]]:
    """Simulate the continuation of every sequence from the age that its last segment has."""
    rng = np.random.default_rng([*item.seed, 1])
    if fitted:
        n_steps = int(data.lengths.max()) + steps
        chain, _ = build_chain(model, hmm.initial, hmm.rows, hmm.omega, n_steps, hmm.open_ended)
        found = runs(item.draw.states, data.offsets)
        ends: FloatArray = np.zeros((len(pasts), len(chain.state)))
        for i, last in enumerate(np.flatnonzero(found.censored)):
            d, k = int(found.length[last]), int(found.state[last])
            ends[i, node_of(chain, k, d, d == data.lengths[i])] = 1.0
    else:
        chain, _, _, ends = run_segment_filter(model, data, hmm, steps)
    out = []
    for nodes, past in zip(ends, pasts, strict=True):
        states = np.empty(steps + 1, np.int64)
        walk_segments(chain, nodes, rng.integers(0, 2**63, dtype=np.uint64), states)
        out.append(observe_states(rng, model, hmm, states[1:], past, states[0]))
    return out


def observe_states(
    rng: np.random.Generator, model: Model, hmm: FiniteHMM, states: IntArray, past: Array | None, before: int = -1
) -> tuple[Array, IntArray]:
    """Simulate observations of these states, the first of which follows the state `before`; also returns labels."""
    n_states = len(hmm.initial)
    labels, phi = hmm.label[states], hmm.phi
    if hmm.open_ended:  # every visit to the remainder is to a new state
        visits = np.flatnonzero(states == n_states - 1)
        if visits.size:
            # with durations, a visit lasts for a segment
            is_new = np.append(True, np.diff(visits) > 1) if model.duration is not None else np.ones(visits.size, bool)
            phi = join(phi, sample_new(model.emission, rng, int(is_new.sum()), phi))
            states[visits] += np.cumsum(is_new) - 1
    history: tuple[Array | None, ...] = (past,) if has_past(model.emission) else ()
    if model.memory > 0 and before >= 0:
        history = (past, np.full(model.memory, before))
    return model.emission.sample_observations(rng, states, phi, *history), labels


@dataclass(frozen=True, eq=False)
class Imputed(Samples):
    """Samples of the missing values, one per draw.

    Attributes
    ----------
    y
        (draws, missing) or (draws, missing, D): steps with missing values, completed. Observed values are unchanged.
    steps
        (missing,): the steps with missing values, counted over the concatenated sequences.
    """

    steps: IntArray


def impute(model: Model, data: Data, items: Iterable[LabelledDraw]) -> Imputed:
    """Sample the missing values given the states and parameters of each draw."""
    if isinstance(model.emission, LogScale):
        logs = impute(*on_additive_scale(model, data), items)
        return replace(logs, y=np.exp(logs.y))
    missing = np.zeros(len(data.y), bool) if data.missing is None else data.missing
    partly = np.asarray(np.isnan(data.y.reshape(len(data.y), -1)).any(axis=1)) & ~missing
    steps = np.flatnonzero(missing | partly)
    forwards = has_past(model.emission) and isinstance(model.emission, NoisyLevels)
    if steps.size and has_past(model.emission) and not forwards:
        raise ValueError(
            f"{type(model.emission).__name__} cannot impute missing values ({steps.size} steps have some): they "
            "depend on the observations before and after them, but the model drops the history at a gap"
        )

    baseline = None if data.baseline is None else data.baseline.reshape(data.y.shape)[steps]

    def one_draw(item: LabelledDraw) -> Array:
        draw, rng = item.draw, np.random.default_rng([*item.seed, 2])
        values = fill_forwards(rng, model, data, draw, steps) if forwards else draw_values(rng, draw)
        return values if baseline is None else values + baseline

    def draw_values(rng: np.random.Generator, draw: Draw) -> Array:
        values = model.emission.sample_observations(rng, draw.states[steps], draw.phi)
        if partly.any():
            values[partly[steps]] = complete(model.emission, rng, data.y[partly], draw.states[partly], draw.phi)
        return values

    circular = angular_columns(model.emission, data.values[0].size)
    return Imputed(np.array(list(in_threads(one_draw, items))), steps, circular=circular)


def fill_forwards(rng: np.random.Generator, model: Model, data: Data, draw: Draw, steps: IntArray) -> Array:
    """The steps with missing values, completed one after the other given the values before them.

    The values that follow a gap are conditioned on and say nothing about it. Where a sequence has not enough values
    before a gap, its noise begins at zero.
    """
    order, phi = model.emission.order, draw.phi  # type: ignore[attr-defined]
    values = data.values.reshape(len(data.y), -1).copy()
    level = phi.mean.reshape(len(phi.mean), -1)
    begins = data.offsets[np.searchsorted(data.offsets, steps, side="right") - 1]
    for t, begin in zip(steps, begins, strict=True):
        recent = np.maximum(np.arange(t - order, t), begin)
        past = np.where((np.arange(t - order, t) < begin)[:, None], level[draw.states[recent]], values[recent])
        history: tuple[Array, ...] = (past, draw.states[recent]) if model.memory > 0 else (past,)
        drawn = model.emission.sample_observations(rng, draw.states[[t]], phi, *history)
        known, state = values[[t]], draw.states[[t]]
        values[t] = model.emission.given_known(drawn.reshape(1, -1), known, state, phi)  # type: ignore[attr-defined]
    return values[steps].reshape(len(steps), *data.y.shape[1:])


def angular_columns(emission: Emission, n_columns: int) -> BoolArray:
    """(n_columns,): which columns of the observations are angles, as emissions with `circular = True` say."""
    if isinstance(emission, DPMixture):
        emission = emission.component
    if getattr(emission, "circular", False) or not provides(emission, "column"):
        return np.full(n_columns, getattr(emission, "circular", False))
    marginals = [emission.column(d) for d in range(n_columns)]
    return np.array([found is not None and getattr(found[0], "circular", False) for found in marginals])
