"""Conversion of user input to one concatenated array and the lengths of its sequences, with validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ihmm._typing import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Sequences:
    """Concatenated sequences: `values` is (total T,) or (total T, D), `lengths` has the length of each sequence.

    `missing` marks the steps at which all values were NaN, or is None if there are none. In `values`, these steps have
    a placeholder, the values of another step. `columns` has the names of several columns if they
    have names.
    """

    values: Array
    lengths: IntArray
    missing: BoolArray | None = None
    columns: tuple[str, ...] | None = None

    @classmethod
    def of(cls, y: Any, *, shortest: int = 2, columns: Sequence[str] | None = None) -> "Sequences":
        """Convert one series, (T,) or (T, D), or a list of series, each with at least `shortest` steps.

        Columns of data frames are matched by name: to `columns` if given, else to the first of them.
        """
        if isinstance(y, Sequences):
            return y
        parts, names = match_columns(_parts(y), columns)
        series = [_as_series(part, i, shortest) for i, part in enumerate(parts)]
        if not series:
            raise ValueError("expected a series or a list of series, got an empty list")
        widths = {part.shape[1:] for part in series}
        if len(widths) > 1:
            found = ", ".join(f"sequence {i} has {_describe_shape(part)}" for i, part in enumerate(series[:5]))
            raise ValueError(f"all sequences must have the same number of columns: {found}")
        values = np.concatenate(series)
        return cls(values, np.array([len(part) for part in series], dtype=np.int64), _fill_missing(values), names)

    @property
    def offsets(self) -> IntArray:
        """Start of each sequence, followed by the total length."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def _parts(y: Any) -> Sequence[Any]:
    """A list that contains series is several sequences; anything else is one."""
    if isinstance(y, (list, tuple)) and any(np.ndim(part) > 0 for part in y):
        return y
    return [y]


def match_columns(
    parts: Sequence[Any], columns: Sequence[str] | None = None
) -> tuple[Sequence[Any], tuple[str, ...] | None]:
    """Data frames with their columns in one order: that of `columns`, or of the first data frame; and the names.

    Series without names are taken as they are. A single column needs no name.
    """
    found = [column_names(part) for part in parts]
    expected = next((names for names in found if names is not None), None) if columns is None else tuple(columns)
    if expected is None or len(expected) < 2:
        return parts, None
    matched = []
    for i, (part, names) in enumerate(zip(parts, found, strict=True)):
        if names is not None and sorted(names) != sorted(expected):
            raise ValueError(
                f"sequence {i} has the columns {', '.join(names)}, expected {', '.join(expected)}: "
                "all series need the same columns"
            )
        matched.append(part if names in (None, expected) else part[list(expected)])
    return matched, expected


def column_names(part: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame; None if there are none, or numbers."""
    names: Any = getattr(part, "columns", None)
    named = names is not None and np.ndim(names) == 1 and len(names) and all(isinstance(name, str) for name in names)
    return tuple(names) if named else None


def _fill_missing(values: Array) -> BoolArray | None:
    """Mark the steps without any value and overwrite them, in place, with the first step that has one."""
    if values.dtype.kind != "f":
        return None
    missing: BoolArray = np.asarray(np.isnan(values).reshape(len(values), -1).all(axis=1))
    if missing.all():
        raise ValueError("every value is missing (NaN); at least one observed value is needed")
    if not missing.any():
        return None
    values[missing] = values[np.argmin(missing)]
    return missing


def _as_series(part: Any, index: int, shortest: int) -> Array:
    name = f"sequence {index}"
    try:
        values = as_array(part)
    except ValueError as error:
        raise ValueError(f"{name} is not an array of shape (T,) or (T, D): {error}") from error
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must contain numbers, got dtype {values.dtype}; encode symbols as integers 0, 1, 2, …")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (T,) or (T, D), got {values.shape}; pass several series as a list")
    if len(values) < shortest:
        raise ValueError(
            f"{name} has {len(values)} step(s) (n_samples = {len(values)}); "
            f"a series needs at least {shortest}; remove shorter ones"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(f"{name} has no columns (shape {values.shape})")
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_array(part: Any) -> Array:
    """Convert an array, a list, or a pandas or polars series or data frame; masked values, None and NA become NaN.

    Numbers are int64 or float64, contiguous by row, so that compiled code sees one layout. What is not a number keeps a
    type that the caller refuses.
    """
    values = np.ma.getdata(part) if isinstance(part, np.ma.MaskedArray) else np.asarray(part)
    if values.dtype == object:
        values = _from_objects(values)
    if _is_polars_with_dates(part):
        return values.astype("datetime64[ns]")
    if values.dtype.kind not in "biuf":
        return values
    is_whole = values.dtype.kind in "biu" and not (values.dtype == np.uint64 and values.max(initial=0) > MAX_INTEGER)
    mask = np.ma.getmask(part)
    if not mask.any():
        return np.asarray(values, np.int64 if is_whole else np.float64, order="C")
    values = np.array(values, np.float64, order="C")
    values[mask] = np.nan
    return values


MAX_INTEGER = 2**63 - 1


def _from_objects(values: Array) -> Array:
    """Numbers from Python objects, NaN for None and NA; unchanged if there is anything else."""
    numbers = [np.nan if _is_missing(value) else value for value in values.flat]
    if not all(isinstance(value, (Real, Decimal, np.bool_)) for value in numbers):
        return values.astype(str) if any(isinstance(value, str) for value in numbers) else values
    try:
        return np.array([float(value) for value in numbers]).reshape(values.shape)
    except OverflowError:
        return values


def _is_polars_with_dates(part: Any) -> bool:
    """Whether a polars data frame has dates or times, which it would convert to numbers."""
    dtypes = getattr(part, "dtypes", None)
    return isinstance(dtypes, list) and any(dtype.is_temporal() for dtype in dtypes)


def _is_missing(value: Any) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ == "NAType"  # of pandas


def _describe_shape(part: Array) -> str:
    return "shape (T,)" if part.ndim == 1 else f"shape (T, {part.shape[1]})"
