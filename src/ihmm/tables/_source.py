"""An opened file, and the errors that refer to a place in it."""

import csv
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import pandas


class TableError(ValueError):
    """A file cannot be read as requested. The message is a single line for the user."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class Source(NamedTuple):
    """The contents of a file as a data frame, and how to find a row of it in the file."""

    path: Path
    frame: "pandas.DataFrame"
    delimiter: str | None = None  # None unless the file is text
    skipped: int = 0  # rows of text before the first row of the frame

    def place(self, row: int) -> str:
        """The place of a row, such as 'trace.csv, line 7'."""
        if self.delimiter is None:
            return f"{self.path}, row {row + 1}"
        rows = text_rows(self.path, self.delimiter, blank=self.frame.shape[1] == 1)
        line, _ = next(islice(rows, row + self.skipped, None), (row + self.skipped + 1, []))
        return f"{self.path}, line {line}"


def text_rows(path: Path, delimiter: str, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Line number and cells of each row of a text file, without empty lines unless `blank`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if delimiter == " ":
                lines = ((i, line.split()) for i, line in enumerate(file, 1))
            else:
                reader = csv.reader(file, delimiter=delimiter)
                lines = ((reader.line_num, cells) for cells in reader)
            for line, cells in lines:
                if blank or len(cells) > 1 or any(cell.strip() for cell in cells):
                    yield line, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not UTF-8 text (line {_undecodable_line(path)}); save it as UTF-8") from error
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _undecodable_line(path: Path) -> int:
    """The first line that is not UTF-8."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return number
    return 1


def is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def is_number_with_comma(cell: str) -> bool:
    """Whether a cell is a number, with a decimal point or a decimal comma."""
    return is_number(cell.replace(",", "."))


def joined(names: Sequence[str], most: int = 12) -> str:
    """A list of names for a message."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
