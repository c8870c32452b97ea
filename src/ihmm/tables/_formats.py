"""Opening NPY and Parquet files; all other files are read as delimited text."""

from pathlib import Path

import numpy as np

from ihmm.tables._source import Layout, Source, TableError
from ihmm.tables._text import open_text


def open_file(path: Path, layout: Layout, *, text: bool, by: str | None) -> Source:
    """Open a file by its suffix. `text`: do not convert cells to numbers; `by`: a column of text."""
    if path.is_dir():
        raise TableError(f"{path} is a folder, not a file")
    if not path.exists():
        hint = "; standard input is not read, save it to a file first" if str(path) == "-" else ""
        raise TableError(f"file not found: {path}{hint}")
    if not path.is_file():
        raise TableError(f"{path} is a pipe or device, which cannot be read twice; save its contents to a file first")
    if path.stat().st_size == 0:
        raise TableError(f"{path} is empty")
    readers = {".npy": _open_array, ".parquet": _open_parquet, ".pq": _open_parquet}
    try:
        reader = readers.get(path.suffix.lower())
        source = reader(path)._replace(layout=layout) if reader else open_text(path, layout, text, by)
    except OSError as error:
        raise TableError(f"{path} cannot be read: {error.strerror or error}") from error
    if len(source.frame) == 0:
        raise TableError(f"{path} has {'a header but ' * bool(source.skipped)}no rows")
    return source


def _open_array(path: Path) -> Source:
    import pandas

    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise TableError(f"{path} is not a NumPy array of numbers: {error}") from error
    if array.dtype.kind not in "biufU":
        raise TableError(f"{path} has dtype {array.dtype}; expected real numbers or text")
    if array.ndim not in (1, 2) or 0 in array.shape[1:]:
        raise TableError(f"{path} has shape {array.shape}; expected (T,) or (T, D)")
    columns = array.reshape(len(array), -1).T
    return Source(path, pandas.DataFrame({str(i): column for i, column in enumerate(columns, 1)}))


def _open_parquet(path: Path) -> Source:
    import pandas

    try:
        frame = pandas.read_parquet(path)
    except ImportError as error:
        raise TableError(f"reading {path} needs pyarrow: pip install 'ihmm[parquet]'") from error
    except (ValueError, OSError) as error:
        raise TableError(f"{path} cannot be read as Parquet: {str(error).splitlines()[0]}") from error
    return Source(path, frame.rename(columns=str))
