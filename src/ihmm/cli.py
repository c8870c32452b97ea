"""The command line: parse, call, print. No algorithm here."""

import json
import secrets
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

import ihmm
from ihmm import _checks, tables
from ihmm import settings as recipe

if TYPE_CHECKING:
    from ihmm._typing import Array
    from ihmm.emissions import Emission
    from ihmm.model import Model
    from ihmm.posterior import Posterior

RUNS = Path("runs")
DEMO_SEED, DEMO_DRAWS, DEMO_TUNE = 1, 1000, 300


# Errors


class _Failure(click.ClickException):
    """One line on stderr: our fault."""


class _Mistake(_Failure):
    """The user's fault."""

    exit_code = 2


class _Stopped(_Failure):
    exit_code = 130


@contextmanager
def _blaming_the_user() -> Iterator[None]:
    """What goes wrong in here is due to what was asked for."""
    try:
        yield
    except BrokenPipeError:
        raise  # the reader of our output has seen enough
    except OSError as error:
        raise _Mistake(f"{error.filename}: {error.strerror}" if error.filename else str(error)) from error
    except (ValueError, TypeError, ImportError, RuntimeError) as error:
        raise _Mistake(str(error)) from error


@contextmanager
def _resumable(run: Path) -> Iterator[None]:
    try:
        yield
    except KeyboardInterrupt as error:
        raise _Stopped(f"stopped; what was drawn is kept, and 'ihmm resume {run}' goes on") from error


class _Command(click.Command):
    """A command whose own failures are one line, with the traceback for those who ask."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        debug = click.Option(["--debug"], is_flag=True, expose_value=False, help="Show the traceback of a failure.")
        debug.callback = _remember_debug
        self.params.append(debug)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise
        except KeyboardInterrupt as error:
            raise _Stopped("stopped") from error
        except Exception as error:
            if ctx.meta.get("debug"):
                click.echo(traceback.format_exc(), err=True)
            said = f"{type(error).__name__}: {error}".splitlines()[0]
            advice = "this is a fault of ihmm; --debug shows where, please report it"
            raise _Failure(f"{said} ({advice})") from error


def _remember_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    ctx.meta["debug"] = value


class _Group(click.Group):
    command_class = _Command


# Parameters


class _Init(click.ParamType[int | str]):
    """A number of states, or "auto"."""

    name = "n|auto"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int | str:
        if value == "auto":
            return "auto"
        try:
            if int(value) >= 1:
                return int(value)
        except ValueError:
            pass
        self.fail(f"{value!r} is neither a number of states nor auto", param, ctx)


def _read_config(ctx: click.Context, _: click.Parameter, path: Path | None) -> None:
    """Options that are not on the command line take the file's values."""
    if path is not None:
        with _blaming_the_user():
            ctx.default_map = recipe.read(path)


POSITIVE = click.IntRange(min=1)
RUN = click.argument("run", type=click.Path(path_type=Path))
FILES = click.argument("files", nargs=-1, metavar="FILE...")
COLUMN = click.option(
    "--column", multiple=True, metavar="NAME", help="Column to read, by name, or by number from 1 without a header."
)
ID = click.option("--id", metavar="NAME", help="Column that says to which series a row belongs.")
DELIMITER = click.option("--delimiter", metavar="CHAR", help="What separates cells: a character, tab or space.")
SIMULATED = ("ion-channel", "normal", "categorical", "poisson", "bernoulli", "multinomial", "student-t", "von-mises")
CORES = click.option("--cores", type=POSITIVE, help="Chains running at the same time; all processors by default.")
REPORT = click.option("--report/--no-report", default=None, help="Write report.html; by default if it can be done.")
JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON object and nothing else.")
QUIET = click.option("--quiet", is_flag=True, help="No progress.")


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(ihmm.__version__, message="ihmm %(version)s")
def cli() -> None:
    """Hidden Markov models that find out how many states they have.

    \b
    ihmm fit trace.csv --column current    fit a model, print what it found
    ihmm demo                              see how that looks
    ihmm fit --help                        all that can be asked for
    """


# Commands


@cli.command()
@FILES
@COLUMN
@ID
@click.option(
    "--emission",
    type=click.Choice(_checks.EMISSIONS),
    default="auto",
    show_default=True,
    help="What the values of a state are like; auto looks at the data.",
)
@click.option("--order", type=POSITIVE, help="Of autoregressive: steps back a value depends on; 1 by default.")
@click.option("--sticky/--no-sticky", default=True, show_default=True, help="States may prefer to stay.")
@click.option("--seed", type=click.IntRange(min=0), help="Governs everything random; chosen and kept if not given.")
@click.option("--chains", type=POSITIVE, default=4, show_default=True, help="Chains, to be compared with each other.")
@click.option("--draws", type=POSITIVE, default=1000, show_default=True, help="Draws kept of each chain.")
@click.option("--tune", type=click.IntRange(min=0), default=500, show_default=True, help="Sweeps dropped before them.")
@click.option("--thin", type=POSITIVE, default=1, show_default=True, help="Sweeps from one draw to the next.")
@click.option(
    "--init", type=_Init(), default="auto", show_default=True, help="Start from so many random states, or from a guess."
)
@click.option(
    "--sampler",
    type=click.Choice(recipe.SAMPLERS),
    default=recipe.SAMPLERS[0],
    show_default=True,
    help="How paths are drawn.",
)
@click.option("--particles", type=click.IntRange(min=2), help="Of particle-gibbs; 10 by default.")
@DELIMITER
@click.option("--symbols", multiple=True, hidden=True)
@CORES
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the run; runs/NAME-1 by default.")
@click.option(
    "--config",
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_read_config,
    help="TOML file of these options, such as RUN/settings.toml; those on the command line win.",
)
@REPORT
@JSON
@QUIET
def fit(
    out: Path | None,
    cores: int | None,
    report: bool | None,
    as_json: bool,
    quiet: bool,
    seed: int | None,
    **asked: Any,
) -> None:
    """Fit a model to FILEs and print what it found.

    CSV, TSV, NPY and Parquet are read. Several files, or an --id column, are several series of one model. Empty cells
    and NA are missing values. A column of text is taken for symbols.

    The run is kept in a folder: the draws, settings.toml that repeats it, provenance.json, summary.json, states.csv,
    segmentation.csv with the state of every row, and report.html.

    \b
    Examples:
      ihmm fit trace.csv --column current
      ihmm fit trace.csv --column current --emission normal --seed 3 --draws 2000 --out runs/x
      ihmm fit cells.csv --column current --id cell
      ihmm fit dna.txt --emission categorical
      ihmm fit --config runs/x/settings.toml --out runs/again
    """
    with _blaming_the_user():
        settings = recipe.Settings(seed=secrets.randbelow(2**32) if seed is None else seed, **asked)
        report = _can_report(report)
        run = _new_folder(out, settings.files[0])
        table = settings.table()
        model = settings.model(table)
        settings.make_sampler().check(model, model.observe(table.series))
        run.mkdir(parents=True, exist_ok=True)
        recipe.write(run, settings, table)
    _say(quiet, _about(settings, table, model, run))
    with _resumable(run):
        posterior = _draw(
            lambda: ihmm.sample(
                model,
                table.series,
                sampler=settings.make_sampler(),
                draws=settings.draws,
                tune=settings.tune,
                chains=settings.chains,
                seed=settings.seed,
                init=settings.init,
                thin=settings.thin,
                cores=cores,
                progress=not quiet,
                store=run,
            )
        )
        _answer(posterior, run, report=report, as_json=as_json)


@cli.command()
@RUN
@click.option("--draws", type=POSITIVE, help="Draws of each chain in the end, to add some to a finished run.")
@CORES
@REPORT
@JSON
@QUIET
def resume(run: Path, draws: int | None, cores: int | None, report: bool | None, as_json: bool, quiet: bool) -> None:
    """Go on with a RUN that was stopped, or add draws to it.

    The draws are those it would have had without a stop.

    \b
    Examples:
      ihmm resume runs/trace-1
      ihmm resume runs/trace-1 --draws 5000
    """
    with _resumable(run):
        with _blaming_the_user():
            report = _can_report(report)
            posterior = _draw(lambda: ihmm.resume(run, draws=draws, cores=cores, progress=not quiet))
            recipe.note_resumption(run, draws)
        _answer(posterior, run, report=report, as_json=as_json)


@cli.command()
@RUN
@FILES
@COLUMN
@ID
@DELIMITER
@click.option("--causal", is_flag=True, help="Judge a row by itself and those before it, not by the future.")
@click.option("--out", type=click.Path(path_type=Path), help="CSV file to write; printed if not given.")
def predict(
    run: Path,
    files: tuple[str, ...],
    column: tuple[str, ...],
    id: str | None,
    delimiter: str | None,
    causal: bool,
    out: Path | None,
) -> None:
    """States of new data by the model of a RUN.

    FILEs are read as those of the run were. The result has, for every row, the most probable state, the probability of
    each, and that of a state never met. The held-out log-likelihood says how well the model expects such data.

    \b
    Examples:
      ihmm predict runs/trace-1 tomorrow.csv --out states.csv
      ihmm predict runs/trace-1 tomorrow.csv --causal > states.csv
    """
    from ihmm import answers

    with _blaming_the_user():
        posterior = _load(run)
        was = recipe.read(run / recipe.SETTINGS) if (run / recipe.SETTINGS).exists() else {}
        if not files:
            raise ValueError("give a file to predict")
        table = tables.read(
            files,
            column or was.get("column", ()),
            by=id or was.get("id"),
            delimiter=delimiter or was.get("delimiter"),
            symbols=was.get("symbols", ()),
            shortest=1,
        )
        posterior.model.observe(table.series, shortest=1)
        if out is not None:
            out.touch()
    probabilities = posterior.filter(table.series) if causal else posterior.smooth(table.series)
    names = [f"p{k}" for k in range(probabilities.shape[1] - 1)] + ["p_new"]
    best = {"state": probabilities[:, :-1].argmax(axis=1)}
    lengths = [len(part) for part in table.series]
    columns = best | dict(zip(names, probabilities.T, strict=True))
    answers.write_steps(sys.stdout if out is None else out, table.names, lengths, columns)
    held_out = posterior.log_likelihood(table.series).sum()
    click.echo(f"Held-out log-likelihood {held_out:.2f}, {held_out / sum(lengths):.4f} a row", err=out is None)
    if out is not None:
        click.echo(f"Written: {out}")


@cli.command()
@RUN
def report(run: Path) -> None:
    """Write RUN/report.html again.

    \b
    Example:
      ihmm report runs/trace-1
    """
    from ihmm import answers

    with _blaming_the_user():
        _can_report(True)
        posterior = _load(run)
    click.echo(f"Written: {answers.write_report(posterior, run)}")


@cli.command()
@click.option("--states", type=POSITIVE, help="At most so many; as many as turn up if not given.")
@click.option("--length", type=POSITIVE, default=4000, show_default=True, help="Rows.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--emission",
    type=click.Choice(SIMULATED),
    default="ion-channel",
    show_default=True,
    help="A recording of an ion channel with four levels, or a series drawn from the model.",
)
@click.option("--out", type=click.Path(path_type=Path), help="CSV file to write; printed if not given.")
def simulate(states: int | None, length: int, seed: int, emission: str, out: Path | None) -> None:
    """Make a series to try things on.

    It is a CSV of values, and the state behind each.

    \b
    Examples:
      ihmm simulate --out trace.csv
      ihmm simulate --emission poisson --states 3 --length 1000 --seed 7 > counts.csv
    """
    with _blaming_the_user():
        if emission == "ion-channel" and states is not None:
            raise ValueError("the ion channel has four levels; --states goes with --emission normal, for instance")
        _write_simulated(out, emission, states, length, seed)


@cli.command()
@RUN
def info(run: Path) -> None:
    """What is in a RUN: data, model, progress, versions.

    A run may be looked at while it goes on.

    \b
    Example:
      ihmm info runs/trace-1
    """
    from ihmm import store

    with _blaming_the_user():
        contents = store.load(run, None)
        origin = recipe.read_provenance(run)
    settings, lengths = contents.settings, contents.data.lengths
    progress = contents.unfinished or f"finished: {settings.chains} chains of {settings.draws} draws"
    of = f" of {', '.join(origin['columns'])}" if origin else ""
    lines = {
        "progress": progress + (", and going on now" if store.busy(run) else ""),
        "data": f"{_rows(int(lengths.sum()))}{of}" + (f" in {len(lengths)} series" if len(lengths) > 1 else ""),
        "files": ", ".join(file["path"] for file in origin.get("files", ())),
        "emission": settings.model.emission,
        "prior": settings.model.prior,
        "sampler": settings.sampler,
        "schedule": f"{settings.tune} sweeps of tuning, then a draw every {settings.thin}, init {settings.init}",
        "seed": settings.seed,
        "begun": origin.get("date"),
        "command": origin.get("command"),
        "versions": ", ".join(f"{name} {number}" for name, number in origin.get("versions", {}).items()),
    }
    click.echo(f"{run}")
    for name, value in lines.items():
        if value not in (None, ""):
            click.echo(f"  {name:<10}{value}")


@cli.command()
@click.pass_context
def demo(ctx: click.Context) -> None:
    """Simulate an ion channel, fit it, compare with the truth.

    \b
    Example:
      ihmm demo
    """
    file, run = RUNS / "demo.csv", _free_folder("demo")
    options: dict[str, Any] = {"seed": DEMO_SEED, "draws": DEMO_DRAWS, "tune": DEMO_TUNE}
    written_out = " ".join(f"--{name} {value}" for name, value in options.items())
    click.echo(f"$ ihmm simulate --out {file}")
    with _blaming_the_user():
        RUNS.mkdir(exist_ok=True)
        _write_simulated(file, "ion-channel", None, 4000, 0)
    click.echo(f"\n$ ihmm fit {file} --column current {written_out} --out {run}")
    _say(False, "A first run compiles before it starts.")
    ctx.invoke(fit, files=(str(file),), column=("current",), out=run, **options)
    _compare_with_truth(run)


@cli.command()
def warmup() -> None:
    """Compile everything now, so that no run has to wait.

    \b
    Example:
      ihmm warmup
    """
    begin = time.perf_counter()
    y, states = ihmm.datasets.ion_channel(length=60)[:2]
    for values in (y[:, None], states[:, None], 20 * states[:, None], y.reshape(-1, 2)):
        _compile_for(values, "auto")
    _compile_for(y.reshape(-1, 2), ihmm.Independent(ihmm.Normal(), ihmm.Normal()))
    click.echo(f"Compiled in {time.perf_counter() - begin:.1f} s; what is compiled is kept on disk.")


# Parts of commands


def _compile_for(values: "Array", emission: "str | Emission") -> None:
    from ihmm.model import model_for

    model = model_for(values, emission)
    for sampler in (ihmm.ParticleGibbs(), ihmm.Beam(), ihmm.DirectAssignment()):
        posterior = ihmm.sample(model, values, sampler=sampler, draws=2, tune=2, chains=1, init="auto", progress=False)
    posterior.smooth(values)
    posterior.log_likelihood(values)


def _new_folder(out: Path | None, file: str) -> Path:
    run = out if out is not None else _free_folder(Path(file).stem)
    if run.exists() and (not run.is_dir() or any(run.iterdir())):
        raise FileExistsError(f"{run} exists already: 'ihmm resume {run}' goes on with a run, or give another --out")
    return run


def _can_report(asked: bool | None) -> bool:
    from ihmm import answers

    if asked and not answers.can_report():
        raise ImportError("a report needs more packages: pip install 'ihmm[report]'")
    return answers.can_report() if asked is None else asked


def _free_folder(name: str) -> Path:
    n = 1
    while (RUNS / f"{name}-{n}").exists():
        n += 1
    return RUNS / f"{name}-{n}"


def _load(run: Path) -> "Posterior":
    with _telling_warnings():
        return ihmm.Posterior.load(run)


def _draw(sample: "Callable[[], Posterior]") -> "Posterior":
    """All draws, or KeyboardInterrupt."""
    with _telling_warnings() as told:
        posterior = sample()
        if any("sampling was stopped" in str(warning.message) for warning in told):
            raise KeyboardInterrupt
    return posterior


@contextmanager
def _telling_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Warnings as sentences on stderr, in place of lines of code."""
    with warnings.catch_warnings(record=True, action="always", category=UserWarning) as caught:
        yield caught
    for warning in caught:
        click.echo(f"Note: {warning.message}", err=True)


def _about(settings: recipe.Settings, table: tables.Table, model: "Model", run: Path) -> str:
    series = f" in {len(table.series)} series" if len(table.series) > 1 else ""
    return (
        f"{_rows(len(table.values))} of {', '.join(table.columns)}{series}; {type(model.emission).__name__} emission; "
        f"{settings.chains} chains of {settings.tune} + {settings.draws * settings.thin} sweeps, seed {settings.seed}; "
        f"run {run}"
    )


def _rows(n: int) -> str:
    return f"{n} row{'s' * (n != 1)}"


def _say(quiet: bool, text: str) -> None:
    if not quiet and sys.stderr.isatty():
        click.echo(text, err=True)


def _answer(posterior: "Posterior", run: Path, *, report: bool, as_json: bool) -> None:
    from ihmm import answers

    answer = answers.write(posterior, run, report=report)
    if as_json:
        click.echo(json.dumps({"run": str(run), **answer}))
        return
    click.echo(answers.describe(posterior, recipe.read_provenance(run)))
    verdict = answers.check(posterior)
    click.echo(f"\n{'Whether the chains agree is not judged without ihmm[arviz].' if verdict is None else verdict}")
    files = sorted(path.name for path in run.iterdir() if path.suffix in (".json", ".csv", ".toml", ".html"))
    click.echo(f"\nIn {run}: {', '.join(files)}")


def _write_simulated(out: Path | None, emission: str, states: int | None, length: int, seed: int) -> None:
    import pandas

    if emission == "ion-channel":
        recording = ihmm.datasets.ion_channel(length, seed)
        columns = {"current": recording.y, "state": recording.states}
    else:
        simulated = ihmm.simulate(_example(emission, states), length, seed)
        y = simulated.y[0]
        y = y.astype(int) if (y == y.round()).all() else y
        values = {"value": y} if y.ndim == 1 else {f"value{d}": column for d, column in enumerate(y.T)}
        columns = {**values, "state": simulated.draw.states}
    pandas.DataFrame(columns).to_csv(sys.stdout if out is None else out, index=False, float_format="%.5f")
    if out is not None:
        click.echo(f"Written: {out}")


def _example(emission: str, states: int | None) -> "Model":
    families = {
        "normal": ihmm.NormalMean(noise=0.5, mean=0.0, scale=4.0),
        "categorical": ihmm.Categorical(n_symbols=6, concentration=0.3),
        "poisson": ihmm.Poisson(shape=1.0, rate=0.1),
        "bernoulli": ihmm.Bernoulli(n_features=8, a=0.5, b=0.5),
        "multinomial": ihmm.Multinomial(n_categories=5, total=20),
        "student-t": ihmm.StudentT(dof=4.0, strength=0.02, shape=10.0, rate=2.0),
        "von-mises": ihmm.VonMises(),
    }
    rows: dict[str, Any] = {"concentration": 20.0, "stickiness": 0.95}  # states stay for some 20 steps
    prior = ihmm.HDPPrior(**rows) if states is None else ihmm.FinitePrior(n_states=states, gamma=None, **rows)
    return ihmm.Model(families[emission], prior)


def _compare_with_truth(run: Path) -> None:
    from ihmm import answers
    from ihmm.summaries import match

    posterior, truth = _load(run), ihmm.datasets.ion_channel()
    found = posterior.summary()
    label = match(found.states, found.n_states, truth.states, len(truth.means)).label
    right = (label[found.states] == truth.states).mean()
    levels = ", ".join(f"{level:g}" for level in truth.means)
    click.echo(f"\nThe truth: levels at {levels} pA, noise of variance {truth.noise**2:g}. ", nl=False)
    click.echo(f"The state found is the true one at {right:.1%} of the samples.")
    if answers.can_report():
        click.echo(f"Open {run / answers.REPORT} in a browser to see it.")
    elif answers.can_draw():
        click.echo(f"A figure of it is in {answers.draw(posterior, run)}.")
