"""Where compiled functions are kept: a folder that every process and every later session shares.

It is the folder of the environment variable NUMBA_CACHE_DIR if that is set, or else `__pycache__` beside the kernels;
for a read-only installation the user's own cache folder; and if there is none, a temporary folder.
"""

import hashlib
import os
import sys
import tempfile
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import NamedTuple

from numba import config

KERNELS = Path(__file__).parent


class CacheFolder(NamedTuple):
    path: Path
    reason: str  # why it is not beside the kernels; empty if it is, or if the user chose it


@cache
def cache_folder() -> CacheFolder:
    """The folder of the compiled functions."""
    chosen = config.CACHE_DIR
    if chosen:
        return CacheFolder(Path(chosen) / f"ihmm_{hashlib.sha1(bytes(KERNELS)).hexdigest()[:12]}", "")
    if is_writable(KERNELS / "__pycache__"):
        return CacheFolder(KERNELS / "__pycache__", "")
    read_only = "the installation is read-only"
    name = f"kernels_{hashlib.sha1(bytes(KERNELS)).hexdigest()[:12]}"
    own = user_caches() / "ihmm" / name
    if is_writable(own):
        return CacheFolder(own, read_only)
    temporary = Path(tempfile.gettempdir()) / (f"ihmm-{os.getuid()}" if hasattr(os, "getuid") else "ihmm")
    if not is_private(temporary):
        temporary = Path(tempfile.mkdtemp(prefix="ihmm-"))
    return CacheFolder(temporary / name, f"{read_only}, the home folder too: set NUMBA_CACHE_DIR to keep it elsewhere")


def user_caches() -> Path:
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", tempfile.gettempdir()))
    if sys.platform == "darwin":
        return Path(os.path.expanduser("~/Library/Caches"))
    return Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def is_writable(folder: Path) -> bool:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


def is_private(folder: Path) -> bool:
    """Whether a folder can be created, or belongs to this user: others could have put any code into it."""
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        return not hasattr(os, "getuid") or folder.stat().st_uid == os.getuid()
    return False


@cache
def version_of_sources() -> str:
    """A hash of all kernels: a function is compiled again if any function it calls may have changed, in any file."""
    digest = hashlib.sha256()
    for file in sorted(KERNELS.rglob("*.py")):
        digest.update(file.read_bytes())
    return digest.hexdigest()
