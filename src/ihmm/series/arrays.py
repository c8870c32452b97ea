"""Lists, arrays and data frames of any library as NumPy arrays."""

import os
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np

from ihmm._typing import Array


def as_array(part: Any) -> Array:
    """Convert an array, a list, or a pandas or polars series or data frame; masked values, None and NA become NaN.

    Numbers are int64 or float64, contiguous by row, so that compiled code sees one layout. What is not a number keeps a
    type that the caller refuses.
    """
    if isinstance(part, (str, bytes, os.PathLike)):
        raise TypeError(f"expected numbers, got {str(part)!r}; read a file first, with pandas.read_csv for example")
    if part is None or isinstance(part, (dict, set)):
        raise TypeError(f"expected an array, a list or a data frame of numbers, got {type(part).__name__}")
    if _is_polars_with_dates(part):
        return np.zeros(part.shape, "datetime64[ns]")
    values = np.ma.getdata(part) if isinstance(part, np.ma.MaskedArray) else np.asarray(part)
    if values.dtype == object:
        values = _from_objects(values)
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
    numbers = [np.nan if is_missing(value) else value for value in values.flat]
    if not all(isinstance(value, (Real, Decimal, np.bool_, str)) for value in numbers):
        return values
    if any(isinstance(value, str) for value in numbers):
        return values.astype(str)
    try:
        return np.array([float(value) for value in numbers]).reshape(values.shape)
    except OverflowError:
        return values


def _is_polars_with_dates(part: Any) -> bool:
    """Whether a polars data frame has dates or times, which it would convert to numbers."""
    dtypes = getattr(part, "dtypes", None)
    return isinstance(dtypes, list) and any(dtype.is_temporal() for dtype in dtypes)


def is_missing(value: Any) -> bool:
    return value is None or value is np.ma.masked or type(value).__name__ == "NAType"  # of pandas
