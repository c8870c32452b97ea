"""ihmm fit, ihmm resume: sample, write the results and print a summary."""

import json
import secrets
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import ihmm
from ihmm import _checks
from ihmm.cli import fit_options, provenance
from ihmm.cli._errors import Command, input_errors, resumable
from ihmm.cli._options import (
    NOT_NEGATIVE,
    PATH,
    POSITIVE,
    column_option,
    cores_option,
    decimal_option,
    delimiter_option,
    dt_option,
    files_argument,
    id_option,
    json_option,
    na_option,
    name_option,
    order_by_option,
    quiet_option,
    report_option,
    run_argument,
    sample_rate_option,
    skip_rows_option,
    time_option,
)
from ihmm.cli._runs import check_report, count_rows, next_folder, warnings_on_stderr, wrapped
from ihmm.cli.fit_options import FitOptions

if TYPE_CHECKING:
    from ihmm.model import Model
    from ihmm.posterior import Posterior
    from ihmm.tables import Table


class _NumberOrAuto(click.ParamType[int | str]):
    """A number of something, or "auto"."""

    name = "n|auto"

    def __init__(self, counted: str) -> None:
        self.counted = counted

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto":
            return "auto"
        try:
            if int(value) >= 1:
                return int(value)
        except ValueError:
            pass
        self.fail(f"expected a positive number of {self.counted} or auto, got {value!r}", param, ctx)


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Use the values of the file as defaults of the other options."""
    if path is not None:
        with input_errors():
            ctx.default_map = fit_options.read_toml(path)


@click.command(cls=Command)
@files_argument
@column_option
@id_option
@time_option
@dt_option
@sample_rate_option
@click.option(
    "--emission",
    type=click.Choice(_checks.EMISSIONS),
    default="auto",
    show_default=True,
    help="Distribution of the observations within a state; auto chooses one from the data.",
)
@click.option(
    "--order",
    type=NOT_NEGATIVE,
    help="Order of an autoregressive emission (default 1) or of the noise of levels (default 0).",
)
@click.option("--sticky/--no-sticky", default=True, show_default=True, help="Model a bias towards self-transitions.")
@click.option(
    "--duration",
    type=click.Choice(_checks.DURATIONS),
    help="Distribution of dwell times; by default as auto chooses, or as in a hidden Markov model.",
)
@click.option("--min-dwell", type=POSITIVE, help="Least number of steps that a state lasts; auto chooses it.")
@click.option("--left-censored", is_flag=True, help="The first visit of a series may have begun before it.")
@click.option(
    "--resolution",
    type=float,
    help="Means that differ by less than this are on one level, in the units of the data; auto chooses it.",
)
@click.option("--seed", type=NOT_NEGATIVE, help="Random seed; chosen at random and stored by default.")
@click.option("--chains", type=POSITIVE, default=4, show_default=True, help="Number of independent chains.")
@click.option(
    "--draws",
    type=_NumberOrAuto("draws"),
    default="auto",
    show_default=True,
    help="Draws to keep per chain; auto adds draws until the chains have converged, from 500 up to 4000.",
)
@click.option("--tune", type=NOT_NEGATIVE, default=300, show_default=True, help="Tuning sweeps to discard per chain.")
@click.option("--thin", type=POSITIVE, default=1, show_default=True, help="Sweeps per draw.")
@click.option(
    "--init",
    type=_NumberOrAuto("states"),
    default="auto",
    show_default=True,
    help="Initial number of states, assigned at random; auto finds a start from the data.",
)
@click.option(
    "--sampler",
    type=click.Choice(fit_options.SAMPLERS),
    default=fit_options.SAMPLERS[0],
    show_default=True,
    help="Sampler of the state sequence.",
)
@click.option(
    "--particles",
    type=click.IntRange(min=2),
    help="N of particle-gibbs, the most states kept at a time step; 50 by default.",
)
@delimiter_option
@decimal_option
@skip_rows_option
@na_option
@order_by_option
@name_option
@click.option("--symbols", multiple=True, hidden=True)
@cores_option
@click.option("--out", type=PATH, help="Folder of the run; runs/NAME-1 by default.")
@click.option(
    "--config",
    type=PATH,
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="TOML file with these options, such as RUN/settings.toml; the command line takes precedence.",
)
@report_option
@json_option
@quiet_option
def fit(
    out: Path | None,
    cores: int | None,
    report: bool | None,
    as_json: bool,
    quiet: bool,
    seed: int | None,
    **others: Any,
) -> None:
    """Fit a model to FILEs and print a summary.

    Reads CSV, TSV, NPY and Parquet. Several files, or the values of an --id column, are separate series of one model.
    Empty cells and NA are missing values. A column of text is a series of symbols. With the time of the rows, dwell
    times and rates are in seconds.

    The run folder contains the draws, settings.toml to repeat the run, provenance.json, summary.json, states.csv,
    rates.csv, segmentation.csv with the time, value and state of every row, and report.html.

    \b
    Examples:
      ihmm fit trace.csv --column current
      ihmm fit trace.csv --column current --emission normal --seed 3 --draws 2000 --out runs/x
      ihmm fit trace.csv --column current --dt 0.1ms
      ihmm fit cells.csv --column current --id cell --time "time (ms)"
      ihmm fit dna.txt --emission categorical
      ihmm fit --config runs/x/settings.toml --out runs/again
    """
    with input_errors():
        options = FitOptions(seed=secrets.randbelow(2**32) if seed is None else seed, **others)
        report = check_report(report)
        run = _new_folder(out, options.files[0])
        _checks.utf8(str(run))
        with warnings_on_stderr():
            table = options.read_table()
        for note in table.notes:
            click.echo(f"Note: {note}", err=True)
        if not quiet and sys.stderr.isatty():
            click.echo(f"Pilot fit of {count_rows(len(table.values))} …", err=True)
        choice = options.make_choice(table, cores, progress=not quiet)
        model = choice.model
        options.make_sampler().check(model, model.observe(table.series))
        run.mkdir(parents=True, exist_ok=True)
        fit_options.write_toml(run, options, table)
        names = fit_options.parse_names(options.name)
        provenance.write(run, options.files, table, options.seed, choice, options.order_by, names)
    if not quiet and sys.stderr.isatty():
        click.echo(wrapped(_description(options, table, model, run), sys.stderr), err=True)
    from ihmm.running.start import dispersed  # slow to import

    data = choice.without_baseline(table.sequences)
    init = dispersed(choice.init, data, model) if options.init == "auto" else options.init
    with resumable(run):
        posterior = _sample_to_the_end(
            lambda: ihmm.sample(
                model,
                data,
                sampler=options.make_sampler(),
                draws=options.draws,
                tune=options.tune,
                chains=options.chains,
                seed=options.seed,
                init=init,
                thin=options.thin,
                resolution=choice.resolution,
                cores=cores,
                progress=not quiet,
                store=run,
            )
        )
        _write_and_print(posterior, run, report=report, as_json=as_json)


@click.command(cls=Command)
@run_argument
@click.option("--draws", type=POSITIVE, help="Total number of draws per chain, to extend a run.")
@cores_option
@report_option
@json_option
@quiet_option
def resume(run: Path, draws: int | None, cores: int | None, report: bool | None, as_json: bool, quiet: bool) -> None:
    """Continue an interrupted RUN, or add draws to a finished one.

    The draws are the same as those of an uninterrupted run.

    \b
    Examples:
      ihmm resume runs/trace-1
      ihmm resume runs/trace-1 --draws 5000
    """
    with resumable(run):
        with input_errors():
            report = check_report(report)
            provenance.read(run)  # both are checked before the sweeps are made
            fit_options.read_run(run)
            posterior = _sample_to_the_end(lambda: ihmm.resume(run, draws=draws, cores=cores, progress=not quiet))
            provenance.add_resumption(run)
            if draws is not None:
                fit_options.update_draws(run, draws)
        _write_and_print(posterior, run, report=report, as_json=as_json)


def _new_folder(out: Path | None, file: str) -> Path:
    run = out if out is not None else next_folder(Path(file).stem)
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise FileExistsError(f"{run} already exists; continue it with 'ihmm resume {run}' or choose another --out")
    return run


def _description(options: FitOptions, table: "Table", model: "Model", run: Path) -> str:
    draws = "up to 4000" if options.draws == "auto" else options.draws
    series = f" in {len(table.series)} series" if len(table.series) > 1 else ""
    every = f", one every {table.clock.text(1)}" if table.clock is not None else ""
    return (
        f"{count_rows(len(table.values))} of {', '.join(table.columns)}{series}{every}; "
        f"{type(model.emission).__name__} emission; {options.chains} chains of {options.tune} tuning sweeps "
        f"and {draws} draws, seed {options.seed}; run {run}"
    )


def _sample_to_the_end(sample: "Callable[[], Posterior]") -> "Posterior":
    """Raise KeyboardInterrupt if sampling is interrupted, where the library would return the draws so far."""
    from ihmm.running.chains import SamplingStopped

    with warnings_on_stderr():
        warnings.simplefilter("error", SamplingStopped)
        try:
            return sample()
        except SamplingStopped:
            raise KeyboardInterrupt from None


def _write_and_print(posterior: "Posterior", run: Path, *, report: bool, as_json: bool) -> None:
    from ihmm.cli import outputs

    record = provenance.read(run)
    with input_errors():
        posterior = provenance.label(posterior, record)
    summary = outputs.write_results(posterior, run, report=report)
    if as_json:
        click.echo(json.dumps({"run": str(run), **summary}))
        return
    click.echo(outputs.describe(posterior, run))
    if record.get("reasons"):
        click.echo(wrapped("\nWhy this model:\n  " + "\n  ".join(record["reasons"]), sys.stdout))
    click.echo(wrapped(f"\n{posterior.check().text(str(run))}", sys.stdout))
    files = ", ".join(name for name in outputs.FILES if (run / name).exists())
    click.echo(wrapped(f"\nFiles in {run}: {files}.", sys.stdout))
    if (run / outputs.REPORT).exists():
        click.echo(f"Open {run / outputs.REPORT} in a browser to see the report.")
