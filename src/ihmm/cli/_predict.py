"""ihmm predict: states of new data."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from ihmm import tables
from ihmm.cli import fit_options, provenance
from ihmm.cli._errors import Command, input_errors
from ihmm.cli._options import column_option, csv_option, delimiter_option, files_argument, id_option, run_argument
from ihmm.cli._runs import check_writable, load, warnings_on_stderr
from ihmm.series.clock import make_clock


@click.command(cls=Command)
@run_argument
@files_argument
@column_option
@id_option
@delimiter_option
@click.option("--causal", is_flag=True, help="Predict each row from itself and earlier rows only.")
@csv_option
def predict(
    run: Path,
    files: tuple[str, ...],
    column: tuple[str, ...],
    id: str | None,
    delimiter: str | None,
    causal: bool,
    out: Path | None,
) -> None:
    """Predict the states of new data with the model of a RUN.

    FILEs are read with the column, id and delimiter of the run unless others are given; columns with the names of the
    fit are used in its order. The output has the most probable level and state of each row, the probability of each
    state, and the probability p_new of a state not in the run. The held-out log-likelihood measures how well the model
    predicts the data.

    \b
    Examples:
      ihmm predict runs/trace-1 tomorrow.csv --out states.csv
      ihmm predict runs/trace-1 tomorrow.csv --causal > states.csv
    """
    from ihmm.cli import outputs

    with input_errors(), warnings_on_stderr():
        posterior = load(run)
        fitted = fit_options.read_run(run)
        if not files:
            raise ValueError("no input file; name at least one file to predict")
        recorded = _columns_of(run)
        table = _read(files, column or recorded or fitted.get("column", ()), id, delimiter, fitted)
        if table.columns != recorded and sorted(table.columns) == sorted(recorded):
            table = _read(files, recorded, id, delimiter, fitted)
        posterior.observe(table.series)
        check_writable(out)
        outputs.write_predictions(sys.stdout if out is None else out, posterior, table, causal=causal)
    held_out = posterior.log_likelihood(table.series).sum()
    per_row = held_out / len(table.values)
    click.echo(f"Held-out log-likelihood {held_out:.2f}, {per_row:.4f} per row", err=out is None)
    if out is not None:
        click.echo(f"Wrote {out}")


def _read(
    files: Sequence[str], columns: Sequence[str], id: str | None, delimiter: str | None, fitted: dict[str, Any]
) -> tables.Table:
    """Files as those of the fit were read, unless options say otherwise."""
    return tables.read(
        files,
        columns,
        by=id or fitted.get("id"),
        time=fitted.get("time"),
        clock=make_clock(fitted.get("dt"), fitted.get("sample_rate")),
        layout=tables.Layout(
            delimiter or fitted.get("delimiter"),
            fitted.get("decimal"),
            fitted.get("skip_rows", 0),
            tuple(fitted.get("na", ())),
        ),
        symbols=fitted.get("symbols", ()),
        shortest=1,
    )


def _columns_of(run: Path) -> list[str]:
    """The columns that a run was fitted to, by name: a pattern may find them in another order in another file."""
    names: list[str] = provenance.read(run).get("columns", [])
    return names if len(names) > 1 else []
