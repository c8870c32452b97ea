"""ihmm report: the HTML report of an existing run."""

from pathlib import Path

import click

from ihmm.cli import fit_options, provenance
from ihmm.cli._errors import Command, input_errors
from ihmm.cli._options import name_option, order_by_option, run_argument
from ihmm.cli._runs import check_report, load


@click.command(cls=Command)
@run_argument
@order_by_option
@name_option
def report(run: Path, order_by: str | None, name: tuple[str, ...]) -> None:
    """Write report.html for an existing RUN.

    With other numbers or names of states, all result files are written again.

    \b
    Examples:
      ihmm report runs/trace-1
      ihmm report runs/trace-1 --order-by mean --name 0=closed --name 1=open
    """
    from ihmm.cli import outputs

    with input_errors():
        check_report(True)
        if order_by is not None or name:
            _relabel(run, order_by, fit_options.parse_names(name))
            outputs.write_results(load(run), run, report=False)
        file = outputs.write_report(load(run), run)
    click.echo(f"Wrote {file}")


def _relabel(run: Path, order_by: str | None, names: dict[int, str]) -> None:
    """Record another order or other names of states, if there are such states."""
    load(run).relabel(order_by=order_by, names=names or None)
    provenance.relabel(run, order_by, names)
