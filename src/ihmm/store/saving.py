"""Saving a posterior: a run folder that is complete and cannot be resumed."""

import os
import shutil
import uuid
from pathlib import Path

from ihmm._typing import Array
from ihmm.store._base import Chunk, Phase, RunContents
from ihmm.store.archive import hidden_sibling
from ihmm.store.chunk_files import DATA, write_chunk, write_data
from ihmm.store.draw_storage import PackedDraws, StoredDraws
from ihmm.store.locking import LOCK
from ihmm.store.run_json import RUN_JSON, read_run_json, write_run_json


def save(path: str | os.PathLike[str], contents: RunContents) -> None:
    """Write a posterior to a temporary folder and rename it, so that a crash never leaves half of one."""
    target = Path(path).resolve()
    if target.exists() and not _may_replace(target):
        raise FileExistsError(f"{target} exists and is not a saved posterior; give a path that does not exist yet")
    folder = hidden_sibling(target)
    folder.mkdir(parents=True)
    try:
        identity = uuid.uuid4().hex
        write_data(folder, contents.data, None)
        chains = _by_chain(contents)
        for chain, draws in chains.items():
            write_chunk(folder, identity, chain, 0, Chunk(0, draws, None))
        sizes = {chain: {phase: len(packed) for phase, (_, packed) in draws.items()} for chain, draws in chains.items()}
        write_run_json(folder, contents.settings, identity, resumable=False, sizes=sizes)
        _put_in_place(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _may_replace(target: Path) -> bool:
    """Whether a folder is empty or a saved posterior. A run that can be resumed is never replaced."""
    if not target.is_dir():
        return False
    if not any(target.iterdir()):
        return True
    try:
        return read_run_json(target)["resumable"] is False
    except ValueError:
        return False


def _by_chain(contents: RunContents) -> dict[int, dict[Phase, tuple[Array, PackedDraws]]]:
    chains: dict[int, dict[Phase, tuple[Array, PackedDraws]]] = {}
    stored: tuple[tuple[Phase, StoredDraws | None], ...] = ("kept", contents.kept), ("warmup", contents.warmup)
    for phase, all_chains in stored:
        for states, packed in zip(*all_chains, strict=True) if all_chains is not None else ():
            chains.setdefault(packed.chain, {})[phase] = (states[: len(packed)], packed)
    return chains


def _put_in_place(folder: Path, target: Path) -> None:
    """Rename `folder` to `target`. A posterior there is moved aside first; files of the user are kept."""
    if not target.exists():
        folder.rename(target)
        return
    aside = hidden_sibling(target)
    target.rename(aside)
    try:
        folder.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    for entry in aside.iterdir():
        if not (entry.name in (RUN_JSON, DATA, LOCK) or entry.match("chain-*")):
            entry.rename(target / entry.name)
    shutil.rmtree(aside)
