"""Set-up shared by all tests."""

import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[1] / "src" / "ihmm" / "kernels"


def pytest_configure(config: pytest.Config) -> None:
    # Under pytest-xdist only the controller cleans: it gets here before it starts the workers, which share the cache.
    if not hasattr(config, "workerinput"):
        remove_stale_kernels(KERNELS)


def remove_stale_kernels(folder: Path) -> None:
    """Delete the compiled kernels of a folder if any of its sources was edited after the oldest of them.

    numba recompiles a cached function when its own file changes, but not when a function it calls, in another file,
    does: the caller would go on running the old callee, and the tests would judge code that is no longer there.
    """
    sources = list(folder.rglob("*.py"))
    compiled = [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]
    if sources and max(map(_modified, sources)) > min(map(_modified, compiled), default=sys.maxsize):
        for file in compiled:
            file.unlink(missing_ok=True)


def _modified(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:  # another session just removed it
        return sys.maxsize
