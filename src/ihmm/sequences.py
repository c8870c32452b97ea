"""Raw series → one flat array and the lengths of the sequences in it, or an error that says what is wrong."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ihmm._typing import Array, IntArray


@dataclass(frozen=True)
class Sequences:
    """Several series laid end to end: `values` is (total T,) or (total T, D), `lengths` tells them apart."""

    values: Array
    lengths: IntArray

    @classmethod
    def of(cls, y: Any) -> "Sequences":
        """Read one series, (T,) or (T, D), or a list of them."""
        if isinstance(y, Sequences):
            return y
        series = [_as_series(part, i) for i, part in enumerate(_parts(y))]
        if not series:
            raise ValueError("expected a series or a list of series, got an empty list")
        widths = {part.shape[1:] for part in series}
        if len(widths) > 1:
            found = ", ".join(f"sequence {i} has {_width(part)}" for i, part in enumerate(series[:5]))
            raise ValueError(f"all sequences need the same number of columns: {found}")
        return cls(np.concatenate(series), np.array([len(part) for part in series], dtype=np.int64))

    @property
    def offsets(self) -> IntArray:
        """Where each sequence starts, and the total length at the end."""
        return np.concatenate([[0], np.cumsum(self.lengths)])


def _parts(y: Any) -> Sequence[Any]:
    """A list whose members are series themselves is several sequences; anything else is one."""
    if isinstance(y, (list, tuple)) and any(np.ndim(part) > 0 for part in y):
        return y
    return [y]


def _as_series(part: Any, index: int) -> Array:
    name = f"sequence {index}"
    try:
        values = np.asarray(part)
    except ValueError as error:
        raise ValueError(f"{name} is not an array of shape (T,) or (T, D): {error}") from error
    if values.dtype.kind not in "biuf":
        raise TypeError(f"{name} must hold numbers, got dtype {values.dtype}; code symbols as integers 0, 1, 2, …")
    if values.ndim not in (1, 2):
        raise ValueError(f"{name} must have shape (T,) or (T, D), got {values.shape}; pass several series as a list")
    if len(values) < 2:
        raise ValueError(f"{name} has {len(values)} step(s); a series needs at least 2, drop shorter ones")
    if values.ndim == 2 and values.shape[1] == 0:
        raise ValueError(f"{name} has no columns (shape {values.shape})")
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _width(part: Array) -> str:
    return "shape (T,)" if part.ndim == 1 else f"shape (T, {part.shape[1]})"
