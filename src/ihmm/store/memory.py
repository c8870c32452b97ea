"""Runs in memory, the default."""

from dataclasses import replace

import numpy as np

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.gibbs import SweepInfo
from ihmm.model import Draw
from ihmm.store._base import PHASES, Checkpoint, Chunk, Phase, RunContents, RunSettings, SweepRange
from ihmm.store.draw_storage import DrawBuffer, collect


class MemoryBackend:
    """A run in memory. The states of each phase are one array, allocated in advance."""

    resume_hint = ""

    def __init__(self, settings: RunSettings, data: Data, trajectory: IntArray | None) -> None:
        self.settings, self.data, self.trajectory = settings, data, trajectory
        sizes: dict[Phase, int] = {"kept": settings.draws, "warmup": settings.tune if settings.save_warmup else 0}
        self._blocks = {
            phase: np.empty((settings.chains, size, len(data.y)), np.uint8) for phase, size in sizes.items()
        }
        self._writers = [
            MemoryWriter({phase: DrawBuffer(c, block[c]) for phase, block in self._blocks.items()})
            for c in range(settings.chains)
        ]

    def extend(self, draws: int) -> None:
        """Increase the number of draws per chain."""
        self.settings = replace(self.settings, draws=draws)
        buffers = [writer.buffers["kept"] for writer in self._writers]
        dtype = np.result_type(*(buffer.states for buffer in buffers))
        self._blocks["kept"] = np.empty((len(buffers), draws, len(self.data.y)), dtype)
        for buffer, states in zip(buffers, self._blocks["kept"], strict=True):
            buffer.move(states)

    def missing(self) -> list[SweepRange]:
        positions = [writer.position for writer in self._writers]
        return [
            SweepRange(c, before, self.settings.n_sweeps)
            for c, before in enumerate(positions)
            if before is None or before.sweeps < self.settings.n_sweeps
        ]

    def writer(self, sweep_range: SweepRange) -> "MemoryWriter":
        return self._writers[sweep_range.chain]

    def contents(self) -> RunContents:
        kept, warmup = (
            collect([writer.buffers[phase] for writer in self._writers], block) for phase, block in self._blocks.items()
        )
        return RunContents(self.settings, self.data, kept, warmup)


class MemoryWriter:
    """Collects the draws of one chain, and remembers its last checkpoint."""

    def __init__(self, buffers: dict[Phase, DrawBuffer]) -> None:
        self.buffers = buffers
        self.position: Checkpoint | None = None

    @classmethod
    def empty(cls, chain: int, n_steps: int) -> "MemoryWriter":
        """A writer without preallocated arrays, for any number of draws."""
        return cls({phase: DrawBuffer(chain, np.empty((0, n_steps), np.uint8)) for phase in PHASES})

    def add(self, phase: Phase, draw: Draw, info: SweepInfo) -> None:
        self.buffers[phase].add(draw, info)

    def append(self, chunk: Chunk) -> None:
        for phase, (states, packed) in chunk.draws.items():
            self.buffers[phase].extend(states, packed)
        self.position = chunk.after

    def due(self) -> bool:
        return False

    def flush(self, after: Checkpoint) -> None:
        self.position = after

    def chunk(self, begin: int, after: Checkpoint) -> Chunk:
        """All draws collected, as one chunk. Its states are a view of the buffers."""
        filled = {phase: buffer for phase, buffer in self.buffers.items() if len(buffer)}
        draws = {phase: (buffer.states[: len(buffer)], buffer.pack()) for phase, buffer in filled.items()}
        return Chunk(begin, draws, after)

    def clear(self) -> None:
        for buffer in self.buffers.values():
            buffer.clear()
