"""provenance.json in the run folder: versions, command, date, digests of the data files, and the names in the data."""

import hashlib
import platform
import shlex
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ihmm.choice import Choice, Resolution
from ihmm.store.sealed_json import read_sealed, write_sealed
from ihmm.tables import Table

FILE_NAME = "provenance.json"
PACKAGES = ("ihmm", "numpy", "scipy", "numba", "pandas")


def write(folder: Path, files: Sequence[str], table: Table, seed: int, choice: Choice | None = None) -> None:
    record = {
        **_environment(),
        "seed": seed,
        "files": [{"path": str(Path(file).resolve()), "sha256": _digest(Path(file))} for file in files],
        "sequences": table.names,
        "columns": table.columns,
        "symbols": table.symbols,
        "reasons": () if choice is None else choice.reasons,
        "resolution": None if choice is None else choice.resolution,
        "resumed": [],
    }
    _write_record(folder, record)


def read(folder: Path) -> dict[str, Any]:
    """The record of a run; empty if the run was not made by `ihmm fit`."""
    try:
        record = read_sealed(folder / FILE_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    wrong = next((name for name in ("files", "sequences", "columns", "resumed") if not _is_list(record, name)), None)
    if wrong is not None:
        raise ValueError(f"{folder / FILE_NAME} is damaged or not written by ihmm ({wrong} must be a list)")
    return record


def _is_list(record: dict[str, Any], name: str) -> bool:
    return isinstance(record.get(name), list)


def resolution(record: dict[str, Any]) -> Resolution | None:
    """Which levels of the run are told apart."""
    least = record.get("resolution")
    return tuple(least) if isinstance(least, list) else least


def add_resumption(folder: Path) -> None:
    """Record that a run made by `ihmm fit` was resumed."""
    record = read(folder)
    if record:
        _write_record(folder, record | {"resumed": [*record["resumed"], _environment()]})


def _environment() -> dict[str, Any]:
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "command": shlex.join(sys.argv), "versions": versions, "platform": platform.platform()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    write_sealed(folder / FILE_NAME, record)
