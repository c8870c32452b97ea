"""Raw series → one flat array and the lengths of the sequences in it, or an error that says what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ihmm._typing import Array, BoolArray, IntArray


@dataclass(frozen=True)
class Sequences:
    """Several series laid end to end: `values` is (total T,) or (total T, D), `lengths` tells them apart.

    `missing` marks the steps at which every value was NaN, None if there are none; another step's values stand there.
    """

    values: Array
    lengths: IntArray
    missing: BoolArray | None = None

    @classmethod
    def of(cls, y: Any, *, shortest: int = 2) -> "Sequences":
        """Read one series, (T,) or (T, D), or a list of them, each of at least `shortest` steps."""
        if isinstance(y, Sequences):
            return y
        series = [_as_series(part, i, shortest) for i, part in enumerate(_parts(y))]
        if not series:
            raise ValueError("expected a series or a list of series, got an empty list")
        widths = {part.shape[1:] for part in series}
        if len(widths) > 1:
            found = ", ".join(f"sequence {i} has {_width(part)}" for i, part in enumerate(series[:5]))
            raise ValueError(f"all sequences need the same number of columns: {found}")
        values = np.concatenate(series)
        return cls(values, np.array([len(part) for part in series], dtype=np.int64), _fill_missing(values))

    @property
    def offsets(self) -> IntArray:
        """Where each sequence starts, and the total length at the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def _parts(y: Any) -> Sequence[Any]:
    """A list whose members are series themselves is several sequences; anything else is one."""
    if isinstance(y, (list, tuple)) and any(np.ndim(part) > 0 for part in y):
        return y
    return [y]


def _fill_missing(values: Array) -> BoolArray | None:
    """Which steps have no value at all; the first step that has one stands in for them, in place."""
    if values.dtype.kind != "f":
        return None
    missing: BoolArray = np.asarray(np.isnan(values).reshape(len(values), -1).all(axis=1))
    if missing.all():
        raise ValueError("there is nothing to learn from: every value is missing (NaN)")
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
        raise TypeError(f"{name} must hold numbers, got dtype {values.dtype}; code symbols as integers 0, 1, 2, …")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (T,) or (T, D), got {values.shape}; pass several series as a list")
    if len(values) < shortest:
        raise ValueError(
            f"{name} has {len(values)} step(s) (n_samples = {len(values)}); "
            f"a series needs at least {shortest}, drop shorter ones"
        )
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(f"{name} has no columns (shape {values.shape})")
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def as_array(part: Any) -> Array:
    """An array, list, or a series or frame of pandas or polars; masked values, None and NA become NaN."""
    if isinstance(part, np.ma.MaskedArray):
        return np.ma.filled(part.astype(np.float64), np.nan)
    values = np.asarray(part)
    if values.dtype != object:
        return values
    if hasattr(part, "isna"):  # pandas: columns with NA, or of several types
        return np.asarray(part.to_numpy(dtype=np.float64, na_value=np.nan))
    try:
        return values.astype(np.float64)
    except (TypeError, ValueError):
        return values  # not numbers: the caller says so


def _width(part: Array) -> str:
    return "shape (T,)" if part.ndim == 1 else f"shape (T, {part.shape[1]})"
