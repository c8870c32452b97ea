"""Instructions that each kernel executes: a measure of speed that a noisy machine does not move.

    python benchmarks/instructions.py            compare with benchmarks/instructions.json; exit 1 above +5 %
    python benchmarks/instructions.py --record   write that file anew

A minute or two, and valgrind must be installed (Debian's package of that name). Write the file anew when a change is
meant to cost more, or when it has made things cheaper and that is to be held; also with another version of Python,
NumPy or Numba, which are named in it, after looking at the ratios of the commit before under both. Commit it with the
change and say why.

The tasks are done in one process under callgrind. It counts what happens inside the function of Python that does
`x @= y`, which nobody uses otherwise; here it does a task. So nothing before or after the task counts. Kernels are
compiled beforehand, for a fixed kind of processor.
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
    parser.add_argument("--record", action="store_true", help="write the counts as those to compare with")
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
        print(f"recorded with {recorded['made with']}, this is {versions}: ratios may come from that")
    if record:
        RECORDED.write_text(json.dumps({"made with": versions, "instructions": counts}, indent=2) + "\n")
        print(f"written to {RECORDED}")
        return 0
    if worse:
        print(f"more than {TOLERANCE - 1:.0%} above what was recorded: {', '.join(worse)}")
    return int(bool(worse))


def count() -> list[int]:
    """Instructions of every task, done once."""
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
        raise RuntimeError(f"callgrind did not say how many instructions there were:\n{dump[-1000:]}")
    return int(found[1])


def work() -> None:
    """Every task, so that callgrind sees it."""
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
    """What is counted: for each name, a function that makes everything ready and returns the task."""
    return {
        "particle Gibbs": partial(step, ihmm.ParticleGibbs(10)),
        "particle Gibbs, N = 50": partial(step, ihmm.ParticleGibbs(50)),
        "particle Gibbs, 64 states": partial(step, ihmm.ParticleGibbs(10), 64),
        "particle Gibbs, prior proposal": partial(step, ihmm.ParticleGibbs(10, proposal="prior")),
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
    path, _ = ihmm.ParticleGibbs(10).resample_states(np.random.default_rng(1), data, model, draw)
    return lambda: how.apply(np.random.default_rng(1), data, model, path, draw.hyper)


def rest() -> Callable[[], object]:
    model, data, draw = settled(8, 1000)
    path, _ = ihmm.ParticleGibbs(10).resample_states(np.random.default_rng(1), data, model, draw)
    return lambda: resample_globals(np.random.default_rng(1), data, model, path, draw.hyper)


def made_with() -> str:
    return f"Python {platform.python_version()}, NumPy {np.__version__}, Numba {numba.__version__}"


if __name__ == "__main__":
    sys.exit(main())
