"""ihmm demo: simulate, fit, and compare with the truth."""

import sys
from pathlib import Path
from typing import Any

import click

import ihmm
from ihmm.cli._errors import Command, input_errors
from ihmm.cli._fit import fit
from ihmm.cli._runs import RUNS, load, next_folder
from ihmm.cli._simulate import ION_CHANNEL, write_simulated

OPTIONS: dict[str, Any] = {"sample_rate": "10kHz", "order_by": "mean", "seed": 1}


@click.command(cls=Command)
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Simulate an ion channel and fit a model to it.

    \b
    Example:
      ihmm demo
    """
    file, run = RUNS / "demo.csv", next_folder("demo")
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in OPTIONS.items())
    click.echo(f"$ ihmm simulate --out {file}")
    with input_errors():
        RUNS.mkdir(exist_ok=True)
        write_simulated(file, ION_CHANNEL, None, 4000, 0)
    click.echo(f"\n$ ihmm fit {file} --column current {options} --out {run}")
    if sys.stderr.isatty():
        click.echo("The first run compiles before it starts.", err=True)
    ctx.invoke(fit, files=(str(file),), column=("current",), out=run, **OPTIONS)
    _compare_with_truth(run)


def _compare_with_truth(run: Path) -> None:
    from ihmm.cli import outputs
    from ihmm.summaries.summary import match

    posterior, truth = load(run), ihmm.datasets.ion_channel()
    found = posterior.summary()
    label = match(found.states, found.n_states, truth.states, len(truth.means)).label
    accuracy = (label[found.states] == truth.states).mean()
    levels = ", ".join(f"{level:g}" for level in truth.means)
    click.echo(f"\nTrue levels: {levels} pA; noise variance {truth.noise**2:g}.")
    click.echo(f"The inferred state is correct at {accuracy:.1%} of the time steps.")
    if not outputs.can_report() and outputs.can_plot():
        click.echo(f"Wrote a figure to {outputs.write_figure(posterior, run)}.")
