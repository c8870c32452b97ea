"""Random streams of a pass over the trajectory."""

from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, IntArray
from ihmm.workers import Segment


class Keys(NamedTuple):
    """Keys of the streams. Streams have numbers as well: of a batch of new states, or of a sequence."""

    phi: np.uint64  # φ of new states
    forward: np.uint64  # particles
    backward: np.uint64  # trace back
    omega: np.uint64 = np.uint64(0)  # ω of new states


def stream_numbers(segment: Segment, n_steps: int) -> IntArray:
    """The number of each sequence's stream at its first time step, −1 elsewhere."""
    numbers = np.full(n_steps, -1)
    numbers[segment.starts] = segment.streams
    return numbers


def empty_stream() -> Array:
    """A stream to be seeded, in a cache line of its own: threads that write to the same one slow each other down."""
    return np.empty((3, 16), np.uint64)[1, :4]
