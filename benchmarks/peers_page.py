"""The page with the comparison: a template, filled with the results of benchmarks/peers.py.

python benchmarks/peers_page.py runs/peers/results.json docs/explanation/benchmarks.md
"""

import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
from convergence import arrival
from runners import common

TEMPLATE = Path(__file__).with_name("peers_page.md")
OURS = "ihmm"
TOLD = {"particles"}  # libraries that must be given the number of states
TITLES = {
    "four_state": "Four states (T15 §4.1)",
    "ten_state": "Ten states (T15 §4.1)",
    "sequences": "Many short sequences of four states",
    "symbols": "Four states observed as symbols",
}
HEAD = (
    "",
    "states found",
    "seconds to correct number",
    "seconds, total",
    "processor seconds",
    "compilation seconds",
    "ms per sweep",
    "held-out loss (nats per sequence)",
    "peak memory (MB)",
)

Run = dict[str, Any]


def write(results: Path, page: Path) -> None:
    """Fill the template with the results of a JSON file."""
    found = json.loads(results.read_text("utf-8"))
    settings = {name.lower(): value for name, value in vars(common).items() if name.isupper()}
    text = TEMPLATE.read_text("utf-8").format(
        machine=found["machine"],
        cores=found["cores"],
        load=number(float(np.median([run["load"] for run in found["runs"]]))),
        comparisons="\n\n".join(comparison(kind, found) for kind in found["data"]),
        imports=imports(found["peers"]),
        absent=absent(found["peers"]),
        first_use=number(found["peers"].get(OURS, {}).get("first_use")),
        **{name: indented(output) for name, output in found["outputs"].items()},
        **settings,
    )
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(text, "utf-8")


def comparison(kind: str, found: dict[str, Any]) -> str:
    """A section: the data, a table of the libraries, and the reasons of those that failed."""
    truth, runs = found["data"][kind], [run for run in found["runs"] if run["data"] == kind]
    sequences, length = truth["train"]
    fresh, fresh_length = truth["held_out"]
    held_out = np.array(truth["log_likelihood"])
    intro = (
        f"Training data: {counted(sequences, length)}. Held out: {counted(fresh, fresh_length)}. Losses are\n"
        f"relative to the true parameters, whose log-likelihood is {number(held_out.mean())} per held-out sequence."
    )
    names = list(dict.fromkeys(run["peer"] for run in runs))
    by_peer = {name: [run for run in runs if run["peer"] == name and not run["failed"]] for name in names}
    figures = {name: figures_of(name, done, truth) for name, done in by_peer.items() if done}
    ours = figures.get(OURS, {})
    rows = [[name, states(by_peer[name]), *cells(name, own, ours)] for name, own in figures.items()]
    failures = sorted({f"* {run['peer']} did not run: `{run['failed']}`" for run in runs if run["failed"]})
    return "\n\n".join([f"### {TITLES[kind]}", intro, table(HEAD, rows), *(["\n".join(failures)] if failures else [])])


def figures_of(name: str, runs: list[Run], truth: dict[str, Any]) -> dict[str, float | None]:
    """Medians over the seeds, None if not available; infinite if the correct number of states was not found."""

    def median(values: Iterable[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return float(np.median(known)) if known else None

    def loss(run: Run) -> float | None:
        return float(np.mean(np.subtract(truth["log_likelihood"], run["held_out"]))) if run["held_out"] else None

    return {
        "arrival": None if name in TOLD else median(seconds_to(run, truth["n_states"]) for run in runs),
        "seconds": median(run["seconds"] for run in runs),
        "processors": median(run["cpu_seconds"] for run in runs),
        "compiling": median(run.get("compile_seconds") for run in runs),
        "sweep": median(1e3 * np.median(np.diff(run["times"])) if "times" in run else None for run in runs),
        "loss": median(loss(run) for run in runs),
        "peak": median(run["peak_mb"] for run in runs),
    }


def seconds_to(run: Run, truth: int) -> float:
    """Chains: until the number of states is first correct. BIC: the total time, if the selected number is correct."""
    if "sizes" not in run:
        return run["seconds"] if run["n_states"] == truth else np.inf
    reached, _ = arrival(np.array(run["sizes"]), truth)
    return run["times"][reached - 1] if reached else np.inf


def cells(name: str, own: dict[str, float | None], ours: dict[str, float | None]) -> list[str]:
    """Each number, with its ratio to ours."""

    def cell(key: str) -> str:
        value, unit = own[key], ours.get(key)
        if key == "arrival" and name in TOLD:
            return "given"
        if value == np.inf:
            return "not reached"
        if name == OURS or value is None or unit is None or not 0 < unit < np.inf:
            return number(value)
        return f"{number(value)} ({number(value / unit)} ×)"

    return [cell(key) for key in own]


def states(runs: list[Run]) -> str:
    return ", ".join(str(run["n_states"]) for run in runs)


def imports(peers: dict[str, Any]) -> str:
    ours = peers.get(OURS, {}).get("import_seconds")
    rows = []
    for name, facts in peers.items():
        if (seconds := facts.get("import_seconds")) is not None:
            ratio = f" ({number(seconds / ours)} ×)" if ours and name != OURS else ""
            rows.append([name, facts["versions"][name], f"`{facts['import']}`", f"{number(seconds)}{ratio}"])
    return table(("", "version", "import statement", "seconds"), rows)


def absent(peers: dict[str, Any]) -> str:
    rows = [[name, f"`{facts['failed']}`"] for name, facts in peers.items() if "failed" in facts]
    return table(("", "reason"), rows) if rows else "All were installed."


# Text


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    lines = [head, ["---"] * len(head), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def counted(sequences: int, length: int) -> str:
    return f"{sequences} sequences of {length} time steps" if sequences > 1 else f"one sequence of {length} time steps"


def number(value: float | None) -> str:
    """Three significant digits, with a typographic minus sign."""
    if value is None:
        return "–"
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2 if abs(value) >= 1 else 3
    return f"{value:.{digits}f}".replace("-", "−")


def indented(output: str) -> str:
    """A Markdown code block."""
    return "\n".join(f"    {line}".rstrip() for line in output.strip("\n").splitlines())


if __name__ == "__main__":
    write(Path(sys.argv[1]), Path(sys.argv[2]))
