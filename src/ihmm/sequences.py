"""Conversion of user input to one concatenated array and the lengths of its sequences, with validation."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ihmm._typing import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Sequences:
    """Concatenated sequences: `values` is (total T,) or (total T, D), `lengths` has the length of each sequence.

    `missing` marks the steps at which all values were NaN, or is None if there are none. In `values`, these steps have
    a placeholder, the values of another step.
    """

    values: Array
    lengths: IntArray
    missing: BoolArray | None = None

    @classmethod
    def of(cls, y: Any, *, shortest: int = 2) -> "Sequences":
        """Convert one series, (T,) or (T, D), or a list of series, each with at least `shortest` steps."""
        if isinstance(y, Sequences):
            return y
        series = [_as_series(part, i, shortest) for i, part in enumerate(_parts(y))]
        if not series:
            raise ValueError("expected a series or a list of series, got an empty list")
        widths = {part.shape[1:] for part in series}
        if len(widths) > 1:
            found = ", ".join(f"sequence {i} has {_describe_shape(part)}" for i, part in enumerate(series[:5]))
            raise ValueError(f"all sequences must have the same number of columns: {found}")
        values = np.concatenate(series)
        return cls(values, np.array([len(part) for part in series], dtype=np.int64), _fill_missing(values))

    @property
    def offsets(self) -> IntArray:
        """Start of each sequence, followed by the total length."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def _parts(y: Any) -> Sequence[Any]:
    """A list that contains series is several sequences; anything else is one."""
    if isinstance(y, (list, tuple)) and any(np.ndim(part) > 0 for part in y):
        return y
    return [y]


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
    """Convert an array, a list, or a pandas or polars series or data frame; masked values, None and NA become NaN."""
    if isinstance(part, np.ma.MaskedArray):
        return np.ma.filled(part.astype(np.float64), np.nan)
    values = np.asarray(part)
    if values.dtype != object:
        return values
    if hasattr(part, "isna"):  # pandas columns with NA or of mixed types
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values  # not numeric: the caller raises an error


def _describe_shape(part: Array) -> str:
    return "shape (T,)" if part.ndim == 1 else f"shape (T, {part.shape[1]})"
