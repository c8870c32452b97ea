"""How long a new installation takes to answer: import, first fit and first prediction, with nothing compiled.

    python benchmarks/startup.py [--against SRC] [--only default rows …]

Each case runs in a new process with an empty cache. Processor seconds are those of this process and of the one that
helps to compile; they depend little on the load of the machine, wall-clock seconds do. `--against` is the `src` folder
of another version, which is measured in turns with this one.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = ("default", "symbols", "counts", "student-t", "rows of 3", "Independent")
GOALS = "goals on two idle processors: first default fit ≤ 18 s of processor time and 12 s of wall clock"
HERE = Path(__file__).resolve()
COLUMNS = (
    ("import", "import_processor", "import_wall"),
    ("first fit", "fit_processor", "fit_wall"),
    ("first predict", "predict_processor", "predict_wall"),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--against", type=Path, help="the src folder of another version")
    parser.add_argument("--only", nargs="+", choices=CASES, default=CASES, metavar="CASE")
    parser.add_argument("--case", choices=CASES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        print(json.dumps(measure(options.case)))
        return
    versions = {"now": HERE.parents[1] / "src"} | ({"before": options.against} if options.against else {})
    print(f"Processor and wall-clock seconds ({GOALS})\n")
    heads = "".join(f"{name:>18}" for name, *_ in COLUMNS)
    print(f"{'case':<14}{'version':<8}{heads}{'functions':>11}{'signatures':>12}{'peak MB':>9}")
    for case in options.only:
        for version, source in versions.items():
            result = in_new_process(case, source)
            times = "".join(f"{result[cpu]:>11.1f}{result[wall]:>7.1f}" for _, cpu, wall in COLUMNS)
            counts = f"{result['functions']:>11.0f}{result['signatures']:>12.0f}{result['peak']:>9.0f}"
            print(f"{case:<14}{version:<8}{times}{counts}", flush=True)


def in_new_process(case: str, source: Path) -> dict[str, float]:
    with tempfile.TemporaryDirectory() as cache:
        environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPATH": str(source)}
        command = [sys.executable, str(HERE), "--case", case]
        printed = subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout
    result: dict[str, float] = json.loads(printed.splitlines()[-1])
    return result


def measure(case: str) -> dict[str, float]:
    """Run one case in this process."""
    clock = Clock()
    from numba.core import event

    class Compiled(event.Listener):  # type: ignore[misc]
        def __init__(self) -> None:
            self.names: list[str] = []

        def on_start(self, event: event.Event) -> None:
            function = event.data["dispatcher"].py_func
            self.names.append(f"{function.__module__}.{function.__qualname__}")

        def on_end(self, event: event.Event) -> None:
            pass

    compiled = Compiled()
    event.register("numba:compile", compiled)
    import numpy as np

    import ihmm

    rng = np.random.default_rng(0)
    states = np.repeat(rng.integers(0, 3, 20), 20)
    noise = rng.standard_normal((len(states), 3))
    ihmm.InfiniteHMM  # noqa: B018 — imported on first use
    imported = clock.seconds()

    emission = {"student-t": "student-t", "Independent": ihmm.Independent(ihmm.Normal(), ihmm.Normal())}.get(
        case, "auto"
    )
    y = {
        "symbols": 2 * states + rng.integers(0, 2, len(states)),
        "counts": rng.poisson(5 + 15 * states),
        "rows of 3": 3 * states[:, None] + noise,
        "Independent": 3 * states[:, None] + noise[:, :2],
    }.get(case, 3 * states + noise[:, 0])
    estimator = ihmm.InfiniteHMM(emission, draws=20, tune=20, chains=2, random_state=0).fit(y)
    fitted = clock.seconds()
    estimator.predict(y)
    predicted = clock.seconds()
    return {
        "import_processor": imported[0],
        "import_wall": imported[1],
        "fit_processor": fitted[0] - imported[0],
        "fit_wall": fitted[1] - imported[1],
        "predict_processor": predicted[0] - fitted[0],
        "predict_wall": predicted[1] - fitted[1],
        "functions": len(set(compiled.names)),
        "signatures": len(compiled.names),
        "peak": peak_megabytes(),
    }


class Clock:
    """Processor and wall-clock seconds since it was made; processor time of child processes counts when they end."""

    def __init__(self) -> None:
        self._begin = self._now()

    def seconds(self) -> tuple[float, float]:
        now = self._now()
        return now[0] - self._begin[0], now[1] - self._begin[1]

    @staticmethod
    def _now() -> tuple[float, float]:
        times = os.times()
        return times.user + times.system + times.children_user + times.children_system, times.elapsed


def peak_megabytes() -> float:
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
