"""Are the answers right on realistic recordings? The default fit, hmmlearn told the number of levels, and by BIC.

    python benchmarks/realistic.py [--only fret …] [--quick] [--seed 0] [--tuning-only]

For each recording of `ihmm.datasets.PANEL`: levels found, accuracy after matching levels one to one, adjusted Rand
index, verdict and seconds. Variants that are set aside are listed apart. hmmlearn runs in build/peers/hmmlearn, as in
benchmarks/peers.py, or in the environment named by --peer. Lines are also appended to runs/realistic.jsonl.
"""

import argparse
import json
import os
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from peers import PEERS, clean_environment, install, python

import ihmm
from ihmm._typing import IntArray
from ihmm.datasets import PANEL
from ihmm.datasets.panel import Variant

ROOT = Path(__file__).resolve().parents[1]
RUNNER = ROOT / "benchmarks" / "runners" / "realistic_hmmlearn.py"
QUICK = {"draws": 100, "tune": 100, "chains": 2}
HEADER = ("kind", "variant", "true", "ihmm", "acc", "ARI", "verdict", "s", "told acc", "BIC", "BIC acc")
WIDTHS = (13, 16, 5, 5, 6, 6, 14, 6, 9, 4, 8)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=sorted({v.kind for v in PANEL}), help="kinds of recordings")
    parser.add_argument("--quick", action="store_true", help="2 chains of 100 draws, and no hmmlearn")
    parser.add_argument("--seed", type=int, default=0, help="another one gives other recordings of the same variants")
    parser.add_argument(
        "--peer", type=Path, default=ROOT / "build" / "peers" / "hmmlearn", help="environment of hmmlearn"
    )
    parser.add_argument("--tuning-only", action="store_true", help="leave out what is set aside")
    options = parser.parse_args()
    if not options.quick and not Path(python(options.peer)).exists():
        install(PEERS["hmmlearn"], options.peer)
    chosen = [v for v in PANEL if options.only is None or v.kind in options.only]
    for aside in (False, True)[: 1 if options.tuning_only else 2]:
        print("\nSet aside" if aside else "Tuning")
        show(HEADER)
        rows = [measure(v, options) for v in chosen if v.aside == aside]
        right = sum(row["levels"] == row["truth"] for row in rows)
        print(f"number of levels right: {right} of {len(rows)}")


def measure(variant: Variant, options: argparse.Namespace) -> dict[str, Any]:
    recording = variant.recording(options.seed)
    truth = np.concatenate(recording.levels)
    row: dict[str, Any] = {"kind": variant.kind, "variant": variant.name, "truth": recording.n_levels}
    begin = time.perf_counter()
    fitted = ihmm.InfiniteHMM(random_state=0, **(QUICK if options.quick else {})).fit(recording.series)
    row["seconds"] = time.perf_counter() - begin
    found = labels(fitted)
    row |= {"levels": len(np.unique(found)), "accuracy": accuracy(truth, found), "ari": adjusted_rand(truth, found)}
    row["verdict"] = verdict(fitted)
    if not options.quick:
        row |= rival(recording.series, truth, recording.n_levels, options.peer)
    show(cells(row))
    file = ROOT / "runs" / "realistic.jsonl"
    file.parent.mkdir(exist_ok=True)
    with file.open("a", encoding="utf-8") as out:
        out.write(json.dumps(row | {"aside": variant.aside, "seed": options.seed, "time": time.time()}) + "\n")
    return row


def labels(fitted: Any) -> IntArray:
    """The level of every step, or its state where a version knows no levels."""
    states: IntArray = fitted.labels_
    return np.asarray(fitted.level_of_state_)[states] if hasattr(fitted, "level_of_state_") else states


def verdict(fitted: Any) -> str:
    return str(fitted.posterior_.check()).splitlines()[0]


def rival(series: list[Any], truth: IntArray, n_levels: int, environment: Path) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        data, result = os.path.join(folder, "data.npz"), os.path.join(folder, "result.npz")
        np.savez(data, y=np.concatenate(series), lengths=[len(part) for part in series])
        command = [python(environment), str(RUNNER), data, str(n_levels), result]
        subprocess.run(command, check=True, env=clean_environment(), stderr=subprocess.DEVNULL)
        found = np.load(result)
        told, bic = found["told"], found["bic"]
        return {
            "told_accuracy": accuracy(truth, told),
            "told_ari": adjusted_rand(truth, told),
            "bic_levels": len(np.unique(bic)),
            "bic_accuracy": accuracy(truth, bic),
            "hmmlearn_seconds": found["seconds"].tolist(),
        }


def accuracy(truth: IntArray, found: IntArray) -> float:
    """Share of the steps that agree when levels are matched one to one, as well as they can be."""
    from scipy.optimize import linear_sum_assignment

    table = np.zeros((truth.max() + 1, found.max() + 1))
    np.add.at(table, (truth, found), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(truth))


def adjusted_rand(truth: IntArray, found: IntArray) -> float:
    from sklearn.metrics import adjusted_rand_score

    return float(adjusted_rand_score(truth, found))


def cells(row: dict[str, Any]) -> tuple[str, ...]:
    def figure(name: str) -> str:
        return f"{row[name]:.3f}" if name in row else ""

    return (
        row["kind"],
        row["variant"],
        str(row["truth"]),
        str(row["levels"]),
        figure("accuracy"),
        figure("ari"),
        row["verdict"][:14],
        f"{row['seconds']:.0f}",
        figure("told_accuracy"),
        str(row.get("bic_levels", "")),
        figure("bic_accuracy"),
    )


def show(values: tuple[str, ...]) -> None:
    print("  ".join(value.ljust(width) for value, width in zip(values, WIDTHS, strict=True)), flush=True)


if __name__ == "__main__":
    main()
