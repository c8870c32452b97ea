"""The column with the time of each row."""

import numpy as np

from ihmm._typing import Array
from ihmm.series.clock import SECONDS, is_regular, unit_in
from ihmm.series.texts import AmbiguousError, is_number_with_comma, parse_times
from ihmm.tables._columns import is_numeric, numeric_values, text_values
from ihmm.tables._source import Source, TableError

SHORTEST = 10  # rows that a clock needs to be recognised


def clock_columns(source: Source, by: str | None) -> list[str]:
    """Columns that are a clock rather than data: numbers that rise steadily within each series, or dates."""
    frame = source.frame
    if len(frame) < SHORTEST or (by is not None and by not in frame):  # without that column nothing will be read
        return []
    groups = [np.arange(len(frame))] if by is None else [*frame.groupby(by, sort=False).indices.values()]
    return [name for name in frame.columns if name != by and _is_clock(source, name, groups)]


def _is_clock(source: Source, name: str, groups: list[Array]) -> bool:
    if not is_numeric(source.frame[name]) and not is_number_with_comma(str(source.frame[name].iloc[0])):
        return _has_dates(source, name)
    try:
        numbers = numeric_values(source, [name])[:, 0].astype(np.float64)
    except TableError:
        return False
    return bool(np.isfinite(numbers).all()) and all(is_regular(numbers[rows]) for rows in groups if len(rows) > 1)


def _has_dates(source: Source, name: str) -> bool:
    if source.frame[name].dtype.kind in "mM":
        return True
    texts = text_values(source, name).dropna().iloc[:SHORTEST].tolist()
    try:
        return bool(texts) and parse_times(texts) is not None
    except AmbiguousError:
        return True


def time_unit(source: Source, column: str) -> str | None:
    """The unit of a column of times by the row of units or the name of the column; 'dates' if it has dates."""
    if not is_numeric(source.frame[column]) and _has_dates(source, column):
        return "dates"
    unit = (source.units or {}).get(column)
    return unit if unit in SECONDS else unit_in(column)


def times(source: Source, column: str) -> Array:
    """Time of each row: seconds, or dates."""
    values = source.frame[column]
    if values.dtype.kind in "mM":
        return np.asarray(values.dt.tz_convert(None) if getattr(values.dt, "tz", None) is not None else values)
    unit = time_unit(source, column)
    if unit != "dates":
        return numeric_values(source, [column])[:, 0] * SECONDS[unit or "s"]
    texts = text_values(source, column)
    if texts.isna().any():
        raise TableError(
            f"{source.place(int(np.argmax(texts.isna())))}: column {column} is empty; every row needs a time"
        )
    try:
        found = parse_times(texts.tolist())
    except AmbiguousError as error:
        raise TableError(f"{source.path}: {error} in column {column}; write dates as 2024-12-31 23:59:59") from error
    if found is None:
        raise TableError(f"{source.path}: column {column} has times that cannot be read, such as {texts.iloc[-1]!r}")
    return found
