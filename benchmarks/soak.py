"""A long run: memory must stay flat, and every number finite.

    python benchmarks/soak.py [--steps 300] [--sweeps 50000]
    python benchmarks/soak.py --steps 1000000 --seconds 3600

Prints the resident memory and the traces now and then, and exits with an error if memory grows after the first tenth of
the run by more than a tenth, or a trace is not finite.
"""

import argparse
import math
import resource
import sys
import time
from pathlib import Path

import ihmm
from ihmm.model import model_for

REPORTS = 20
GROWTH = 1.1


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--sweeps", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    options = parser.parse_args()

    y = ihmm.datasets.ion_channel(options.steps).y
    model = model_for(y[:, None])
    begin, memory, reported = time.monotonic(), [], 0.0
    for i, (draw, info) in enumerate(ihmm.iterate(model, y, seed=1, init="auto"), 1):
        done = max(i / options.sweeps, (time.monotonic() - begin) / options.seconds)
        if not (math.isfinite(info.log_joint) and all(map(math.isfinite, draw.hyper))):
            sys.exit(f"sweep {i}: log joint {info.log_joint}, {draw.hyper}")
        if done >= reported:
            memory.append(resident_megabytes())
            figures = f"{memory[-1]:7.0f} MB  {draw.n_states:3d} states  log joint {info.log_joint:.1f}"
            print(f"{i:8d} sweeps  {figures}", flush=True)
            reported += 1 / REPORTS
        if done >= 1:
            break
    settled = max(memory[: 2 + len(memory) // 10])
    if memory[-1] > GROWTH * settled:
        sys.exit(f"memory grew from {settled:.0f} to {memory[-1]:.0f} MB")
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"Memory is flat: {settled:.0f} MB, then {memory[-1]:.0f} MB; peak {peak:.0f} MB; every number finite.")


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


if __name__ == "__main__":
    main()
