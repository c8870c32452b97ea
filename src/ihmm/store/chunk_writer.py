"""When the draws of a chain are written to its folder."""

import time
from collections.abc import Callable

from ihmm.gibbs import SweepInfo
from ihmm.model import Draw
from ihmm.store._base import Checkpoint, Chunk, Phase, SweepRange
from ihmm.store.memory import MemoryWriter

CHUNK_SECONDS, CHUNK_SHARE = 2.0, 0.02  # minimum time between chunks: seconds, and share of the time since the start


class ChunkWriter:
    """Writes one sweep_range as chunks, at intervals that grow with the run, so that their number stays small.

    Damaged chunks are recomputed as a whole: the first gets all the draws, the others are empty.
    """

    def __init__(self, append: Callable[[int, Chunk], None], sweep_range: SweepRange, n_steps: int) -> None:
        self._append, self._segment = append, sweep_range
        self._collected = MemoryWriter.empty(sweep_range.chain, n_steps)
        self._number = sweep_range.chunk
        self._begin = 0 if sweep_range.before is None else sweep_range.before.sweeps
        self._started = self._last = time.monotonic()

    def add(self, phase: Phase, draw: Draw, info: SweepInfo) -> None:
        self._collected.add(phase, draw, info)

    def append(self, chunk: Chunk) -> None:
        assert chunk.after is not None  # only saved posteriors have no checkpoint
        self._append(self._number, chunk)
        for number in range(self._number + 1, self._segment.next_chunk or 0):
            self._append(number, Chunk(chunk.after.sweeps, {}, chunk.after))
        self._number, self._begin, self._last = self._number + 1, chunk.after.sweeps, time.monotonic()

    def due(self) -> bool:
        now = time.monotonic()
        interval = max(CHUNK_SECONDS, CHUNK_SHARE * (now - self._started))
        return not self._segment.is_repair and now - self._last >= interval

    def flush(self, after: Checkpoint) -> None:
        # Half a repair would leave a gap before the next intact chunk
        incomplete = self._segment.is_repair and after.sweeps < self._segment.stop
        if after.sweeps > self._begin and not incomplete:
            self.append(self._collected.chunk(self._begin, after))
            self._collected.clear()
