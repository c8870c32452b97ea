"""One chain: its sweeps, made in this process or by an executor."""

import itertools
import time
from abc import ABC, abstractmethod
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, CancelledError, Executor
from dataclasses import dataclass
from threading import Lock

import numpy as np

from ihmm.data import Data
from ihmm.gibbs import SweepInfo, sweep
from ihmm.model import Draw
from ihmm.running.start import InitialStates, first_draw
from ihmm.store import ChainWriter, Checkpoint, Chunk, MemoryWriter, RunSettings

TASK_SECONDS = 2.0  # duration of the tasks submitted to an executor

Sweeps = Iterator[tuple[Draw, SweepInfo]]


@dataclass(frozen=True)
class ChainTask:
    """A segment of a chain and everything needed to run it. Can be sent to another process."""

    data: Data
    settings: RunSettings
    init: InitialStates
    chain: int
    stream: np.random.SeedSequence
    stop: int  # number of sweeps after which it ends
    is_repair: bool  # damaged draws are recomputed, in one task

    def generator(self, after: Checkpoint | None) -> np.random.Generator:
        """The generator of the chain, as it was at a checkpoint or at the start."""
        rng = np.random.Generator(np.random.PCG64(self.stream))
        if after is not None:
            rng.bit_generator.state = after.generator
        return rng


class RunningChain(ABC):
    """A chain while it runs. The progress bars show `n_states` and `log_joint` of its last draw."""

    def __init__(self, task: ChainTask, before: Checkpoint | None, writer: ChainWriter) -> None:
        self.task, self.position, self.writer = task, before, writer
        self.n_states, self.log_joint = 0, float("nan")
        self._storing, self._abandoned = Lock(), False

    @property
    def done(self) -> int:
        """Sweeps since the start of the chain."""
        return 0 if self.position is None else self.position.sweeps

    @property
    def finished(self) -> bool:
        return self.done == self.task.stop

    @abstractmethod
    def advance(self) -> None:
        """Make at least one more sweep."""

    def close(self) -> None:
        """Store the draws that have not been stored yet. Only for the thread that advances the chain, or after it."""
        with self._storing:
            if self.position is not None and not self._abandoned:
                self.writer.flush(self.position)

    def abandon(self) -> None:
        """Store nothing more: the chain is left in the middle of a sweep, and others may work on its run."""
        with self._storing:
            self._abandoned = True


class LocalChain(RunningChain):
    """A chain whose sweeps are made in this process, one at a time."""

    def __init__(self, task: ChainTask, before: Checkpoint | None, writer: ChainWriter) -> None:
        super().__init__(task, before, writer)
        self._rng = task.generator(before)
        self._sweeps = sweeps(self._rng, task.data, task.settings, task.init, before)

    def advance(self) -> None:
        done = self.done
        try:
            draw, info = next(self._sweeps)
        except Exception as error:
            error.add_note(f"in chain {self.task.chain}, sweep {done}")
            raise
        phase = self.task.settings.phase(done)
        if phase is not None:
            self.writer.add(phase, draw, info)
        # Taken after every sweep: a sweep that fails halfway advances the generator but not the draw
        self.position = Checkpoint(done + 1, draw, dict(self._rng.bit_generator.state))
        self.n_states, self.log_joint = draw.n_states, info.log_joint
        if self.finished or self.writer.due():
            self.close()


class ExecutorChain(RunningChain):
    """A chain whose sweeps are made by an executor, a few seconds' worth at a time."""

    def __init__(self, task: ChainTask, before: Checkpoint | None, writer: ChainWriter, executor: Executor) -> None:
        super().__init__(task, before, writer)
        self._executor = executor

    def advance(self) -> None:
        seconds = np.inf if self.task.is_repair else TASK_SECONDS
        try:
            chunk = self._executor.submit(make_chunk, self.task, self.position, seconds).result()
        except (BrokenExecutor, CancelledError) as error:
            raise RuntimeError(
                "the executor, or a process of it, ended while a chain was running; a run with store= is continued by "
                "ihmm.resume, with a new executor or without one"
            ) from error
        assert chunk.after is not None  # only saved posteriors have no checkpoint
        with self._storing:
            if not self._abandoned:
                self.writer.append(chunk)
        self.position, self.n_states = chunk.after, chunk.after.draw.n_states


def make_chunk(task: ChainTask, before: Checkpoint | None, seconds: float) -> Chunk:
    """Advance a chain for about `seconds`, by at least one sweep, and return its draws."""
    writer = MemoryWriter.empty(task.chain, len(task.data.y))
    chain = LocalChain(task, before, writer)
    begin, end = chain.done, time.monotonic() + seconds
    chain.advance()
    while not chain.finished and time.monotonic() < end:
        chain.advance()
    assert chain.position is not None  # a sweep was made
    return writer.chunk(begin, chain.position)


def sweeps(
    rng: np.random.Generator,
    data: Data,
    settings: RunSettings,
    init: InitialStates,
    before: Checkpoint | None = None,
) -> Sweeps:
    """Endless sweeps, from the start or from a checkpoint."""
    draw = first_draw(rng, data, settings.model, init) if before is None else before.draw
    assert settings.sampler is not None  # a run without one is not opened
    for i in itertools.count(0 if before is None else before.sweeps):
        moves = [move for move in settings.moves if move.acts(i, settings.tune)]
        draw, info = sweep(rng, data, settings.model, draw, settings.sampler, moves)
        yield draw, info
