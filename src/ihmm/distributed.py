"""One chain's sequences on the workers of a Dask cluster.

    from dask.distributed import Client
    posterior = ihmm.sample(model, sequences, team=ihmm.distributed.Cluster(Client(…)))

Each worker keeps its share of the sequences, and of the path. In every sweep it is sent the parameters, and sends back
counts of transitions and statistics of its states; the path itself is fetched when somebody looks at it: for a draw
that is kept, a checkpoint, a move. Everything random comes from streams keyed by sequence and by state, so the draws
are, bit for bit, those of one thread on one machine, however the sequences are shared. What a worker that is lost had
done is done again by another, from the path as it was last fetched.
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
from ihmm._threads import processors, share_out
from ihmm._typing import Array, IntArray
from ihmm.model import Away, Data, Job, Result, Stretch, jobs_for
from ihmm.samplers.particle_gibbs import small

if TYPE_CHECKING:
    from dask.distributed import Client, Future

ATTEMPTS = 10  # at one sweep, before a cluster that loses its workers is given up
PATIENCE = 60.0  # seconds to wait for a worker when there is none
PULSE = 1.0  # seconds between two looks at whether a worker is still there
LONGEST = 100  # passes that may have to be made again, after which the path is fetched

Renew = Callable[[Data, IntArray, Any], tuple[IntArray, Any]]


class Cluster:
    """A team for `ihmm.sample` and `ihmm.resume`: the workers of a `dask.distributed.Client`.

    Parameters
    ----------
    client
        Of any cluster: a ``LocalCluster``, SLURM through dask-jobqueue, Kubernetes.
    shards
        Into how many parts the sequences are shared; as many as there are workers if not given. A sequence is never
        divided. A worker with several threads uses them all on its part.
    """

    def __init__(self, client: "Client", shards: int | None = None) -> None:
        if not callable(getattr(client, "scatter", None)):
            raise TypeError(f"Cluster needs a dask.distributed.Client, got {client!r}")
        self.client = client
        self.size = _checks.count("shards", len(self._workers()) if shards is None else shards)
        self._lock = Lock()
        self._kept: dict[int, Kept] = {}

    @property
    def threads(self) -> int:
        return processors()

    def parts(self, n_steps: int) -> int:
        return jobs_for(self.size, n_steps)

    @property
    def keeper(self) -> "Cluster":
        return self

    def over(self, function: Callable[[Data, Job], Result], data: Data, jobs: Sequence[Job]) -> list[Result]:
        def begin(i: int, share: list[Job]) -> Callable[[], list[Result]]:
            kept = self._keep(i, data, share)
            more = [None if kept.has(data, job) else data.take(slice(job.begin, job.end)) for job in share]
            return kept.call("work", (function, [*zip(share, more, strict=True)]))

        return [result for share in self._in_shares(jobs, begin) for result in share]

    def renew(
        self,
        function: Callable[[Data, IntArray, Job], tuple[IntArray, Result]],
        data: Data,
        path: IntArray | Away,
        stretches: Sequence[Job],
    ) -> tuple[Away, list[Result]]:
        before = path if isinstance(path, Pass) else Pass(self, data, stretches, here=small(np.asarray(path)))
        if before.age == LONGEST:
            before.fetch()
        made = Pass(self, data, stretches, before, pack(function))
        return made, [result for share in self.ask(made, fetch=False) for result in share]

    def ask(self, path: "Pass", fetch: bool) -> list[Any]:
        """The path, share by share, or what was said of its stretches. A worker that does not have its share makes it,
        from the last that it has, or that is here."""

        def begin(i: int, share: list[Stretch]) -> Callable[[], Any]:
            kept = self._keep(i, path.data, share, exactly=True)
            start, passes = path.since(kept.paths)
            given = start.key if start.key in kept.paths else start.fetch()[kept.steps]
            functions = [each.function for each in passes]
            wait = kept.call("renew", (given, functions, path.key, kept.take_unwanted(), fetch))

            def finish() -> Any:
                answer = wait()
                kept.paths.discard(start.key)
                kept.paths.add(path.key)
                return answer

            return finish

        return self._in_shares(path.stretches, begin)

    def forget(self, key: int) -> None:
        """Nobody will ask for this path again."""
        for kept in [*self._kept.values()]:
            if key in kept.paths:
                kept.paths.discard(key)
                kept.unwanted.append(key)

    def _in_shares(self, jobs: Sequence[Job], begin: Callable[[int, list[Job]], Callable[[], Result]]) -> list[Result]:
        """What comes of every share of the jobs, in order. `begin` has a worker set about it and returns a function
        that waits for the result; what a worker that is lost was doing is begun again with another."""
        from dask.distributed import KilledWorker

        shares = share_among(self.size, jobs)
        lost = OSError, CancelledError, KilledWorker
        results: dict[int, Result] = {}
        for _ in range(ATTEMPTS):
            waiting: dict[int, Callable[[], Result]] = {}
            for i in [i for i in shares if i not in results]:
                try:
                    waiting[i] = begin(i, shares[i])
                except (*lost, RuntimeError):  # the last is what Dask raises if it knows already
                    self._forget(i)
            for i, wait in waiting.items():
                try:
                    results[i] = wait()
                except lost:
                    self._forget(i)
            if len(results) == len(shares):
                return [results[i] for i in sorted(shares)]
            self.client.wait_for_workers(1, timeout=PATIENCE)
        raise RuntimeError(f"the cluster lost its workers {ATTEMPTS} times in one sweep: see its logs, or add memory")

    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ValueError("the cluster has no workers; wait for them with client.wait_for_workers(1)")
        return workers

    def _keep(self, i: int, data: Data, share: list[Job], exactly: bool = False) -> "Kept":
        """Who keeps share i: if nobody does yet, or not `exactly` this one though that is asked for, a worker is sent
        its data."""
        steps = slice(share[0].begin, share[-1].end)
        with self._lock:
            kept = self._kept.get(i)
            if kept is None or (exactly and (kept.y is not data.y or kept.steps != steps)):
                part = self.client.scatter(data.part(steps.start, steps.stop), hash=False)  # type: ignore[no-untyped-call]
                shard = self.client.submit(Shard, part, steps.start, share, actor=True, pure=False)
                kept = self._kept[i] = Kept(self.client, data.y, steps, shard)
            return kept

    def _forget(self, i: int) -> None:
        with self._lock:
            self._kept.pop(i, None)


class Pass:
    """A path that workers have: how it was made from the one before, or the path itself once it was fetched."""

    numbers = count()

    def __init__(
        self,
        cluster: Cluster,
        data: Data,
        stretches: Sequence[Any],
        before: "Pass | None" = None,
        function: bytes = b"",
        here: IntArray | None = None,
    ) -> None:
        self.cluster, self.data, self.stretches = cluster, data, stretches
        self.before, self.function, self.here = before, function, here
        self.age: int = 0 if before is None else before.age + 1
        self.key = next(self.numbers)
        finalize(self, cluster.forget, self.key)

    def fetch(self) -> IntArray:
        if self.here is None:
            try:
                self.here = np.concatenate(self.cluster.ask(self, fetch=True))
            except (OSError, RuntimeError):  # no worker is left
                self.here = self.make()
            self.before, self.function, self.age = None, b"", 0
        return self.here

    def since(self, known: Container[int] = ()) -> "tuple[Pass, list[Pass]]":
        """The last pass of which the path is known, by its key, or here; and those since."""
        each, passes = self, []
        while each.key not in known and each.before is not None:
            passes.append(each)
            each = each.before
        return each, passes[::-1]

    def make(self) -> IntArray:
        """The same path, made here."""
        start, passes = self.since()
        path = start.fetch()
        for each in passes:
            path, _ = renew(unpack(each.function), self.data, path, self.stretches, 0, processors())
        return path


@dataclass(frozen=True, eq=False)
class Kept:
    """Some steps of the data, the worker that keeps them, and the paths that it has of them."""

    client: "Client"
    y: Array
    steps: slice
    shard: "Future[Shard]"
    paths: set[int] = field(default_factory=set)
    unwanted: list[int] = field(default_factory=list)

    @cached_property
    def actor(self) -> Any:
        return self.shard.result()

    def has(self, data: Data, job: Stretch) -> bool:
        return data.y is self.y and self.steps.start <= job.begin and job.end <= self.steps.stop

    def take_unwanted(self) -> list[int]:
        return [self.unwanted.pop() for _ in range(len(self.unwanted))]

    def call(self, method: str, message: object) -> Callable[[], Any]:
        """Have the worker begin, and a function that waits for what it sends back."""
        with self.client.as_current():
            return partial(self.wait, getattr(self.actor, method)(pack(message)))

    def wait(self, call: Any) -> Any:
        """Dask itself would wait for ever for some that are lost."""
        while True:
            try:
                return unpack(call.result(timeout=PULSE))
            except TimeoutError:
                if self.shard.status != "finished":
                    raise


class Shard:
    """Consecutive steps of the data, from `begin` on, and paths through them, with the worker that keeps them: an
    actor, as Dask says, which is called without waiting for the scheduler's turn."""

    def __init__(self, data: Data, begin: int, stretches: list[Stretch]) -> None:
        from dask.distributed import get_worker

        self.data, self.begin, self.stretches = data, begin, stretches
        self.paths: dict[int, IntArray] = {}
        self.threads = get_worker().state.nthreads

    def work(self, message: bytes) -> bytes:
        """The function of every job and its data: those that came with it, or those that are kept."""
        function, jobs = unpack(message)

        def one(item: tuple[Stretch, Data | None]) -> Any:
            job, data = item
            return function(data or self.data.take(slice(job.begin - self.begin, job.end - self.begin)), job)

        return pack(share_out(one, jobs, self.threads))

    def renew(self, message: bytes) -> bytes:
        """Make a path by these functions, one after the other, from one that is given or known by its key."""
        given, functions, key, unwanted, fetch = unpack(message)
        for each in unwanted:
            self.paths.pop(each, None)
        path = given if isinstance(given, np.ndarray) else self.paths.pop(given)
        said: list[Any] = []
        for function in functions:
            path, said = renew(unpack(function), self.data, path, self.stretches, self.begin, self.threads)
        self.paths[key] = path
        return pack(path if fetch else said)


def renew(
    function: Renew, data: Data, path: IntArray, stretches: Sequence[Stretch], begin: int, threads: int
) -> tuple[IntArray, list[Any]]:
    """The function of every stretch: the paths that it makes, joined, and what it says of them. Data and path are from
    step `begin` on."""

    def one(stretch: Stretch) -> tuple[IntArray, Any]:
        low, high = stretch.begin - begin, stretch.end - begin
        return function(data.part(low, high), path[low:high], stretch)

    made, said = zip(*share_out(one, stretches, threads), strict=True)
    return np.concatenate(made), [*said]


# Messages travel in one piece. Dask would take lists apart, which for many small arrays takes longer than to send them.


def pack(message: object) -> bytes:
    from distributed.protocol import pickle

    packed: bytes = pickle.dumps(message)  # type: ignore[no-untyped-call]
    return packed


def unpack(message: bytes) -> Any:
    from distributed.protocol import pickle

    return pickle.loads(message)  # type: ignore[no-untyped-call]


def share_among(size: int, jobs: Sequence[Job]) -> dict[int, list[Job]]:
    """Consecutive jobs for each of so many shares, about as many steps in all; some may have none."""
    steps = np.array([job.end - job.begin for job in jobs])
    share = (np.cumsum(steps) - steps / 2) * size // steps.sum()
    return {int(i): [job for job, its in zip(jobs, share, strict=True) if its == i] for i in np.unique(share)}
