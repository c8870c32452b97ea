"""Reading delimited text: encoding, delimiter, comments, header, units and cells."""

import io
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm.series.clock import SECONDS
from ihmm.series.texts import MISSING, is_number, is_number_with_comma
from ihmm.tables._source import Layout, Source, TableError, is_comment, joined, text_rows

if TYPE_CHECKING:
    import pandas

DELIMITERS = {"\t": "tabs", ";": "semicolons", ",": "commas", "|": "vertical bars", " ": "spaces"}
N_SAMPLE_LINES = 20  # lines inspected to find out how a file is written


def parse_delimiter(delimiter: str) -> str:
    """The delimiter as a character."""
    delimiter = {"tab": "\t", r"\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
    if len(delimiter) != 1:
        raise TableError(f"delimiter must be one character, 'tab' or 'space', got {delimiter!r}")
    return delimiter


def open_text(path: Path, layout: Layout, text: bool, by: str | None) -> Source:
    """Open a text file. `text`: do not convert cells to numbers; `by`: a column of text."""
    _check_encoding(path)
    notes = []
    if layout.delimiter is not None:
        delimiter = parse_delimiter(layout.delimiter)
    else:
        delimiter = _find_delimiter(path, layout)
        if delimiter != ("\t" if _is_tsv(path) else ","):
            notes.append(f"cells are separated by {DELIMITERS[delimiter]}")
    records = [cells for _, cells in islice(text_rows(path, delimiter, layout.skip_rows, blank=True), 1000)]
    before = next((i for i, cells in enumerate(records) if any(cells)), None)
    if before is None:
        raise TableError(f"{path} is empty")
    cells = records[before]
    has_header = _is_header(cells)
    names = [cell or f"column {i}" if has_header else str(i) for i, cell in enumerate(cells, 1)]
    if not has_header and (commented := _commented_header(path, delimiter, len(cells))):
        names = commented
        notes.append(f"the names of columns are in a comment ({joined(names)})")
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise TableError(f"{path} has {names.count(repeated)} columns named {repeated}; column names must differ")
    units = _units(names, records[before + 1 :]) if has_header else {}
    if units:
        notes.append(f"the line after the header has the units ({joined([unit for unit in units.values() if unit])})")
    above = int(has_header) + bool(units)
    dtype: Any = str if text or layout.decimal == "," else {by: str}
    frame = _parse(path, delimiter, layout.skip_rows, names, skip=before + above, dtype=dtype)
    if has_header and len(names) == 1 and names[0] in set(frame[names[0]].dropna().astype(str)):
        # A column of symbols without a header: its first value also occurs further down.
        frame, above = _parse(path, delimiter, layout.skip_rows, ["1"], before, dtype=str), 0
    if n_comments := sum(1 for _ in _comments(path)):
        lines = "1 comment line (#) is" if n_comments == 1 else f"{n_comments} comment lines (#) are"
        notes.append(f"{lines} left out")
    return Source(path, frame, delimiter, above, layout, units or None, tuple(notes))


def _is_tsv(path: Path) -> bool:
    return path.suffix.lower() in (".tsv", ".tab")


def _check_encoding(path: Path) -> None:
    with path.open("rb") as file:
        begin = file.read(1 << 16)
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is UTF-16 text; save it as UTF-8")
    if b"\0" in begin:
        raise TableError(f"{path} is a binary file of unknown format; expected CSV, TSV, NPY or Parquet")


def _comments(path: Path) -> Iterator[str]:
    with path.open("rb") as file:
        if b"#" not in file.read():
            return
    with path.open(encoding="utf-8-sig", newline="") as file:
        yield from filter(is_comment, file)


def _find_delimiter(path: Path, layout: Layout) -> str:
    """The delimiter that gives rows of several cells, all of the same length and with numbers; else the usual one.

    Tabs and semicolons come first, as they are not part of numbers.
    """
    usual = "\t" if _is_tsv(path) else ","
    for delimiter in (usual, *DELIMITERS) if _is_tsv(path) else DELIMITERS:
        rows = [cells for _, cells in islice(text_rows(path, delimiter, layout.skip_rows), N_SAMPLE_LINES)]
        below = rows[1:] if len(rows) > 2 else rows  # without the header
        widths = {len(cells) for cells in below}
        if len(widths) != 1 or widths == {1} or not any(map(is_number_with_comma, below[-1])):
            continue
        if delimiter == "," and len(rows[0]) == 1 and widths == {2} and len(rows) > 2:
            return ";"  # one column of numbers with decimal commas below a header of one cell
        if delimiter != " " or len(rows[0]) in widths:
            return delimiter
    return usual


def _is_header(cells: list[str]) -> bool:
    """Whether a row has a cell that is not a number, or the column numbers that pandas writes by default."""
    counted = [str(i) for i in range(len(cells))]
    by_pandas = len(cells) > 1 and cells in (counted, ["", *counted[:-1]])
    return by_pandas or not all(is_number_with_comma(cell) or cell in MISSING for cell in cells)


def _commented_header(path: Path, delimiter: str, n_columns: int) -> list[str]:
    """The names in the last comment, as NumPy writes them, if there are as many as columns."""
    *_, last = ("", *_comments(path))
    text = last.lstrip("#").strip()
    names = text.split() if delimiter == " " else [name.strip() for name in text.split(delimiter)]
    return names if len(names) == n_columns and not any(map(is_number, names)) and all(names) else []


def _units(names: list[str], rows: list[list[str]]) -> dict[str, str]:
    """Units of the columns if the row below the header has texts above numbers, and no number itself.

    The one exception is 1, beside a unit of time: a quantity without a dimension.
    """
    rows = [cells for cells in rows[:N_SAMPLE_LINES] if any(cells)]
    if len(rows) < 3 or any(len(row) != len(names) for row in rows):
        return {}
    without_dimension = {"1"} if any(cell.strip("[]() ") in SECONDS for cell in rows[0]) else set()
    if any(is_number_with_comma(cell) and cell not in without_dimension for cell in rows[0]):
        return {}
    above_numbers = [
        cell not in MISSING and all(is_number_with_comma(row[i]) or row[i] in MISSING for row in rows[1:])
        for i, cell in enumerate(rows[0])
    ]
    return dict(zip(names, (cell.strip("[]() ") for cell in rows[0]), strict=True)) if any(above_numbers) else {}


def _parse(path: Path, delimiter: str, skip_rows: int, names: list[str], skip: int, dtype: Any) -> "pandas.DataFrame":
    """Parse with pandas. If that fails, find the line at fault."""
    import pandas

    try:
        with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
            frame = pandas.read_csv(
                _content(path, skip_rows),
                sep=r"\s+" if delimiter == " " else delimiter,
                header=None,
                names=names,
                index_col=False,
                skiprows=skip,
                dtype=dtype,
                na_values=list(MISSING),
                keep_default_na=False,
                skip_blank_lines=len(names) > 1,  # in a single column, an empty line is a missing value
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
            )
    except pandas.errors.EmptyDataError:
        return pandas.DataFrame({name: [] for name in names})
    except (ValueError, pandas.errors.ParserWarning) as error:
        _check_row_lengths(path, delimiter, skip_rows, len(names))
        raise TableError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    if len(names) == 1:
        present = np.flatnonzero(frame[names[0]].notna())
        return frame.iloc[: present[-1] + 1 if len(present) else 0]  # without empty lines at the end
    if frame[names[-1]].isna().any():  # pandas pads short rows
        _check_row_lengths(path, delimiter, skip_rows, len(names))
    return frame


def _content(path: Path, skip_rows: int) -> Path | io.StringIO:
    """The file, or its text without comments and the first lines."""
    if not skip_rows and next(_comments(path), None) is None:
        return path
    with path.open(encoding="utf-8-sig", newline="") as file:
        return io.StringIO("".join(line for line in islice(file, skip_rows, None) if not is_comment(line)), newline="")


def _check_row_lengths(path: Path, delimiter: str, skip_rows: int, width: int) -> None:
    rows = list(text_rows(path, delimiter, skip_rows))
    for line, cells in rows:
        ends_in_delimiter = len(cells) == width + 1 and not cells[-1]
        if len(cells) != width and not ends_in_delimiter:
            noun = "cell" if len(cells) == 1 else "cells"
            raise TableError(
                f"{path}, line {line} has {len(cells)} {noun}, but the first line has {width}{_suggest_skipping(rows)}"
            )


def _suggest_skipping(rows: list[tuple[int, list[str]]]) -> str:
    """Where a table seems to begin, if lines of other lengths precede it."""
    width = len(rows[-1][1])
    other = [i for i, (_, cells) in enumerate(rows) if len(cells) != width]
    if width < 2 or not other or len(rows) - other[-1] < max(4, len(rows) // 2):
        return ""
    return f"; if the table begins in line {rows[other[-1] + 1][0]}, use --skip-rows {rows[other[-1] + 1][0] - 1}"
