"""Columns of data frames and arrays that are times rather than data."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from ihmm._typing import Array
from ihmm.series.arrays import as_array
from ihmm.series.clock import SECONDS, Clock, is_regular, recorded_clock, unit_in

SHORTEST = 10  # steps that a clock needs to be recognised


def take_dates(parts: Sequence[Any]) -> tuple[Sequence[Any], Clock | None]:
    """Data frames without their columns of dates, and the clock that these give."""
    columns, clock = date_columns(parts)
    return [without_columns(part, columns) for part in parts], clock


def date_columns(parts: Sequence[Any]) -> tuple[list[Any], Clock | None]:
    """The columns of dates of data frames, and the clock of the first of them. A warning says so.

    Frames that have nothing but dates are left as they are.
    """
    columns = [name for name in _names(parts[0]) if all(_is_date(part, name) for part in parts)] if parts else []
    if not columns or len(columns) == len(_names(parts[0])):
        return [], None
    _report(f"column {columns[0]} is the time of each row, not part of the data")
    return columns, recorded_clock([_dates(part[columns[0]]) for part in parts])


def clock_columns(parts: Sequence[Any]) -> tuple[list[Any], Clock | None]:
    """The columns that rise steadily in all series, and the clock of one that has a unit of time in its name.

    They are a clock or a row number. A warning says so.
    """
    names = _names(parts[0])
    if len(names) < 2 or min(_shape(part)[0] for part in parts) < SHORTEST:
        return [], None
    columns = [name for name in names if all(_rises_steadily(part, name) for part in parts)]
    if not columns or len(columns) == len(names):
        return [], None
    units = {name: unit_in(name) for name in columns if isinstance(name, str)}
    time = next((name for name, unit in units.items() if unit), None)
    others = [
        f"column {name} rises steadily, like a clock or a row number: it is left out"
        for name in columns
        if name != time
    ]
    _report("; ".join([f"column {time} is the time of each row, not part of the data"] * (time is not None) + others))
    if time is None:
        return columns, None
    seconds = SECONDS[units[time] or "s"]
    return columns, recorded_clock([seconds * _column(part, time) for part in parts])


def without_columns(part: Any, columns: Sequence[Any]) -> Any:
    """A data frame or an array without some columns, given by name or number."""
    if not columns:
        return part
    if hasattr(part, "columns"):
        return part[[name for name in part.columns if name not in columns]]
    return np.delete(as_array(part), columns, axis=1)


def _names(part: Any) -> list[Any]:
    """Names of the columns of a data frame, or numbers of those of an array; none if there are no columns."""
    shape = _shape(part)
    if len(shape) != 2:
        return []
    if not hasattr(part, "columns"):
        return list(range(shape[1]))
    names = list(part.columns)
    if not all(np.ndim(name) == 0 or isinstance(name, tuple) for name in names):
        raise TypeError(f"expected an array or a data frame, got a {type(part).__name__}; convert it with .to_pandas()")
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise ValueError(f"two columns are called {twice!r}; every column needs a name of its own")
    return names


def _shape(part: Any) -> tuple[int, ...]:
    return tuple(part.shape if hasattr(part, "shape") else np.asarray(part).shape)


def _is_date(part: Any, name: Any) -> bool:
    if not hasattr(part, "columns") or name not in part.columns:
        return False
    dtype = part[name].dtype  # of pandas or polars
    return getattr(dtype, "kind", "") == "M" or (hasattr(dtype, "is_temporal") and bool(dtype.is_temporal()))


def _dates(column: Any) -> Array:
    if getattr(getattr(column, "dt", None), "tz", None) is not None:
        column = column.dt.tz_convert(None)
    dates = np.asarray(column)
    return dates if dates.dtype.kind == "M" else dates.astype("datetime64[ns]")


def _report(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=5)


def _rises_steadily(part: Any, name: Any) -> bool:
    if _is_date(part, name):
        return False
    try:
        values = _column(part, name)
    except (TypeError, ValueError, KeyError, IndexError):
        return False
    return bool(np.isfinite(values).all()) and is_regular(values)


def _column(part: Any, name: Any) -> Array:
    return np.asarray(as_array(part[name]) if hasattr(part, "columns") else as_array(part)[:, name], np.float64)
