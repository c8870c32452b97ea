"""Time of one particle Gibbs sweep, compared with a minimal C++ implementation of the pass if one is available.

    make bench                                     or    python benchmarks/bench.py [--limit PROGRAM]

Everything is timed in turns in the same run, in processor time, and printed as ratios, each with its goal: timings are
noisy on a machine with other load, ratios are less so.
"""

import argparse
import re
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import ihmm
from ihmm.data import Data
from ihmm.gibbs import initial_draw, resample_globals
from ihmm.model import Draw, Model

# Maximum time of the pass relative to the C++ program, by resampling scheme and number of particles
GOALS = {("multinomial", 10): 1.0, ("multinomial", 50): 0.7, ("systematic", 10): 0.3, ("systematic", 50): 0.08}
REST = 0.3  # maximum time of the rest of a sweep relative to its pass
SLOPE = 1.05  # maximum slope of log time in log size
LIMIT = Path(__file__).resolve().parents[2] / "shared" / "limit" / "run"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--limit", default=LIMIT, type=Path, help="the C++ program, called as PROGRAM T V N")
    limit = parser.parse_args().limit
    against_the_limit(limit if limit.exists() else None)
    growth()
    tiny()
    cold_start()


def against_the_limit(program: Path | None) -> None:
    """The pass on data like those of the C++ program: V states 2 apart, noise 0.5, self-transition probability 0.75."""
    print("One pass and one sweep, T = 4000, |V| = 12, medians of 60 in ms; ns per particle and time step of the pass")
    print("                 N    pass     ns   sweep    rest/pass (goal)   C++ pass     ns    pass/C++ (goal)")
    for (scheme, n_particles), goal in GOALS.items():
        model, data, draw = settled(12, 4000)
        lean = [limit_ms(program, 4000, 12, n_particles)] if program else []
        a_pass, a_sweep = time_sweep(model, data, draw, ihmm.ParticleGibbs(n_particles, resampling=scheme), 60)
        lean += [limit_ms(program, 4000, 12, n_particles)] if program else []
        per_step, rest = 1e6 / (4000 * n_particles), a_sweep / a_pass - 1
        row = f"{scheme:<12} {n_particles:5d} {a_pass:7.3f} {a_pass * per_step:6.1f} {a_sweep:7.3f}"
        row += f" {rest:12.2f} (≤ {REST:.2f})"
        if lean:
            best = float(np.mean(lean))
            row += f" {best:10.3f} {best * per_step:6.1f} {a_pass / best:11.2f} (≤ {goal:.2f})"
        print(row)
    if program is None:
        print("      (no C++ program to compare with: pass --limit)")


def growth() -> None:
    """Slopes of log time against log size: 1 is linear."""
    for scheme in ("multinomial", "systematic"):
        print(f"\nGrowth of one {scheme} pass: slope of log time in log size (1 is linear), and ms")

        def a_pass(n_states: int, length: int, n_particles: int, scheme: str = scheme) -> float:
            model, data, draw = settled(n_states, length)
            return time_sweep(model, data, draw, ihmm.ParticleGibbs(n_particles, resampling=scheme), 15)[0]

        report("T", [1000, 4000, 16000, 64000], lambda size, a_pass=a_pass: a_pass(12, size, 10))
        report("N", [10, 100, 1000], lambda size, a_pass=a_pass: a_pass(12, 4000, size))
        report("|V|", [8, 32, 128], lambda size, a_pass=a_pass: a_pass(size, 4000, 10))


def report(name: str, sizes: list[int], measure: Callable[[int], float]) -> None:
    times = [measure(size) for size in sizes]
    slope = np.polyfit(np.log(sizes), np.log(times), 1)[0]
    cells = "  ".join(f"{size}: {ms:.2f}" for size, ms in zip(sizes, times, strict=True))
    print(f"  in {name:<9} slope {slope:4.2f} (goal ≤ {SLOPE})   {cells}   last / first {times[-1] / times[0]:.1f}")


def tiny() -> None:
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1)))
    data = model.observe([-1.0, -1.2, 1.5, 1.3, -0.8])
    draw = initial_draw(np.random.default_rng(0), data, model, np.zeros(5, np.int64))
    print(f"\nA sweep at T = 5: {time_sweep(model, data, draw, ihmm.ParticleGibbs(2), 3000)[1]:.3f} ms")


def cold_start() -> None:
    print("\nIn a new interpreter (processor seconds)")
    a_sweep = "import ihmm; next(ihmm.iterate(ihmm.Model(ihmm.Normal()), [0.0, 1.0], seed=1))"
    for label, code in {"import ihmm": "import ihmm", "first sweep, kernels cached": a_sweep}.items():
        whole, alone = (processor_seconds([sys.executable, "-c", each])[0] for each in (code, "pass"))
        print(f"  {label:<30} {whole - alone:5.2f}")


def settled(n_states: int, length: int) -> tuple[Model, Data, Draw]:
    """A converged chain on well-separated states, all of them explicit and no new ones: |V| = n_states."""
    rng = np.random.default_rng(1)
    jumps = np.where(rng.random(length) < 0.75, 0, rng.integers(1, n_states, length))
    states = np.cumsum(jumps) % n_states
    y = 2.0 * states + 0.5 * rng.standard_normal(length)
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, mean=n_states, scale=n_states), ihmm.HDPPrior(gamma=1e-6))
    data = model.observe(y)
    return model, data, initial_draw(rng, data, model, states)


def time_sweep(model: Model, data: Data, draw: Draw, sampler: ihmm.ParticleGibbs, repeats: int) -> tuple[float, float]:
    """Median milliseconds of Step 1 and of a whole sweep."""
    rng = np.random.default_rng(0)
    times = np.empty((repeats + 2, 2))
    for i in range(len(times)):
        begin = time.process_time()
        path, _ = sampler.resample_states(rng, data, model, draw)
        middle = time.process_time()
        draw, _ = resample_globals(rng, data, model, path, draw.hyper)
        times[i] = middle - begin, time.process_time() - begin
    a_pass, a_sweep = 1e3 * np.median(times[2:], axis=0)
    return float(a_pass), float(a_sweep)


def limit_ms(program: Path, *sizes: int) -> float:
    """What the program prints is wall-clock time; the processor was its own for a part of that only."""
    begin = time.perf_counter()
    seconds, printed = processor_seconds([str(program), *map(str, sizes)])
    share = seconds / (time.perf_counter() - begin)
    found = re.search(r"ms_per_pass=([\d.]+)", printed)
    assert found, printed
    return share * float(found[1])


def processor_seconds(command: list[str]) -> tuple[float, str]:
    """Processor time of a program, and what it prints."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, printed


if __name__ == "__main__":
    main()
