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
from threading import Lock
from typing import TYPE_CHECKING, Any

from ihmm import _checks
from ihmm._threads import processors
from ihmm._typing import Array
from ihmm.model import Data, Job, Result

if TYPE_CHECKING:
    from dask.distributed import Client, Future

ATTEMPTS = 10  # at one sweep, before a cluster that loses its workers is given up
PATIENCE = 60.0  # seconds to wait for a worker when there is none


class Cluster:
    """A team for `ihmm.sample` and `ihmm.resume`: the workers of a `dask.distributed.Client`.

    Parameters
    ----------
    client
        Of any cluster: a ``LocalCluster``, SLURM through dask-jobqueue, Kubernetes.
    shards
        Into how many parts the sequences are shared; as many as there are workers if not given. A sequence is never
        divided.
    """

    def __init__(self, client: "Client", shards: int | None = None) -> None:
        if not callable(getattr(client, "scatter", None)):
            raise TypeError(f"Cluster needs a dask.distributed.Client, got {client!r}")
        self.client = client
        self.size = _checks.count("shards", len(self._workers()) if shards is None else shards)
        self._lock = Lock()
        self._y: Array | None = None
        self._kept: dict[tuple[int, int], Future[Data]] = {}

    @property
    def threads(self) -> int:
        return processors()

    def parts(self, n_steps: int) -> int:
        return self.size

    def over(self, function: Callable[[Data, Job], Result], data: Data, jobs: Sequence[Job]) -> list[Result]:
        from dask.distributed import KilledWorker

        results: dict[int, Result] = {}
        for _ in range(ATTEMPTS):
            todo = [i for i in range(len(jobs)) if i not in results]
            tasks = [self.client.submit(function, self._place(data, jobs[i]), jobs[i], pure=False) for i in todo]
            for i, task in zip(todo, tasks, strict=True):
                try:
                    results[i] = task.result()
                except (CancelledError, KilledWorker):  # with the data it was to work on
                    self._forget(jobs[i])
            if len(results) == len(jobs):
                return [results[i] for i in range(len(jobs))]
            self.client.wait_for_workers(1, timeout=PATIENCE)
        raise RuntimeError(f"the cluster lost its workers {ATTEMPTS} times in one sweep: see its logs, or add memory")

    def _workers(self) -> dict[str, Any]:
        workers: dict[str, Any] = self.client.scheduler_info(n_workers=-1)["workers"]
        if not workers:
            raise ValueError("the cluster has no workers; wait for them with client.wait_for_workers(1)")
        return workers

    def _place(self, data: Data, job: Job) -> "Future[Data] | Data":
        """The data of a job, on the worker that keeps them; data that change from sweep to sweep go with the job."""
        key = job.begin, job.end
        with self._lock:
            if self._y is None:
                self._y = data.y
            if key not in self._kept:
                part = data.take(slice(*key))
                if data.y is not self._y or len(self._kept) >= self.size:
                    return part
                workers = sorted(self._workers())
                worker = workers[len(self._kept) % len(workers)]  # in turn, so that all have something to do
                self._kept[key] = self.client.scatter(part, workers=[worker], hash=False)  # type: ignore[no-untyped-call]
            return self._kept[key]

    def _forget(self, job: Job) -> None:
        with self._lock:
            self._kept.pop((job.begin, job.end), None)
