"""State probabilities and likelihoods averaged over the draws.

A long series and thousands of draws take a while. Draws are therefore put side by side, threads share them, and of
state probabilities only as many are averaged as the answer needs.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import count, pairwise, takewhile

import numpy as np

from ihmm._memory import keep_memory
from ihmm._threads import in_threads
from ihmm._typing import FloatArray, IntArray
from ihmm._waiting import with_progress
from ihmm.data import Data
from ihmm.emissions._noise import log_peak
from ihmm.emissions._parameters import join, size, take
from ihmm.emissions._protocol import has_past
from ihmm.kernels.side_by_side import LaneMemory, add_filtered_lanes
from ihmm.model import Model
from ihmm.predictions.predict import UNSEEN, FiniteHMM, LabelledDraw, finite_hmm, run_filter, run_smoother, shared_out
from ihmm.predictions.segment_chain import build_chain
from ihmm.predictions.side_by_side import (
    Lanes,
    Underflow,
    add_filtered,
    add_smoothed,
    by_step,
    log_leave_one_out,
    log_predictive,
    with_durations,
    without_durations,
)
from ihmm.samplers._base import sequence_starts

DRAWS_PER_PART = 64  # of a thread
MIN_PARTS = 4  # by which the error is estimated
LANES = 32  # draws side by side
MAX_STATES_IN_LANES = 16  # of draws side by side; for more states, one draw at a time is as fast


def log_likelihood(model: Model, data: Data, items: Sequence[LabelledDraw]) -> FloatArray:
    """(draws, sequences): log p(y_i | draw)."""

    def of_draws(hmms: Sequence[FiniteHMM]) -> FloatArray:
        return np.asarray(np.add.reduceat(log_predictive_of(model, data, hmms), data.offsets[:-1]))

    return for_each_draw(of_draws, model, items, len(data.offsets) - 1)


def log_scores(model: Model, data: Data, items: Sequence[LabelledDraw]) -> FloatArray:
    """(draws, T): log p(y_t | y_1 … y_{t−1}, draw), with the states summed out; 0 where a step is uninformative."""
    return for_each_draw(lambda hmms: log_predictive_of(model, data, hmms), model, items, len(data.y))


def leave_one_out(model: Model, data: Data, items: Sequence[LabelledDraw]) -> FloatArray:
    """(draws, T): log p(y_t | all other y, draw), with the states summed out; for models that `can_leave_one_out`.

    The weights 1 / p(y_t | all other y, θ) turn draws given all values into draws given all others (Bürkner, Gabry and
    Vehtari, Computational Statistics 36, 2021).
    """
    return for_each_draw(lambda hmms: log_leave_one_out(lanes_of(model, data, hmms)), model, items, len(data.y))


def can_leave_one_out(model: Model) -> bool:
    """Whether a value depends on nothing but its state, and few ages of a state are told apart."""
    return not has_past(model.emission) and few_ages(model)


def few_ages(model: Model) -> bool:
    return model.duration is None or model.duration.constant_from is not None


def for_each_draw(
    function: Callable[[Sequence[FiniteHMM]], FloatArray], model: Model, items: Sequence[LabelledDraw], n: int
) -> FloatArray:
    """(draws, n): the results of a function that returns (n, draws) of draws that are put side by side."""
    keep_memory()
    hmms, out = list(in_threads(partial(finite_hmm, model), items)), np.empty((len(items), n))
    together = groups(model, hmms)
    results = shared_out(lambda where: function([hmms[i] for i in where]), together)
    for where, found in zip(together, results, strict=True):
        out[where] = found.T
    return out


def state_probabilities(
    model: Model, data: Data, items: Sequence[LabelledDraw], n_labels: int, *, causal: bool, error: float = 0.0
) -> FloatArray:
    """(T, labels + 1): P(s_t has label l | y), averaged over the draws, given all of y or, if `causal`, y_1 … y_t.

    The last column is the probability of states that no draw has visited. As many draws are averaged as it takes for
    the standard error of every probability to be at most `error`, compared with the average over all of them.
    """

    def sum_over(part: Sequence[LabelledDraw]) -> FloatArray:
        hmms, total = [finite_hmm(model, item) for item in part], np.zeros((len(data.y), n_labels + 1))
        for where in groups(model, hmms):
            total += probabilities_of(model, data, [hmms[i] for i in where], n_labels, causal=causal)
        return total

    keep_memory()
    parts = parts_of(items)
    total, square = np.zeros((2, len(data.y), n_labels + 1))
    for done, found in enumerate(with_progress(in_waves(sum_over, parts), len(parts), "Predicting"), 1):
        total += found
        square += np.square(found / len(parts[done - 1]))
        if done in waves(len(parts)) and standard_error(total, square, done, len(parts)) <= error:
            break
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def parts_of(items: Sequence[LabelledDraw]) -> list[Sequence[LabelledDraw]]:
    """Parts of the draws, each spread over all of them. They do not depend on the number of threads, nor do sums."""
    n_parts = max(-(-len(items) // DRAWS_PER_PART), min(MIN_PARTS, len(items) // LANES))
    return [items[i::n_parts] for i in range(n_parts)]


def waves(n_parts: int) -> list[int]:
    """Numbers of parts after which it is decided whether more are needed."""
    return [*takewhile(lambda n: n < n_parts, (MIN_PARTS << i for i in count())), n_parts]


def in_waves(
    function: Callable[[Sequence[LabelledDraw]], FloatArray], parts: Sequence[Sequence[LabelledDraw]]
) -> Iterator[FloatArray]:
    """The function of every part, computed in threads. None is begun before those of the last wave are asked for."""
    for begin, end in pairwise([0, *waves(len(parts))]):
        yield from in_threads(function, parts[begin:end])


def standard_error(total: FloatArray, square: FloatArray, done: int, n_parts: int) -> float:
    """The largest standard error of a probability, compared with the average over all parts, from the sums over some.

    The parts are a sample without replacement, which has no error once all are done.
    """
    mean = total / total.sum(axis=1, keepdims=True)
    variance = (square / done - np.square(mean)) / max(done - 1, 1)
    return float(np.sqrt(max(variance.max() * (1 - done / n_parts), 0.0)))


# Draws side by side


def groups(model: Model, hmms: Sequence[FiniteHMM]) -> list[list[int]]:
    """Indices of draws that are put side by side: as many as there are lanes, with at most a quarter more states in one
    than in another.

    Draws with many states, and those in which every age counts, come one by one.
    """
    most = MAX_STATES_IN_LANES if few_ages(model) else 0
    sizes = [len(hmm.initial) for hmm in hmms]
    found: list[list[int]] = []
    for i in np.argsort(sizes, kind="stable").tolist():
        fits = found and len(found[-1]) < LANES and 4 * sizes[i] <= 5 * sizes[found[-1][0]]
        if fits and sizes[i] <= most:
            found[-1].append(i)
        else:
            found.append([i])
    return found


def log_predictive_of(model: Model, data: Data, hmms: Sequence[FiniteHMM]) -> FloatArray:
    """(T, draws): log p(y_t | y_1 … y_{t−1}, draw)."""
    if len(hmms) > 1:
        with suppress(Underflow):
            return log_predictive(lanes_of(model, data, hmms))
    return np.stack([run_filter(model, data, hmm)[1] for hmm in hmms], axis=1)


def probabilities_of(model: Model, data: Data, hmms: Sequence[FiniteHMM], n_labels: int, *, causal: bool) -> FloatArray:
    """(T, labels + 1): P(s_t has label l | y), summed over the draws."""
    if len(hmms) > 1:
        total = np.zeros((len(data.y), n_labels + 1))
        with suppress(Underflow):
            (add_filtered if causal else add_smoothed)(lanes_of(model, data, hmms), total)
            return total
    total = np.zeros((len(data.y), n_labels + 1))
    for hmm in hmms:
        probabilities = run_filter(model, data, hmm)[0] if causal else run_smoother(model, data, hmm)
        states, scale = np.arange(len(hmm.label)), np.ones((len(probabilities), 1))
        add_filtered_lanes(states, probabilities[:, :, None], scale, hmm.label[:, None], total)
    return total


def lanes_of(model: Model, data: Data, hmms: Sequence[FiniteHMM]) -> Lanes:
    """The draws side by side. States that some do not have are never visited; their parameters are arbitrary."""
    n_states, n_lanes = max(len(hmm.initial) for hmm in hmms), len(hmms)
    padded = [pad(hmm, n_states) for hmm in hmms]
    memory = None
    if model.duration is None:
        initial, rows = [hmm.initial for hmm in padded], [hmm.rows for hmm in padded]
        chains = without_durations(np.stack(initial, axis=-1), np.stack(rows, axis=-1))
    else:
        longest = int(data.lengths.max())
        built = [build_chain(model, hmm.initial, hmm.rows, hmm.omega, longest, hmm.open_ended) for hmm in padded]
        chains = with_durations([chain for chain, _ in built])
        if model.memory > 0:
            memory = remember(model, data, hmms, n_states, built[0][1])
    phi = join(*(hmm.phi for hmm in hmms))
    first = np.cumsum([0, *(size(hmm.phi) for hmm in hmms)])
    phi = take(phi, np.minimum(first[:-1] + np.arange(n_states)[:, None], first[1:] - 1).reshape(-1))
    rest = [(len(hmm.initial) - 1) * n_lanes + lane for lane, hmm in enumerate(hmms) if hmm.open_ended]

    def log_density(steps: slice) -> FloatArray:
        table = by_step(model.log_density(data, phi, steps))
        table[:, rest] = data.log_marginal[steps, None]
        return table

    label = np.stack([hmm.label for hmm in padded], axis=-1)
    return Lanes(chains, label, log_density, sequence_starts(data.offsets) >= 0, memory)


def pad(hmm: FiniteHMM, n_states: int) -> FiniteHMM:
    """The same with more states, which are never visited; without their parameters of the emission."""
    known = len(hmm.initial)
    initial, rows, label = np.zeros(n_states), np.zeros((n_states, n_states)), np.full(n_states, UNSEEN)
    initial[:known], rows[:known, :known], label[:known] = hmm.initial, hmm.rows, hmm.label
    omega = None if hmm.omega is None else take(hmm.omega, np.minimum(np.arange(n_states), known - 1))
    return hmm._replace(initial=initial, rows=rows, label=label, omega=omega)


def remember(model: Model, data: Data, hmms: Sequence[FiniteHMM], n_states: int, node: IntArray) -> LaneMemory:
    """What the densities of the first steps after a change of state depend on, for every draw."""
    each = [model.after_change(data, hmm.phi, slice(None)) for hmm in hmms]
    n_known = np.array([size(hmm.phi) for hmm in hmms])

    def by_lane(name: str) -> FloatArray:
        return np.stack([getattr(after, name) for after in each], axis=-1)

    def by_state(name: str) -> FloatArray:
        arrays = [getattr(after, name) for after in each]
        return np.stack([array[np.minimum(np.arange(n_states), len(array) - 1)] for array in arrays], axis=-1)

    dof = np.array([after.dof for after in each])
    return LaneMemory(
        np.ascontiguousarray(node), n_known, by_lane("value"), each[0].offset, by_state("mean"),
        by_state("level"), by_lane("factor"), by_state("scale"), log_peak(dof), dof,
    )  # fmt: skip
