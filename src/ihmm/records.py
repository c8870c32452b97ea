"""What chains keep: draws laid end to end in few arrays, put together again when asked for."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._parameters import join, take
from ihmm.emissions.dp_mixture import MixturePhi
from ihmm.gibbs import SweepInfo
from ihmm.model import Draw, Hyper, Transitions
from ihmm.trajectory import Trajectory

HYPER = ("gamma", "alpha", "kappa", "concentration", "stickiness")


@dataclass(frozen=True, eq=False)
class Record:
    """All that one chain kept, but for its states: ragged arrays laid end to end, `n_states` tells them apart."""

    chain: int
    n_states: IntArray  # (draws,): K of each
    beta: FloatArray  # (Σ (K + 1),)
    initial: FloatArray  # (Σ (K + 1),)
    rows: FloatArray  # (Σ K(K + 1),)
    phi: Phi  # leading axis Σ K
    traces: dict[str, Array]  # (draws,) each

    def __len__(self) -> int:
        return len(self.n_states)

    @classmethod
    def of(cls, chain: int, draws: Sequence[Draw], traces: dict[str, Array]) -> "Record":
        return cls(
            chain,
            np.array([draw.n_states for draw in draws]),
            np.concatenate([draw.transitions.beta for draw in draws]),
            np.concatenate([draw.transitions.initial for draw in draws]),
            np.concatenate([draw.transitions.rows.ravel() for draw in draws]),
            join(*(draw.phi for draw in draws)),
            traces,
        )


class Draws(Sequence[Draw]):
    """The draws of one chain, put together when asked for."""

    def __init__(self, states: Array, record: Record) -> None:
        self._states, self._record = states, record

    @property
    def chain(self) -> int:
        """The chain's number, counting those that were interrupted before their first draw."""
        return self._record.chain

    @property
    def traces(self) -> dict[str, Array]:
        """Name → (draws,), of this chain alone; `Posterior.traces` has those of all."""
        return self._record.traces

    def __len__(self) -> int:
        return len(self._record)

    @overload
    def __getitem__(self, index: int) -> Draw: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draw]: ...
    def __getitem__(self, index: int | slice) -> Draw | list[Draw]:
        if isinstance(index, slice):
            return [self[d] for d in range(len(self))[index]]
        d = range(len(self))[index]
        record, traces = self._record, self._record.traces
        before, k = record.n_states[:d], int(record.n_states[d])
        state, pair = int(before.sum()), int((before * (before + 1)).sum())
        transitions = Transitions(
            record.beta[state + d : state + d + k + 1],
            record.initial[state + d : state + d + k + 1],
            record.rows[pair : pair + k * (k + 1)].reshape(k, k + 1),
        )
        phi = take(record.phi, slice(state, state + k))
        hyper = Hyper(*(float(traces[name][d]) for name in Hyper._fields))
        return Draw(Trajectory(self._states[d].astype(np.int64)), transitions, phi, hyper)

    def __repr__(self) -> str:
        return f"Draws of chain {self.chain}: {len(self)}"


NOT_HERE = Trajectory(np.empty(0, np.int64))  # states are kept apart from the rest of a draw


class Recorder:
    """The draws of one chain while it runs. States go into an array made beforehand, a longer one or one of wider
    integers when needed."""

    def __init__(self, chain: int, states: Array) -> None:
        self.chain, self.states = chain, states
        self._kept: list[tuple[Draw, SweepInfo]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, draw: Draw, info: SweepInfo) -> None:
        if len(self) == len(self.states):
            room = np.empty((max(len(self), 8), len(draw.states)), self.states.dtype)
            self.states = np.concatenate([self.states, room])
        if draw.n_states - 1 > np.iinfo(self.states.dtype).max:
            self.states = self.states.astype(np.min_scalar_type(draw.n_states - 1))
        self.states[len(self)] = draw.states
        self._kept.append((draw._replace(trajectory=NOT_HERE, components=None), info))

    def record(self) -> Record:
        return Record.of(self.chain, [draw for draw, _ in self._kept], _traces(self._kept))


def gather(recorders: Sequence[Recorder], block: Array) -> tuple[Array, list[Record]]:
    """States and records of the chains that kept anything; `block` is the array their states were written to."""
    if any(recorder.states.dtype != block.dtype for recorder in recorders):
        block = np.stack([recorder.states for recorder in recorders])
    started = [i for i, recorder in enumerate(recorders) if len(recorder)]
    if len(started) < len(recorders):
        block = block[started]
    longest = max(len(recorders[i]) for i in started)
    return block[:, :longest], [recorders[i].record() for i in started]


def _traces(kept: Sequence[tuple[Draw, SweepInfo]]) -> dict[str, Array]:
    rows = [
        {
            "n_states": draw.n_states,
            "log_joint": info.log_joint,
            **{name: getattr(draw.hyper, name) for name in HYPER},
            **({"sigma": float(draw.phi.sigma[0])} if isinstance(draw.phi, MixturePhi) else {}),
            **info.step._asdict(),
            **info.moves._asdict(),
        }
        for draw, info in kept
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}
