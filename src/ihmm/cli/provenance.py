"""provenance.json in the run folder: versions, command, date, digests of the data files, and the names in the data."""

import hashlib
import platform
import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ihmm.choice import Choice
from ihmm.posterior import Posterior
from ihmm.store.sealed_json import read_sealed, write_sealed
from ihmm.tables import Table

FILE_NAME = "provenance.json"
PACKAGES = ("ihmm", "numpy", "scipy", "numba", "pandas")


def write(
    folder: Path,
    files: Sequence[str],
    table: Table,
    seed: int,
    choice: Choice | None = None,
    order_by: str = "use",
    names: Mapping[int, str] | None = None,
) -> None:
    record = {
        **_environment(),
        "seed": seed,
        "files": [{"path": str(Path(file).resolve()), "sha256": _digest(Path(file))} for file in files],
        "sequences": table.names,
        "columns": table.columns,
        "symbols": table.symbols,
        "reasons": () if choice is None else choice.reasons,
        "resolution": None if choice is None else choice.resolution,
        "order_by": order_by,
        "names": [[k, name] for k, name in (names or {}).items()],
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


def label(posterior: Posterior, record: dict[str, Any]) -> Posterior:
    """The posterior with the levels told apart and the order and names of states that the record has."""
    least = record.get("resolution")
    posterior.resolution = tuple(least) if isinstance(least, list) else least
    order_by, names = record.get("order_by", "use"), dict(record.get("names", ()))
    return posterior.relabel(order_by=order_by, names=names) if (order_by, names) != ("use", {}) else posterior


def relabel(folder: Path, order_by: str | None, names: Mapping[int, str]) -> None:
    """Record another order or other names of states."""
    record = read(folder)
    if not record:
        raise ValueError(f"{folder} was not made by ihmm fit: name its states in Python, with posterior.relabel")
    changes: dict[str, Any] = {"order_by": order_by} if order_by is not None else {}
    changes |= {"names": [[k, name] for k, name in names.items()]} if names else {}
    _write_record(folder, record | changes)


def add_resumption(folder: Path) -> None:
    """Record that a run made by `ihmm fit` was resumed."""
    record = read(folder)
    if record:
        _write_record(folder, record | {"resumed": [*record["resumed"], _environment()]})


def _environment() -> dict[str, Any]:
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "command": shlex.join(_typed()), "versions": versions, "platform": platform.platform()}


def _typed() -> list[str]:
    """The command line as one types it: its first word is the path of a file otherwise."""
    program, *arguments = sys.argv
    return [*(["python", "-m", "ihmm"] if Path(program).name == "__main__.py" else [Path(program).name]), *arguments]


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    write_sealed(folder / FILE_NAME, record)
