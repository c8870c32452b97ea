"""ihmm report: the HTML report of an existing run."""

from pathlib import Path

import click

from ihmm.cli._errors import Command, input_errors
from ihmm.cli._options import run_argument
from ihmm.cli._runs import check_report, load


@click.command(cls=Command)
@run_argument
def report(run: Path) -> None:
    """Write report.html for an existing RUN.

    \b
    Example:
      ihmm report runs/trace-1
    """
    from ihmm import outputs

    with input_errors():
        check_report(True)
        posterior = load(run)
        file = outputs.write_report(posterior, run)
    click.echo(f"Wrote {file}")
