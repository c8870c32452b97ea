"""The lock of a run folder: one process at a time."""

import contextlib
import os
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

LOCK = "lock"


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. The operating system releases it however the process ends."""
    with (folder / LOCK).open("a+b") as file:
        _lock_or_raise(file, folder)
        yield


def busy(path: str | os.PathLike[str]) -> bool:
    """Whether a process is working on the run in this folder."""
    if not (Path(path) / LOCK).exists():
        return False
    try:
        with (Path(path) / LOCK).open("rb") as file:  # the folder may be read-only
            _lock_or_raise(file, Path(path))
            return False
    except RuntimeError:
        return True
    except OSError:
        return False  # a lock that cannot be opened is not ours to test


def _lock_or_raise(file: Any, folder: Path) -> None:
    try:
        _lock(file)
    except OSError as error:
        raise RuntimeError(f"another process is working on {folder}; wait until it ends, or stop it") from error


def _lock(file: Any) -> None:
    if os.name == "nt":
        msvcrt = import_module("msvcrt")
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl = import_module("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
