"""State probabilities and likelihoods under several hidden Markov models of the same data at once.

The models, one per draw, are small and the data may be long: a pass over one model at a time would mostly wait for
memory and for the previous step. Here the densities are computed in blocks that stay in the cache, and the passes of
all models advance together.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.kernels.side_by_side import add_filtered_lanes, add_smoothed_lanes, filter_lanes, relate_lanes
from ihmm.samplers._densities import MIN_LOG_DENSITY, exponentials

BLOCK_CELLS = 200_000  # densities per block of steps, about what the cache holds

LogDensities = Callable[[int, slice], FloatArray]  # model, steps → (its states, steps): log f(y_t | φ_k)


class Chain(NamedTuple):
    """The hidden Markov chain of one model, with the label of each state."""

    initial: FloatArray  # (K,)
    rows: FloatArray  # (K, K)
    label: IntArray  # (K,): −1 for the last label


class Lanes(NamedTuple):
    """Several chains, one in each lane. Those with fewer states than others have states that are never visited."""

    initial: FloatArray  # (K, lanes)
    rows: FloatArray  # (K, K, lanes)
    label: IntArray  # (K, lanes)
    log_density: LogDensities
    starts: BoolArray  # (T,): whether a sequence starts here


def side_by_side(chains: Sequence[Chain], log_density: LogDensities, starts: BoolArray) -> Lanes:
    """Arrange chains in lanes."""
    n_states, n_lanes = max(len(chain.initial) for chain in chains), len(chains)
    initial, rows = np.zeros((n_states, n_lanes)), np.zeros((n_states, n_states, n_lanes))
    label = np.full((n_states, n_lanes), -1)
    for lane, chain in enumerate(chains):
        own = slice(len(chain.initial))
        initial[own, lane], rows[own, own, lane], label[own, lane] = chain
    return Lanes(initial, rows, label, log_density, starts)


def log_predictive(lanes: Lanes) -> FloatArray:
    """(lanes, T): log p(y_t | y_1 … y_{t−1})."""
    out = np.empty((lanes.initial.shape[1], len(lanes.starts)))
    for steps, _, by_step in run_filter(lanes, slice(0, len(lanes.starts)), np.empty_like(lanes.initial)):
        out[:, steps] = by_step.T
    return out


def add_filtered(lanes: Lanes, total: FloatArray) -> None:
    """Add P(s_t has label l | y_1 … y_t), summed over the lanes, to `total` (T, labels)."""
    for steps, filtered, _ in run_filter(lanes, slice(0, len(lanes.starts)), np.empty_like(lanes.initial)):
        add_filtered_lanes(filtered, lanes.label, total[steps])


def add_smoothed(lanes: Lanes, total: FloatArray, room: FloatArray) -> None:
    """Add P(s_t has label l | all y), summed over the lanes, to `total` (T, labels).

    `room` is for filtered probabilities. Those that do not fit are computed twice: once to get to the end, and again on
    the way back.
    """
    n_steps = len(lanes.starts)
    length = min(n_steps, len(room) // lanes.initial.size)
    parts = [slice(*ends) for ends in pairwise([*range(0, n_steps, length), n_steps])]
    before, current = [], np.empty_like(lanes.initial)  # the filter before each part
    for part in parts[:-1]:
        before.append(current.copy())
        for _ in run_filter(lanes, part, current):
            pass
    before.append(current)

    continues = np.append(~lanes.starts[1:], False)
    stored = room[: length * lanes.initial.size].reshape(length, *lanes.initial.shape)
    later = np.empty_like(lanes.initial)
    for part, current in zip(reversed(parts), reversed(before), strict=True):
        filtered = stored[: part.stop - part.start]
        for _ in run_filter(lanes, part, current, filtered):
            pass
        add_smoothed_lanes(filtered, continues[part], lanes.rows, lanes.label, later, total[part])


def run_filter(
    lanes: Lanes, part: slice, current: FloatArray, out: FloatArray | None = None
) -> Iterator[tuple[slice, FloatArray, FloatArray]]:
    """Filter one part of the steps, block by block: the steps of a block; p(s_t = k | y_1 … y_t), (B, K, lanes); and
    log p(y_t | y_1 … y_{t−1}), (B, lanes).

    `current` has the probabilities of the last step before the part, and is updated. Those of all steps are written to
    `out`, if given; otherwise each block overwrites the one before.
    """
    n_states, n_lanes = lanes.initial.shape
    size = min(max(64, BLOCK_CELLS // lanes.initial.size), part.stop - part.start)
    table = np.full((n_lanes, n_states, size), -np.inf)
    density = np.empty((size, n_states, n_lanes))
    scale, predictive = np.empty((2, size, n_lanes))
    block = np.empty_like(density)
    for begin in range(part.start, part.stop, size):
        steps = slice(begin, min(begin + size, part.stop))
        used = slice(steps.stop - begin)
        for lane in range(n_lanes):
            by_state = lanes.log_density(lane, steps)
            table[lane, : len(by_state), used] = by_state
        relate_lanes(table, MIN_LOG_DENSITY, density[used], scale[used])
        exponentials(density[used])
        filtered = block[used] if out is None else out[begin - part.start :][used]
        filter_lanes(density[used], lanes.starts[steps], lanes.initial, lanes.rows, current, filtered, predictive[used])
        yield steps, filtered, np.log(predictive[used]) + scale[used]
