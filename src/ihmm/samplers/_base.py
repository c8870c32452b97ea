"""What a sampler is: one way to do Step 1 of the sweep (T15 §3)."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.emissions._base import take
from ihmm.kernels.layout import transpose
from ihmm.kernels.sticks import Theta
from ihmm.model import Data, Draw, Model
from ihmm.sticks import compact


class Path(NamedTuple):
    """What Step 1 hands on: the trajectory, and β over the states it visits (last entry: all others).

    The conditionals that follow integrate π out and draw it afresh. φ survives only for emissions that renew it step by
    step; it is None if Step 1 has integrated it out. `components` are those of an emission that is a mixture.
    """

    states: IntArray
    beta: FloatArray
    phi: Phi | None = None
    components: IntArray | None = None


class PassInfo(NamedTuple):
    """Diagnostics of one Step 1, beside the state and not in it."""

    n_scored: int  # states the proposal scored explicitly
    n_born: int  # states on the new path that the old one did not visit
    update_rate: float  # share of steps whose state changed


class Sampler(Protocol):
    def check(self, model: Model, data: Data) -> None:
        """Raise an error that says what to do if this sampler cannot serve the model, or these data."""
        ...

    def resample_states(self, rng: np.random.Generator, data: Data, model: Model, draw: Draw) -> tuple[Path, PassInfo]:
        """Draw the trajectory given everything else, or by a kernel that leaves that law invariant."""
        ...


def finish(
    path: IntArray, reference: IntArray, theta: Theta, order: IntArray, phi: Phi, draw: Draw
) -> tuple[Path, PassInfo]:
    """Name the states of a new path, old ones in their old order and newborn ones after them.

    `order` says which state of the draw, or which fresh one after those, stands in the first columns of θ; `phi` has
    the parameters by column.
    """
    update_rate = np.count_nonzero(path != reference) / len(path)
    rank = np.arange(theta.size[0])
    rank[: len(order)] = order
    states, beta, kept = compact(path.astype(np.int64, copy=False), theta, rank)
    n_born = int((rank[kept] >= draw.n_states).sum())
    return Path(states, beta, take(phi, kept)), PassInfo(int(theta.size[2]), n_born, update_rate)


def sequence_starts(offsets: IntArray) -> IntArray:
    """The number of the sequence at its first step, −1 elsewhere."""
    starts = np.full(offsets[-1], -1)
    starts[offsets[:-1]] = np.arange(len(offsets) - 1)
    return starts


def by_step(table: FloatArray) -> FloatArray:
    """A (T, K) table laid out step by step, whichever way the emission made it."""
    if table.flags.c_contiguous:
        return table
    out = np.empty(table.shape)
    transpose(np.ascontiguousarray(table.T), out)
    return out
