"""What the conditionals ask of a path, summed up piece by piece.

Sums of numbers with a fraction depend on their order. Pieces depend on the data alone, so whoever has some of them, on
however many threads, and whoever puts them together, finds the same.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple, TypeVar

import numpy as np

from ihmm._threads import share_out
from ihmm._typing import Array, IntArray, Phi, Statistics
from ihmm.emissions._base import Emission, fields, rebuild, size
from ihmm.kernels.counts import count_transitions
from ihmm.model import Data, Model, Sums

PIECE = 2**14  # steps, about

Result = TypeVar("Result")


class Part(NamedTuple):
    """What whole pieces say: transitions, and the statistics of each."""

    counts: IntArray
    statistics: list[Statistics]


def sum_up(data: Data, model: Model, states: IntArray, n_states: int) -> Sums:
    """All of a path."""
    return put_together(model.emission, [sum_up_part(data, model, states, n_states)])


def sum_up_part(data: Data, model: Model, states: IntArray, n_states: int) -> Part:
    """Some pieces of a path, if `data` have these only."""
    borders = piece_borders(data.offsets)
    if len(borders) == 2:
        statistics = [model.statistics(data, states, n_states)] if data.sums_up else []
        return Part(count_transitions(states, data.offsets, n_states), statistics)

    def one(piece: slice) -> tuple[IntArray, Statistics | None]:
        part, path = data.part(piece.start, piece.stop), states[piece]
        statistics = model.statistics(part, path, n_states) if data.sums_up else None
        return count_transitions(path, part.offsets, n_states), statistics

    parts = by_piece(data, one, borders)
    counts = np.sum([counts for counts, _ in parts], axis=0)
    cuts = np.setdiff1d(borders, data.offsets)  # a piece that goes on with a sequence does not begin one
    np.subtract.at(counts[0], states[cuts], 1)
    np.add.at(counts, (states[cuts - 1] + 1, states[cuts]), 1)
    return Part(counts, [statistics for _, statistics in parts if statistics is not None])


def put_together(emission: Emission, parts: Sequence[Part]) -> Sums:
    """All pieces, in order; parts may know different numbers of states."""
    if len(parts) == 1 and len(parts[0].statistics) <= 1:
        ((counts, statistics),) = parts
        return Sums(counts, statistics[0] if statistics else None)
    n_states = max(part.counts.shape[1] for part in parts)
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for part in parts:
        counts[: len(part.counts), : part.counts.shape[1]] += part.counts
    statistics = [pad(each, n_states) for part in parts for each in part.statistics]
    return Sums(counts, emission.combine(statistics) if statistics else None)


def pad(statistics: Statistics, n_states: int) -> Statistics:
    """The same with states that have no step."""
    if size(statistics) == n_states:
        return statistics

    def longer(array: Array) -> Array:
        return np.concatenate([array, np.zeros((n_states - len(array), *array.shape[1:]), array.dtype)])

    return rebuild(statistics, map(longer, fields(statistics).values()))


def by_piece(data: Data, function: Callable[[slice], Result], borders: Sequence[int]) -> list[Result]:
    """The function of every piece, in order."""
    pieces = [slice(begin, end) for begin, end in pairwise(borders)]
    return share_out(function, pieces, min(data.team.threads, len(pieces)))


def piece_borders(offsets: IntArray) -> list[int]:
    """Where pieces begin and end: at borders of sequences, and within those that are long.

    If the data are cut where a piece and a sequence begin, the pieces of both parts are these.
    """
    borders = [0]
    while borders[-1] < offsets[-1]:
        begin = borders[-1]
        i = min(int(np.searchsorted(offsets, begin + PIECE)), len(offsets) - 1)
        end = int(offsets[i])
        borders += [*range(begin + PIECE, end - PIECE // 2, PIECE), end]
    return borders


def log_likelihood(data: Data, model: Model, states: IntArray, phi: Phi) -> float:
    """log p(y | s, φ), step by step."""

    def one(piece: slice) -> float:
        return float(model.log_density_at(data.take(piece), states[piece], phi).sum())

    return sum(by_piece(data, one, piece_borders(data.offsets)))
