"""Independent jobs on several processes; each result is stored in a file, and stored results are reused."""

import os
import signal
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

Result = dict[str, Any]  # arrays by name
Results = dict[str, Result]  # by the name of the job
ASKED = "asked"  # field of a file that identifies the computation


class Job(NamedTuple):
    """`function(**arguments)` returns arrays by name, which are stored in the file `name`.npz."""

    name: str
    function: Callable[..., Result]
    arguments: dict[str, Any]
    alone: bool = False  # it measures time, so nothing else may run at the same time

    @property
    def asked(self) -> str:
        return f"{self.function.__module__}.{self.function.__name__} {sorted(self.arguments.items())!r}"


def run(jobs: Iterable[Job], folder: Path, cores: int, console: Console) -> Results:
    """Results of all jobs; stored results are loaded, the others computed."""
    by_name = {job.name: job for job in jobs}
    found = {name: load(folder, job) for name, job in by_name.items()}
    missing = [job for name, job in by_name.items() if found[name] is None]
    if len(missing) < len(by_name):
        console.print(
            f"{len(by_name) - len(missing)} of {len(by_name)} jobs are done already; see {folder}",
            soft_wrap=True,
        )
    with _progress(missing, console) as done:
        for job, result in _compute([job for job in missing if not job.alone], cores):
            save(folder, job, result)
            found[job.name] = result
            done(job)
        for job in missing:
            if job.alone:
                found[job.name] = job.function(**job.arguments)
                save(folder, job, found[job.name])
                done(job)
    return {name: result for name, result in found.items() if result is not None}


def load(folder: Path, job: Job) -> Result | None:
    """The stored result of a job, if its file is intact and from the same computation."""
    try:
        with _file(folder, job).open("rb") as stream, np.load(stream) as arrays:
            if str(arrays[ASKED]) != job.asked:
                return None
            return {name: arrays[name] for name in arrays.files if name != ASKED}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None


def save(folder: Path, job: Job, result: Result) -> None:
    """Write to a temporary name first, so that an existing file is always complete."""
    file = _file(folder, job)
    file.parent.mkdir(parents=True, exist_ok=True)
    unfinished = file.with_name(f"{file.stem}.{os.getpid()}.unfinished")
    with unfinished.open("wb") as stream:
        np.savez_compressed(stream, **{ASKED: np.array(job.asked)}, **result)
    unfinished.replace(file)


def _file(folder: Path, job: Job) -> Path:
    return folder / f"{job.name}.npz"


def _compute(jobs: list[Job], cores: int) -> Iterator[tuple[Job, Result]]:
    """Jobs with their results, in order of completion."""
    if cores == 1 or len(jobs) < 2:
        yield from ((job, job.function(**job.arguments)) for job in jobs)
        return
    with ProcessPoolExecutor(cores, get_context("spawn"), initializer=_leave_interrupts_to_the_parent) as pool:
        waiting = {pool.submit(job.function, **job.arguments): job for job in jobs}
        try:
            while waiting:
                for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                    yield waiting.pop(future), future.result()
        finally:
            for future in waiting:
                future.cancel()
            if waiting:
                _stop(pool)


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _stop(pool: ProcessPoolExecutor) -> None:
    """Do not wait for unfinished jobs; they are computed again in the next run."""
    for process in list((pool._processes or {}).values()):
        process.terminate()


@contextmanager
def _progress(jobs: list[Job], console: Console) -> Iterator[Callable[[Job], None]]:
    """A bar for every folder of jobs; without a terminal, an occasional line."""
    folders = [job.name.split("/")[0] for job in jobs]
    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        bars = {folder: progress.add_task(folder, total=folders.count(folder), start=False) for folder in folders}
        begin, finished, last = time.monotonic(), 0, 0.0

        def done(job: Job) -> None:
            nonlocal finished, last
            finished += 1
            bar = bars[job.name.split("/")[0]]
            progress.start_task(bar)
            progress.advance(bar)
            elapsed = time.monotonic() - begin
            if not console.is_terminal and (elapsed > last + 20 or finished == len(jobs)):
                last = elapsed
                console.print(
                    f"{finished:5d} of {len(jobs)} jobs after {elapsed:5.0f} s, last: {job.name}",
                    soft_wrap=True,
                )

        yield done
