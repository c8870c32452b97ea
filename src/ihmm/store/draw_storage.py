"""Storage of draws in few arrays, and the buffers that collect them while a chain runs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, overload

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.durations import Omega
from ihmm.emissions._mixture_parameters import MixturePhi
from ihmm.emissions._parameters import join, take
from ihmm.gibbs import SweepInfo
from ihmm.model import Draw, Hyper, Transitions
from ihmm.trajectory import Trajectory

NO_TRAJECTORY = Trajectory(np.empty(0, np.int64))  # states are stored apart from the rest of a draw

HYPER = ("gamma", "alpha", "kappa", "concentration", "stickiness")


@dataclass(frozen=True, eq=False)
class PackedDraws:
    """The draws of one chain without their states. K differs between draws, so arrays are concatenated."""

    chain: int
    n_states: IntArray  # (draws,): K of each draw
    beta: FloatArray  # (Σ (K + 1),)
    initial: FloatArray  # (Σ (K + 1),)
    rows: FloatArray  # (Σ K(K + 1),)
    phi: Phi  # leading axis Σ K
    traces: dict[str, Array]  # (draws,) each
    durations: Omega | None = None  # leading axis Σ K, if the model has durations

    def __len__(self) -> int:
        return len(self.n_states)

    @classmethod
    def of(cls, chain: int, draws: Sequence[Draw], traces: dict[str, Array]) -> "PackedDraws":
        """Pack draws with their traces."""
        return cls(
            chain,
            np.array([draw.n_states for draw in draws]),
            np.concatenate([draw.transitions.beta for draw in draws]),
            np.concatenate([draw.transitions.initial for draw in draws]),
            np.concatenate([draw.transitions.rows.ravel() for draw in draws]),
            join(*(draw.phi for draw in draws)),
            traces,
            None if draws[0].durations is None else join(*(draw.durations for draw in draws)),
        )

    @classmethod
    def concatenate(cls, parts: "Sequence[PackedDraws]") -> "PackedDraws":
        """Join consecutive draws of the same chain."""
        first = parts[0]
        if len(parts) == 1:
            return first
        return cls(
            first.chain,
            np.concatenate([part.n_states for part in parts]),
            np.concatenate([part.beta for part in parts]),
            np.concatenate([part.initial for part in parts]),
            np.concatenate([part.rows for part in parts]),
            join(*(part.phi for part in parts)),
            {name: np.concatenate([part.traces[name] for part in parts]) for name in first.traces},
            None if first.durations is None else join(*(part.durations for part in parts)),
        )


class Draws(Sequence[Draw]):
    """The draws of one chain, unpacked on access."""

    def __init__(self, states: Array, packed: PackedDraws) -> None:
        self._states, self._packed = states, packed

    @property
    def chain(self) -> int:
        """Number of the chain, including chains that were interrupted before their first draw."""
        return self._packed.chain

    @property
    def traces(self) -> dict[str, Array]:
        """Name → (draws,), for this chain only; `Posterior.traces` covers all chains."""
        return self._packed.traces

    def __len__(self) -> int:
        return len(self._packed)

    @overload
    def __getitem__(self, index: int) -> Draw: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draw]: ...
    def __getitem__(self, index: int | slice) -> Draw | list[Draw]:
        if isinstance(index, slice):
            return [self[d] for d in range(len(self))[index]]
        d = range(len(self))[index]
        packed, traces = self._packed, self._packed.traces
        before, k = packed.n_states[:d], int(packed.n_states[d])
        state, pair = int(before.sum()), int((before * (before + 1)).sum())
        transitions = Transitions(
            packed.beta[state + d : state + d + k + 1],
            packed.initial[state + d : state + d + k + 1],
            packed.rows[pair : pair + k * (k + 1)].reshape(k, k + 1),
        )
        phi = take(packed.phi, slice(state, state + k))
        hyper = Hyper(*(float(traces[name][d]) for name in Hyper._fields))
        omega = None if packed.durations is None else take(packed.durations, slice(state, state + k))
        return Draw(Trajectory(self._states[d].astype(np.int64)), transitions, phi, hyper, durations=omega)

    def __repr__(self) -> str:
        return f"<{len(self)} draws of chain {self.chain}>"


class StoredDraws(NamedTuple):
    """The draws of all chains that have at least one."""

    states: Array  # (chains, draws of the longest chain, total T)
    packed: Sequence[PackedDraws]


class DrawBuffer:
    """Collects the draws of one chain while it runs.

    States are written to an array given in advance. It is replaced by a longer array, or one of wider integers, when
    needed.
    """

    def __init__(self, chain: int, states: Array) -> None:
        self.chain, self.states = chain, states
        self._size = 0
        self._packed: list[PackedDraws] = []
        self._recent: list[tuple[Draw, SweepInfo]] = []  # not packed yet

    def __len__(self) -> int:
        return self._size

    def add(self, draw: Draw, info: SweepInfo) -> None:
        self._write(draw.states[None], np.min_scalar_type(draw.n_states - 1))
        self._recent.append((draw._replace(trajectory=NO_TRAJECTORY, components=None), info))

    def extend(self, states: Array, packed: PackedDraws) -> None:
        """Add several draws that are packed already."""
        self._write(states, states.dtype)
        self._pack_recent()
        self._packed.append(packed)

    def pack(self) -> PackedDraws:
        """All draws collected so far; there must be at least one."""
        self._pack_recent()
        return PackedDraws.concatenate(self._packed)

    def move(self, states: Array) -> None:
        """Continue in a longer array."""
        states[: self._size] = self.states[: self._size]
        self.states = states

    def clear(self) -> None:
        """Drop all draws; the array of states is used again."""
        self._size, self._packed, self._recent = 0, [], []

    def _write(self, states: Array, dtype: np.dtype[np.generic]) -> None:
        end = self._size + len(states)
        if end > len(self.states):
            room = np.empty((max(end - len(self.states), self._size, 8), states.shape[1]), self.states.dtype)
            self.states = np.concatenate([self.states, room])
        self.states = self.states.astype(np.promote_types(dtype, self.states.dtype), copy=False)
        self.states[self._size : end] = states
        self._size = end

    def _pack_recent(self) -> None:
        if self._recent:
            draws = [draw for draw, _ in self._recent]
            self._packed.append(PackedDraws.of(self.chain, draws, _traces(self._recent)))
            self._recent = []


def collect(buffers: Sequence[DrawBuffer], block: Array) -> StoredDraws | None:
    """Draws of all chains, None if there are none. The rows of `block` were given to the buffers, one to each."""
    started = [i for i, buffer in enumerate(buffers) if len(buffer)]
    if not started:
        return None
    if any(buffer.states.dtype != block.dtype for buffer in buffers):
        block = np.stack([buffer.states for buffer in buffers])
    if len(started) < len(buffers):
        block = block[started]
    longest = max(len(buffers[i]) for i in started)
    return StoredDraws(block[:, :longest], [buffers[i].pack() for i in started])


def _traces(draws: Sequence[tuple[Draw, SweepInfo]]) -> dict[str, Array]:
    rows = [
        {
            "n_states": draw.n_states,
            "log_joint": info.log_joint,
            **{name: getattr(draw.hyper, name) for name in HYPER},
            **({"sigma": float(draw.phi.sigma[0])} if isinstance(draw.phi, MixturePhi) else {}),
            **info.step._asdict(),
            **info.moves._asdict(),
        }
        for draw, info in draws
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
