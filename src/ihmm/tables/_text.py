"""Reading delimited text: encoding, delimiter, header and cells."""

import warnings
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ihmm.tables._source import Source, TableError, is_number, is_number_with_comma, text_rows

if TYPE_CHECKING:
    import pandas

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None")
DELIMITERS = {"\t": "tab", ";": "';'", "|": "'|'", " ": "space", ",": "','"}  # as written after --delimiter
N_SAMPLE_LINES = 5  # lines inspected to suggest a delimiter


def parse_delimiter(path: Path, delimiter: str | None) -> str:
    """The delimiter as a character; by default a tab for .tsv and .tab files, otherwise a comma."""
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    delimiter = {"tab": "\t", r"\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
    if len(delimiter) != 1:
        raise TableError(f"delimiter must be one character, 'tab' or 'space', got {delimiter!r}")
    return delimiter


def open_text(path: Path, delimiter: str, text: bool, by: str | None) -> Source:
    _check_encoding(path)
    records = enumerate(cells for _, cells in text_rows(path, delimiter, blank=True))
    before, cells = next(((i, cells) for i, cells in records if any(cells)), (0, []))
    if not cells:
        raise TableError(f"{path} is empty")
    has_header = _is_header(cells)
    names = [cell or f"column {i}" if has_header else str(i) for i, cell in enumerate(cells, 1)]
    if len(names) == 1:
        _suggest_delimiter(path, delimiter)
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise TableError(f"{path} has {names.count(repeated)} columns named {repeated}; column names must differ")
    frame = _parse(path, delimiter, names, skip=before + has_header, dtype=str if text else {by: str})
    if has_header and len(names) == 1 and names[0] in set(frame[names[0]].dropna().astype(str)):
        # A column of symbols without a header: its first value also occurs further down.
        return Source(path, _parse(path, delimiter, ["1"], before, dtype=str), delimiter)
    return Source(path, frame, delimiter, int(has_header))


def _check_encoding(path: Path) -> None:
    with path.open("rb") as file:
        begin = file.read(1 << 16)
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is UTF-16 text; save it as UTF-8")
    if b"\0" in begin:
        raise TableError(f"{path} is a binary file of unknown format; expected CSV, TSV, NPY or Parquet")


def _is_header(cells: list[str]) -> bool:
    """Whether a row has a cell that is not a number, or the column numbers that pandas writes by default."""
    counted = [str(i) for i in range(len(cells))]
    by_pandas = len(cells) > 1 and cells in (counted, ["", *counted[:-1]])
    return by_pandas or not all(is_number(cell) or cell in MISSING for cell in cells)


def _suggest_delimiter(path: Path, delimiter: str) -> None:
    """Raise an error if another delimiter would give several columns, at least one of them with numbers."""
    for other, name in DELIMITERS.items():
        rows = [cells for _, cells in islice(text_rows(path, other), N_SAMPLE_LINES)]
        several = len(rows) > 1 and len(rows[0]) > 1 and len({len(cells) for cells in rows}) == 1
        if other != delimiter and several and any(map(is_number_with_comma, rows[-1])):
            current = DELIMITERS.get(delimiter, delimiter)
            raise TableError(f"{path} has only one column with delimiter {current}; try --delimiter {name}")


def _parse(path: Path, delimiter: str, names: list[str], skip: int, dtype: Any) -> "pandas.DataFrame":
    """Parse with pandas. If that fails, find the line at fault."""
    import pandas

    try:
        with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
            frame = pandas.read_csv(
                path,
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
        _check_row_lengths(path, delimiter, len(names))
        raise TableError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    if len(names) == 1:
        present = np.flatnonzero(frame[names[0]].notna())
        return frame.iloc[: present[-1] + 1 if len(present) else 0]  # without empty lines at the end
    if frame[names[-1]].isna().any():  # pandas pads short rows
        _check_row_lengths(path, delimiter, len(names))
    return frame


def _check_row_lengths(path: Path, delimiter: str, width: int) -> None:
    for line, cells in text_rows(path, delimiter):
        ends_in_delimiter = len(cells) == width + 1 and not cells[-1]
        if len(cells) != width and not ends_in_delimiter:
            noun = "cell" if len(cells) == 1 else "cells"
            raise TableError(f"{path}, line {line} has {len(cells)} {noun}, but the first line has {width}")
