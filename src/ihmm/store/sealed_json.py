"""JSON files that hold their own digest, so that a change after they were written is noticed."""

import hashlib
import json
from pathlib import Path
from typing import Any

from ihmm.store.archive import write_atomically

DIGEST = "sha256"


def write_sealed(path: Path, record: dict[str, Any]) -> None:
    """Write a record and its digest, completely or not at all."""
    sealed = record | {DIGEST: _digest(record)}
    write_atomically(path, (json.dumps(sealed, indent=2, ensure_ascii=False) + "\n").encode())


def read_sealed(path: Path) -> dict[str, Any]:
    """The record in a file. One without a digest, as earlier versions wrote, is read as it is."""
    try:
        record = json.loads(path.read_text("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is damaged or not written by ihmm ({_first_line(error)})") from error
    if not isinstance(record, dict):
        raise ValueError(
            f"{path} is damaged or not written by ihmm (it holds a {type(record).__name__}, not an object)"
        )
    digest = record.pop(DIGEST, None)
    if digest is not None and digest != _digest(record):
        raise ValueError(
            f"{path} is damaged or was changed: it does not match its checksum; restore the file that ihmm wrote"
        )
    return record


def _digest(record: dict[str, Any]) -> str:
    """Independent of the layout of the file. The record is what a reader will see: JSON turns all keys into strings."""
    content = json.dumps(json.loads(json.dumps(record)), sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
