"""Setup shared by all tests."""

import os
import sys
from pathlib import Path

import pytest

KERNELS = Path(__file__).parents[1] / "src" / "ihmm" / "kernels"


def pytest_configure(config: pytest.Config) -> None:
    # Under pytest-xdist only the controller does this, before it starts the workers, which share the cache.
    if not hasattr(config, "workerinput"):
        remove_stale_kernels(KERNELS, os.environ.get("NUMBA_CACHE_DIR"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # With several workers the longest tests come first, so that none is left with a long one at the end.
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: (not item.get_closest_marker("slow"), not item.get_closest_marker("law")))


def remove_stale_kernels(folder: Path, cache: str | None = None) -> None:
    """Delete the compiled kernels of a folder if any source file is newer than the oldest of them.

    numba recompiles a cached function when its own file changes, but not when a function that it calls, in another
    file, changes: tests would then run outdated code. `cache` is the folder numba uses instead of __pycache__, if any.
    """
    sources = list(folder.rglob("*.py"))
    folders = {source.parent for source in sources}
    if cache is None:
        places = [each / "__pycache__" for each in folders]
    else:
        places = [place for each in folders for place in Path(cache).glob(f"{each.name}_*")]
    compiled = [file for place in places for file in place.glob("*.nb[ic]")]
    if sources and max(map(_modified, sources)) > min(map(_modified, compiled), default=sys.maxsize):
        for file in compiled:
            file.unlink(missing_ok=True)


def _modified(file: Path) -> int:
    try:
        return file.stat().st_mtime_ns
    except FileNotFoundError:  # another session has just removed it
        return sys.maxsize
