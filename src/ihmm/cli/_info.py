"""ihmm info: the contents of a run folder."""

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
    lines = {
        "progress": progress + (", running now" if store.busy(run) else ""),
        "data": f"{count_rows(int(lengths.sum()))}{columns}{series}",
        "files": ", ".join(file["path"] for file in record.get("files", ())),
        "emission": settings.model.emission,
        "prior": settings.model.prior,
        "sampler": settings.sampler,
        "schedule": f"{settings.tune} tuning sweeps, thin {settings.thin}, init {settings.init}",
        "seed": settings.seed,
        "started": record.get("date"),
        "command": record.get("command"),
        "versions": ", ".join(f"{name} {number}" for name, number in record.get("versions", {}).items()),
    }
    click.echo(f"{run}")
    for name, value in lines.items():
        if value not in (None, ""):
            click.echo(f"  {name:<10}{value}")
