"""What a sampler is: one way to do Step 1 of the sweep (T15 §3)."""

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.emissions._base import size, take
from ihmm.kernels.layout import relate
from ihmm.kernels.sticks import Theta
from ihmm.model import Data, Draw, Model, fetched
from ihmm.sticks import compact

CELLS = 30_000  # about how many densities are worked on at once: what the cache holds
LEAST = -700.0  # logarithm of the smallest relative density; exponentials that underflow take ten times as long


class Path(NamedTuple):
    """What Step 1 hands on: the trajectory, and β over the states it visits (last entry: all others).

    The conditionals that follow integrate π out and draw it afresh. φ survives only for emissions that renew it step by
    step; it is None if Step 1 has integrated it out. `components` are those of an emission that is a mixture.
    """

    states: IntArray
    beta: FloatArray
    phi: Phi | None = None
    components: IntArray | None = None


class DistantPath(Path):
    """A path that is fetched when somebody looks at it."""

    @property
    def states(self) -> IntArray:
        return fetched(self)


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
    path: IntArray, update_rate: float, theta: Theta, order: IntArray, phi: Phi, draw: Draw
) -> tuple[Path, PassInfo]:
    """Name the states of a new path, old ones in their old order and newborn ones after them.

    `order` says which state of the draw, or which fresh one after those, stands in the first columns of θ; `phi` has
    the parameters by column.
    """
    rank = np.arange(theta.size[0])
    rank[: len(order)] = order
    states, beta, kept = compact(path, theta, rank)
    n_born = int((rank[kept] >= draw.n_states).sum())
    return Path(states, beta, take(phi, kept)), PassInfo(int(theta.size[2]), n_born, update_rate)


def share_changed(path: IntArray, reference: IntArray) -> float:
    """The share of steps whose state is another."""
    return np.count_nonzero(path != reference) / len(path)


def sequence_starts(offsets: IntArray) -> IntArray:
    """The number of the sequence at its first step, −1 elsewhere."""
    starts = np.full(offsets[-1], -1)
    starts[offsets[:-1]] = np.arange(len(offsets) - 1)
    return starts


def steps_in_cache(n_states: int) -> int:
    """For how many steps the densities of so many states are worked on at once."""
    return max(64, CELLS // n_states)


def log_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """log f(y_t | φ_k), (T, K), laid out step by step."""
    out = np.empty((len(data.y), size(phi)))
    for steps, by_state in in_blocks(model, data, phi):
        out[steps] = by_state.T
    return out


def relative_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """f(y_t | φ_k), (T, K), relative to the largest at each step."""
    out = np.empty((len(data.y), size(phi)))
    for steps, by_state in in_blocks(model, data, phi):
        out[steps] = densities(by_state, by_state.max(axis=0))
    return out


def in_blocks(model: Model, data: Data, phi: Phi) -> Iterator[tuple[slice, FloatArray]]:
    """Logarithms of densities by state, (K, B), of one block of steps after the other."""
    block = steps_in_cache(size(phi))
    for begin in range(0, len(data.y), block):
        steps = slice(begin, begin + block)
        yield steps, np.ascontiguousarray(model.log_density(data, phi, steps).T)


def densities(by_state: FloatArray, log_scale: FloatArray) -> FloatArray:
    """f(y_t | φ_k) / scale_t, (T, K), from a (K, T) table of logarithms; zero where it would be below e^LEAST."""
    out = np.empty(by_state.shape[::-1])
    relate(by_state, log_scale, LEAST, out)
    return exponentials(out)


def exponentials(logs: FloatArray) -> FloatArray:
    """Densities in place of their logarithms, which are nowhere below LEAST; zero where they are there."""
    np.exp(logs, out=logs)
    logs -= np.exp(LEAST)
    return logs
