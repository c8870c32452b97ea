"""Reading a run, finished or not."""

import os
from pathlib import Path
from typing import Any

import numpy as np

from ihmm.model import Model
from ihmm.store._base import PHASES, Chunk, Phase, RunContents
from ihmm.store.archive import DamagedError
from ihmm.store.chunk_files import read_chunks, read_data
from ihmm.store.draw_storage import DrawBuffer, StoredDraws, collect
from ihmm.store.run_json import read_run_json, settings_of


def load(path: str | os.PathLike[str], model: Model | None) -> RunContents:
    """Read a run or a saved posterior. The `model` is needed if its emission is not part of ihmm."""
    folder = Path(path).resolve()
    written = read_run_json(folder)
    settings = settings_of(folder, written, model)
    try:
        data, _ = read_data(folder, settings.model, written.get("data"))
        chains = [read_chunks(folder, written["id"], c, settings.model, len(data.y)) for c in range(settings.chains)]
    except (OSError, KeyError, ValueError, TypeError) as error:
        raise ValueError(f"the run in {folder} is damaged ({error}); was it copied completely?") from error
    for chunks in chains:
        for chunk in chunks:
            if isinstance(chunk, DamagedError):
                cure = (
                    f'recompute it with ihmm.resume("{path}")' if written["resumable"] else "was it copied completely?"
                )
                raise ValueError(f"the run in {folder} is damaged ({chunk}); {cure}") from chunk
    intact = [[chunk for chunk in chunks if isinstance(chunk, Chunk)] for chunks in chains]
    _check_sizes(folder, written.get("sizes"), intact)
    kept, warmup = (_join(intact, phase, len(data.y)) for phase in PHASES)
    return RunContents(settings, data, kept, warmup, written["resumable"])


def _check_sizes(folder: Path, sizes: Any, chains: list[list[Chunk]]) -> None:
    """A saved posterior must have the number of draws that it was saved with."""
    for chain, phases in (sizes or {}).items():
        for phase, size in phases.items():
            found = sum(len(chunk.draws[phase][1]) for chunk in chains[int(chain)] if phase in chunk.draws)
            if found != size:
                raise ValueError(
                    f"the run in {folder} is damaged (chain-{chain} has {found} of {size} draws); "
                    "was it copied completely?"
                )


def _join(chains: list[list[Chunk]], phase: Phase, n_steps: int) -> StoredDraws | None:
    """The draws of one phase."""
    draws = [[chunk.draws[phase] for chunk in chunks if phase in chunk.draws] for chunks in chains]
    started = [parts for parts in draws if parts]
    if not started:
        return None
    longest = max(sum(len(packed) for _, packed in parts) for parts in started)
    dtype = np.result_type(*(states.dtype for parts in started for states, _ in parts))
    block = np.zeros((len(started), longest, n_steps), dtype)
    buffers = [DrawBuffer(parts[0][1].chain, row) for parts, row in zip(started, block, strict=True)]
    for buffer, parts in zip(buffers, started, strict=True):
        for states, packed in parts:
            buffer.extend(states, packed)
    return collect(buffers, block)
