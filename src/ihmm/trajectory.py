"""The trajectory s_{1:T} and its sufficient statistics.

Floating-point sums depend on the order of summation. Statistics are therefore computed by pieces whose borders depend
on the data alone, and combined in order: the result is the same on any number of threads or machines.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, TypeVar, final

import numpy as np

from ihmm._threads import run_in_threads
from ihmm._typing import Array, IntArray, Statistics
from ihmm.data import Data
from ihmm.durations import Runs
from ihmm.emissions._conjugate import Conjugate
from ihmm.emissions._parameters import fields, rebuild, size
from ihmm.kernels.counts import count_transitions, rename
from ihmm.workers import LocalPath, StoredPath

PIECE_STEPS = 2**14  # approximate length of a piece

Result = TypeVar("Result")


class TrajectoryStatistics(NamedTuple):
    """What the conditionals of the transitions and of φ need to know of a trajectory."""

    counts: IntArray  # (K + 1, K): transitions, the initial row first
    emission: Statistics | None  # sufficient statistics of every state; None if φ cannot be integrated out


class PieceStatistics(NamedTuple):
    """Transition counts of consecutive pieces, and the sufficient statistics of each piece."""

    counts: IntArray
    emission: list[Statistics]


@final
class Trajectory:
    """The states of all time steps of all sequences.

    The path may be kept by remote workers, under the labels with which it was drawn: `states` fetches and relabels it
    when it is first needed. Workers that keep a path also return its statistics.
    """

    def __init__(
        self,
        path: IntArray | StoredPath,
        labels: IntArray | None = None,
        statistics: TrajectoryStatistics | None = None,
    ) -> None:
        self.path: StoredPath = LocalPath(path) if isinstance(path, np.ndarray) else path
        self.labels = labels  # of the states of `path` in this draw; None: they are the same
        self._statistics = statistics

    def __repr__(self) -> str:
        return f"<trajectory of {len(self.states)} steps>"

    @cached_property
    def states(self) -> IntArray:
        path = self.path.fetch()
        return path if self.labels is None else relabel(path, self.labels)

    def statistics(self, data: Data, n_states: int) -> TrajectoryStatistics:
        """Transition counts and sufficient statistics, as returned by the workers or computed here."""
        if self._statistics is not None:
            return self._statistics
        return combine(data.conjugate, [piece_statistics(data, self.states, n_states)])

    def __reduce__(self) -> tuple[Any, ...]:
        return Trajectory, (self.states,)


def runs(states: IntArray, offsets: IntArray, left_censored: bool = False) -> Runs:
    """The segments of a trajectory, which do not extend across sequences.

    The last one of each sequence is censored, and, if `left_censored`, the first one may have begun before the data.
    """
    begin = np.ones(len(states), bool)
    np.not_equal(states[1:], states[:-1], out=begin[1:])
    begin[offsets[:-1]] = True
    begins = np.flatnonzero(begin)
    is_first, is_last = np.zeros((2, len(begins)), bool)
    is_first[np.searchsorted(begins, offsets[:-1])] = left_censored
    is_last[np.searchsorted(begins, offsets[1:]) - 1] = True
    return Runs(np.append(begins[1:], len(states)) - begins, states[begins], is_last, is_first)


def relabel(path: IntArray, labels: IntArray, dtype: Any = np.int64) -> IntArray:
    """The path with every state k replaced by labels[k]."""
    out = np.empty(len(path), dtype)
    rename(path, labels, out)
    return out


def smallest_type(states: IntArray) -> IntArray:
    """The same states in the smallest integer type that holds them, to be stored or sent."""
    return states.astype(np.min_scalar_type(states.max()))


def piece_statistics(data: Data, states: IntArray, n_states: int) -> PieceStatistics:
    """Statistics of all pieces of `data`, which may be part of the data of a chain."""
    borders = piece_borders(data.offsets)
    if len(borders) == 2:
        emission = [data.conjugate.statistics(*data.pair(states), n_states)] if data.conjugate is not None else []
        return PieceStatistics(count_transitions(states, data.offsets, n_states), emission)

    def one(piece: slice) -> tuple[IntArray, Statistics | None]:
        part, path = data.part(piece.start, piece.stop), states[piece]
        emission = part.conjugate.statistics(*part.pair(path), n_states) if part.conjugate is not None else None
        return count_transitions(path, part.offsets, n_states), emission

    pieces = by_piece(data, one)
    counts = np.sum([counts for counts, _ in pieces], axis=0)
    # A piece that continues a sequence was counted as the beginning of one
    cuts = np.setdiff1d(borders, data.offsets)
    np.subtract.at(counts[0], states[cuts], 1)
    np.add.at(counts, (states[cuts - 1] + 1, states[cuts]), 1)
    return PieceStatistics(counts, [emission for _, emission in pieces if emission is not None])


def combine(conjugate: Conjugate | None, parts: Sequence[PieceStatistics]) -> TrajectoryStatistics:
    """Statistics of all pieces, in order; parts may have different numbers of states."""
    if len(parts) == 1 and len(parts[0].emission) <= 1:
        ((counts, pieces),) = parts
        return TrajectoryStatistics(counts, pieces[0] if pieces else None)
    n_states = max(part.counts.shape[1] for part in parts)
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for part in parts:
        counts[: len(part.counts), : part.counts.shape[1]] += part.counts
    pieces = [pad(each, n_states) for part in parts for each in part.emission]
    return TrajectoryStatistics(counts, conjugate.combine(pieces) if conjugate is not None else None)


def pad(statistics: Statistics, n_states: int) -> Statistics:
    """The same statistics with empty states appended."""
    if size(statistics) == n_states:
        return statistics

    def longer(array: Array) -> Array:
        return np.concatenate([array, np.zeros((n_states - len(array), *array.shape[1:]), array.dtype)])

    return rebuild(statistics, map(longer, fields(statistics).values()))


def by_piece(data: Data, function: Callable[[slice], Result]) -> list[Result]:
    """The function of every piece, in order, on the threads of this process."""
    pieces = [slice(begin, end) for begin, end in pairwise(piece_borders(data.offsets))]
    if len(pieces) == 1:
        return [function(pieces[0])]
    return run_in_threads(function, pieces, min(data.workers.threads, len(pieces)))


def piece_borders(offsets: IntArray) -> list[int]:
    """Borders of pieces: at borders of sequences, and within sequences that are long.

    If the data are cut where both a piece and a sequence begin, the two parts have the same pieces.
    """
    if offsets[-1] <= PIECE_STEPS:
        return [0, int(offsets[-1])]
    borders = [0]
    while borders[-1] < offsets[-1]:
        begin = borders[-1]
        i = min(int(np.searchsorted(offsets, begin + PIECE_STEPS)), len(offsets) - 1)
        end = int(offsets[i])
        borders += [*range(begin + PIECE_STEPS, end - PIECE_STEPS // 2, PIECE_STEPS), end]
    return borders
