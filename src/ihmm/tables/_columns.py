"""Choosing columns by name or pattern, and converting them to numbers."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihmm._typing import Array
from ihmm.series.arrays import as_array
from ihmm.series.texts import (
    AmbiguousError,
    NotANumberError,
    is_number,
    is_number_with_comma,
    parse_numbers,
    parse_times,
)
from ihmm.tables._source import Source, TableError, joined

if TYPE_CHECKING:
    import pandas


def choose_columns(
    source: Source, columns: Sequence[str], reserved: Sequence[str], clocks: Sequence[str] = ()
) -> list[str]:
    """Names of the columns to read, without the `reserved` ones: the id and the time.

    The `clocks`, columns that rise steadily, are read only if they are named.
    """
    available = list(source.frame.columns)
    for name in reserved:
        if name not in available:
            raise TableError(f"{source.path} has no column {name}; its columns are {joined(available)}")
    others = [name for name in available if name not in reserved]
    if not others:
        raise TableError(f"{source.path} has no column other than {joined(reserved)}")
    if columns:
        chosen = dict.fromkeys(name for pattern in columns for name in _matching(source.path, others, pattern))
        return [name for name in chosen if name in columns or name not in clocks]
    others = [name for name in others if name not in clocks]
    if len(others) != 1 and source.path.suffix.lower() != ".npy":
        raise TableError(
            f"{source.path} has the columns {joined(available)}; choose with --column{_comma_hint(source)}"
        )
    return others


def _matching(path: Path, available: list[str], pattern: str) -> list[str]:
    found = [pattern] if pattern in available else [name for name in available if fnmatchcase(name, pattern)]
    if not found:
        raise TableError(f"{path} has no column {pattern}; its columns are {joined(available)}")
    return found


def _comma_hint(source: Source) -> str:
    """Two columns of whole numbers without a header may be one column of numbers with decimal commas."""
    frame = source.frame
    integers = source.delimiter == "," and source.skipped == 0 and frame.shape[1] == 2
    is_hint = integers and all(values.dtype.kind in "iu" for _, values in frame.items())
    return ", or with --delimiter ';' if the commas are decimal commas" if is_hint else ""


def numeric_values(source: Source, columns: list[str]) -> Array:
    """Columns as numbers, (T, D), with NaN for missing values."""
    arrays = []
    for name in columns:
        values = source.frame[name]
        array = as_array(values if is_numeric(values) else _parse_column(source, name))
        array = _without(array, source.layout.na)
        infinite = np.flatnonzero(np.isinf(array))
        if len(infinite):
            place = source.place(infinite[0])
            raise TableError(f"{place}: infinite value in column {name}; leave the cell empty if it is missing")
        arrays.append(array)
    return np.stack(arrays, axis=1)


def _without(values: Array, markers: Sequence[str]) -> Array:
    """Numbers with NaN in place of those that mark missing values."""
    marked = np.isin(values, [float(marker) for marker in markers if is_number(marker)])
    return np.where(marked, np.nan, values) if marked.any() else values


def is_numeric(values: "pandas.Series") -> bool:
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(values) and not is_bool_dtype(values) and not is_complex_dtype(values))


def _parse_column(source: Source, column: str) -> Array:
    """Numbers of a column that pandas read as text; an error names the first cell that is not a number."""
    texts = text_values(source, column)
    try:
        return parse_numbers(texts.tolist(), source.layout.decimal)
    except NotANumberError as error:
        text = texts.iloc[error.place]
        hint = ""
        if is_number_with_comma(text):
            hint = "; some cells have a decimal comma and others a decimal point"
        elif parse_times([text]) is not None:
            hint = f"; if it is the time of a row, use --time {column}"
        place = source.place(error.place)
        raise TableError(f"{place}: {text!r} in column {column} is not a number{hint}") from error
    except AmbiguousError as error:
        raise TableError(
            f"{source.path}: {error} in column {column}; choose with --decimal , or --decimal ."
        ) from error


def text_values(source: Source, column: str) -> "pandas.Series":
    """A column as strings; missing values stay missing."""
    values = source.frame[column]
    texts = values.where(values.isna(), values.astype(str)).astype(object)
    return texts.where(~texts.isin(source.layout.na), np.nan) if source.layout.na else texts
