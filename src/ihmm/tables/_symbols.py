"""Encoding a column of text as integers."""

from collections.abc import Sequence

import numpy as np

from ihmm._typing import Array
from ihmm.series.texts import is_number_with_comma
from ihmm.tables._columns import is_numeric, text_values
from ihmm.tables._source import Source, TableError, joined

MAX_SYMBOLS = 50  # text with more distinct values is not taken for symbols unless the emission is categorical


def are_symbols(sources: list[Source], columns: list[str], emission: str) -> bool:
    """Whether a column holds symbols: text for a categorical emission, or text without any number."""
    if len(columns) != 1 or emission not in ("auto", "categorical"):
        return False
    texts = [text_values(source, columns[0]) for source in sources if not is_numeric(source.frame[columns[0]])]
    if len(texts) < len(sources) or emission == "categorical":
        return bool(texts)
    distinct = set().union(*(column.dropna().unique() for column in texts))
    return len(distinct) <= MAX_SYMBOLS and not any(map(is_number_with_comma, distinct))


def find_symbols(sources: list[Source], column: str) -> tuple[str, ...]:
    """The distinct values of a column in alphabetical order."""
    return tuple(sorted(set().union(*(text_values(source, column).dropna().unique() for source in sources))))


def encode(source: Source, column: str, symbols: Sequence[str]) -> Array:
    """Index of each symbol, (T, 1): integers, or floats with NaN if some are missing."""
    texts = text_values(source, column)
    codes = texts.map({symbol: i for i, symbol in enumerate(symbols)})
    unknown = np.flatnonzero(codes.isna() & texts.notna())
    if len(unknown):
        place, found = source.place(unknown[0]), texts.iloc[unknown[0]]
        raise TableError(f"{place}: {found!r} is not one of the symbols {joined(list(symbols))}")
    values: Array = codes.to_numpy(np.float64)[:, None]
    return values if np.isnan(values).any() else values.astype(np.int64)
