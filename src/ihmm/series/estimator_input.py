"""The X of scikit-learn estimators: one series, a list of series, or concatenated series with their lengths."""

from itertools import pairwise
from typing import Any

import numpy as np

from ihmm._typing import Array, ArrayLike, IntArray
from ihmm.series.arrays import as_array


def split_series(X: Any, lengths: ArrayLike | None) -> list[Any]:
    """The series in X, as they are."""
    if is_list_of_series(X):
        return list(X)
    if lengths is None or not hasattr(X, "__len__"):
        return [X]
    borders = [0, *split_points(lengths, len(X)), len(X)]
    rows = X.iloc if hasattr(X, "iloc") else X
    return [rows[begin:end] for begin, end in pairwise(borders)]


def is_list_of_series(X: Any) -> bool:
    """Whether X is a list of arrays, or a 3-D array. A list of lists of numbers is one series, given by rows."""
    if isinstance(X, np.ndarray):
        return X.ndim == 3
    if not isinstance(X, (list, tuple)):
        return False
    if any(np.ndim(part) == 2 or (np.ndim(part) == 1 and not isinstance(part, (list, tuple))) for part in X):
        return True
    if len({len(part) for part in X if isinstance(part, (list, tuple))}) > 1:
        raise ValueError("X has rows of different lengths; if they are series, make each of them an array")
    return False


def split_points(lengths: ArrayLike, total: int) -> IntArray:
    """Indices at which concatenated series are split."""
    each = np.atleast_1d(np.asarray(lengths))
    if each.ndim != 1 or each.dtype.kind not in "iu" or each.size == 0 or each.min() < 1 or each.sum() != total:
        got = f"{lengths!r}, which sum to {each.sum()}" if each.dtype.kind in "iuf" else repr(lengths)
        raise ValueError(f"lengths must be positive integers that sum to the {total} rows of X, got {got}")
    return np.cumsum(each)[:-1]


def as_numbers(X: Any) -> Array:
    """X as an array; dates, texts and other objects are refused."""
    values = as_array(X)
    if values.dtype.kind in "mMO":
        try:
            values.astype(object).astype(np.float64)
        except (TypeError, ValueError, OverflowError) as error:
            raise TypeError(f"X must contain numbers, got dtype {values.dtype}: {error}") from error
    return values


def n_dimensions(X: Any) -> int:
    return np.ndim(X) if isinstance(X, (list, tuple)) else len(getattr(X, "shape", (0, 0)))


def refuse_lengths_as_y(y: Any, total: int) -> None:
    """`lengths` given as the second argument, where hmmlearn has it."""
    if y is None:
        return
    values = np.asarray(y)
    if values.ndim == 1 and values.dtype.kind in "iu" and len(values) < total and values.sum() == total:
        raise ValueError(
            f"the second argument is y, which is ignored, but {np.array2string(values, threshold=5)} looks like the "
            "lengths of the series in X: pass them by keyword, as in fit(X, lengths=lengths)"
        )
