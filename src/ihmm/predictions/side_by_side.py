"""State probabilities and likelihoods under several hidden Markov or semi-Markov models of the same data at once.

The models, one per draw, are small and the data may be long: a pass over one model at a time would mostly wait for
memory and for the previous step. Here the densities are computed in blocks that stay in the cache, and the passes of
all models advance together.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.kernels.segment_chain import SegmentChain
from ihmm.kernels.side_by_side import (
    LaneChains,
    LaneMemory,
    add_filtered_lanes,
    add_smoothed_lanes,
    filter_lanes,
    leave_one_out_lanes,
    predict_each_step,
    relate_lanes,
    remember_lanes,
    transpose,
)
from ihmm.samplers._densities import MIN_LOG_DENSITY, exponentials

BLOCK_CELLS = 100_000  # densities per block of steps, about what the cache holds
MIN_BLOCK = 64  # steps
MIN_TOTAL = 1e-200  # probabilities of an observation below are too inaccurate

LogDensities = Callable[[slice], FloatArray]  # steps → (steps, states · lanes): log f(y_t | φ_k), lanes side by side


class Underflow(ArithmeticError):
    """At some step, all that can be reached has a density too small in relation to the largest one."""


class Lanes(NamedTuple):
    """Several chains, one in each lane. Those with fewer states than others have states that are never visited."""

    chains: LaneChains
    label: IntArray  # (L, lanes): −1 for the last label
    log_density: LogDensities
    starts: BoolArray  # (T,): whether a sequence starts here
    memory: LaneMemory | None = None  # of noise that remembers the previous state


def without_durations(initial: FloatArray, rows: FloatArray) -> LaneChains:
    """Hidden Markov chains, (L, lanes) and (L, L, lanes)."""
    states, nothing = np.arange(len(initial)), np.empty(0, np.int64)
    never, nowhere = np.empty((0, initial.shape[1])), nothing.reshape(0, 0)
    is_left, follows = np.empty(0, bool), in_any_lane(rows)
    return LaneChains(states, states, nothing, never, never, nowhere, states, initial, rows, is_left, follows)


def with_durations(chains: Sequence[SegmentChain]) -> LaneChains:
    """Chains over states and ages that all have the same nodes."""
    like = chains[0]
    names = ("stay", "leave", "initial", "rows")
    arrays = {name: np.stack([getattr(chain, name) for chain in chains], axis=-1) for name in names}
    possible = {"is_left": in_any_lane(arrays["leave"]), "follows": in_any_lane(arrays["rows"])}
    return LaneChains(**like._asdict() | arrays | possible)


def in_any_lane(probability: FloatArray) -> BoolArray:
    """Whether it is possible in any of the lanes."""
    return np.asarray((probability > 0).any(axis=-1))


def log_predictive(lanes: Lanes) -> FloatArray:
    """(T, lanes): log p(y_t | y_1 … y_{t−1})."""
    out = np.empty((len(lanes.starts), lanes.label.shape[1]))
    current = empty_nodes(lanes)
    for steps in blocks(lanes):
        _, total, scale = run_filter(lanes, steps, current)
        out[steps] = np.log(total) + scale
    return out


def add_filtered(lanes: Lanes, total: FloatArray) -> None:
    """Add P(s_t has label l | y_1 … y_t), summed over the lanes, to `total` (T, labels)."""
    current = empty_nodes(lanes)
    for steps in blocks(lanes):
        filtered, factor, _ = run_filter(lanes, steps, current)
        add_filtered_lanes(lanes.chains.state, filtered, factor, lanes.label, total[steps])


def add_smoothed(lanes: Lanes, total: FloatArray) -> None:
    """Add P(s_t has label l | all y), summed over the lanes, to `total` (T, labels).

    The filter runs twice: once to get to the end, and again block by block on the way back, which takes less time than
    to store all of its probabilities.
    """
    before, current = [], empty_nodes(lanes)
    for steps in blocks(lanes):
        before.append(current.copy())
        run_filter(lanes, steps, current)

    continues = np.append(~lanes.starts[1:], False)
    for steps, earlier in zip(reversed(list(blocks(lanes))), reversed(before), strict=True):
        filtered, factor, _ = run_filter(lanes, steps, earlier)
        add_smoothed_lanes(lanes.chains, filtered, factor, continues[steps], lanes.label, current, total[steps])


def log_leave_one_out(lanes: Lanes) -> FloatArray:
    """(T, lanes): log p(y_t | all other y). Not for noise that remembers the previous state."""
    before, current = [], empty_nodes(lanes)
    for steps in blocks(lanes):
        before.append(current.copy())
        run_filter(lanes, steps, current)

    out, continues = np.empty((len(lanes.starts), lanes.label.shape[1])), np.append(~lanes.starts[1:], False)
    following = empty_nodes(lanes)
    for steps, earlier in zip(reversed(list(blocks(lanes))), reversed(before), strict=True):
        filtered, total, _ = run_filter(lanes, steps, earlier.copy())
        filtered /= total[:, None]
        predicted = np.empty_like(filtered)
        predict_each_step(lanes.chains, filtered, lanes.starts[steps], earlier, predicted)
        density, scale = relative_densities(lanes, steps)
        smallest = leave_one_out_lanes(lanes.chains, predicted, density, continues[steps], following, out[steps])
        if not smallest > MIN_TOTAL:
            raise Underflow
        out[steps] += scale
    return out


def blocks(lanes: Lanes) -> Iterator[slice]:
    """The steps in blocks."""
    n_steps, cells = len(lanes.starts), (int(lanes.chains.column.max()) + 1) * lanes.label.shape[1]
    size = max(MIN_BLOCK, BLOCK_CELLS // cells)
    return (slice(begin, min(begin + size, n_steps)) for begin in range(0, n_steps, size))


def empty_nodes(lanes: Lanes) -> FloatArray:
    return np.empty((len(lanes.chains.state), lanes.label.shape[1]))


def run_filter(lanes: Lanes, steps: slice, current: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Filter one block of steps: p(node_t = i | y_1 … y_t), (B, nodes, lanes), up to a factor of each step and lane;
    that factor; and what has to be added to its logarithm for log p(y_t | y_1 … y_{t−1}), both (B, lanes).

    `current` has the probabilities of the step before the block, and is updated.
    """
    density, scale = relative_densities(lanes, steps)
    total, filtered = np.empty_like(scale), np.empty((len(density), *current.shape))
    filter_lanes(lanes.chains, density, lanes.starts[steps], current, filtered, total)
    if not total.min() > MIN_TOTAL:
        raise Underflow
    return filtered, total, scale


def relative_densities(lanes: Lanes, steps: slice) -> tuple[FloatArray, FloatArray]:
    """f(y_t | node) relative to the largest of each step and lane, (B, columns, lanes), and its logarithm."""
    n_states, n_lanes = lanes.label.shape
    n_steps = steps.stop - steps.start
    density = lanes.log_density(steps).reshape(n_steps, n_states, n_lanes)
    if lanes.memory is not None:
        settled, density = density, np.empty((n_steps, n_states + len(lanes.memory.node), n_lanes))
        density[:, :n_states] = settled
        remember_lanes(lanes.memory, steps.start, n_states, density)
    scale = np.empty((n_steps, n_lanes))
    relate_lanes(density, MIN_LOG_DENSITY, scale)
    exponentials(density)
    return density, scale


def by_step(table: FloatArray) -> FloatArray:
    """The same table (T, n), contiguous by step, from one that is mostly the transpose of a contiguous one."""
    if not table.T.flags.c_contiguous:
        return np.array(table, order="C")
    out = np.empty(table.shape)
    transpose(table.T, out)
    return out
