"""A draw as a finite model, its likelihood and its states.

Given a draw, the model still has infinitely many states. The stick is broken further until little mass is left in any
row, and the new states get parameters from the prior. The remaining mass becomes one more state, whose observations
have the marginal density ∫ f(y|φ) H(dφ), as if every visit were to a new state. No mass is dropped, so held-out
likelihoods are those of a proper model.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple, TypeVar

import numpy as np

from ihmm._threads import in_threads
from ihmm._typing import FloatArray, IntArray, Phi
from ihmm._waiting import with_progress
from ihmm.data import Data
from ihmm.durations import Omega
from ihmm.emissions._parameters import take
from ihmm.kernels.forward_backward import filter_forward, most_probable_path, smooth
from ihmm.kernels.long_durations import filter_long, smooth_long
from ihmm.kernels.segment_chain import SegmentChain, decode_segments, filter_segments, smooth_segments
from ihmm.model import Draw, Model
from ihmm.predictions.segment_chain import build_chain, build_laws, log_densities_of_nodes
from ihmm.predictions.side_by_side import MIN_TOTAL, Underflow
from ihmm.priors import FinitePrior
from ihmm.samplers._base import sequence_starts
from ihmm.samplers._densities import densities
from ihmm.sticks import extend_omega, extend_phi, open_below

Item = TypeVar("Item")
Result = TypeVar("Result")

MAX_REMAINDER = 0.01  # sticks are broken until less than this is left of every row
MIN_PROBABILITY = 1e-150  # of a transition that is possible: products of smaller ones are subnormal, which is slow
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
    rows[rows > 0] = np.maximum(rows[rows > 0], MIN_PROBABILITY)
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
