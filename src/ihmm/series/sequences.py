"""Conversion of user input to one concatenated array and the lengths of its sequences, with validation."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.series.arrays import as_array
from ihmm.series.clock import Clock, index_clock
from ihmm.series.symbols import encode
from ihmm.series.time_columns import take_dates


@dataclass(frozen=True)
class Sequences:
    """Concatenated sequences: `values` is (total T,) or (total T, D), `lengths` has the length of each sequence.

    `missing` marks the steps at which all values were NaN, or is None if there are none. In `values`, these steps have
    a placeholder, the values of another step. `columns` has the names of several columns if they have names. `clock`
    has the times of the steps if they are known. If the series were texts, i in `values` stands for ``symbols[i]``.
    `baseline`, (total T, D), has been subtracted from the values; None if nothing has.
    """

    values: Array
    lengths: IntArray
    missing: BoolArray | None = None
    columns: tuple[str, ...] | None = None
    clock: Clock | None = None
    symbols: tuple[str, ...] | None = None
    baseline: FloatArray | None = None

    @classmethod
    def of(
        cls,
        y: Any,
        *,
        shortest: int = 2,
        columns: Sequence[str] | None = None,
        clock: Clock | None = None,
        symbols: Sequence[str] | None = None,
    ) -> "Sequences":
        """Convert one series, (T,) or (T, D), or a list of series, each with at least `shortest` steps.

        Columns of data frames are matched by name: to `columns` if given, else to the first of them. Without a `clock`,
        times are those of a column of dates or of the index of pandas, if there are any. Texts are numbers, or
        `symbols`, by default those that occur in alphabetical order.
        """
        if isinstance(y, Sequences):
            return replace(y._in_order(columns), clock=clock or y.clock)
        parts, dates = take_dates(_parts(y))
        clock = clock or dates or index_clock(parts)
        parts, names = match_columns(parts, columns)
        parts, letters = encode(parts, symbols)
        series = [_as_series(part, i, shortest) for i, part in enumerate(parts)]
        if not series:
            raise ValueError("expected a series or a list of series, got an empty list")
        widths = {part.shape[1:] for part in series}
        if len(widths) > 1:
            found = ", ".join(f"sequence {i} has {_describe_shape(part)}" for i, part in enumerate(series[:5]))
            raise ValueError(f"all sequences must have the same number of columns: {found}")
        values = np.concatenate(series)
        lengths = np.array([len(part) for part in series], dtype=np.int64)
        return cls(values, lengths, _fill_missing(values), names, clock, letters)

    def _in_order(self, columns: Sequence[str] | None) -> "Sequences":
        """The same with its columns in the order of `columns`, if these are given and it has names."""
        expected = tuple(columns or ())
        places = _places(self.columns, expected, "the series") if len(expected) > 1 else None
        return self if places is None else replace(self, values=self.values[:, places], columns=expected)

    @property
    def offsets(self) -> IntArray:
        """Start of each sequence, followed by the total length."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def _parts(y: Any) -> Sequence[Any]:
    """A list that contains series is several sequences, and so is a 3-D array; anything else is one."""
    if isinstance(y, (list, tuple)) and any(np.ndim(part) > 0 for part in y):
        return y
    if isinstance(y, np.ndarray) and y.ndim == 3:
        return list(y)
    return [y]


def match_columns(
    parts: Sequence[Any], columns: Sequence[str] | None = None
) -> tuple[Sequence[Any], tuple[str, ...] | None]:
    """Data frames with their columns in one order: that of `columns`, or of the first data frame; and the names.

    Names that are not texts are matched as they are written. Series without names are taken as they are, and so are
    columns that are only numbered, 0, 1, …, where others have names. A single column is not matched: it may have
    another name.
    """
    found = [column_names(part) for part in parts]
    if columns is None:
        known = [names for names in found if names is not None]
        expected = next((names for names in known if not _are_numbers(names)), known[0] if known else None)
    else:
        expected = tuple(columns)
    if expected is None or len(expected) < 2:
        expected = None if expected is None or expected == numbers(1) else expected
        return parts, expected if columns is not None or len(set(found)) == 1 else None
    matched = []
    for i, (part, names) in enumerate(zip(parts, found, strict=True)):
        places = _places(names, expected, f"sequence {i}")
        matched.append(part if places is None else _take_columns(part, places))
    return matched, None if expected == numbers(len(expected)) else expected


def _places(names: tuple[str, ...] | None, expected: tuple[str, ...], series: str) -> list[int] | None:
    """Where the expected columns are among those of a series; None if it is to be taken as it is."""
    if names is None or names == expected:
        return None
    if sorted(names) == sorted(expected):
        return [names.index(name) for name in expected]
    if _are_numbers(names) or _are_numbers(expected):
        return None
    found, wanted = ", ".join(names), ", ".join(expected)
    raise ValueError(f"{series} has the columns {found}, expected {wanted}: all series need the same columns")


def column_names(part: Any) -> tuple[str, ...] | None:
    """The names of the columns of a data frame, or of an array of xarray, or of a series, as texts; None if there are
    none."""
    if isinstance(name := getattr(part, "name", None), str) and np.ndim(part) == 1:
        return (name,)
    names: Any = getattr(part, "columns", None)
    if hasattr(part, "dims") and np.ndim(part) == 2 and part.dims[1] in part.coords:
        names = part.coords[part.dims[1]].to_numpy()
    return tuple(map(str, names)) if names is not None and np.ndim(names) == 1 and len(names) else None


def numbers(n_columns: int) -> tuple[str, ...]:
    """The names that pandas gives to columns without names."""
    return tuple(map(str, range(n_columns)))


def _are_numbers(names: tuple[str, ...]) -> bool:
    """Whether columns are only numbered, in any order."""
    return set(names) == set(numbers(len(names)))


def _take_columns(part: Any, places: list[int]) -> Any:
    return part.iloc[:, places] if hasattr(part, "iloc") else part[:, places]


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
        hint = "; times can be the index of a pandas Series" if values.dtype.kind in "mM" else ""
        raise TypeError(f"{name} must contain numbers, or texts alone, got dtype {values.dtype}{hint}")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (T,) or (T, D), got {values.shape}; pass several series as a list")
    if len(values) < shortest:
        is_row = values.ndim == 2 and len(values) == 1 and values.shape[1] > 1
        hint = f"if the {values.shape[1]} values are steps, transpose it: y.T" if is_row else "remove shorter ones"
        raise ValueError(
            f"{name} has {len(values)} step(s) (n_samples = {len(values)}), as its shape is {values.shape}, but a "
            f"series needs at least {shortest}; {hint}"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(f"{name} has no columns (shape {values.shape})")
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _describe_shape(part: Array) -> str:
    return "shape (T,)" if part.ndim == 1 else f"shape (T, {part.shape[1]})"
