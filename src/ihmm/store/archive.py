"""Archives of arrays with a digest, written atomically."""

import contextlib
import hashlib
import io
import itertools
import json
import os
import re
import uuid
import zipfile
from pathlib import Path
from typing import Any, cast

import numpy as np

from ihmm._typing import Array

MAGIC = b"ihmm chunk 1 "


class DamagedError(ValueError):
    """A file differs from what was written."""


def write_archive(path: Path, arrays: dict[str, Array]) -> None:
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise TypeError(f"{', '.join(objects)} cannot be saved: the emission returned an array of Python objects")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **cast(Any, arrays))
    content = buffer.getvalue()
    write_atomically(path, MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file completely or not at all. It is on the disk when this returns."""
    draft = hidden_sibling(path)
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the new name too, where folders can be flushed
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def hidden_sibling(path: Path) -> Path:
    """A new name in the same folder, for a file or folder that is renamed when complete."""
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")


def remove_drafts(folder: Path) -> None:
    """Remove what killed writes left in a folder and in those of its chains. Only with its lock held."""
    for path in itertools.chain(folder.glob(".*"), folder.glob("chain-*/.*")):
        if re.fullmatch(r"\..+\.[0-9a-f]{12}", path.name) and path.is_file():
            path.unlink(missing_ok=True)


def stored_digest(path: Path) -> str:
    """The digest in the first line of a chunk."""
    with path.open("rb") as file:
        return file.readline(len(MAGIC) + 65).removeprefix(MAGIC).strip().decode("ascii", "replace")


def read_archive(path: Path, name: str) -> dict[str, Array]:
    """The arrays of a file, which is called `name` in messages."""
    try:
        first, content = path.read_bytes().split(b"\n", 1)
    except (FileNotFoundError, ValueError) as error:
        raise DamagedError(f"{name} is missing or truncated") from error
    if first != MAGIC + hashlib.sha256(content).hexdigest().encode():
        raise DamagedError(f"{name} does not match its checksum")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {Path(entry.filename).stem: _read_array(archive, entry) for entry in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise DamagedError(f"{name} is not an archive of arrays ({error})") from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """One array. Its header is checked first, so that a forged one cannot make us allocate more than there is."""
    with archive.open(entry) as file:
        major, _ = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(file)
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if dtype.hasobject or size != entry.file_size - file.tell():
            raise ValueError(f"the header of {entry.filename}, shape {shape} of {dtype}, does not match its size")
    with archive.open(entry) as file:
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False), order="C")


def to_bytes(value: Any) -> Array:
    """A JSON value as an array of bytes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def from_bytes(array: Array) -> Any:
    return json.loads(array.astype(np.uint8).tobytes())
