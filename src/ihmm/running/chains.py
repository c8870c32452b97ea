"""Running the chains of a run, whatever its backend: threads, interruption, errors."""

import warnings
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock

import numpy as np

from ihmm.data import Data
from ihmm.posterior import Posterior
from ihmm.running.compiling import Rehearsal, second_compiler
from ihmm.running.one_chain import ChainTask, ExecutorChain, LocalChain, RunningChain
from ihmm.running.progress import Progress, progress_bars
from ihmm.running.start import start_of_chain, streams
from ihmm.store import Backend, SweepRange
from ihmm.workers import Threads, Workers

POLL = 0.1  # seconds between updates of the progress bars
MAX_AUTO_DRAWS, MAX_AUTO_STATES = 4000, 500_000_000  # draws per chain, and states of all draws, for draws="auto"
STEPS_PER_THREAD = 4000  # with fewer time steps a thread costs more than it saves


class SamplingStopped(UserWarning):
    """Sampling was interrupted, and the draws so far are returned."""


@dataclass(frozen=True)
class Resources:
    """Where the work is done; no result depends on it."""

    cores: int
    workers: Workers | None = None
    executor: Executor | None = None

    def share(self, data: Data, chains: int) -> Data:
        """Data with the workers of one chain: those given, or its share of the threads if there is enough to do."""
        threads = max(1, min(self.cores // chains, len(data.y) // STEPS_PER_THREAD))
        return data._replace(workers=self.workers or Threads(threads))


def run_chains(backend: Backend, resources: Resources, progress: Progress, stacklevel: int = 3) -> Posterior:
    """Make the sweeps that a run lacks, and return all its draws.

    Warnings point at the caller of the caller by default: the code that calls `sample` or `resume`.
    """
    chains = _start(backend, backend.missing(), resources)
    n_threads = min(resources.cores, len(chains)) if resources.executor is None else len(chains)
    try:
        if chains:
            with _shared_compilation(backend, resources):
                _advance_all(chains, n_threads, progress)
    except KeyboardInterrupt:  # the second one: threads are still in the middle of a sweep
        for chain in chains:
            chain.abandon()
        raise
    finally:
        for chain in chains:
            chain.close()
    contents = backend.contents()
    _report_interruption(contents.sizes, backend.settings.draws, backend.resume_hint, stacklevel)
    return Posterior.of(contents)


def run_to_convergence(backend: Backend, resources: Resources, progress: Progress) -> Posterior:
    """Run the chains, and double the number of draws until they have converged or a limit is reached.

    A model that does not fit is not run for longer than twice the first number: no number of draws would mend it. An
    interruption ends it, too.
    """
    first = backend.settings.draws
    posterior = run_chains(backend, resources, progress, stacklevel=4)
    while _may_double(backend) and _is_complete(posterior, backend):
        check = posterior.check()
        if check.converged or (check.contradicted and backend.settings.draws > first):
            break
        backend.extend(2 * backend.settings.draws)
        posterior = run_chains(backend, resources, progress, stacklevel=4)
    return posterior


def _may_double(backend: Backend) -> bool:
    draws = 2 * backend.settings.draws
    states = draws * backend.settings.chains * len(backend.data.y)
    return draws <= MAX_AUTO_DRAWS and states <= MAX_AUTO_STATES


def _is_complete(posterior: Posterior, backend: Backend) -> bool:
    return [len(draws) for draws in posterior.draws] == [backend.settings.draws] * backend.settings.chains


def _start(backend: Backend, ranges: list[SweepRange], resources: Resources) -> list[RunningChain]:
    settings = backend.settings
    data = resources.share(backend.data, settings.chains)
    init = settings.init if settings.init is not None else backend.trajectory
    assert init is not None  # one of them is given
    stream = streams(settings.seed or 0, settings.chains)
    chains: list[RunningChain] = []
    for sweep_range in ranges:
        c, writer = sweep_range.chain, backend.writer(sweep_range)
        task = ChainTask(data, settings, start_of_chain(init, c), c, stream[c], sweep_range.stop, sweep_range.is_repair)
        if resources.executor is None:
            chains.append(LocalChain(task, sweep_range.before, writer))
        else:
            chains.append(ExecutorChain(task, sweep_range.before, writer, resources.executor))
    return chains


@contextmanager
def _shared_compilation(backend: Backend, resources: Resources) -> Iterator[None]:
    settings = backend.settings
    if settings.sampler is not None and resources.executor is None and resources.workers is None:
        task = Rehearsal(settings.model, np.asarray(backend.data.y), settings.sampler, tuple(settings.moves))
        second_compiler.start(task, resources.cores)
    try:
        yield
    finally:
        second_compiler.stop()


def _advance_all(chains: list[RunningChain], n_threads: int, progress: Progress) -> None:
    """Advance the chains until all have finished, one has failed, or Ctrl-C."""
    waiting, lock, stop = list(chains), Lock(), Event()
    workers: list[Future[None]] = []
    with ThreadPoolExecutor(n_threads, "ihmm") as pool:
        try:
            workers += [pool.submit(_work, waiting, lock, stop) for _ in range(n_threads)]
            with progress_bars(chains, progress) as refresh:
                running = True
                while running:
                    done, others = wait(workers, POLL, FIRST_EXCEPTION)
                    running = bool(others) and not any(worker.exception() for worker in done)
                    refresh()
        except KeyboardInterrupt:
            pass  # the draws made so far are returned
        finally:
            stop.set()
    for worker in workers:
        error = worker.exception()
        if error is not None and not isinstance(error, KeyboardInterrupt):
            raise error


def _work(waiting: list[RunningChain], lock: Lock, stop: Event) -> None:
    """Always advance the chain that is furthest behind, so that an interruption leaves all at about the same length."""
    while not stop.is_set():
        with lock:
            if not waiting:
                return
            chain = min(waiting, key=lambda chain: chain.done)
            waiting.remove(chain)
        chain.advance()
        if not chain.finished:
            with lock:
                waiting.append(chain)


def _report_interruption(sizes: list[int], draws: int, hint: str, stacklevel: int) -> None:
    """Warn if chains have fewer draws than requested; raise if none has any."""
    if max(sizes) == 0:
        raise KeyboardInterrupt(f"stopped before the first draw{hint}")
    if min(sizes) < draws:
        each = ", ".join(f"chain {c} has {n}" for c, n in enumerate(sizes))
        dropped = "; chains without a draw are left out" if min(sizes) == 0 else ""
        warnings.warn(
            f"sampling was stopped before all {draws} draws were made: {each}. `states` and `traces` hold the first "
            f"{min(n for n in sizes if n)} draws of each chain, `draws[c]` holds all draws of chain c{dropped}{hint}",
            SamplingStopped,
            stacklevel + 1,
        )
