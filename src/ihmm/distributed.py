"""One chain's sequences on the workers of a Dask cluster.

    from dask.distributed import Client
    posterior = ihmm.sample(model, sequences, team=ihmm.distributed.Cluster(Client(…)))

Each worker keeps its share of the sequences. In every sweep it is sent the parameters and the states its sequences
had, and sends back those they have now, a byte a step. Everything random comes from streams keyed by sequence and by
state, so the draws are, bit for bit, those of one thread on one machine, however the sequences are shared. What a
worker that is lost was doing is done by another.
"""

from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from functools import cached_property, partial
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm import _checks
from ihmm._threads import processors, share_out
from ihmm._typing import Array
from ihmm.model import Data, Job, Result, Stretch, jobs_for

if TYPE_CHECKING:
    from dask.distributed import Client, Future

ATTEMPTS = 10  # at one sweep, before a cluster that loses its workers is given up
PATIENCE = 60.0  # seconds to wait for a worker when there is none
PULSE = 1.0  # seconds between two looks at whether a worker is still there


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

    def over(self, function: Callable[[Data, Job], Result], data: Data, jobs: Sequence[Job]) -> list[Result]:
        from dask.distributed import KilledWorker

        lost = OSError, CancelledError, KilledWorker
        shares = share_among(self.size, jobs)
        results: dict[int, list[Result]] = {}
        for _ in range(ATTEMPTS):
            waiting: dict[int, Callable[[], list[Result]]] = {}
            for i in [i for i in shares if i not in results]:
                try:
                    waiting[i] = self._begin(i, function, data, shares[i])
                except (*lost, RuntimeError):  # the last is what Dask raises if it knows already
                    self._forget(i)
            for i, wait in waiting.items():
                try:
                    results[i] = wait()
                except lost:
                    self._forget(i)
            if len(results) == len(shares):
                return [result for i in sorted(shares) for result in results[i]]
            self.client.wait_for_workers(1, timeout=PATIENCE)
        raise RuntimeError(f"the cluster lost its workers {ATTEMPTS} times in one sweep: see its logs, or add memory")

    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ValueError("the cluster has no workers; wait for them with client.wait_for_workers(1)")
        return workers

    def _begin(
        self, i: int, function: Callable[[Data, Job], Result], data: Data, jobs: list[Job]
    ) -> Callable[[], list[Result]]:
        """Have share i of the jobs done by the worker that keeps its data; what it lacks, or what is new in every
        sweep, goes with them. Returns a function that waits for the results."""
        kept = self._keep(i, data, jobs)
        more = [None if kept.has(data, job) else data.take(slice(job.begin, job.end)) for job in jobs]
        message = pack((function, [*zip(jobs, more, strict=True)]))
        with self.client.as_current():
            return partial(kept.wait, kept.actor.work(message))

    def _keep(self, i: int, data: Data, jobs: list[Job]) -> "Kept":
        """Where the data of share i are; if nowhere yet, those of its jobs are sent to a worker."""
        with self._lock:
            if i not in self._kept:
                steps = slice(jobs[0].begin, jobs[-1].end)
                part = self.client.scatter(data.take(steps), hash=False)  # type: ignore[no-untyped-call]
                shard = self.client.submit(Shard, steps.start, part, actor=True, pure=False)
                self._kept[i] = Kept(data.y, steps, shard)
            return self._kept[i]

    def _forget(self, i: int) -> None:
        with self._lock:
            self._kept.pop(i, None)


@dataclass(frozen=True, eq=False)
class Kept:
    """Some steps of the data, and the worker that keeps them."""

    y: Array
    steps: slice
    shard: "Future[Shard]"

    @cached_property
    def actor(self) -> Any:
        return self.shard.result()

    def has(self, data: Data, job: Job) -> bool:
        return data.y is self.y and self.steps.start <= job.begin and job.end <= self.steps.stop

    def wait(self, call: Any) -> Any:
        """What the worker sends back. Dask itself would wait for ever for some that are lost."""
        while True:
            try:
                return unpack(call.result(timeout=PULSE))
            except TimeoutError:
                if self.shard.status != "finished":
                    raise


class Shard:
    """Consecutive steps of the data, from `begin` on, with the worker that keeps them: an actor, as Dask says, which is
    called without waiting for the scheduler's turn."""

    def __init__(self, begin: int, data: Data) -> None:
        from dask.distributed import get_worker

        self.begin, self.data = begin, data
        self.threads = get_worker().state.nthreads

    def work(self, message: bytes) -> bytes:
        """The function of every job and its data: those that came with it, or those that are kept."""
        function, jobs = unpack(message)

        def one(item: tuple[Stretch, Data | None]) -> Any:
            job, data = item
            return function(data or self.data.take(slice(job.begin - self.begin, job.end - self.begin)), job)

        return pack(share_out(one, jobs, self.threads))


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
