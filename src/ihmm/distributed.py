"""One chain's sequences on the workers of a Dask cluster.

    from dask.distributed import Client
    posterior = ihmm.sample(model, sequences, workers=ihmm.distributed.Cluster(Client(…)))

Each worker keeps its share of the sequences and of the path. In every sweep it receives the parameters and returns
transition counts and sufficient statistics; the path itself is fetched only when it is needed: for a draw that is kept,
a checkpoint, a move. All random numbers come from streams keyed by sequence and by state, so the draws are, bit for
bit, those of one thread on one machine, however the sequences are distributed. If a worker is lost, another one repeats
its work from the last path that was fetched.
"""

from collections.abc import Callable, Container, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import count
from threading import Lock
from typing import TYPE_CHECKING, Any
from weakref import finalize

import numpy as np

from ihmm import _checks
from ihmm._threads import processors, run_in_threads
from ihmm._typing import Array, IntArray
from ihmm.data import Data
from ihmm.trajectory import piece_borders, smallest_type
from ihmm.workers import Result, Segment, Span, StoredPath, Task, Update, divide, resample_in_memory

if TYPE_CHECKING:
    from dask.distributed import Client, Future

MAX_ATTEMPTS = 10  # at one sweep, before a cluster that keeps losing workers is given up
WORKER_TIMEOUT = 60.0  # seconds to wait for a worker if there is none
POLL_INTERVAL = 1.0  # seconds between checks that a worker is still alive
MAX_REPLAY = 100  # passes that may have to be repeated; after that many the path is fetched


class Cluster:
    """Workers for `ihmm.sample` and `ihmm.resume`: those of a `dask.distributed.Client`.

    Parameters
    ----------
    client
        A client of any cluster: a ``LocalCluster``, SLURM through dask-jobqueue, Kubernetes.
    shards
        Number of shards that the sequences are divided into; by default the number of workers. A sequence is never
        divided. A worker with several threads uses all of them on its shard.
    """

    def __init__(self, client: "Client", shards: int | None = None) -> None:
        if not callable(getattr(client, "scatter", None)):
            raise TypeError(f"Cluster needs a dask.distributed.Client, got {client!r}")
        self.client = client
        self.size = _checks.count("shards", len(self._workers()) if shards is None else shards)
        self._lock = Lock()
        self._shards: dict[int, ShardHandle] = {}

    @property
    def threads(self) -> int:
        return processors()

    @property
    def keep_paths(self) -> bool:
        return True

    def segments(self, offsets: IntArray) -> list[Segment]:
        # Statistics are computed by pieces, so that a shard consists of whole pieces
        return divide(offsets, np.intersect1d(piece_borders(offsets), offsets), self.size)

    def map(self, function: Callable[[Data, Task], Result], data: Data, tasks: Sequence[Task]) -> list[Result]:
        def begin(i: int, share: list[Task]) -> Callable[[], list[Result]]:
            shard = self._shard(i, data, share)
            missing = [None if shard.has(data, task) else data.take(slice(task.begin, task.end)) for task in share]
            return shard.call("map", (function, [*zip(share, missing, strict=True)]))

        return [result for share in self._in_shares(tasks, begin) for result in share]

    def resample(
        self, update: Update[Result], data: Data, path: StoredPath, segments: Sequence[Segment]
    ) -> tuple[StoredPath, list[Result]]:
        if data.conjugate is None:  # the next step of the sweep needs the path itself
            return resample_in_memory(self, update, data, path, segments)
        previous = path if isinstance(path, RemotePath) else RemotePath(self, data, segments, local=path.fetch())
        if previous.age == MAX_REPLAY:
            previous.fetch()
        new = RemotePath(self, data, segments, previous, pack(update))
        return new, [summary for share in self.compute(new, fetch=False) for summary in share]

    def compute(self, path: "RemotePath", fetch: bool) -> list[Any]:
        """The path, shard by shard, or the summaries of its segments. A worker that does not have its share of the path
        computes it, from the last path that it has or that is in local memory."""

        def begin(i: int, share: list[Segment]) -> Callable[[], Any]:
            shard = self._shard(i, path.data, share, exactly=True)
            start, passes = path.since(shard.paths)
            given = start.key if start.key in shard.paths else smallest_type(start.fetch()[shard.steps])
            updates = [each.update for each in passes]
            wait = shard.call("resample", (given, updates, path.key, shard.take_released(), fetch))

            def finish() -> Any:
                answer = wait()
                shard.paths.discard(start.key)
                shard.paths.add(path.key)
                return answer

            return finish

        return self._in_shares(path.segments, begin)

    def release(self, key: int) -> None:
        """This path is no longer needed."""
        for shard in [*self._shards.values()]:
            if key in shard.paths:
                shard.paths.discard(key)
                shard.released.append(key)

    def _in_shares(
        self, tasks: Sequence[Task], begin: Callable[[int, list[Task]], Callable[[], Result]]
    ) -> list[Result]:
        """The result of every share of the tasks, in order. `begin` starts the work on a share and returns a function
        that waits for the result; if a worker is lost, its share is started again on another."""
        from dask.distributed import KilledWorker

        shares = share_among(self.size, tasks)
        lost = OSError, CancelledError, KilledWorker
        results: dict[int, Result] = {}
        for _ in range(MAX_ATTEMPTS):
            waiting: dict[int, Callable[[], Result]] = {}
            for i in [i for i in shares if i not in results]:
                try:
                    waiting[i] = begin(i, shares[i])
                except (*lost, RuntimeError):  # Dask raises RuntimeError if it already knows of the loss
                    self._drop(i)
                except AttributeError:  # and this, of a client that is closed
                    if self.client.status != "closed":
                        raise
                    self._drop(i)
            for i, wait in waiting.items():
                try:
                    results[i] = wait()
                except lost:
                    self._drop(i)
            if len(results) == len(shares):
                return [results[i] for i in sorted(shares)]
            self._wait_for_a_worker()
        raise RuntimeError(
            f"the cluster lost its workers {MAX_ATTEMPTS} times in one sweep; check its logs, or add memory"
        )

    def _wait_for_a_worker(self) -> None:
        """Raise if there will be none."""
        try:
            if self.client.status == "closed":  # asked all the same, Dask may answer, or wait
                raise RuntimeError("the client is closed")
            self.client.wait_for_workers(1, timeout=WORKER_TIMEOUT)
        except (OSError, RuntimeError, CancelledError) as error:
            if isinstance(error, TimeoutError):
                problem = f"the cluster has had no worker for {WORKER_TIMEOUT:g} s"
            else:
                problem = "the connection to the cluster was lost: its scheduler has ended, or the client was closed"
            advice = "a run with store= is continued by ihmm.resume, with the workers of a new client or without any"
            raise RuntimeError(f"{problem}; {advice}") from error

    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ValueError("the cluster has no workers; wait for them with client.wait_for_workers(1)")
        return workers

    def _shard(self, i: int, data: Data, share: list[Task], exactly: bool = False) -> "ShardHandle":
        """The worker that holds share i. If there is none, or `exactly` this share is required and it holds another, a
        worker is sent the data."""
        steps = slice(share[0].begin, share[-1].end)
        with self._lock:
            shard = self._shards.get(i)
            if shard is None or (exactly and (shard.y is not data.y or shard.steps != steps)):
                part = self.client.scatter(data.part(steps.start, steps.stop), hash=False)  # type: ignore[no-untyped-call]
                future = self.client.submit(Shard, part, steps.start, share, actor=True, pure=False)
                shard = self._shards[i] = ShardHandle(self.client, data.y, steps, future)
            return shard

    def _drop(self, i: int) -> None:
        with self._lock:
            self._shards.pop(i, None)


class RemotePath:
    """A path that workers keep: how it was computed from the previous one, or the path itself once it was fetched."""

    keys = count()

    def __init__(
        self,
        cluster: Cluster,
        data: Data,
        segments: Sequence[Segment],
        previous: "RemotePath | None" = None,
        update: bytes = b"",
        local: IntArray | None = None,
    ) -> None:
        self.cluster, self.data, self.segments = cluster, data, segments
        self.previous, self.update, self.local = previous, update, local
        self.age: int = 0 if previous is None else previous.age + 1
        self.key = next(self.keys)
        finalize(self, cluster.release, self.key)

    def fetch(self) -> IntArray:
        if self.local is None:
            try:
                self.local = np.concatenate(self.cluster.compute(self, fetch=True))
            except (OSError, RuntimeError):  # no worker is left
                self.local = self.replay()
            self.previous, self.update, self.age = None, b"", 0
        return self.local

    def since(self, known: Container[int] = ()) -> "tuple[RemotePath, list[RemotePath]]":
        """The last path that is in local memory, or whose key is known; and those computed since."""
        each, passes = self, []
        while each.key not in known and each.previous is not None:
            passes.append(each)
            each = each.previous
        return each, passes[::-1]

    def replay(self) -> IntArray:
        """The same path, computed in this process."""
        start, passes = self.since()
        path = start.fetch()
        for each in passes:
            path, _ = resample_segments(unpack(each.update), self.data, path, self.segments, 0, processors())
        return path


@dataclass(frozen=True, eq=False)
class ShardHandle:
    """Some time steps of the data, the worker that holds them, and the paths that it keeps."""

    client: "Client"
    y: Array
    steps: slice
    future: "Future[Shard]"
    paths: set[int] = field(default_factory=set)
    released: list[int] = field(default_factory=list)

    @cached_property
    def actor(self) -> Any:
        return self.future.result()

    def has(self, data: Data, task: Span) -> bool:
        return data.y is self.y and self.steps.start <= task.begin and task.end <= self.steps.stop

    def take_released(self) -> list[int]:
        return [self.released.pop() for _ in range(len(self.released))]

    def call(self, method: str, message: object) -> Callable[[], Any]:
        """Start a method of the shard; returns a function that waits for its result."""
        with self.client.as_current():
            return partial(self.wait, getattr(self.actor, method)(pack(message)))

    def wait(self, call: Any) -> Any:
        """Dask itself would wait forever for some lost workers."""
        while True:
            try:
                return unpack(call.result(timeout=POLL_INTERVAL))
            except TimeoutError:
                if self.future.status != "finished":
                    raise


class Shard:
    """Consecutive time steps of the data, from `begin` on, and paths through them, in the memory of a worker.

    A Dask actor: calls to it bypass the scheduler.
    """

    def __init__(self, data: Data, begin: int, segments: list[Segment]) -> None:
        from dask.distributed import get_worker

        self.data, self.begin, self.segments = data, begin, segments
        self.paths: dict[int, IntArray] = {}
        self.threads = get_worker().state.nthreads

    def map(self, message: bytes) -> bytes:
        """The function of every task and its data, which come with the task or are held here."""
        function, tasks = unpack(message)

        def one(item: tuple[Span, Data | None]) -> Any:
            task, data = item
            return function(data or self.data.take(slice(task.begin - self.begin, task.end - self.begin)), task)

        return pack(run_in_threads(one, tasks, self.threads))

    def resample(self, message: bytes) -> bytes:
        """Apply updates one after the other to a path that is given, or kept here under a key."""
        given, updates, key, released, fetch = unpack(message)
        for each in released:
            self.paths.pop(each, None)
        path = given if isinstance(given, np.ndarray) else self.paths.pop(given)
        summaries: list[Any] = []
        for update in updates:
            path, summaries = resample_segments(
                unpack(update), self.data, path, self.segments, self.begin, self.threads
            )
        self.paths[key] = path
        return pack(path if fetch else summaries)


def resample_segments(
    update: Update[Any], data: Data, path: IntArray, segments: Sequence[Segment], begin: int, threads: int
) -> tuple[IntArray, list[Any]]:
    """Update every segment; the new path and the summaries. Data and path start at time step `begin`."""

    def one(segment: Segment) -> tuple[IntArray, Any]:
        low, high = segment.begin - begin, segment.end - begin
        return update(data.part(low, high), path[low:high], segment)

    parts, summaries = zip(*run_in_threads(one, segments, threads), strict=True)
    return np.concatenate(parts), [*summaries]


# Messages are sent as one block of bytes: Dask would serialise every item of a list by itself, which is slower.


def pack(message: object) -> bytes:
    from distributed.protocol import pickle

    packed: bytes = pickle.dumps(message)  # type: ignore[no-untyped-call]
    return packed


def unpack(message: bytes) -> Any:
    from distributed.protocol import pickle

    return pickle.loads(message)  # type: ignore[no-untyped-call]


def share_among(size: int, tasks: Sequence[Task]) -> dict[int, list[Task]]:
    """Consecutive tasks for each of `size` shares, of about equal total length; some shares may be empty."""
    steps = np.array([task.end - task.begin for task in tasks])
    share = (np.cumsum(steps) - steps / 2) * size // steps.sum()
    return {int(i): [task for task, own in zip(tasks, share, strict=True) if own == i] for i in np.unique(share)}
