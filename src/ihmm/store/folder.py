"""A run in a folder, written while it runs."""

import contextlib
import os
import uuid
import warnings
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.model import Model
from ihmm.store._base import Chunk, RunContents, RunSettings, SweepRange
from ihmm.store.archive import DamagedError, remove_drafts
from ihmm.store.chunk_files import discard_chunks, read_chunks, read_data, write_chunk, write_data
from ihmm.store.chunk_writer import ChunkWriter
from ihmm.store.loading import load
from ihmm.store.locking import locked
from ihmm.store.run_json import RUN_JSON, compare_versions, read_run_json, settings_of, write_run_json


class RunFolder:
    """A run in a folder that is locked by this process."""

    def __init__(
        self, path: Path, settings: RunSettings, data: Data, trajectory: IntArray | None, identity: str
    ) -> None:
        self.path, self.settings, self.data, self.trajectory = path, settings, data, trajectory
        self._identity = identity

    @classmethod
    @contextlib.contextmanager
    def create(
        cls, path: str | os.PathLike[str], settings: RunSettings, data: Data, trajectory: IntArray | None
    ) -> "Iterator[RunFolder]":
        """Start a run. The folder may exist and hold other files, but no run."""
        folder = Path(path).resolve()
        if folder.is_file():
            raise FileExistsError(f"{folder} is a file; give the path of a folder for the run")
        _refuse_a_run(folder)
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder):
            _refuse_a_run(folder)  # another process may have made one meanwhile
            identity = uuid.uuid4().hex
            write_data(folder, data, trajectory)
            write_run_json(folder, settings, identity, resumable=True)
            yield cls(folder, settings, data, trajectory, identity)

    @classmethod
    @contextlib.contextmanager
    def reopen(cls, path: str | os.PathLike[str], model: Model | None) -> "Iterator[RunFolder]":
        """Open a run that was started earlier."""
        folder = Path(path).resolve()
        read_run_json(folder)  # no lock is left in a folder without a run
        with locked(folder):
            written = read_run_json(folder)  # another process may have added draws until now
            if not written.get("resumable"):
                raise ValueError(f"{folder} holds a saved posterior, not a run: it cannot be resumed")
            settings = settings_of(folder, written, model)
            if settings.sampler is None or len(settings.moves) < len(written["moves"]):
                raise ValueError(
                    f"the sampler or a move of {folder} is not part of this ihmm: the run cannot be resumed"
                )
            compare_versions(folder, written["versions"], stacklevel=4)  # the caller of `resume`, above __enter__
            remove_drafts(folder)
            try:
                data, trajectory = read_data(folder, settings.model, written.get("data"))
            except (OSError, KeyError, ValueError, TypeError) as error:
                raise ValueError(
                    f"the run in {folder} is damaged ({error}): it cannot be resumed without its data"
                ) from error
            yield cls(folder, settings, data, trajectory, written["id"])

    def extend(self, draws: int) -> None:
        """Increase the number of draws per chain."""
        if draws < self.settings.draws:
            raise ValueError(f"the run is of {self.settings.draws} draws per chain and cannot be cut to {draws}")
        self.settings = replace(self.settings, draws=draws)
        write_run_json(self.path, self.settings, self._identity, resumable=True)

    @property
    def resume_hint(self) -> str:
        return f'; continue with ihmm.resume("{self.path}")'

    def missing(self) -> list[SweepRange]:
        """Ranges of sweeps that are damaged or not made yet. Every damaged chunk is named in a warning.

        The warnings point at the caller of the function whose helper calls this: `sample` or `resume`.
        """
        ranges: list[SweepRange] = []
        for chain in range(self.settings.chains):
            ranges += self._missing_of(chain, stacklevel=5)
        return ranges

    def _missing_of(self, chain: int, stacklevel: int) -> list[SweepRange]:
        ranges, before, n_sweeps = [], None, self.settings.n_sweeps
        damaged: int | None = None  # the first damaged chunk since the last intact one
        chunks = read_chunks(self.path, self._identity, chain, self.settings.model, len(self.data.y))
        for number, chunk in enumerate(chunks):
            if isinstance(chunk, Chunk) and chunk.after is None:
                chunk = DamagedError(f"chain-{chain}/{number}.chunk has no checkpoint")
            if not isinstance(chunk, Chunk):
                warnings.warn(f"{chunk}: it is computed again", UserWarning, stacklevel)
                damaged = number if damaged is None else damaged
                continue
            begin = 0 if before is None else before.sweeps
            if chunk.begin < begin or (chunk.begin > begin and damaged is None):
                raise ValueError(
                    f"the run in {self.path} is damaged (chain-{chain}/{number}.chunk begins at sweep {chunk.begin}, "
                    f"expected {begin}): it cannot be resumed"
                )
            if damaged is not None and chunk.begin > begin:
                ranges.append(SweepRange(chain, before, chunk.begin, damaged, next_chunk=number))
            elif damaged is not None:  # without sweeps, as a repair leaves them
                for empty in range(damaged, number):
                    self._append(chain, empty, Chunk(begin, {}, before))
            damaged, before = None, chunk.after
        if damaged is not None:
            discard_chunks(self.path, chain, damaged)
        if before is None or before.sweeps < n_sweeps:
            ranges.append(SweepRange(chain, before, n_sweeps, len(chunks) if damaged is None else damaged))
        return ranges

    def writer(self, sweep_range: SweepRange) -> ChunkWriter:
        return ChunkWriter(partial(self._append, sweep_range.chain), sweep_range, len(self.data.y))

    def _append(self, chain: int, number: int, chunk: Chunk) -> None:
        """Write a chunk. It is safe once this returns."""
        try:
            write_chunk(self.path, self._identity, chain, number, chunk)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(
                error.errno,
                f"{reason}: draws cannot be written to {self.path}. Those written before are safe; "
                f'free some space, then continue with ihmm.resume("{self.path}")',
            ) from error

    def contents(self) -> RunContents:
        return load(self.path, self.settings.model)


def _refuse_a_run(folder: Path) -> None:
    if (folder / RUN_JSON).exists():
        raise FileExistsError(f"{folder} already holds a run: continue with ihmm.resume(path), or give another path")
