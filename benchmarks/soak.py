"""A long run: memory must stay flat, and every number finite.

    python benchmarks/soak.py [--steps 300] [--sweeps 50000]
    python benchmarks/soak.py --steps 1000000 --seconds 3600
    python benchmarks/soak.py --page          # write the table and the figure of the page from stored results

Prints the resident memory, the part of it that the allocator has given out and not got back, and the traces now and
then, and exits with an error if resident memory grows after the first tenth of the run by more than a tenth, or a trace
is not finite. Results are stored in runs/soak.json.
"""

import argparse
import ctypes
import json
import math
import resource
import sys
import time
from pathlib import Path
from typing import Any

from convergence import fill_page, markdown

import ihmm
from ihmm.model import model_for

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "runs" / "soak.json"
PAGE = ROOT / "docs" / "explanation" / "calibration.md"
REPORTS = 20
GROWTH = 1.1

Record = dict[str, Any]  # of one run: sweeps, megabytes, those in use and states at every report; peak, seconds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--sweeps", type=int, default=50_000)
    parser.add_argument("--seconds", type=float, default=math.inf)
    parser.add_argument("--page", action="store_true", help="only write the page")
    options = parser.parse_args()
    results = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {}
    if not options.page:
        results[f"{options.steps:,} steps"] = run(options.steps, options.sweeps, options.seconds)
        RESULTS.parent.mkdir(exist_ok=True)
        RESULTS.write_text(json.dumps(results), "utf-8")
    write_page(results)
    grown = [name for name, record in results.items() if record["megabytes"][-1] > GROWTH * settled(record)]
    if grown:
        sys.exit(f"Memory grew by more than a tenth: {', '.join(grown)}")


def run(steps: int, sweeps: int, seconds: float) -> Record:
    """Sweep until the number of sweeps or the time is reached; exit if a number is not finite."""
    y = ihmm.datasets.ion_channel(steps).y
    model = model_for(y[:, None])
    begin = time.monotonic()
    record: Record = {"sweeps": [], "megabytes": [], "in_use": [], "states": []}
    for i, (draw, info) in enumerate(ihmm.iterate(model, y, seed=1, init="auto"), 1):
        done = max(i / sweeps, (time.monotonic() - begin) / seconds)
        if not (math.isfinite(info.log_joint) and all(map(math.isfinite, draw.hyper))):
            sys.exit(f"sweep {i}: log joint {info.log_joint}, {draw.hyper}")
        if done >= len(record["sweeps"]) / REPORTS:
            found = (i, resident_megabytes(), allocated_megabytes(), draw.n_states)
            for values, value in zip(record.values(), found, strict=True):
                values.append(value)
            figures = "{:8d} sweeps  {:7.0f} MB, {:.0f} in use  {:3d} states".format(*found)
            print(f"{figures}  log joint {info.log_joint:.1f}", flush=True)
        if done >= 1:
            break
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    end = record["megabytes"][-1]
    print(f"Memory {settled(record):.0f} MB, then {end:.0f} MB; peak {peak:.0f} MB; every number finite.")
    return record | {"peak": peak, "seconds": time.monotonic() - begin}


def settled(record: Record) -> float:
    """Memory in the first tenth of a run."""
    memory = record["megabytes"]
    return float(max(memory[: 2 + len(memory) // 10]))


def resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 2**20


class Mallinfo2(ctypes.Structure):
    """What the GNU C library says about its allocator."""

    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]


def allocated_megabytes() -> float:
    """Memory that was given out and not freed, in the heap and in maps; what was freed may still be resident."""
    mallinfo2 = ctypes.CDLL("libc.so.6").mallinfo2
    mallinfo2.restype = Mallinfo2
    info = mallinfo2()
    return float(info.uordblks + info.hblkhd) / 2**20


def write_page(results: dict[str, Record]) -> None:
    heads = ("series", "sweeps", "minutes", "memory after a tenth (MB)", "at the end", "peak")
    rows = []
    for name, record in results.items():
        memory = record["megabytes"]
        numbers = (memory[len(memory) // 10], memory[-1], record["peak"])
        rows.append(
            (name, f"{record['sweeps'][-1]:,}", f"{record['seconds'] / 60:.0f}", *(f"{x:.0f}" for x in numbers))
        )
    fill_page("soak", markdown(heads, rows), PAGE)
    draw_memory(results, PAGE.with_suffix("") / "memory.png")


def draw_memory(results: dict[str, Record], file: Path) -> None:
    """Memory by sweep, one panel per run."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    from ihmm.figures.plot_data import PALETTE
    from ihmm.plots._axes import OPEN, WIDTH

    with mpl.rc_context(OPEN | {"font.size": 8.5, "axes.titlesize": 8.5, "axes.titlelocation": "left"}):
        figure = Figure(figsize=(WIDTH, 2.2), layout="constrained")
        for ax, (name, record) in zip(figure.subplots(1, len(results), squeeze=False)[0], results.items(), strict=True):
            ax.plot(record["sweeps"], record["megabytes"], color=PALETTE[0])
            ax.set_ylim(0, 1.2 * max(record["megabytes"]))
            ax.set_title(name)
            ax.set_xlabel("sweep")
            ax.set_ylabel("resident memory (MB)")
        file.parent.mkdir(exist_ok=True)
        figure.savefig(file, dpi=130)


if __name__ == "__main__":
    main()
