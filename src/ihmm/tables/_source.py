"""An opened file, and the errors that refer to a place in it."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ihmm.series.texts import MISSING

if TYPE_CHECKING:
    import pandas


class TableError(ValueError):
    """A file cannot be read as requested. The message is a single line for the user."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Layout(NamedTuple):
    """How a text file is written, as far as the user says; None: found out from the file."""

    delimiter: str | None = None
    decimal: str | None = None
    skip_rows: int = 0  # lines before the header
    na: tuple[str, ...] = ()  # further texts and numbers that mark missing values


AS_FOUND = Layout()


class Source(NamedTuple):
    """The contents of a file as a data frame, and how to find a row of it in the file."""

    path: Path
    frame: "pandas.DataFrame"
    delimiter: str | None = None  # None unless the file is text
    skipped: int = 0  # rows of text before the first row of the frame
    layout: Layout = AS_FOUND
    units: dict[str, str] | None = None  # of columns, if the file has a row of units
    notes: tuple[str, ...] = ()  # what was found out about the file

    def place(self, row: int) -> str:
        """The place of a row, such as 'trace.csv, line 7'."""
        if self.delimiter is None:
            return f"{self.path}, row {row + 1}"
        rows = text_rows(self.path, self.delimiter, self.layout.skip_rows, blank=self.frame.shape[1] == 1)
        line, _ = next(islice(rows, row + self.skipped, None), (row + self.skipped + 1, []))
        return f"{self.path}, line {line}"


def text_rows(path: Path, delimiter: str, skip: int = 0, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a text file, without comments, and without empty lines unless `blank`.

    The first `skip` lines are left out.
    """
    number = 0

    def lines() -> Iterator[str]:
        nonlocal number
        for number, line in enumerate(file, 1):
            if number > skip and not is_comment(line):
                yield line

    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = map(str.split, lines()) if delimiter == " " else csv.reader(lines(), delimiter=delimiter)
            for cells in rows:
                if blank or len(cells) > 1 or any(cell.strip() for cell in cells):
                    yield number, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text (line {_undecodable_line(path)}); save it as UTF-8") from error
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def is_comment(line: str) -> bool:
    """Whether a line is a comment: it begins with #, and is neither the symbol # nor a word for a missing value."""
    return line.startswith("#") and len(line.strip()) > 1 and not line.startswith(tuple(_HASH_WORDS))


_HASH_WORDS = [word for word in MISSING if word.startswith("#")]


def _undecodable_line(path: Path) -> int:
    """The first line that is not UTF-8."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return number
    return 1


def joined(names: Sequence[str], most: int = 12) -> str:
    """A list of names for a message."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
