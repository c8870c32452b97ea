"""Number of instructions executed by each kernel: a measure of speed that does not depend on the load of the machine.

    python benchmarks/instructions.py            compare with benchmarks/instructions.json; exit 1 above +5%
    python benchmarks/instructions.py --record   overwrite that file

This takes a minute or two and needs valgrind (the Debian package of that name). Overwrite the file when a change
intentionally costs more, or to lock in an improvement. Also overwrite it for another version of Python, NumPy or
Numba, which are recorded in it, after comparing the ratios of the previous commit under both versions. Commit the file
with the change and give the reason.

The tasks run in one process under callgrind, which counts the instructions inside the C function that implements
`x @= y`. Nothing else uses that operator; here it runs a task, so that nothing before or after the task is counted.
Kernels are compiled beforehand for a fixed target processor.
"""

import argparse
import gc
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numba
import numpy as np
from bench import settled

import ihmm
from ihmm.gibbs import initial_draw, resample_globals
from ihmm.moves import GreedySplitMerge, Move
from ihmm.samplers import Sampler

HERE = Path(__file__).parent
RECORDED = HERE / "instructions.json"
PROCESSOR = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2"}
ALIKE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
COUNTED = "PyNumber_InPlaceMatrixMultiply"
TOLERANCE = 1.05
REPEATS = 3


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="store the counts as the new reference")
    record = parser.parse_args().record
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: apt install valgrind")
        return 2
    counts, versions = dict(zip(tasks(), count(), strict=True)), made_with()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"made with": versions, "instructions": {}}
    before = recorded["instructions"]
    print(f"{'instructions':<36} {'now':>12} {'recorded':>12}   ratio (goal ≤ {TOLERANCE:.2f})")
    worse = []
    for name, number in counts.items():
        ratio = number / before[name] if name in before else float("nan")
        worse += [name] if ratio > TOLERANCE else []
        print(f"{name:<36} {number:12,d} {before.get(name, 0):12,d}   {ratio:5.3f}")
    if recorded["made with"] != versions:
        print(f"recorded with {recorded['made with']}, now {versions}: the ratios may be due to the versions")
    if record:
        RECORDED.write_text(json.dumps({"made with": versions, "instructions": counts}, indent=2) + "\n")
        print(f"written to {RECORDED}")
        return 0
    if worse:
        print(f"more than {TOLERANCE - 1:.0%} above the recorded count: {', '.join(worse)}")
    return int(bool(worse))


def count() -> list[int]:
    """Instructions per run of every task."""
    cache = Path(tempfile.gettempdir()) / f"ihmm-instructions-{os.getuid()}"
    environment = os.environ | PROCESSOR | ALIKE | {"NUMBA_CACHE_DIR": str(cache)}
    command = [sys.executable, "-c", "import instructions; instructions.work()"]
    subprocess.run(command, env=environment, check=True, cwd=HERE)  # compiles
    with tempfile.TemporaryDirectory() as folder:
        callgrind = [
            "valgrind",
            "--quiet",
            "--tool=callgrind",
            f"--toggle-collect={COUNTED}",
            f"--dump-after={COUNTED}",
        ]
        into = f"--callgrind-out-file={folder}/out"
        subprocess.run([*callgrind, into, *command], env=environment, check=True, cwd=HERE)
        dumps = [Path(folder) / f"out.{i + 1}" for i in range(len(tasks()))]
        return [total(dump.read_text()) // REPEATS for dump in dumps]


def total(dump: str) -> int:
    found = re.search(r"^(?:totals|summary): (\d+)", dump, re.MULTILINE)
    if found is None:
        raise RuntimeError(f"no instruction count in the output of callgrind:\n{dump[-1000:]}")
    return int(found[1])


def work() -> None:
    """Run every task inside the counted function."""
    ready = [make() for make in tasks().values()]
    for task in ready:
        task()
    gc.collect()
    gc.disable()
    counted = Counted()
    for task in ready:
        counted @= task


class Counted:
    def __imatmul__(self, task: Callable[[], object]) -> "Counted":
        for _ in range(REPEATS):
            task()
        return self


def tasks() -> dict[str, Callable[[], Callable[[], object]]]:
    """The tasks by name: each function prepares the data and returns the task."""
    return {
        "particle Gibbs": partial(step, ihmm.ParticleGibbs()),
        "particle Gibbs, 64 states": partial(step, ihmm.ParticleGibbs(), 64),
        "particle Gibbs, prior proposal": partial(step, ihmm.ParticleGibbs(proposal="prior")),
        "particle Gibbs, multinomial": partial(step, ihmm.ParticleGibbs(10, resampling="multinomial")),
        "beam": partial(step, ihmm.Beam()),
        "blocked": partial(step, ihmm.Blocked(), prior=ihmm.FinitePrior(12)),
        "direct assignment": partial(step, ihmm.DirectAssignment()),
        "split–merge": partial(move, ihmm.SplitMerge(8)),
        "pairs of states": partial(move, ihmm.PairGibbs()),
        "greedy split–merge": partial(move, GreedySplitMerge()),
        "tables, hyperparameters, β, π, φ": rest,
    }


def step(sampler: Sampler, n_states: int = 8, prior: ihmm.FinitePrior | None = None) -> Callable[[], object]:
    """Step 1."""
    model, data, draw = settled(n_states, 1000)
    if prior is not None:
        model = ihmm.Model(model.emission, prior)
        draw = initial_draw(np.random.default_rng(1), data, model, draw.states)
    return lambda: sampler.resample_states(np.random.default_rng(1), data, model, draw)


def move(how: Move) -> Callable[[], object]:
    model, data, draw = settled(8, 1000)
    path, _ = ihmm.ParticleGibbs().resample_states(np.random.default_rng(1), data, model, draw)
    return lambda: how.apply(np.random.default_rng(1), data, model, path, draw.hyper)


def rest() -> Callable[[], object]:
    model, data, draw = settled(8, 1000)
    path, _ = ihmm.ParticleGibbs().resample_states(np.random.default_rng(1), data, model, draw)
    return lambda: resample_globals(np.random.default_rng(1), data, model, path, draw.hyper)


def made_with() -> str:
    return f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"


if __name__ == "__main__":
    sys.exit(main())
