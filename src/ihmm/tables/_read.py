"""From files to series: open each file, choose columns, convert values, split by series, find the time of each row."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ihmm._typing import Array, IntArray
from ihmm.series.clock import Clock, recorded_clock
from ihmm.series.sequences import Sequences
from ihmm.tables._columns import choose_columns, numeric_values
from ihmm.tables._formats import open_file
from ihmm.tables._source import AS_FOUND, Layout, Source, TableError, joined
from ihmm.tables._symbols import are_symbols, encode, find_symbols
from ihmm.tables._time import clock_columns, time_unit, times


@dataclass(frozen=True)
class Table:
    """Series with the names of series, columns and symbols, and the time of each row if it is known.

    `series` are arrays (T, D) with NaN for missing values. Symbols are stored as integers: i stands for `symbols[i]`.
    `notes` say what was found out about the files.
    """

    series: list[Array]
    names: list[str]
    columns: list[str]
    symbols: tuple[str, ...] = ()
    clock: Clock | None = None
    notes: tuple[str, ...] = ()

    @property
    def values(self) -> Array:
        """All series concatenated, (total T, D)."""
        return np.concatenate(self.series)

    @property
    def sequences(self) -> Sequences:
        """The series with the names of their columns."""
        return Sequences.of(self.series, columns=self.columns, clock=self.clock, symbols=self.symbols or None)


def read(
    files: Sequence[str | Path],
    columns: Sequence[str] = (),
    *,
    by: str | None = None,
    time: str | None = None,
    clock: Clock | None = None,
    layout: Layout = AS_FOUND,
    emission: str = "auto",
    symbols: Sequence[str] = (),
    shortest: int = 2,
) -> Table:
    """Read one series per file, or one per value of the column `by`.

    `columns` are names or patterns such as ``ch*``; columns of a file without a header are numbered from 1. They may be
    omitted for NPY files and for files with a single column. A single column of text is encoded for a categorical
    emission, with the given `symbols` or else with those that occur, in alphabetical order.

    `time` is the column with the time of each row. Without it and without a `clock`, a column of dates or with a unit
    of time in its name that rises steadily is the time. Such columns are not data unless they are named.
    """
    sources = [open_file(Path(file), layout, text=bool(symbols), by=by) for file in files]
    reserved = [name for name in (by, time) if name is not None]
    clocks = [name for name in clock_columns(sources[0], by) if name not in reserved]
    chosen = _common_columns(sources, columns, reserved, clocks)
    left_out = [name for name in clocks if name not in chosen]
    notes = [f"{sources[0].path}: {'; '.join(sources[0].notes)}."] if sources[0].notes else []
    if time is None and clock is None:
        time = next((name for name in left_out if time_unit(sources[0], name)), None)
    notes += [_clock_note(sources[0], name, time, is_asked=bool(columns)) for name in left_out]
    if symbols or are_symbols(sources, chosen, emission):
        symbols = tuple(symbols) or find_symbols(sources, chosen[0])
        values = [encode(source, chosen[0], symbols) for source in sources]
    else:
        values = [numeric_values(source, chosen) for source in sources]
    notes += _constant_notes(chosen, np.concatenate(values))
    parts = list(_split_by_series(sources, values, by))
    for name, part in parts:
        if len(part) < shortest:
            raise TableError(f"{name} has {len(part)} row; a series needs at least {shortest}")
    names = [name for name, _ in parts]
    if time is not None:
        clock, said = _read_clock(sources, time, by, names)
        notes += said
    series = [part for _, part in parts]
    table = Table(series, names, chosen, tuple(symbols), clock, tuple(filter(None, notes)))
    if np.isnan(table.values.astype(float)).all():
        raise TableError(f"all values of {joined(chosen)} in {joined([str(file) for file in files])} are missing")
    return table


def _clock_note(source: Source, column: str, time: str | None, is_asked: bool) -> str:
    """Why a column is not data; nothing if other columns were asked for and it is not used."""
    if column == time:
        return f"Column {column} is the time of each row."
    if is_asked:
        return ""
    return f"Column {column} rises steadily, like a clock or a row number: it is left out (--time {column} uses it)."


def _constant_notes(columns: Sequence[str], values: Array) -> list[str]:
    """A column without any information is hardly the one that was meant."""
    known = [column[~np.isnan(column)] for column in values.T]
    constant = [name for name, own in zip(columns, known, strict=True) if own.size and np.ptp(own) == 0]
    return [f"Column {name} has the same value in every row." for name in constant]


def _read_clock(sources: list[Source], time: str, by: str | None, names: list[str]) -> tuple[Clock, list[str]]:
    """The clock that a column of times gives, and what was assumed."""
    columns = [times(source, time)[:, None] for source in sources]
    try:
        clock = recorded_clock([part[:, 0] for _, part in _split_by_series(sources, columns, by)], names)
    except ValueError as error:
        raise TableError(str(error)) from error
    assumed = f"Column {time} is taken to be in seconds; if it is not, write the unit in its name, as in 'time (ms)'."
    return clock, [] if time_unit(sources[0], time) else [assumed]


def _common_columns(
    sources: list[Source], columns: Sequence[str], reserved: Sequence[str], clocks: Sequence[str]
) -> list[str]:
    """The columns to read, in the order of the first file; those of other files are matched by name."""
    chosen = [choose_columns(source, columns, reserved, clocks) for source in sources]
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
