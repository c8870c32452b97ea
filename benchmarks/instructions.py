"""Instructions that one pass and one sweep execute: a measure of speed that a noisy machine does not move.

    python benchmarks/instructions.py            compare with benchmarks/instructions.json; fails above +5 %
    python benchmarks/instructions.py --record   write that file anew

valgrind (Debian's package of that name) counts them. The same work is done a few times and many times, so that what
comes before and after it cancels. Kernels are compiled for a fixed kind of processor, so that counts can be compared.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

RECORDED = Path(__file__).with_name("instructions.json")
PROCESSOR = {"NUMBA_CPU_NAME": "x86-64-v3", "NUMBA_CPU_FEATURES": "+avx2,+fma,+bmi,+bmi2"}
TASKS = {  # T, states, N, emission
    "pass, N = 10": (2000, 8, 10, "pass"),
    "pass, N = 50": (2000, 8, 50, "pass"),
    "pass, 64 states": (2000, 64, 10, "pass"),
    "rest of the sweep": (2000, 8, 10, "rest"),
}
FEW, MANY = 5, 30
TOLERANCE = 1.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write the counts as those to compare with")
    record = parser.parse_args().record
    if shutil.which("valgrind") is None:
        print("valgrind is not installed: apt install valgrind")
        return 2
    counts = {name: instructions(*task) for name, task in TASKS.items()}
    before = json.loads(RECORDED.read_text()) if RECORDED.exists() else {}
    print(f"{'instructions':<20} {'now':>12} {'recorded':>12}   ratio")
    worse = []
    for name, count in counts.items():
        ratio = count / before[name] if name in before else float("nan")
        worse += [name] if ratio > TOLERANCE else []
        print(f"{name:<20} {count:12,d} {before.get(name, 0):12,d}   {ratio:5.3f}")
    if record:
        RECORDED.write_text(json.dumps(counts, indent=2) + "\n")
        print(f"written to {RECORDED}")
        return 0
    if worse:
        print(f"more than {TOLERANCE - 1:.0%} above what was recorded: {', '.join(worse)}")
    return int(bool(worse))


def instructions(*task: int | str) -> int:
    """Instructions of the task done once."""
    few, many = (count(repeats, *task) for repeats in (FEW, MANY))
    return (many - few) // (MANY - FEW)


def count(repeats: int, *task: int | str) -> int:
    """Instructions of a process that does the task so many times; its kernels are compiled before it starts."""
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(tempfile.gettempdir()) / f"ihmm-instructions-{os.getuid()}"
        environment = (
            os.environ | PROCESSOR | {"NUMBA_CACHE_DIR": str(cache), "OMP_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}
        )
        command = [sys.executable, "-c", WORK, str(repeats), *map(str, task)]
        subprocess.run(command, env=environment, check=True, cwd=Path(__file__).parent)
        counter = ["valgrind", "--tool=cachegrind", "--cache-sim=no", f"--cachegrind-out-file={folder}/out"]
        printed = subprocess.run(
            [*counter, *command], env=environment, check=True, capture_output=True, text=True
        ).stderr
    found = re.search(r"I\s+refs:\s+([\d,]+)", printed)
    if found is None:
        raise RuntimeError(f"valgrind did not say how many instructions there were:\n{printed}")
    return int(found[1].replace(",", ""))


WORK = """
import sys
import numpy as np
import ihmm
from bench import settled
from ihmm.gibbs import resample_globals
repeats, length, n_states, n_particles = map(int, sys.argv[1:5])
model, data, draw = settled(n_states, length, n_particles)
rng, sampler = np.random.default_rng(1), ihmm.ParticleGibbs(n_particles)
path, _ = sampler.resample_states(rng, data, model, draw)
resample_globals(rng, data, model, path, draw.hyper)
for _ in range(repeats):
    if sys.argv[5] == "pass":
        sampler.resample_states(rng, data, model, draw)
    else:
        resample_globals(rng, data, model, path, draw.hyper)
"""


if __name__ == "__main__":
    sys.exit(main())
