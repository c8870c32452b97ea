"""From files to series: open each file, choose columns, convert values, split by series."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ihmm._typing import Array, IntArray
from ihmm.sequences import Sequences
from ihmm.tables._columns import choose_columns, numeric_values
from ihmm.tables._formats import open_file
from ihmm.tables._source import Source, TableError, joined
from ihmm.tables._symbols import are_symbols, encode, find_symbols


@dataclass(frozen=True)
class Table:
    """Series with the names of series, columns and symbols.

    `series` are arrays (T, D) with NaN for missing values. Symbols are stored as integers: i stands for `symbols[i]`.
    """

    series: list[Array]
    names: list[str]
    columns: list[str]
    symbols: tuple[str, ...] = ()

    @property
    def values(self) -> Array:
        """All series concatenated, (total T, D)."""
        return np.concatenate(self.series)

    @property
    def sequences(self) -> Sequences:
        """The series with the names of their columns."""
        return Sequences.of(self.series, columns=self.columns)


def read(
    files: Sequence[str | Path],
    columns: Sequence[str] = (),
    *,
    by: str | None = None,
    delimiter: str | None = None,
    emission: str = "auto",
    symbols: Sequence[str] = (),
    shortest: int = 2,
) -> Table:
    """Read one series per file, or one per value of the column `by`.

    `columns` are names or patterns such as ``ch*``; columns of a file without a header are numbered from 1. They may be
    omitted for NPY files and for files with a single column. A single column of text is encoded for a categorical
    emission, with the given `symbols` or else with those that occur, in alphabetical order.
    """
    sources = [open_file(Path(file), delimiter, text=bool(symbols), by=by) for file in files]
    chosen = _common_columns(sources, columns, by)
    if symbols or are_symbols(sources, chosen, emission):
        symbols = tuple(symbols) or find_symbols(sources, chosen[0])
        values = [encode(source, chosen[0], symbols) for source in sources]
    else:
        values = [numeric_values(source, chosen) for source in sources]
    parts = list(_split_by_series(sources, values, by))
    for name, part in parts:
        if len(part) < shortest:
            raise TableError(f"{name} has {len(part)} row; a series needs at least {shortest}")
    table = Table([part for _, part in parts], [name for name, _ in parts], chosen, tuple(symbols))
    if np.isnan(table.values.astype(float)).all():
        raise TableError(f"all values of {joined(chosen)} in {joined([str(file) for file in files])} are missing")
    return table


def _common_columns(sources: list[Source], columns: Sequence[str], by: str | None) -> list[str]:
    """The columns to read, in the order of the first file; those of other files are matched by name."""
    chosen = [choose_columns(source, columns, by) for source in sources]
    for source, names in zip(sources, chosen, strict=True):
        if sorted(names) != sorted(chosen[0]):
            raise TableError(
                f"all files need the same columns: {source.path} has {joined(names)}, "
                f"but {sources[0].path} has {joined(chosen[0])}"
            )
    return chosen[0]


def _split_by_series(sources: list[Source], values: list[Array], by: str | None) -> Iterator[tuple[str, Array]]:
    """Name and values of each series, in order of appearance."""
    files = [source.path.name for source in sources]
    if len(set(files)) < len(files):
        files = [str(source.path) for source in sources]
    for source, file, block in zip(sources, files, values, strict=True):
        if by is None:
            yield file, block
        else:
            for name, rows in _rows_by_id(source, by):
                yield name if len(files) == 1 else f"{file}: {name}", block[rows]


def _rows_by_id(source: Source, by: str) -> Iterator[tuple[str, IntArray]]:
    ids = source.frame[by]
    missing = np.flatnonzero(ids.isna())
    if len(missing):
        raise TableError(f"{source.place(missing[0])}: column {by} is empty; every row needs the id of its series")
    for name, rows in ids.groupby(ids, sort=False).indices.items():
        yield str(name), np.asarray(rows)
