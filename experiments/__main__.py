"""The command line of the experiments: `python -m experiments list | run NAME … | all`."""

import argparse
import os
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from rich.console import Console

from experiments import alice, complexity, exactness, four_state, ion_channel, page, proposals, style, ten_state
from experiments.jobs import run
from experiments.settings import QUICK, Settings

ROOT = Path(__file__).parents[1]
EXPERIMENTS = {
    module.__name__.rpartition(".")[2]: module
    for module in (four_state, ten_state, proposals, exactness, ion_channel, alice, complexity)
}


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    console = Console()
    if options.command == "list":
        for name, module in EXPERIMENTS.items():
            console.print(f"  {name:<12} {module.TITLE}", highlight=False, soft_wrap=True)
        return 0
    base = QUICK if options.quick else Settings()
    settings = replace(base, recording=options.recording, text=options.text)
    out = options.out or ROOT / "runs" / ("paper-quick" if options.quick else "paper")
    names = list(EXPERIMENTS) if options.command == "all" else options.names
    try:
        numbers = compute(names, settings, out, options.cores, console)
    except KeyboardInterrupt:
        console.print(
            f"Interrupted. Finished jobs are stored in {out}; run the same command again to continue.", soft_wrap=True
        )
        return 130
    except (ImportError, OSError, ValueError) as error:
        Console(stderr=True).print(f"[bold red]error[/] {error}", highlight=False)
        return 2
    if options.command == "all":
        publish(
            numbers, out, options.docs or (out / "docs" if options.quick else ROOT / "docs" / "explanation"), console
        )
    return 0


def compute(names: Sequence[str], settings: Settings, out: Path, cores: int, console: Console) -> dict[str, object]:
    """Run the jobs of some experiments, draw their figures, and return their numbers."""
    begin = time.monotonic()
    jobs = [job for name in names for job in EXPERIMENTS[name].jobs(settings)]
    results = run(jobs, out, cores, console)
    numbers: dict[str, object] = {}
    for name in names:
        module = EXPERIMENTS[name]
        numbers[name] = module.numbers(results, settings)
        with style.in_style():
            for title, figure in module.figures(results, settings).items():
                style.save(figure, out / "figures" / f"{title}.png")
        page.save_numbers(numbers[name], out / f"{name}.json")
    numbers["run"] = {"machine": page.machine(), "cores": cores}
    console.print(
        f"{len(names)} experiments in {time.monotonic() - begin:.0f} s; numbers and figures are in {out}",
        soft_wrap=True,
    )
    return numbers


def publish(numbers: dict[str, object], out: Path, docs: Path, console: Console) -> None:
    """Write the page and its figures to the documentation."""
    page.save_numbers(numbers, out / "numbers.json")
    page.write(out / "numbers.json", docs / "paper.md")
    folder = docs / "paper"
    folder.mkdir(exist_ok=True)
    for figure in (out / "figures").glob("*.png"):
        (folder / figure.name).write_bytes(figure.read_bytes())
    console.print(f"Wrote {docs / 'paper.md'}", soft_wrap=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m experiments", description="Every experiment of the paper (T15 §4)."
    )
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("list", help="list the experiments")
    some = commands.add_parser("run", help="run some experiments")
    some.add_argument("names", nargs="+", choices=EXPERIMENTS, metavar="NAME")
    every = commands.add_parser("all", help="run all experiments and write the page with the results")
    every.add_argument("--docs", type=Path, help="folder of the page (docs/explanation)")
    for command in (some, every):
        command.add_argument("--quick", action="store_true", help="a small version of everything, as a smoke test")
        command.add_argument("--out", type=Path, help="folder of the results (runs/paper)")
        command.add_argument("--cores", type=int, default=min(2, os.cpu_count() or 1), help="number of processes (2)")
        command.add_argument("--recording", type=Path, help="your own recording at 1 MHz: CSV, TSV, NPY or Parquet")
        command.add_argument("--text", type=Path, help="the text of Alice; by default that of the package arpabo")
    return parser


if __name__ == "__main__":
    sys.exit(main())
