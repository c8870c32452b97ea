"""Reduce a long series to what a page can contain, without losing short events.

The series is divided into blocks of equal size. The minimum and the maximum of every state in each block are kept, so
that every omitted value lies between two kept values of its state and block.
"""

import base64
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray

MAX_ERROR = 1e-4  # rounding error allowed in a value, as a share of the range of the values


class Points(NamedTuple):
    """Steps of a column, with their values and states."""

    step: IntArray
    value: FloatArray
    state: IntArray


def downsample(values: FloatArray, states: IntArray, most: int, symbols: int | None = None) -> tuple[int, Points]:
    """The block size, and at most `most` points: all observed values if the block size is 1, else the extremes."""
    size = 1 if len(values) <= most else -(-2 * len(values) // most)
    steps = extremes(values, states, size, symbols)
    while len(steps) > most:
        size *= 2
        steps = extremes(values, states, size, symbols)
    state_type = np.min_scalar_type(int(states.max()))
    return size, Points(steps, _narrow(values[steps]), states[steps].astype(state_type))


def extremes(values: FloatArray, states: IntArray, size: int, symbols: int | None = None) -> IntArray:
    """Steps of the minimum and the maximum of each state, or of the first of each symbol, in every block."""
    steps = np.flatnonzero(~np.isnan(values))
    if size == 1:
        return steps
    group = states[steps] if symbols is None else states[steps] * symbols + values[steps].astype(np.int64)
    order = np.lexsort((values[steps], group, steps // size))
    first = np.flatnonzero(np.diff((steps // size)[order], prepend=-1) | np.diff(group[order], prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    return np.asarray(steps[np.unique(order[np.concatenate([first, last])])])


def _narrow(values: FloatArray) -> FloatArray:
    """As 32-bit floats, if that is accurate enough."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.all(np.abs(short - values) <= MAX_ERROR * np.ptp(values)) else values


def increments(steps: IntArray) -> IntArray:
    """Differences between successive steps, the first one from 0, in the smallest integers that hold them."""
    differences = np.diff(steps, prepend=0)
    return differences.astype(np.min_scalar_type(int(differences.max(initial=0))))


def block_means(probabilities: FloatArray, most: int) -> tuple[int, FloatArray]:
    """The block size, and means over at most `most` blocks, (blocks, states); the last block may be shorter."""
    total = len(probabilities)
    size = -(-total // most)
    begins = np.arange(0, total, size)
    return size, np.add.reduceat(probabilities, begins) / np.diff(begins, append=total)[:, None]


def gaps(missing: BoolArray, shortest: int) -> IntArray:
    """(gaps, 2): begin and end of the runs of missing values that have at least `shortest` steps."""
    change = np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8))
    found = np.stack([np.flatnonzero(change > 0), np.flatnonzero(change < 0)], axis=1)
    return found[np.diff(found)[:, 0] >= shortest]


def encode(array: Array) -> dict[str, str]:
    """An array as type and Base64 bytes, which the script of the page decodes."""
    kind = {"f": "Float", "i": "Int", "u": "Uint"}[array.dtype.kind]
    little_endian = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {"type": f"{kind}{8 * array.itemsize}Array", "bytes": base64.b64encode(little_endian.tobytes()).decode()}
