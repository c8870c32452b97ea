"""What a sampler is: one way to do Step 1 of the sweep (T15 §3)."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import Omega
from ihmm.emissions._parameters import take
from ihmm.kernels.sticks import Sticks
from ihmm.model import Draw, Model
from ihmm.sticks import compact
from ihmm.trajectory import Trajectory, TrajectoryStatistics
from ihmm.workers import LocalPath, StoredPath


class StateUpdate(NamedTuple):
    """The result of Step 1: a trajectory, and β over the states it visits (last entry: all other states).

    The conditionals that follow integrate π out and redraw it. φ is used only by emissions that update it from its
    current value; it is None if Step 1 has integrated it out. `components` are those of a mixture emission, `durations`
    the current parameters of the duration laws.
    """

    trajectory: Trajectory
    beta: FloatArray
    phi: Phi | None = None
    components: IntArray | None = None
    durations: Omega | None = None

    @property
    def states(self) -> IntArray:
        return self.trajectory.states

    @property
    def n_states(self) -> int:
        return len(self.beta) - 1


class PassInfo(NamedTuple):
    """Diagnostics of one Step 1."""

    n_scored: int  # states that the proposal scored explicitly
    n_born: int  # states of the new trajectory that the old one did not visit
    update_rate: float  # share of time steps whose state changed


class Sampler(Protocol):
    def check(self, model: Model, data: Data) -> None:
        """Raise an error that says what to do if this sampler does not support the model or the data."""
        ...

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        """Draw the trajectory given everything else, or by a kernel that leaves that law invariant."""
        ...


class NewPath(NamedTuple):
    """A path in columns of θ, as a pass leaves it."""

    path: StoredPath
    visited: IntArray  # its states, in increasing order
    update_rate: float
    statistics: TrajectoryStatistics | None = None  # of all columns up to the last one visited, if already computed

    @classmethod
    def of(cls, states: IntArray, reference: IntArray) -> "NewPath":
        update_rate = np.count_nonzero(states != reference) / len(states)
        return cls(LocalPath(states), np.flatnonzero(np.bincount(states)), update_rate)


def finish(
    new: NewPath, sticks: Sticks, order: IntArray, phi: Phi, draw: Draw, omega: Omega | None = None
) -> tuple[StateUpdate, PassInfo]:
    """Label the visited states: old ones in their old order, then new ones.

    `order` says which state of the draw, or which new state after those, is in each of the first columns of θ; `phi`
    and `omega` have the parameters by column.
    """
    rank = np.arange(sticks.size[0])
    rank[: len(order)] = order
    visited, beta, kept = compact(new.visited, sticks, rank)
    labels = np.full(new.visited[-1] + 1, -1)
    labels[new.visited] = visited
    n_born = int((rank[kept] >= draw.n_states).sum())
    statistics = None
    if new.statistics is not None:
        counts, emission = new.statistics
        statistics = TrajectoryStatistics(counts[np.append(0, kept + 1)][:, kept], take(emission, kept))
    durations = None if omega is None else take(omega, kept)
    update = StateUpdate(Trajectory(new.path, labels, statistics), beta, take(phi, kept), durations=durations)
    return update, PassInfo(int(sticks.size[2]), n_born, new.update_rate)


def refuse_durations(sampler: object, model: Model) -> None:
    if model.duration is not None:
        raise TypeError(
            f"{type(sampler).__name__} samples hidden Markov models, and this model has durations, {model.duration!r}; "
            "use ParticleGibbs"
        )


def sequence_starts(offsets: IntArray) -> IntArray:
    """The number of the sequence at its first time step, −1 elsewhere."""
    starts = np.full(offsets[-1], -1)
    starts[offsets[:-1]] = np.arange(len(offsets) - 1)
    return starts
