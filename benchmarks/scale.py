"""Long series, many sequences, several threads and processes.

    python benchmarks/scale.py [--steps 1000000]

Alternatives are timed in turns in the same run and printed with their goals. Draws are checked to be identical on all
workers.
"""

import argparse
import pickle
import resource
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

import numpy as np
from bench import report

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.data import Data
from ihmm.distributed import resample_segments
from ihmm.emissions import Emission
from ihmm.gibbs import initial_draw, resample_globals, sweep
from ihmm.model import Draw, Model
from ihmm.trajectory import PIECE_STEPS, combine, piece_borders, piece_statistics
from ihmm.workers import LocalPath, Segment, StoredPath, Threads, Update, Workers

STATES = 8
SPEED_UP, SPEED_UP_OF_PROCESSES = 1.7, 1.5  # minimum, of two threads and of two Dask processes
NETWORK = 1e9  # bytes per second


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    steps = parser.parse_args().steps
    long_series(steps)
    growth()
    teams(200, steps // 200)
    messages()
    plan()


def long_series(steps: int) -> None:
    """One sequence, short and long: the time per time step should not increase."""
    print(f"A sweep over one sequence, {STATES} states, N = 50")
    short, long = (prepare([size], STATES) for size in (10_000, steps))
    times = in_turns(3, *(partial(one_sweep, *case) for case in (short, long)), clock=time.process_time)
    for size, seconds in zip((10_000, steps), times, strict=True):
        print(f"  T = {size:>9,d}: {1e3 * seconds:9.2f} ms, {1e9 * seconds / size:6.1f} ns per time step")
    ratio = times[1] / (times[0] * steps / 10_000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(
        f"  long / (short × {steps // 10_000}) = {ratio:.2f} (goal ≤ 1.15); peak memory of this process {peak:.2f} GB"
    )


def growth() -> None:
    """Slopes of log time against log size: 1 is linear."""
    print("\nGrowth of one sweep: slope of log time in log size (1 is linear), and ms")

    def ms(lengths: list[int], n_states: int = STATES, n_particles: int = 50) -> float:
        case = prepare(lengths, n_states)
        return 1e3 * in_turns(9, partial(one_sweep, *case, n_particles), clock=time.process_time)[0]

    report("T", [4000, 16000, 64000, 256000], lambda size: ms([size]))
    report("N", [10, 40, 160, 640], lambda size: ms([4000], n_particles=size))
    report("K", [8, 16, 32, 64], lambda size: ms([16000], n_states=size))
    report("sequences", [4, 16, 64, 256], lambda size: ms([1000] * size))


def teams(n_sequences: int, length: int) -> None:
    """The same chain on one thread, two threads, and two processes of a Dask cluster; then blocks."""
    print(f"\nA sweep over {n_sequences} sequences of {length} steps, {STATES} states, N = 50")
    problem = prepare([length] * n_sequences, STATES)
    compare(problem, {"2 threads": (Threads(2), False)}, SPEED_UP)
    with dask_workers(2) as client:
        if client is not None:
            one, two = (ihmm.distributed.Cluster(client, n) for n in (1, 2))
            name = "Dask, 2 processes"
            members = {"Dask, 1 process": (one, False), name: (two, False), f"{name}, with fetch": (two, True)}
            compare(problem, members, SPEED_UP_OF_PROCESSES)
    at_best = ceiling([length] * (n_sequences // 2))
    print(f"  Upper bound on this machine: two independent processes, each with half of the sequences, {at_best:.2f} ×")

    print(f"\nA sweep over one sequence of {length * n_sequences:,d} steps in blocks of 20,000")
    model, data, draw = prepare([length * n_sequences], STATES)
    sampler = ihmm.ParticleGibbs(block_size=20_000)
    cases = [partial(one_sweep, model, data._replace(workers=Threads(n)), draw, sampler=sampler) for n in (1, 2)]
    print_speed_ups(["1 thread", "2 threads"], each_turn(25, *cases), SPEED_UP)


def compare(problem: tuple[Model, Data, Draw], members: dict[str, tuple[Workers, bool]], goal: float) -> None:
    """The same chain on one thread and on others, in turns; the flag says whether the trajectory is fetched."""
    model, data, draw = problem
    members = {"1 thread": (Threads(1), False)} | members
    chains = [chain(model, data._replace(workers=team), draw, look) for team, look in members.values()]
    print_speed_ups(list(members), each_turn(25, *(partial(next, each) for each in chains)), goal)
    first, *others = (flat(next(each)) for each in chains)
    same = all(np.array_equal(a, b) for other in others for a, b in zip(first, other, strict=True))
    print(f"  All draws are identical: {same}")


def print_speed_ups(names: list[str], seconds: FloatArray, goal: float) -> None:
    """Speed-up over the first: for the median, and for the fastest fifth of the turns, when the machine has no other
    load."""
    rows = np.median(seconds, axis=0), np.sort(seconds, axis=0)[: len(seconds) // 5].mean(axis=0)
    for name, typical, fast in zip(names, *rows, strict=True):
        ratios = f"{rows[0][0] / typical:.2f} ×; fastest fifth {1e3 * fast:6.1f} ms, {rows[1][0] / fast:.2f} ×"
        print(f"  {name:<32} median {1e3 * typical:6.1f} ms, {ratios}" + (f" (goal ≥ {goal})" * ("2" in name)))


def chain(model: Model, data: Data, draw: Draw, look: bool) -> Iterator[Draw]:
    """Sweep after sweep; `look` fetches the trajectory each time, as for a stored draw."""
    rng = np.random.default_rng(5)
    while True:
        draw, _ = sweep(rng, data, model, draw, ihmm.ParticleGibbs())
        if look:
            assert len(draw.states)
        yield draw


def ceiling(lengths: list[int]) -> float:
    """Speed-up of two independent processes over one."""
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        turns = [[max(pool.map(seconds_of_a_sweep, [lengths] * n)) for n in (1, 2)] for _ in range(3)]
    alone, together = np.median(turns, axis=0)
    return float(2 * alone / together)


def seconds_of_a_sweep(lengths: list[int]) -> float:
    return in_turns(15, partial(one_sweep, *prepare(lengths, STATES)))[0]


def messages() -> None:
    """Bytes sent to a worker for its part of a sweep, and received from it."""
    print("\nBytes per worker and sweep: parameters sent; counts and the statistics of each piece received")
    for n_columns, n_states in [(1, 8), (1, 64), (1, 256), (3, 64), (10, 64)]:
        sent = Traffic.of(*prepare([200 * n_states], n_states, n_columns))
        name = f"K = {n_states:3d}, " + ("Gaussian means" if n_columns == 1 else f"Gaussian rows of {n_columns}")
        print(f"  {name:<28} {sent.out:9,d} sent, {sent.counts:9,d} + {sent.statistics:7,d} per piece received")


def plan(steps: float = 1e9, workers: int = 100, n_states: int = 20) -> None:
    """Predicted time of a sweep on a cluster, from measurements on this machine."""
    model, data, draw = prepare([10_000] * 40, n_states)
    n_pieces = len(piece_borders(data.offsets)) - 1
    sampler, traffic = ihmm.ParticleGibbs(), Traffic()
    path, _ = sampler.resample_states(np.random.default_rng(2), data._replace(workers=traffic), model, draw)
    part = piece_statistics(data, path.states, n_states)
    tasks: list[Callable[[], object]] = [
        partial(sampler.resample_states, np.random.default_rng(2), data._replace(workers=traffic), model, draw),
        partial(combine, data.conjugate, [part] * 40),
        partial(resample_globals, np.random.default_rng(2), data, model, path, draw.hyper),
    ]
    a_pass, gathering, rest = in_turns(9, *tasks, clock=time.process_time)
    a, b = a_pass / len(data.y), gathering / (40 * n_pieces)
    print(f"\nPrediction: {steps:.0e} time steps, {workers} workers, {n_states} states, {NETWORK:.0e} bytes per second")
    print(f"  a = {1e9 * a:.0f} ns per time step for the pass and its statistics, on one thread")
    print(f"  b = {1e6 * b:.1f} µs per piece to combine the statistics, and {1e3 * rest:.2f} ms for the conditionals")
    pieces = steps / PIECE_STEPS
    parts = {
        "pass": steps * a / workers,
        "combining statistics": pieces * b,
        "conditionals": rest,
        "transfer of statistics": (pieces * traffic.statistics + workers * traffic.counts) / NETWORK,
        "transfer of parameters": workers * traffic.out / NETWORK,
    }
    print("  " + ", ".join(f"{name} {seconds:.3g} s" for name, seconds in parts.items()), end="")
    print(f": {sum(parts.values()):.2f} s per sweep, {steps * a + rest:.0f} s on one thread")
    print(f"  Fetching the trajectory of a stored draw: {steps / NETWORK:.1f} s")


class Traffic:
    """One local worker that counts the bytes that would be sent: out, and back for the counts and for each piece."""

    threads, keep_paths = 1, True
    out, counts, statistics = 0, 0, 0

    @classmethod
    def of(cls, model: Model, data: Data, draw: Draw) -> "Traffic":
        team = cls()
        one_sweep(model, data._replace(workers=team), draw)
        return team

    def segments(self, offsets: IntArray) -> list[Segment]:
        return Threads().segments(offsets)

    def map(self, function: Callable[..., Any], data: Data, tasks: Sequence[Any]) -> list[Any]:
        return Threads().map(function, data, tasks)

    def resample(
        self, update: Update[Any], data: Data, path: StoredPath, segments: Sequence[Segment]
    ) -> tuple[StoredPath, list[Any]]:
        states, summaries = resample_segments(update, data, path.fetch(), segments, 0, 1)
        counts, statistics = summaries[0].statistics
        self.out, self.counts = len(pickle.dumps(update)), len(pickle.dumps(counts))
        self.statistics = len(pickle.dumps(statistics)) // len(statistics)
        return LocalPath(states), summaries


@contextmanager
def dask_workers(n: int) -> Iterator[Any]:
    """A Dask client with n worker processes, or None if Dask is not installed."""
    try:
        import dask
        from dask.distributed import Client, LocalCluster
    except ImportError:
        print('  (Dask is not installed: pip install "ihmm[dask]")')
        yield None
        return
    # Dask's own monitoring takes 7% of two cores
    quiet = {"distributed.worker.profile.enabled": False, "distributed.admin.tick.interval": "1s"}
    with (
        dask.config.set(quiet),
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster, direct_to_workers=True) as client,
    ):
        yield client


def prepare(lengths: list[int], n_states: int, n_columns: int = 1) -> tuple[Model, Data, Draw]:
    """A converged chain on states 2 apart with self-transition probability 0.95."""
    rng = np.random.default_rng(1)
    total = sum(lengths)
    states = np.cumsum(np.where(rng.random(total) < 0.95, 0, rng.integers(1, n_states, total))) % n_states
    y = 2.0 * states + 0.5 * rng.standard_normal(total)
    emission: Emission = ihmm.NormalMean(noise=0.5, mean=n_states, scale=n_states)
    if n_columns > 1:
        y = y[:, None] + rng.standard_normal((total, n_columns))
        emission = ihmm.MultivariateNormal(n_columns, mean=n_states, strength=1 / n_states**2)
    model = Model(emission, ihmm.HDPPrior(gamma=1.0))
    data = model.observe(np.split(y, np.cumsum(lengths)[:-1]))
    return model, data, initial_draw(rng, data, model, states)


def one_sweep(
    model: Model, data: Data, draw: Draw, n_particles: int = 50, sampler: ihmm.ParticleGibbs | None = None
) -> None:
    sweep(np.random.default_rng(2), data, model, draw, sampler or ihmm.ParticleGibbs(n_particles))


def in_turns(repeats: int, *tasks: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> list[float]:
    """Median seconds of each task, run in turns. For one thread, processor time is the steadier clock on a machine with
    other load."""
    return [float(value) for value in np.median(each_turn(repeats, *tasks, clock=clock), axis=0)]


def each_turn(repeats: int, *tasks: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> FloatArray:
    """The seconds of every turn, (repeats, tasks), after a first turn that is not counted."""
    seconds = np.empty((repeats + 1, len(tasks)))
    for i in range(repeats + 1):
        for j, task in enumerate(tasks):
            begin = clock()
            task()
            seconds[i, j] = clock() - begin
    return seconds[1:]


def flat(draw: Draw) -> list[np.ndarray]:
    return [draw.states, *draw.transitions, *draw.phi, np.array(draw.hyper)]


if __name__ == "__main__":
    main()
