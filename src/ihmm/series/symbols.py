"""Series of texts: numbers written as text, or symbols, which are encoded as integers."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihmm._typing import Array
from ihmm.series.arrays import is_missing
from ihmm.series.texts import MISSING, NotANumberError, is_number_with_comma, parse_numbers


def encode(parts: Sequence[Any], symbols: Sequence[str] | None = None) -> tuple[Sequence[Any], tuple[str, ...] | None]:
    """Series of texts as numbers, and their symbols; other series as they are.

    Texts that are all numbers are converted. Others are encoded by their place among the `symbols`, by default all that
    occur, in alphabetical order.
    """
    texts = [_texts(part) for part in parts]
    written = [each for each in texts if each is not None]
    if len(written) < len(parts):
        return parts, None if symbols is None else tuple(symbols)
    distinct = sorted({text for each in written for text in each if text is not None})
    if symbols is None and any(map(is_number_with_comma, distinct)):
        return [_numbers(each, i) for i, each in enumerate(written)], None
    symbols = tuple(distinct) if symbols is None else tuple(symbols)
    return [_codes(each, i, symbols) for i, each in enumerate(written)], symbols


def _texts(part: Any) -> list[str | None] | None:
    """A series of texts as a list, None for missing ones; None if it is not a series of texts."""
    values = np.asarray(part)
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or values.dtype.kind not in "UTO":
        return None
    mask = np.ma.getmaskarray(part).ravel() if isinstance(part, np.ma.MaskedArray) else np.zeros(len(values), bool)
    gaps = [bool(masked) or _is_gap(value) for value, masked in zip(values.tolist(), mask, strict=True)]
    if all(gaps) or not all(gap or isinstance(value, str) for value, gap in zip(values.tolist(), gaps, strict=True)):
        return None
    return [None if gap else str(value) for value, gap in zip(values.tolist(), gaps, strict=True)]


def _is_gap(value: Any) -> bool:
    return is_missing(value) or (isinstance(value, float) and value != value) or value in MISSING


def _numbers(texts: list[str | None], index: int) -> Array:
    try:
        return parse_numbers(texts)
    except NotANumberError as error:
        raise TypeError(
            f"sequence {index} must contain numbers or symbols, not both: {error} at t = {error.place} is not a number"
        ) from error
    except ValueError as error:
        raise ValueError(f"sequence {index}: {error}; convert it to numbers") from error


def _codes(texts: list[str | None], index: int, symbols: tuple[str, ...]) -> Array:
    code: dict[str | None, float] = {symbol: i for i, symbol in enumerate(symbols)}
    unknown = next((t for t, text in enumerate(texts) if text is not None and text not in code), None)
    if unknown is not None:
        raise ValueError(
            f"sequence {index}: {texts[unknown]!r} at t = {unknown} is not one of the symbols {', '.join(symbols)}"
        )
    values = np.array([code.get(text, np.nan) for text in texts])
    return values if np.isnan(values).any() else values.astype(np.int64)
