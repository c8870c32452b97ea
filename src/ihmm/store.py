"""A posterior as a folder: posterior.json, data.npz, chain-0.npz, chain-1.npz, …, and warmup/chain-0.npz, …"""

import hashlib
import io
import json
import os
import platform
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ihmm import emissions, priors, samplers
from ihmm._typing import Array
from ihmm.emissions._base import fields as phi_fields
from ihmm.emissions._base import rebuild
from ihmm.model import Data, Model
from ihmm.records import Record
from ihmm.samplers import Sampler

FORMAT, FORMAT_VERSION = "ihmm posterior", 1
SETTINGS, OBSERVED, WARMUP = "posterior.json", "data.npz", "warmup"


class Kept(NamedTuple):
    """The draws of all chains."""

    states: Array  # (chains, draws of the longest, total T)
    records: Sequence[Record]


class Contents(NamedTuple):
    """Everything a posterior is made of."""

    model: Model
    data: Data
    kept: Kept
    warmup: Kept | None
    sampler: Sampler | None
    seed: int | None


def save(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write the folder under another name and rename it at the end, so a crash never leaves half a posterior."""
    target = Path(path).resolve()
    if target.exists() and not _may_replace(target):
        raise FileExistsError(f"{target} exists and is not a saved posterior; give a path that does not exist yet")
    folder = _sibling(target)
    folder.mkdir(parents=True)
    try:
        _write(contents, folder)
        _put_in_place(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def load(path: str | os.PathLike[str], model: Model | None) -> Contents:
    """Read what `save` wrote. Emissions that are not part of ihmm cannot be named in a file: pass the `model`."""
    folder = Path(path)
    settings = _read_settings(folder)
    model = _read_model(folder, settings.get("model"), model)
    try:
        return _read(folder, settings, model)
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(f"the posterior saved in {folder} is damaged ({error}); was it copied whole?") from error


def version() -> str:
    """Of the package above this module: asked for at run time, as imports go downwards only."""
    return str(import_module("ihmm").__version__)


def _may_replace(target: Path) -> bool:
    if not target.is_dir():
        return False
    if not any(target.iterdir()):
        return True
    try:
        return bool(json.loads((target / SETTINGS).read_text("utf-8"))["format"] == FORMAT)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _sibling(target: Path) -> Path:
    return target.with_name(f".{target.name}.{uuid.uuid4().hex[:12]}")


def _put_in_place(folder: Path, target: Path) -> None:
    """Rename `folder` to `target`. What it replaces is moved aside first; files that are not ours stay."""
    if not target.exists():
        folder.rename(target)
        return
    aside = _sibling(target)
    target.rename(aside)
    try:
        folder.rename(target)
    except BaseException:
        aside.rename(target)
        raise
    for entry in aside.iterdir():
        if not (entry.name in (SETTINGS, OBSERVED, WARMUP) or entry.match("chain-*.npz")):
            entry.rename(target / entry.name)
    shutil.rmtree(aside)


def _write(contents: Contents, folder: Path) -> None:
    """The arrays first; the settings last, with a digest of every file of arrays."""
    data, warmup = contents.data, contents.warmup
    missing = {} if data.missing is None else {"missing": data.missing}
    _write_arrays(folder / OBSERVED, {"y": data.y, "offsets": data.offsets, **missing})
    chains = _write_chains(contents.kept, folder)
    tuned = _write_chains(warmup, folder / WARMUP) if warmup is not None else []
    settings = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {"ihmm": version(), "numpy": np.__version__, "python": platform.python_version()},
        "model": _encode(contents.model),
        "sampler": _encode(contents.sampler),
        "seed": contents.seed,
        "chains": chains,
        "warmup": tuned,
        "sha256": {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(folder.rglob("*.npz"))},
    }
    with (folder / SETTINGS).open("w", encoding="utf-8") as file:
        json.dump(settings, file, indent=2)
        _flush(file)


def _write_chains(kept: Kept, folder: Path) -> list[dict[str, int]]:
    """One file a chain; returns the table of contents."""
    folder.mkdir(exist_ok=True)
    for states, record in zip(kept.states, kept.records, strict=True):
        arrays = {name: getattr(record, name) for name in ("n_states", "beta", "initial", "rows")}
        arrays |= {f"phi_{name}": field for name, field in phi_fields(record.phi).items()}
        arrays |= {f"trace_{name}": trace for name, trace in record.traces.items()}
        _write_arrays(folder / f"chain-{record.chain}.npz", {"states": states[: len(record)], **arrays})
    return [{"chain": record.chain, "draws": len(record)} for record in kept.records]


def _write_arrays(path: Path, arrays: dict[str, Any]) -> None:
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise TypeError(f"{', '.join(objects)} cannot be saved: the emission made an array of Python objects")
    with path.open("wb") as file:
        np.savez_compressed(file, **arrays)
        _flush(file)


def _flush(file: Any) -> None:
    """Onto the disk, before the folder gets its name."""
    file.flush()
    os.fsync(file.fileno())


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _read_settings(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        copies = [copy for copy in folder.parent.glob(f".{folder.name}.*") if (copy / SETTINGS).exists()]
        hint = f", but {copies[0]} holds one that a save was about to put there; rename it" if copies else ""
        raise FileNotFoundError(f"there is no folder {folder}{hint}")
    try:
        settings: dict[str, Any] = json.loads((folder / SETTINGS).read_text("utf-8"))
        program, version, written_by = (settings[name] for name in ("format", "format_version", "versions"))
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{folder} is not a saved posterior: it has no {SETTINGS}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / SETTINGS} is damaged or not written by ihmm ({error!r})") from error
    if program != FORMAT:
        raise ValueError(f"{folder} is not a saved posterior: its {SETTINGS} says {program!r}")
    if version > FORMAT_VERSION:
        raise ValueError(f"{folder} was written by a newer ihmm ({written_by['ihmm']}); upgrade to read it")
    return settings


def _read_model(folder: Path, saved: Any, model: Model | None) -> Model:
    """The model named in the file, or the one given if it may be the one that was saved."""
    if model is not None:
        if _encode(model) != saved:
            raise ValueError(f"the model given, {model}, is not the one saved in {folder}: {saved}")
        return model
    try:
        return cast(Model, _decode(saved))
    except _UnknownClassError as error:
        raise ValueError(
            f"the posterior in {folder} was made with {error}, which is not part of ihmm; "
            "pass the model: Posterior.load(path, model=…)"
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"the model in {folder / SETTINGS} cannot be read ({error})") from error


def _read(folder: Path, settings: dict[str, Any], model: Model) -> Contents:
    arrays = _read_arrays(folder, OBSERVED, settings)
    data = model.describe(arrays["y"], arrays["offsets"], arrays.get("missing"))

    def chains(contents: list[dict[str, int]], within: str) -> Kept:
        return _read_chains(folder, contents, within, settings, model, len(data.y))

    warmup = chains(settings["warmup"], f"{WARMUP}/") if settings["warmup"] else None
    sampler = _decode_sampler(settings["sampler"])
    return Contents(model, data, chains(settings["chains"], ""), warmup, sampler, settings["seed"])


def _read_chains(
    folder: Path, contents: list[dict[str, int]], within: str, settings: dict[str, Any], model: Model, n_steps: int
) -> Kept:
    longest = max(entry["draws"] for entry in contents)
    like = model.emission.sample_prior(np.random.default_rng(0), 1)
    block, records = np.empty((len(contents), longest, n_steps), np.uint8), []
    for i, entry in enumerate(contents):
        arrays = _read_arrays(folder, f"{within}chain-{entry['chain']}.npz", settings)
        block = block.astype(np.promote_types(block.dtype, arrays["states"].dtype), copy=False)
        block[i, : entry["draws"]] = arrays["states"]
        record = Record(
            entry["chain"],
            arrays["n_states"],
            arrays["beta"],
            arrays["initial"],
            arrays["rows"],
            rebuild(like, (arrays[f"phi_{name}"] for name in phi_fields(like))),
            {name.removeprefix("trace_"): array for name, array in arrays.items() if name.startswith("trace_")},
        )
        records.append(record)
    return Kept(block, records)


def _read_arrays(folder: Path, name: str, settings: dict[str, Any]) -> dict[str, Array]:
    content = (folder / name).read_bytes()
    if hashlib.sha256(content).hexdigest() != settings["sha256"][name]:
        raise ValueError(f"{name} is not as it was written")
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        return dict(arrays)


# Settings as JSON: {"class": name, field: value, …}. Only classes of ihmm itself are ever made from a file.

_CLASSES: dict[str, Any] = {
    value.__name__: value
    for value in (Model, *(value for module in (priors, emissions, samplers) for value in vars(module).values()))
    if isinstance(value, type) and is_dataclass(value)
}


class _UnknownClassError(Exception):
    pass


def _encode(value: Any) -> Any:
    """A value as JSON; of an object that is not ours, only the name of its class."""
    if _CLASSES.get(type(value).__name__) is type(value):
        return {"class": type(value).__name__} | {f.name: _encode(getattr(value, f.name)) for f in fields(value)}
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"foreign": type(value).__name__}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("class") not in _CLASSES:
        raise _UnknownClassError(value.get("class", value.get("foreign")))
    return _CLASSES[value["class"]](**{name: _decode(item) for name, item in value.items() if name != "class"})


def _decode_sampler(value: Any) -> Sampler | None:
    """The sampler, or None if this ihmm does not have it: reading a posterior does not need it."""
    try:
        return cast(Sampler | None, _decode(value))
    except (_UnknownClassError, ValueError, TypeError):
        return None
