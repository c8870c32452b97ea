"""Choosing columns by name or pattern, and converting them to numbers."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ihmm._typing import Array
from ihmm.sequences import as_array
from ihmm.tables._source import Source, TableError, is_number, is_number_with_comma, joined

if TYPE_CHECKING:
    import pandas


def choose_columns(source: Source, columns: Sequence[str], by: str | None) -> list[str]:
    """Names of the columns to read, without the id column `by`."""
    available = list(source.frame.columns)
    if by is not None and by not in available:
        raise TableError(f"{source.path} has no column {by}; its columns are {joined(available)}")
    others = [name for name in available if name != by]
    if not others:
        raise TableError(f"{source.path} has no column other than {by}")
    if columns:
        chosen = dict.fromkeys(name for pattern in columns for name in _matching(source.path, others, pattern))
        return list(chosen)
    if len(others) != 1 and source.path.suffix.lower() != ".npy":
        raise TableError(f"{source.path} has the columns {joined(available)}; choose with --column")
    return others


def _matching(path: Path, available: list[str], pattern: str) -> list[str]:
    found = [pattern] if pattern in available else [name for name in available if fnmatchcase(name, pattern)]
    if not found:
        raise TableError(f"{path} has no column {pattern}; its columns are {joined(available)}")
    return found


def numeric_values(source: Source, columns: list[str]) -> Array:
    """Columns as numbers, (T, D), with NaN for missing values."""
    arrays = []
    for name in columns:
        values = source.frame[name]
        if not is_numeric(values):
            values = _parse_numbers(source, name)
        array = as_array(values)
        infinite = np.flatnonzero(np.isinf(array))
        if len(infinite):
            place = source.place(infinite[0])
            raise TableError(f"{place}: infinite value in column {name}; leave the cell empty if it is missing")
        arrays.append(array)
    return np.stack(arrays, axis=1)


def is_numeric(values: "pandas.Series") -> bool:
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(values) and not is_bool_dtype(values) and not is_complex_dtype(values))


def _parse_numbers(source: Source, column: str) -> "pandas.Series":
    """Numbers of a column that pandas read as text; an error names the first cell that is not a number."""
    texts = text_values(source, column)
    wrong = ((i, text) for i, text in enumerate(texts) if isinstance(text, str) and not is_number(text))
    row, text = next(wrong, (-1, ""))
    if row < 0:
        return texts.astype(np.float64)
    hint = "; use a decimal point instead of a comma" if is_number_with_comma(text) else ""
    raise TableError(f"{source.place(row)}: {text!r} in column {column} is not a number{hint}")


def text_values(source: Source, column: str) -> "pandas.Series":
    """A column as strings; missing values stay missing."""
    values = source.frame[column]
    return values.where(values.isna(), values.astype(str)).astype(object)
