"""Long series, many sequences, several threads and processes.

    python benchmarks/scale.py [--steps 1000000]

What is compared is timed in the same run, in turns; draws are checked to be the same whoever made them.
"""

import argparse
import pickle
import resource
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import numpy as np
from bench import report

import ihmm
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Data, Draw, Model, Team, Threads
from ihmm.sticks import open_theta

STATES = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1_000_000)
    steps = parser.parse_args().steps
    long_series(steps)
    growth()
    teams(200, steps // 200)
    messages()


def long_series(steps: int) -> None:
    """One sequence, short and long: the time per step should not rise."""
    print(f"A sweep over one sequence, {STATES} states, N = 10")
    short, long = (prepare([size], STATES) for size in (10_000, steps))
    times = in_turns(3, *(partial(one_sweep, *case) for case in (short, long)))
    for size, seconds in zip((10_000, steps), times, strict=True):
        print(f"  T = {size:>9,d}: {1e3 * seconds:9.2f} ms, {1e9 * seconds / size / 10:5.2f} ns a particle-step")
    ratio = times[1] / (times[0] * steps / 10_000)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"  long / (short × {steps // 10_000}) = {ratio:.2f}; peak memory of this process {peak:.2f} GB")


def growth() -> None:
    """Slopes of log time against log size: 1 is linear."""
    print("\nGrowth of one sweep, ms (slope of log time in log size; 1 is linear)")

    def ms(lengths: list[int], n_states: int = STATES, n_particles: int = 10) -> float:
        case = prepare(lengths, n_states)
        return 1e3 * in_turns(9, partial(one_sweep, *case, n_particles))[0]

    report("T", [4000, 16000, 64000, 256000], lambda size: ms([size]))
    report("N", [10, 40, 160, 640], lambda size: ms([4000], n_particles=size))
    report("K", [8, 16, 32, 64], lambda size: ms([16000], n_states=size))
    report("sequences", [4, 16, 64, 256], lambda size: ms([1000] * size))


def teams(n_sequences: int, length: int) -> None:
    """The same sweeps by one thread, two threads, blocks, and two processes of a Dask cluster."""
    print(f"\nA sweep over {n_sequences} sequences of {length} steps, {STATES} states, N = 10")
    model, data, draw = prepare([length] * n_sequences, STATES)
    with dask_workers(2) as workers:
        members: dict[str, Team] = {"1 thread": Threads(1), "2 threads": Threads(2)} | workers
        cases = [partial(one_sweep, model, data._replace(team=team), draw) for team in members.values()]
        times = in_turns(5, *cases)
        results = [
            sweep(np.random.default_rng(5), data._replace(team=team), model, draw, ihmm.ParticleGibbs())[0]
            for team in members.values()
        ]
    for name, seconds, result in zip(members, times, results, strict=True):
        same = all(np.array_equal(a, b) for a, b in zip(flat(result), flat(results[0]), strict=True))
        print(f"  {name:<20} {1e3 * seconds:8.1f} ms   {times[0] / seconds:4.2f} ×   the same draw: {same}")

    print(f"\nA sweep over one sequence of {length * n_sequences:,d} steps in blocks of 20,000")
    model, data, draw = prepare([length * n_sequences], STATES)
    sampler = ihmm.ParticleGibbs(block_size=20_000)
    cases = [partial(one_sweep, model, data._replace(team=Threads(n)), draw, sampler=sampler) for n in (1, 2)]
    times = in_turns(5, *cases)
    print(f"  1 thread {1e3 * times[0]:.1f} ms, 2 threads {1e3 * times[1]:.1f} ms: {times[0] / times[1]:.2f} ×")


def messages() -> None:
    """What is sent to a worker for its part of a sweep, and what comes back."""
    print("\nBytes between this process and a worker in one sweep, beside a byte a step each way")
    for n_states in (8, 64, 256):
        model, _, draw = prepare([20_000], n_states)
        theta, order = open_theta(draw, model.prior, np.uint64(1), 1e-3)
        print(f"  K = {n_states:3d}: {len(pickle.dumps((theta, draw.phi, order))):,d} out")


@contextmanager
def dask_workers(n: int) -> Iterator[dict[str, Team]]:
    try:
        from dask.distributed import Client, LocalCluster
    except ImportError:
        print('  (no Dask: pip install "ihmm[dask]")')
        yield {}
        return
    with (
        LocalCluster(n_workers=n, threads_per_worker=1, dashboard_address=None) as cluster,
        Client(cluster) as client,
    ):
        yield {f"Dask, {n} processes": ihmm.distributed.Cluster(client)}


def prepare(lengths: list[int], n_states: int) -> tuple[Model, Data, Draw]:
    """A chain at rest on states 2 apart that stay with probability 0.95."""
    rng = np.random.default_rng(1)
    total = sum(lengths)
    states = np.cumsum(np.where(rng.random(total) < 0.95, 0, rng.integers(1, n_states, total))) % n_states
    y = 2.0 * states + 0.5 * rng.standard_normal(total)
    model = Model(ihmm.NormalMean(noise=0.5, mean=n_states, scale=n_states), ihmm.HDPPrior(gamma=1.0))
    data = model.observe(np.split(y, np.cumsum(lengths)[:-1]))
    return model, data, initial_draw(rng, data, model, states)


def one_sweep(
    model: Model, data: Data, draw: Draw, n_particles: int = 10, sampler: ihmm.ParticleGibbs | None = None
) -> None:
    sweep(np.random.default_rng(2), data, model, draw, sampler or ihmm.ParticleGibbs(n_particles))


def in_turns(repeats: int, *tasks: Callable[[], None]) -> list[float]:
    """Median seconds of each task, one after the other and round again."""
    seconds = np.empty((repeats + 1, len(tasks)))
    for i in range(repeats + 1):
        for j, task in enumerate(tasks):
            begin = time.perf_counter()
            task()
            seconds[i, j] = time.perf_counter() - begin
    return [float(value) for value in np.median(seconds[1:], axis=0)]


def flat(draw: Draw) -> list[np.ndarray]:
    return [draw.states, *draw.transitions, *draw.phi, np.array(draw.hyper)]


if __name__ == "__main__":
    main()
