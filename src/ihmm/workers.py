"""Workers resample the sequences of one chain side by side. No result depends on which workers there are."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar

import numpy as np

from ihmm._threads import run_in_threads
from ihmm._typing import IntArray

if TYPE_CHECKING:
    from ihmm.data import Data

TASK_STEPS = 25_000  # short enough that threads finish at about the same time


class Span(Protocol):
    """Consecutive time steps."""

    @property
    def begin(self) -> int: ...
    @property
    def end(self) -> int: ...


class Segment(NamedTuple):
    """Consecutive time steps that are resampled together: whole sequences, or a block of one."""

    begin: int
    end: int
    starts: IntArray  # first steps of the sequences, or of the block, relative to `begin`
    streams: IntArray  # numbers of their random streams


class StoredPath(Protocol):
    """States of all time steps, in memory or on remote workers."""

    def fetch(self) -> IntArray: ...


@dataclass(frozen=True, eq=False)
class LocalPath:
    """States of all time steps, in memory."""

    states: IntArray

    def fetch(self) -> IntArray:
        return self.states


Task = TypeVar("Task", bound=Span)
Result = TypeVar("Result")
Update = Callable[["Data", IntArray, Segment], tuple[IntArray, Result]]  # new states of a segment, and a summary


class Workers(Protocol):
    """Threads of this process, or the workers of a cluster."""

    @property
    def threads(self) -> int:
        """Number of threads available in this process."""
        ...

    @property
    def keep_paths(self) -> bool:
        """Whether workers keep paths in their own memory, so that it pays to compute statistics there."""
        ...

    def segments(self, offsets: IntArray) -> list[Segment]:
        """Whole sequences grouped into segments of about equal length, to be shared among the workers."""
        ...

    def map(self, function: "Callable[[Data, Task], Result]", data: "Data", tasks: Sequence[Task]) -> list[Result]:
        """Apply a function to every task and the data of its time steps; results in order."""
        ...

    def resample(
        self, update: "Update[Result]", data: "Data", path: StoredPath, segments: Sequence[Segment]
    ) -> tuple[StoredPath, list[Result]]:
        """Replace the states of every segment by those that `update` returns; its summaries come back in order."""
        ...


@dataclass(frozen=True)
class Threads:
    """Threads of this process."""

    threads: int = 1

    @property
    def keep_paths(self) -> bool:
        return False

    def segments(self, offsets: IntArray) -> list[Segment]:
        return divide(offsets, offsets, self.threads)

    def map(self, function: "Callable[[Data, Task], Result]", data: "Data", tasks: Sequence[Task]) -> list[Result]:
        if len(tasks) == 1 and tasks[0].begin == 0 and tasks[0].end == len(data.y):
            return [function(data, tasks[0])]
        return run_in_threads(lambda task: function(data.take(slice(task.begin, task.end)), task), tasks, self.threads)

    def resample(
        self, update: "Update[Result]", data: "Data", path: StoredPath, segments: Sequence[Segment]
    ) -> tuple[LocalPath, list[Result]]:
        return resample_in_memory(self, update, data, path, segments)


class _PathTask(NamedTuple):
    """A segment and its present states."""

    begin: int
    end: int
    segment: Segment
    path: IntArray


def resample_in_memory(
    workers: Workers, update: "Update[Result]", data: "Data", path: StoredPath, segments: Sequence[Segment]
) -> tuple[LocalPath, list[Result]]:
    """`Workers.resample` for a path that stays in the memory of this process."""
    states = path.fetch()
    tasks = [_PathTask(s.begin, s.end, s, states[s.begin : s.end]) for s in segments]
    parts, summaries = zip(*workers.map(_Update(update), data, tasks), strict=True)
    return LocalPath(parts[0] if len(parts) == 1 else np.concatenate(parts)), [*summaries]


@dataclass(frozen=True)
class _Update:
    """An update as a function of one task. A class, so that it can be pickled."""

    update: "Update[object]"

    def __call__(self, data: "Data", task: _PathTask) -> tuple[IntArray, object]:
        return self.update(data, task.path, task.segment)


def divide(offsets: IntArray, borders: IntArray, n_workers: int) -> list[Segment]:
    """Group sequences into segments of at most about TASK_STEPS steps, as many per worker, cut only at `borders`."""
    n_segments = n_workers * math.ceil(offsets[-1] / (n_workers * TASK_STEPS))
    if n_segments == 1:
        return [Segment(0, int(offsets[-1]), offsets[:-1], np.arange(len(offsets) - 1))]
    ends = np.arange(n_segments + 1) * offsets[-1] // n_segments
    cuts = np.searchsorted(offsets, borders[np.unique(np.searchsorted(borders, ends))])
    return [
        Segment(int(offsets[i]), int(offsets[j]), offsets[i:j] - offsets[i], np.arange(i, j))
        for i, j in pairwise(cuts.tolist())
    ]
