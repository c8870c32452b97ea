"""Series from files: CSV, TSV, NPY and Parquet, or a sentence that says which line or column is wrong."""

import csv
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ihmm._typing import Array, IntArray

if TYPE_CHECKING:
    import pandas

MISSING = ("", "NA", "N/A", "n/a", "#N/A", "<NA>", "NaN", "nan", "-nan", "NULL", "null", "None")
DELIMITERS = {"\t": "tab", ";": "';'", "|": "'|'", " ": "space", ",": "','"}  # how to write each after --delimiter
MOST_SYMBOLS = 50  # different texts that are taken for symbols without being asked to
GLANCE = 5  # lines looked at to guess a delimiter


class TableError(ValueError):
    """A file that cannot be read as asked for; the message, one line, is for the person who named it."""

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


@dataclass(frozen=True)
class Table:
    """Series with their names, and what their columns and symbols are called.

    `series` are arrays of (T, D), NaN where a value is missing. Text is coded: `symbols[i]` is what i stands for.
    """

    series: list[Array]
    names: list[str]
    columns: list[str]
    symbols: tuple[str, ...] = ()

    @property
    def values(self) -> Array:
        """All series end to end, (total T, D)."""
        return np.concatenate(self.series)


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
    """Read series from files, one a file, or one for each value of the column `by`.

    Columns go by name, or by number from 1 where there is no header; ``*`` stands for any letters. None need be
    named if there is only one, nor for an array. One column of text is coded for a categorical emission, with the
    `symbols` given or else those that occur, in alphabetical order.
    """
    sources = [_open(Path(file), delimiter, text=bool(symbols), by=by) for file in files]
    chosen = [_choose(source, columns, by) for source in sources]
    for source, names in zip(sources, chosen, strict=True):
        if names != chosen[0]:
            raise TableError(f"{source.path} has the columns {_list(names)}, {sources[0].path} has {_list(chosen[0])}")
    if symbols or _is_text(sources, chosen[0], emission):
        symbols = tuple(symbols) or _symbols(sources, chosen[0][0])
        values = [_code(source, chosen[0][0], symbols) for source in sources]
    else:
        values = [_numbers(source, chosen[0]) for source in sources]
    parts = list(_parts(sources, values, by))
    for name, part in parts:
        if len(part) < shortest:
            raise TableError(f"{name} has {len(part)} row; a series needs at least {shortest}")
    table = Table([part for _, part in parts], [name for name, _ in parts], chosen[0], tuple(symbols))
    if np.isnan(table.values.astype(float)).all():
        raise TableError(f"there are no values in {_list(chosen[0])} of {_list([str(file) for file in files])}")
    return table


# Files


class _Source(NamedTuple):
    """A file as a frame, with what is needed to say where in it a row stands."""

    path: Path
    frame: "pandas.DataFrame"
    delimiter: str | None = None  # of text files
    skipped: int = 0  # rows of text before the first of the frame

    def place(self, row: int) -> str:
        """'trace.csv, line 7'."""
        if self.delimiter is None:
            return f"{self.path}, row {row + 1}"
        lines = _rows(self.path, self.delimiter, blank=self.frame.shape[1] == 1)
        line, _ = next(islice(lines, row + self.skipped, None), (row + self.skipped + 1, []))
        return f"{self.path}, line {line}"


def _open(path: Path, delimiter: str | None, *, text: bool, by: str | None) -> _Source:
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a file")
    if not path.exists():
        raise TableError(f"there is no file {path}")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    readers = {".npy": _open_array, ".parquet": _open_parquet, ".pq": _open_parquet}
    try:
        reader = readers.get(path.suffix.lower())
        source = reader(path) if reader else _open_text(path, _delimiter(path, delimiter), text, by)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(source.frame) == 0:
        raise TableError(f"{path} has {'a header but ' * bool(source.skipped)}no rows")
    return source


def _open_array(path: Path) -> _Source:
    import pandas

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TableError(f"{path} is not a NumPy array of numbers: {error}") from error
    if array.dtype.kind not in "biufU":
        raise TableError(f"{path} holds {array.dtype}, not numbers or text")
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise TableError(f"{path} has shape {array.shape}; a series has (T,) or (T, D)")
    columns = array.reshape(len(array), -1).T
    return _Source(path, pandas.DataFrame({str(i): column for i, column in enumerate(columns, 1)}))


def _open_parquet(path: Path) -> _Source:
    import pandas

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise TableError(f"{path} needs pyarrow to be read: pip install pyarrow") from error
    except (ValueError, OSError) as error:
        raise TableError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return _Source(path, frame.rename(columns=str))


def _delimiter(path: Path, delimiter: str | None) -> str:
    if delimiter is None:
        return "\t" if path.suffix.lower() in (".tsv", ".tab") else ","
    delimiter = {"tab": "\t", r"\t": "\t", "space": " ", "comma": ",", "semicolon": ";"}.get(delimiter, delimiter)
    if len(delimiter) != 1:
        raise TableError(f"a delimiter is one character, 'tab' or 'space', got {delimiter!r}")
    return delimiter


def _open_text(path: Path, delimiter: str, text: bool, by: str | None) -> _Source:
    _refuse_binary(path)
    records = enumerate(cells for _, cells in _rows(path, delimiter, blank=True))
    before, cells = next(((i, cells) for i, cells in records if any(cells)), (0, []))
    if not cells:
        raise TableError(f"{path} is empty")
    headed = _is_header(cells)
    names = [cell or f"column {i}" if headed else str(i) for i, cell in enumerate(cells, 1)]
    if len(names) == 1:
        _suggest_delimiter(path, delimiter)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise TableError(f"{path} has {names.count(twice)} columns named {twice}")
    frame = _parse(path, delimiter, names, skip=before + headed, dtype=str if text else {by: str})
    if headed and len(names) == 1 and names[0] in set(frame[names[0]].dropna().astype(str)):
        return _open_text_without_header(path, delimiter, skip=before)
    return _Source(path, frame, delimiter, int(headed))


def _is_header(cells: list[str]) -> bool:
    """Names are not numbers, but for those that pandas gives to columns without any."""
    counted = [str(i) for i in range(len(cells))]
    by_pandas = len(cells) > 1 and cells in (counted, ["", *counted[:-1]])
    return by_pandas or not all(_is_number(cell) or cell in MISSING for cell in cells)


def _open_text_without_header(path: Path, delimiter: str, skip: int) -> _Source:
    """One column of text whose first line is a value as others are, not a name."""
    return _Source(path, _parse(path, delimiter, ["1"], skip, dtype=str), delimiter)


def _parse(path: Path, delimiter: str, names: list[str], skip: int, dtype: Any) -> "pandas.DataFrame":
    """By pandas; where it stumbles, the line is looked for."""
    import pandas

    try:
        with warnings.catch_warnings(action="error", category=pandas.errors.ParserWarning):
            frame = pandas.read_csv(
                path,
                sep=r"\s+" if delimiter == " " else delimiter,
                header=None,
                names=names,
                index_col=False,
                skiprows=skip,
                dtype=dtype,
                na_values=list(MISSING),
                keep_default_na=False,
                skip_blank_lines=len(names) > 1,  # in one column an empty line is an empty cell
                skipinitialspace=True,
                low_memory=False,
                encoding="utf-8-sig",
            )
    except pandas.errors.EmptyDataError:
        return pandas.DataFrame({name: [] for name in names})
    except (ValueError, pandas.errors.ParserWarning) as error:
        _find_ragged(path, delimiter, len(names))
        raise TableError(f"{path} cannot be read as a table: {str(error).strip()}") from error
    if len(names) == 1:
        full = np.flatnonzero(frame[names[0]].notna())
        return frame.iloc[: full[-1] + 1 if len(full) else 0]  # without the empty lines at the end
    if frame[names[-1]].isna().any():  # which is how a short row looks
        _find_ragged(path, delimiter, len(names))
    return frame


def _rows(path: Path, delimiter: str, *, blank: bool = False) -> Iterator[tuple[int, list[str]]]:
    """Line numbers and cells of a text file, empty lines left out unless `blank`."""
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if delimiter == " ":
                lines = ((i, line.split()) for i, line in enumerate(file, 1))
            else:
                reader = csv.reader(file, delimiter=delimiter)
                lines = ((reader.line_num, cells) for cells in reader)
            for line, cells in lines:
                if blank or len(cells) > 1 or any(cell.strip() for cell in cells):
                    yield line, [cell.strip() for cell in cells]
    except UnicodeDecodeError as error:
        raise TableError(f"{path} is not text in UTF-8 (line {_line_of(path)}); save it in that encoding") from error
    except csv.Error as error:
        raise TableError(f"{path} cannot be read as a table: {error}") from error


def _line_of(path: Path) -> int:
    """The first line that is not UTF-8."""
    for number, line in enumerate(path.read_bytes().split(b"\n"), 1):
        try:
            line.decode("utf-8")
        except UnicodeDecodeError:
            return number
    return 1


def _refuse_binary(path: Path) -> None:
    with path.open("rb") as file:
        begin = file.read(1 << 16)
    if begin.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise TableError(f"{path} is text in UTF-16; save it as UTF-8")
    if b"\0" in begin:
        raise TableError(f"{path} is not a table of text; CSV, TSV, NPY and Parquet files can be read")


def _suggest_delimiter(path: Path, delimiter: str) -> None:
    """If lines that are one cell would be several of them, numbers too, when split elsewhere."""
    for other, name in DELIMITERS.items():
        lines = [cells for _, cells in islice(_rows(path, other), GLANCE)]
        several = len(lines) > 1 and len(lines[0]) > 1 and len({len(cells) for cells in lines}) == 1
        if other != delimiter and several and any(map(_like_a_number, lines[-1])):
            here = DELIMITERS.get(delimiter, delimiter)
            raise TableError(f"{path} has one column if split at {here}: try --delimiter {name}")


def _find_ragged(path: Path, delimiter: str, width: int) -> None:
    for line, cells in _rows(path, delimiter):
        ends_in_delimiter = len(cells) == width + 1 and not cells[-1]
        if len(cells) != width and not ends_in_delimiter:
            raise TableError(f"{path}, line {line} has {_count(len(cells), 'cell')}, the first line has {width}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return "_" not in cell


def _like_a_number(cell: str) -> bool:
    """A decimal comma does not make a number, nor a symbol."""
    return _is_number(cell.replace(",", "."))


# Columns


def _choose(source: _Source, columns: Sequence[str], by: str | None) -> list[str]:
    there = list(source.frame.columns)
    if by is not None and by not in there:
        raise TableError(f"{source.path} has no column {by}; it has {_list(there)}")
    others = [name for name in there if name != by]
    if not others:
        raise TableError(f"{source.path} has no column but {by}")
    if columns:
        chosen = dict.fromkeys(name for pattern in columns for name in _matching(source.path, others, pattern))
        return list(chosen)
    if len(others) != 1 and source.path.suffix.lower() != ".npy":
        raise TableError(f"{source.path} has the columns {_list(there)}: say with --column which to use")
    return others


def _matching(path: Path, there: list[str], pattern: str) -> list[str]:
    found = [pattern] if pattern in there else [name for name in there if fnmatchcase(name, pattern)]
    if not found:
        raise TableError(f"{path} has no column {pattern}; it has {_list(there)}")
    return found


def _is_text(sources: list[_Source], columns: list[str], emission: str) -> bool:
    """Whether the column holds symbols: text is meant if asked for, or if nothing in it is a number."""
    if len(columns) != 1 or emission not in ("auto", "categorical"):
        return False
    texts = [_texts(source, columns[0]) for source in sources if not _is_numeric(source.frame[columns[0]])]
    if len(texts) < len(sources) or emission == "categorical":
        return bool(texts)
    different = set().union(*(column.dropna().unique() for column in texts))
    return len(different) <= MOST_SYMBOLS and not any(map(_like_a_number, different))


def _symbols(sources: list[_Source], column: str) -> tuple[str, ...]:
    return tuple(sorted(set().union(*(_texts(source, column).dropna().unique() for source in sources))))


def _code(source: _Source, column: str, symbols: Sequence[str]) -> Array:
    texts = _texts(source, column)
    codes = texts.map({symbol: i for i, symbol in enumerate(symbols)})
    unknown = np.flatnonzero(codes.isna() & texts.notna())
    if len(unknown):
        place, found = source.place(unknown[0]), texts.iloc[unknown[0]]
        raise TableError(f"{place}: {found!r} is not one of the symbols {_list(list(symbols))}")
    values: Array = codes.to_numpy(np.float64)[:, None]
    return values if np.isnan(values).any() else values.astype(np.int64)


def _texts(source: _Source, column: str) -> "pandas.Series":
    values = source.frame[column]
    return values.where(values.isna(), values.astype(str)).astype(object)


def _is_numeric(values: "pandas.Series") -> bool:
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    return bool(is_numeric_dtype(values) and not is_bool_dtype(values))


def _numbers(source: _Source, columns: list[str]) -> Array:
    from pandas.api.types import is_integer_dtype

    arrays = []
    for name in columns:
        values = source.frame[name]
        if not _is_numeric(values):
            values = _as_numbers(source, name)
        whole = is_integer_dtype(values) and not values.isna().any()
        array = values.to_numpy(np.int64) if whole else values.to_numpy(np.float64, na_value=np.nan)
        infinite = np.flatnonzero(np.isinf(array))
        if len(infinite):
            raise TableError(f"{source.place(infinite[0])}: {name} is infinite; leave the cell empty if it is missing")
        arrays.append(array)
    return np.stack(arrays, axis=1)


def _as_numbers(source: _Source, column: str) -> "pandas.Series":
    """A column that pandas took for text: by the first cell that is, or numbers if none is."""
    texts = _texts(source, column)
    wrong = ((i, text) for i, text in enumerate(texts) if isinstance(text, str) and not _is_number(text))
    row, text = next(wrong, (-1, ""))
    if row < 0:
        return texts.astype(np.float64)
    hint = "; write a point for the decimal comma" if _like_a_number(text) else ""
    raise TableError(f"{source.place(row)}: {text!r} in column {column} is not a number{hint}")


def _parts(sources: list[_Source], values: list[Array], by: str | None) -> Iterator[tuple[str, Array]]:
    """Names and values of all series, in order of appearance."""
    files = [source.path.name for source in sources]
    if len(set(files)) < len(files):
        files = [str(source.path) for source in sources]
    for source, file, block in zip(sources, files, values, strict=True):
        if by is None:
            yield file, block
        else:
            for name, rows in _groups(source, by):
                yield name if len(files) == 1 else f"{file}: {name}", block[rows]


def _groups(source: _Source, by: str) -> Iterator[tuple[str, IntArray]]:
    """Every id with its rows."""
    ids = source.frame[by]
    missing = np.flatnonzero(ids.isna())
    if len(missing):
        raise TableError(f"{source.place(missing[0])} has no {by}, which says to which series it belongs")
    for name, rows in ids.groupby(ids, sort=False).indices.items():
        yield str(name), np.asarray(rows)


def _list(names: Sequence[str], most: int = 12) -> str:
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")


def _count(n: int, noun: str) -> str:
    return f"{n} {noun}{'s' * (n != 1)}"
