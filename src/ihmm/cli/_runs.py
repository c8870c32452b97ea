"""Run folders: their names, loading them, and the packages that a report needs."""

import shutil
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

import ihmm
from ihmm.cli import provenance

if TYPE_CHECKING:
    from ihmm.posterior import Posterior

RUNS = Path("runs")


def next_folder(name: str) -> Path:
    """The first of runs/NAME-1, runs/NAME-2, … that does not exist."""
    name = "".join(letter if letter.isprintable() else "_" for letter in name)
    n = 1
    while (RUNS / f"{name}-{n}").exists():
        n += 1
    return RUNS / f"{name}-{n}"


def load(run: Path) -> "Posterior":
    with warnings_on_stderr():
        posterior = ihmm.Posterior.load(run)
    return provenance.label(posterior, provenance.read(run))


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print warnings at once, without the source line that Python shows."""

    def show(message: Warning | str, *_: object, **__: object) -> None:
        click.echo(f"Warning: {message}", err=True)

    with warnings.catch_warnings(action="always", category=UserWarning):
        warnings.showwarning = show
        yield


def wrapped(text: str, stream: TextIO) -> str:
    """Prose in lines that fit a terminal, if `stream` is one. Commands stay on one line, so that they can be copied."""
    if not stream.isatty():
        return text
    width = shutil.get_terminal_size().columns
    lines = []
    for line in text.splitlines():
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        whole = "Next: " in line or not line
        lines += [line] if whole else textwrap.wrap(line, width, subsequent_indent=indent, break_on_hyphens=False)
    return "\n".join(lines)


def check_report(requested: bool | None) -> bool:
    """Whether to write a report; by default if the packages it needs are installed."""
    from ihmm.cli import outputs

    if requested and not outputs.can_report():
        raise ImportError("the report needs more packages: pip install 'ihmm[report]'")
    return outputs.can_report() if requested is None else requested


def count_rows(n: int) -> str:
    return f"{n} row{'s' * (n != 1)}"


def check_writable(out: Path | None) -> None:
    """Find out before a long computation whether its result can be written."""
    if out is not None:
        with out.open("ab"):
            pass
