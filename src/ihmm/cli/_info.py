"""ihmm info: the contents of a run folder."""

import json
import re
from pathlib import Path

import click

from ihmm.cli import provenance
from ihmm.cli._errors import Command, input_errors
from ihmm.cli._options import run_argument
from ihmm.cli._runs import count_rows


@click.command(cls=Command)
@run_argument
def info(run: Path) -> None:
    """Show the data, model, progress and versions of a RUN.

    The run may still be in progress.

    \b
    Example:
      ihmm info runs/trace-1
    """
    from ihmm import store

    with input_errors():
        contents = store.load(run, None)
        record = provenance.read(run)
    settings, lengths = contents.settings, contents.data.lengths
    progress = contents.unfinished or f"finished: {settings.chains} chains of {settings.draws} draws"
    columns = f" of {', '.join(record['columns'])}" if record else ""
    series = f" in {len(lengths)} series" if len(lengths) > 1 else ""
    every = f", one every {clock.text(1)}" if (clock := contents.data.clock) is not None and clock.is_known else ""
    thinned = f", then {settings.thin} sweeps per draw" if settings.thin > 1 else ""
    is_busy = store.busy(run)
    lines = {
        "result": "" if contents.unfinished else _result(run),
        "progress": progress + (", running now" if is_busy else ""),
        "next": f"ihmm resume {run}" if contents.unfinished and not is_busy else "",
        "data": f"{count_rows(int(lengths.sum()))}{columns}{series}{every}",
        "files": ", ".join(file["path"] for file in record.get("files", ())),
        "emission": _rounded(settings.model.emission),
        "duration": _rounded(settings.model.duration or ""),
        "prior": _rounded(settings.model.prior),
        "sampler": settings.sampler,
        "schedule": f"{settings.tune} tuning sweeps{thinned}",
        "seed": settings.seed,
        "started": record.get("date"),
        "command": record.get("command"),
        "versions": ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items()),
    }
    click.echo(f"{run}")
    for name, value in lines.items():
        if value not in (None, ""):
            click.echo(f"  {name:<10}{value}")


def _rounded(setting: object) -> str:
    """A setting in which no number has more decimals than anyone reads; run.json has all of them."""
    return re.sub(r"\b\d+\.\d{5,}\b(?!e)", lambda number: f"{float(number[0]):.4g}", str(setting))


def _result(run: Path) -> str:
    """The answer of a finished run and its verdict, as stored by `ihmm fit`."""
    from ihmm.cli.outputs import SUMMARY  # slow to import

    try:
        stored = json.loads((run / SUMMARY).read_text("utf-8"))
        number = stored["n_levels"]
        return f"{number} level{'s' * (number != 1)}. {stored['check']['verdict']}"
    except (OSError, ValueError, KeyError, TypeError):  # a run made in Python has none
        return ""
