"""Predictions from single draws: a draw as a finite model, its likelihood and states, forecasts and imputation.

Given a draw, the model still has infinitely many states. The stick is broken further until little mass is left in any
row, and the new states get parameters from the prior. The remaining mass becomes one more state, whose observations
have the marginal density ∫ f(y|φ) H(dφ), as if every visit were to a new state. No mass is dropped, so held-out
likelihoods are those of a proper model.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

import numpy as np

from ihmm._threads import in_threads
from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm._waiting import with_progress
from ihmm.data import Data
from ihmm.durations import Omega
from ihmm.emissions import DPMixture, NoisyLevels
from ihmm.emissions._angles import circular_mean, unwrap
from ihmm.emissions._parameters import join, take
from ihmm.emissions._protocol import Emission, complete, has_past, provides, sample_new
from ihmm.kernels.forward_backward import filter_forward, most_probable_path, smooth, walk
from ihmm.kernels.long_durations import filter_long, smooth_long
from ihmm.kernels.segment_chain import SegmentChain, decode_segments, filter_segments, smooth_segments, walk_segments
from ihmm.model import Draw, Model
from ihmm.predictions.segment_chain import build_chain, build_laws, log_densities_of_nodes, node_of
from ihmm.predictions.side_by_side import MIN_TOTAL, Underflow
from ihmm.priors import FinitePrior
from ihmm.samplers._base import sequence_starts
from ihmm.samplers._densities import densities
from ihmm.sticks import extend_omega, extend_phi, open_below
from ihmm.trajectory import runs

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_REMAINDER = 0.01  # sticks are broken until less than this is left of every row
MAX_NEW_STATES = 100  # or, if γ is large, until there are about so many new states, γ log(1/remainder)
UNSEEN = -1  # label of states that no draw has visited


class LabelledDraw(NamedTuple):
    """A draw, the labels of its states, and a seed for the states it has not visited."""

    draw: Draw
    label: IntArray  # (states of the draw,)
    seed: Sequence[int]


class FiniteHMM(NamedTuple):
    """A hidden Markov model with finitely many states that represents one draw of the infinite one.

    The states of the draw come first, then new ones. If `open_ended`, the last state represents all remaining states
    and has no entry in `phi`.
    """

    initial: FloatArray  # (L,)
    rows: FloatArray  # (L, L)
    phi: Phi
    open_ended: bool
    label: IntArray  # (L,): as `LabelledDraw.label`, UNSEEN for new states
    omega: Omega | None = None  # of all L states, if the model has durations; `rows` then say who follows whom


def finite_hmm(model: Model, item: LabelledDraw) -> FiniteHMM:
    """Break the draw's stick until little is left, and represent the remainder by one state."""
    draw, label, seed = item
    stick_key, phi_key = np.random.default_rng(seed).integers(0, 2**63, 2, dtype=np.uint64)
    finite = isinstance(model.prior, FinitePrior)
    limit = 0.0 if finite else max(MAX_REMAINDER, math.exp(-MAX_NEW_STATES / draw.hyper.gamma))
    sticks = open_below(draw, model.prior, stick_key, limit)
    n_states = int(sticks.size[0])
    phi = take(extend_phi(model.emission, phi_key, draw.phi, n_states), slice(n_states))
    rows = sticks.rows[: n_states + 1, :n_states]
    if not finite:
        rest = sticks.rest[: n_states + 1, None]
        beta = np.append(sticks.beta[:n_states], sticks.left[n_states - 1])
        # expected row of the remaining states: (1−ρ) β + ρ δ
        last = (1 - draw.hyper.stickiness) * beta / beta.sum()
        last[-1] += draw.hyper.stickiness
        rows = np.vstack([np.hstack([rows, rest]), last])
    omega = None
    if model.duration is not None:
        rows[np.arange(1, n_states + 1), np.arange(n_states)] = 0.0  # no state follows itself
        omega_key = np.random.default_rng([*seed, 3]).integers(0, 2**63, dtype=np.uint64)
        omega = extend_omega(model.duration, omega_key, draw.durations, rows.shape[1])
        omega = take(omega, slice(rows.shape[1]))
    rows = rows / rows.sum(axis=1, keepdims=True)
    labels = np.full(rows.shape[1], UNSEEN)
    labels[: len(label)] = label
    return FiniteHMM(rows[0], np.ascontiguousarray(rows[1:]), phi, not finite, labels, omega)


def log_densities(model: Model, data: Data, hmm: FiniteHMM, steps: slice = slice(None)) -> FloatArray:
    """log f(y_t | φ_k), shape (T, L), as the transpose of a contiguous array."""
    known = model.log_density(data, hmm.phi, steps)
    if not hmm.open_ended:
        return known
    table = np.empty((len(hmm.initial), len(known)))
    table[:-1] = known.T
    table[-1] = data.log_marginal[steps]
    return table.T


def chain_over_ages(model: Model, data: Data, hmm: FiniteHMM, ahead: int = 0) -> tuple[SegmentChain, FloatArray]:
    """The chain over states and ages, also of sequences that go on `ahead` steps, and the log densities it reads."""
    n_steps = int(data.lengths.max()) + ahead
    chain, remembered = build_chain(model, hmm.initial, hmm.rows, hmm.omega, n_steps, hmm.open_ended)
    settled = log_densities(model, data, hmm)
    return chain, log_densities_of_nodes(model, data, settled, hmm.phi, remembered)


def run_segment_filter(
    model: Model, data: Data, hmm: FiniteHMM, ahead: int = 0
) -> tuple[SegmentChain, FloatArray, FloatArray, FloatArray]:
    """The chain, what `run_filter` returns, and the probabilities of the nodes at the end of every sequence."""
    chain, table = chain_over_ages(model, data, hmm, ahead)
    filtered, by_step = np.empty((len(table), len(hmm.initial))), np.empty(len(table))
    ends = np.empty((len(data.lengths), len(chain.state)))
    filter_segments(chain, table, sequence_starts(data.offsets), filtered, by_step, ends)
    return chain, filtered, by_step, ends


def run_filter(model: Model, data: Data, hmm: FiniteHMM) -> tuple[FloatArray, FloatArray]:
    """p(s_t = k | y_1 … y_t), shape (T, L), and log p(y_t | y_1 … y_{t−1}), shape (T,)."""
    if has_long_durations(model):
        with suppress(Underflow):
            return run_long(model, data, hmm, smooth=False)
    if model.duration is not None:
        return run_segment_filter(model, data, hmm)[1:3]
    density, top = relative_densities(model, data, hmm)
    filtered, log_predictive = np.empty_like(density), np.empty(len(top))
    filter_forward(density, sequence_starts(data.offsets), hmm.initial, hmm.rows, filtered, log_predictive)
    return filtered, log_predictive + top


def run_smoother(model: Model, data: Data, hmm: FiniteHMM) -> FloatArray:
    """p(s_t = k | y), shape (T, L)."""
    if has_long_durations(model):
        with suppress(Underflow):
            return run_long(model, data, hmm, smooth=True)[0]
    sequence = sequence_starts(data.offsets)
    if model.duration is None:
        probabilities, _ = run_filter(model, data, hmm)
        smooth(probabilities, sequence, hmm.rows)
        return probabilities
    chain, table = chain_over_ages(model, data, hmm)
    probabilities = np.empty((len(table), len(hmm.initial)))
    smooth_segments(chain, table, sequence, probabilities)
    return probabilities


def relative_densities(model: Model, data: Data, hmm: FiniteHMM) -> tuple[FloatArray, FloatArray]:
    """f(y_t | φ_k) relative to the largest of each step, (T, L), and the logarithm of that, (T,)."""
    by_state = np.ascontiguousarray(log_densities(model, data, hmm).T)
    top = by_state.max(axis=0)
    return densities(by_state, top), top


def has_long_durations(model: Model) -> bool:
    """Whether all ages are told apart, and the density of a step depends on none of them."""
    return model.duration is not None and model.duration.constant_from is None and model.memory == 0


def run_long(model: Model, data: Data, hmm: FiniteHMM, *, smooth: bool) -> tuple[FloatArray, FloatArray]:
    """What `run_filter` returns, smoothed or not, for long durations."""
    laws = build_laws(model, hmm.omega, int(data.lengths.max()))
    density, top = relative_densities(model, data, hmm)
    ratio, entering, leaving, probabilities = (np.empty_like(density) for _ in range(4))
    total, starts = np.empty(len(top)), sequence_starts(data.offsets) >= 0
    chain = hmm.initial, hmm.rows
    if not filter_long(laws, density, starts, *chain, ratio, entering, leaving, probabilities, total) > MIN_TOTAL:
        raise Underflow
    if smooth:
        smooth_long(laws, starts, hmm.rows, ratio, entering, leaving, probabilities)
        probabilities /= probabilities.sum(axis=1, keepdims=True)
    return probabilities, np.log(total) + top


def decode(model: Model, data: Data, items: Sequence[LabelledDraw]) -> IntArray:
    """(draws, T): labels of the most probable state sequence under each draw."""

    def one_draw(item: LabelledDraw) -> IntArray:
        hmm = finite_hmm(model, item)
        return hmm.label[most_probable_states(model, data, hmm)[0]]

    return np.array(list(shared_out(one_draw, items)))


def most_probable_states(model: Model, data: Data, hmm: FiniteHMM) -> tuple[IntArray, float]:
    """The state sequence that maximises p(s, y), and log p(s, y)."""
    if model.duration is None:
        return viterbi(log_densities(model, data, hmm), data.offsets, hmm.initial, hmm.rows)
    states = np.empty(len(data.y), np.int64)
    score = decode_segments(*chain_over_ages(model, data, hmm), sequence_starts(data.offsets), states)
    return states, float(score)


def shared_out(function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
    """The function of every item, computed in threads, with a progress bar if it takes long."""
    return with_progress(in_threads(function, items), len(items), "Predicting")


def viterbi(
    log_density: FloatArray, offsets: IntArray, initial: FloatArray, rows: FloatArray
) -> tuple[IntArray, float]:
    """The state sequence that maximises p(s, y), and log p(s, y)."""
    states = np.empty(len(log_density), np.int64)
    with np.errstate(divide="ignore"):
        log_initial, log_rows = np.log(initial), np.log(rows)
    score = most_probable_path(
        np.ascontiguousarray(log_density), sequence_starts(offsets), log_initial, log_rows, states
    )
    return states, float(score)


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
    """

    states: IntArray

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
    return [
        Forecast(np.stack([y for y, _ in draws]), np.stack([states for _, states in draws]), circular=circular)
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
    missing = np.zeros(len(data.y), bool) if data.missing is None else data.missing
    partly = np.asarray(np.isnan(data.y.reshape(len(data.y), -1)).any(axis=1)) & ~missing
    steps = np.flatnonzero(missing | partly)
    forwards = has_past(model.emission) and isinstance(model.emission, NoisyLevels)
    if steps.size and has_past(model.emission) and not forwards:
        raise ValueError(
            f"{type(model.emission).__name__} cannot impute missing values ({steps.size} steps have some): they "
            "depend on the observations before and after them, but the model drops the history at a gap"
        )

    def one_draw(item: LabelledDraw) -> Array:
        draw, rng = item.draw, np.random.default_rng([*item.seed, 2])
        if forwards:
            return fill_forwards(rng, model, data, draw, steps)
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
        values[t] = np.where(np.isnan(values[t]), drawn.reshape(-1), values[t])
    return values[steps].reshape(len(steps), *data.y.shape[1:])


def angular_columns(emission: Emission, n_columns: int) -> BoolArray:
    """(n_columns,): which columns of the observations are angles, as emissions with `circular = True` say."""
    if isinstance(emission, DPMixture):
        emission = emission.component
    if getattr(emission, "circular", False) or not provides(emission, "column"):
        return np.full(n_columns, getattr(emission, "circular", False))
    marginals = [emission.column(d) for d in range(n_columns)]
    return np.array([found is not None and getattr(found[0], "circular", False) for found in marginals])
