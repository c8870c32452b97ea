"""Runs as folders that survive: what is drawn is on the disk soon after, and every piece says whether it is whole.

    run.json              the settings: model, sampler, seed, numbers of draws; versions
    data.chunk            the observations, and the path chains start from if one was given
    chain-0/0.chunk …     draws in the order they came, and where the chain stood after them
    lock                  held while a process works on the run

A chunk is a line with the digest of what follows, and an archive of NumPy arrays. It is written under another name and
renamed when it is whole, so a kill at any moment leaves all chunks before it. The state after a chunk, that of the
random generator included, is in it: a run goes on from its last chunk as if it had never stopped, and one that is
damaged is computed again from the one before. Nothing is ever unpickled, and file names are never read from a file.
"""

import contextlib
import hashlib
import io
import json
import os
import platform
import shutil
import uuid
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np

from ihmm import emissions, moves, priors, samplers
from ihmm._typing import Array, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import fields as phi_fields
from ihmm.emissions._parameters import join, rebuild
from ihmm.model import Draw, Hyper, Model, Transitions
from ihmm.moves import Move
from ihmm.records import Record
from ihmm.samplers import Sampler
from ihmm.trajectory import Trajectory

FORMAT, FORMAT_VERSION = "ihmm run", 1
SETTINGS, OBSERVED, LOCK, CHUNK = "run.json", "data.chunk", "lock", ".chunk"
MAGIC = b"ihmm chunk 1 "
PHASES = {"kept": "", "warmup": "warmup_"}  # names of arrays begin so


@dataclass(frozen=True)
class Settings:
    """All that a run is made of but for the data; `init` is None if chains start from a path kept with them."""

    model: Model
    sampler: Sampler | None
    moves: tuple[Move, ...]
    seed: int | None
    draws: int
    tune: int
    thin: int
    chains: int
    init: int | str | None
    save_warmup: bool


class Kept(NamedTuple):
    """The draws of all chains that have any."""

    states: Array  # (chains, draws of the longest, total T)
    records: Sequence[Record]


class Contents(NamedTuple):
    """Everything a posterior is made of."""

    settings: Settings
    data: Data
    kept: Kept | None
    warmup: Kept | None
    resumable: bool = False

    @property
    def sizes(self) -> list[int]:
        """How many draws each chain has."""
        sizes = [0] * self.settings.chains
        for record in self.kept.records if self.kept is not None else ():
            sizes[record.chain] = len(record)
        return sizes

    @property
    def unfinished(self) -> str:
        """Which chains lack how many draws, if the run could go on."""
        wanted = self.settings.draws
        short = [f"chain {c} has {n} of {wanted} draws" for c, n in enumerate(self.sizes) if n < wanted]
        return ", ".join(short) if self.resumable else ""


class Checkpoint(NamedTuple):
    """Where a chain stands: after so many sweeps, at this draw, with the generator in this state."""

    sweeps: int
    draw: Draw
    generator: dict[str, Any]


class Chunk(NamedTuple):
    """Draws of one chain, (states, record) by phase, the sweeps before the first of them, and the state after them."""

    begin: int
    drawn: dict[str, tuple[Array, Record]]
    after: Checkpoint | None


class DamagedError(ValueError):
    """A file is not as it was written."""


class Run:
    """A run folder, locked by this process."""

    def __init__(self, folder: Path, settings: Settings, data: Data, init: IntArray | None, identity: str) -> None:
        self.folder, self.settings, self.data, self.init, self.identity = folder, settings, data, init, identity

    @classmethod
    @contextlib.contextmanager
    def create(
        cls, path: str | os.PathLike[str], settings: Settings, data: Data, init: IntArray | None
    ) -> "Iterator[Run]":
        """A new run. The folder may exist and hold other files, but no run."""
        folder = Path(path).resolve()
        if folder.is_file():
            raise FileExistsError(f"{folder} is a file; give the path of a folder for the run")
        if (folder / SETTINGS).exists():
            raise FileExistsError(f"{folder} holds a run already: go on with ihmm.resume(path), or give another path")
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            run = cls(folder, settings, data, init, uuid.uuid4().hex)
            _write_observed(folder, data, init)
            _write_settings(folder, settings, run.identity, resumable=True)
            yield run

    @classmethod
    @contextlib.contextmanager
    def reopen(cls, path: str | os.PathLike[str], model: Model | None) -> "Iterator[Run]":
        """A run that was begun before."""
        folder = Path(path).resolve()
        written = _read_settings(folder)
        if not written.get("resumable"):
            raise ValueError(f"{folder} holds a saved posterior, not a run: there is nothing to go on from")
        settings = _settings(folder, written, model)
        if settings.sampler is None or len(settings.moves) < len(written["moves"]):
            raise ValueError(f"the sampler or a move of {folder} is not part of this ihmm, so the run cannot go on")
        _compare_versions(folder, written["versions"])
        with _locked(folder):
            try:
                data, init = _read_observed(folder, settings.model)
            except (OSError, KeyError, ValueError) as error:
                raise ValueError(f"the run in {folder} is damaged ({error}); its data are needed to go on") from error
            yield cls(folder, settings, data, init, written["id"])

    def extend(self, draws: int) -> None:
        """Ask for more draws of each chain than the run was begun with."""
        if draws < self.settings.draws:
            raise ValueError(f"the run was begun for {self.settings.draws} draws a chain, it cannot end at {draws}")
        self.settings = replace(self.settings, draws=draws)
        _write_settings(self.folder, self.settings, self.identity, resumable=True)

    def append(self, chain: int, number: int, chunk: Chunk) -> None:
        """Write a chunk; once this returns it is safe."""
        arrays = _chunk_arrays(chunk)
        arrays["about"] = _text({"run": self.identity, "chain": chain, "number": number, "begin": chunk.begin})
        (self.folder / f"chain-{chain}").mkdir(exist_ok=True)
        try:
            _write_chunk(self.folder / f"chain-{chain}" / f"{number}{CHUNK}", arrays)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(
                error.errno,
                f"{reason}: draws cannot be written to {self.folder}. What was written before is safe; "
                f'make room, then go on with ihmm.resume("{self.folder}")',
            ) from error

    def discard(self, chain: int, number: int) -> None:
        """Remove the chunks of a chain from this one on."""
        for path in (self.folder / f"chain-{chain}").glob(f"*{CHUNK}"):
            if path.stem.isdecimal() and int(path.stem) >= number:
                path.unlink()

    def chunks(self, chain: int) -> "list[Chunk | DamagedError]":
        """All chunks of a chain, with what is wrong in place of those that are damaged."""
        return _read_chunks(self.folder, self.identity, chain, self.settings.model)


def save(path: str | os.PathLike[str], contents: Contents) -> None:
    """Write a posterior as a run that is finished: under another name, so a crash never leaves half of one."""
    target = Path(path).resolve()
    if target.exists() and not _may_replace(target):
        raise FileExistsError(f"{target} exists and is not a saved posterior; give a path that does not exist yet")
    folder = _sibling(target)
    folder.mkdir(parents=True)
    try:
        run = Run(folder, contents.settings, contents.data, None, uuid.uuid4().hex)
        _write_observed(folder, contents.data, None)
        chains: dict[int, dict[str, tuple[Array, Record]]] = {}
        for phase, kept in (("kept", contents.kept), ("warmup", contents.warmup)):
            for states, record in zip(*kept, strict=True) if kept is not None else ():
                chains.setdefault(record.chain, {})[phase] = (states[: len(record)], record)
        for chain, drawn in chains.items():
            run.append(chain, 0, Chunk(0, drawn, None))
        sizes = {chain: {phase: len(record) for phase, (_, record) in drawn.items()} for chain, drawn in chains.items()}
        _write_settings(folder, contents.settings, run.identity, resumable=False, sizes=sizes)
        _put_in_place(folder, target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def load(path: str | os.PathLike[str], model: Model | None) -> Contents:
    """Read a run, finished or not. Emissions that are not part of ihmm cannot be named in a file: pass the `model`."""
    folder = Path(path).resolve()
    written = _read_settings(folder)
    settings = _settings(folder, written, model)
    try:
        data, _ = _read_observed(folder, settings.model)
        chains = [_read_chunks(folder, written["id"], c, settings.model) for c in range(settings.chains)]
    except (OSError, KeyError, ValueError) as error:
        raise ValueError(f"the run in {folder} is damaged ({error}); was it copied whole?") from error
    for chunks in chains:
        for chunk in chunks:
            if isinstance(chunk, DamagedError):
                cure = f'ihmm.resume("{path}") computes it again' if written["resumable"] else "was it copied whole?"
                raise ValueError(f"the run in {folder} is damaged ({chunk}); {cure}") from chunk
    whole = [[chunk for chunk in chunks if isinstance(chunk, Chunk)] for chunks in chains]
    _compare_sizes(folder, written.get("sizes"), whole)
    n_steps = len(data.y)
    kept, warmup = (_gather(whole, phase, n_steps) for phase in PHASES)
    return Contents(settings, data, kept, warmup, written["resumable"])


def _compare_sizes(folder: Path, sizes: Any, chains: list[list[Chunk]]) -> None:
    """Where it is known how many draws there were, none may be missing."""
    for chain, phases in (sizes or {}).items():
        for phase, size in phases.items():
            found = sum(len(chunk.drawn[phase][1]) for chunk in chains[int(chain)] if phase in chunk.drawn)
            if found != size:
                raise ValueError(
                    f"the run in {folder} is damaged (chain-{chain} has {found} of {size} draws); was it copied whole?"
                )


def version() -> str:
    """Of the package above this module: asked for at run time, as imports go downwards only."""
    return str(import_module("ihmm").__version__)


# Settings


def _write_settings(
    folder: Path,
    settings: Settings,
    identity: str,
    *,
    resumable: bool,
    sizes: dict[int, dict[str, int]] | None = None,
) -> None:
    """`sizes` has the numbers of draws, by chain and phase, of a run to which none will be added."""
    written = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "id": identity,
        "resumable": resumable,
        "sizes": sizes,
        "versions": _versions(),
        **{field.name: _encode(getattr(settings, field.name)) for field in fields(settings)},
    }
    _write_whole(folder / SETTINGS, json.dumps(written, indent=2).encode())


def _versions() -> dict[str, str]:
    numba = import_module("numba").__version__
    return {"ihmm": version(), "numpy": np.__version__, "numba": numba, "python": platform.python_version()}


def _compare_versions(folder: Path, written: dict[str, str]) -> None:
    other = {name: (was, now) for name, now in _versions().items() if (was := written.get(name)) != now}
    if other:
        changes = ", ".join(f"{name} {was} → {now}" for name, (was, now) in other.items())
        warnings.warn(
            f"{folder} was begun with other versions ({changes}): it goes on, but its draws need not be, bit for bit, "
            "those it would have had",
            UserWarning,
            stacklevel=5,
        )


def _read_settings(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        copies = [copy for copy in folder.parent.glob(f".{folder.name}.*") if (copy / SETTINGS).exists()]
        hint = f", but {copies[0]} holds one that a save was about to put there; rename it" if copies else ""
        raise FileNotFoundError(f"there is no folder {folder}{hint}")
    try:
        written: dict[str, Any] = json.loads((folder / SETTINGS).read_text("utf-8"))
        program, format_version, by, _, _ = (
            written[name] for name in ("format", "format_version", "versions", "id", "resumable")
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{folder} is not a run or saved posterior: it has no {SETTINGS}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / SETTINGS} is damaged or not written by ihmm ({error!r})") from error
    if program != FORMAT:
        raise ValueError(f"{folder} is not a run or saved posterior: its {SETTINGS} says {program!r}")
    if format_version > FORMAT_VERSION:
        raise ValueError(f"{folder} was written by a newer ihmm ({by['ihmm']}); upgrade to read it")
    return written


def _settings(folder: Path, written: dict[str, Any], model: Model | None) -> Settings:
    try:
        return Settings(
            _read_model(folder, written["model"], model),
            _decode_known(written["sampler"]),
            tuple(move for move in map(_decode_known, written["moves"]) if move is not None),
            **{name: written[name] for name in ("seed", "draws", "tune", "thin", "chains", "init", "save_warmup")},
        )
    except (KeyError, TypeError) as error:
        raise ValueError(f"{folder / SETTINGS} is damaged or not written by ihmm ({error!r})") from error


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
            f"the posterior in {folder} was made with {error}, which is not part of ihmm; pass the model: model=…"
        ) from error
    except (ValueError, TypeError) as error:
        raise ValueError(f"the model in {folder / SETTINGS} cannot be read ({error})") from error


# Data and draws as arrays


def _write_observed(folder: Path, data: Data, init: IntArray | None) -> None:
    arrays = {"y": data.y, "offsets": data.offsets, "missing": data.missing, "init": init}
    _write_chunk(folder / OBSERVED, {name: array for name, array in arrays.items() if array is not None})


def _read_observed(folder: Path, model: Model) -> tuple[Data, IntArray | None]:
    arrays = _read_chunk(folder / OBSERVED, OBSERVED)
    return model.describe(arrays["y"], arrays["offsets"], arrays.get("missing")), arrays.get("init")


def _chunk_arrays(chunk: Chunk) -> dict[str, Array]:
    arrays: dict[str, Array] = {}
    for phase, (states, record) in chunk.drawn.items():
        each = {"states": states, **{name: getattr(record, name) for name in ("n_states", "beta", "initial", "rows")}}
        each |= {f"phi_{name}": field for name, field in phi_fields(record.phi).items()}
        each |= {f"trace_{name}": trace for name, trace in record.traces.items()}
        arrays |= {PHASES[phase] + name: array for name, array in each.items()}
    if chunk.after is not None:
        sweeps, draw, generator = chunk.after
        transitions = {f"now_{name}": array for name, array in draw.transitions._asdict().items()}
        phi = {f"now_phi_{name}": array for name, array in phi_fields(draw.phi).items()}
        arrays |= {"now_states": draw.states, "now_hyper": np.array(draw.hyper), **transitions, **phi}
        if draw.components is not None:
            arrays["now_components"] = draw.components
        arrays["after"] = _text({"sweeps": sweeps, "generator": generator})
    return arrays


def _read_chunks(folder: Path, identity: str, chain: int, model: Model) -> "list[Chunk | DamagedError]":
    """All chunks of a chain up to the last that is there, with what is wrong in place of those that are damaged."""
    where = folder / f"chain-{chain}"
    numbers = [int(path.stem) for path in where.glob(f"*{CHUNK}") if path.stem.isdecimal()]
    like = model.emission.sample_prior(np.random.default_rng(0), 1)
    chunks: list[Chunk | DamagedError] = []
    for number in range(max(numbers, default=-1) + 1):
        name = f"chain-{chain}/{number}{CHUNK}"
        try:
            arrays = _read_chunk(folder / name, name)
            about = _from_text(arrays["about"])
            if (about["run"], about["chain"], about["number"]) != (identity, chain, number):
                raise DamagedError(f"{name} belongs to another run or place")
            chunks.append(_chunk(arrays, about["begin"], chain, like))
        except DamagedError as error:
            chunks.append(error)
        except (OSError, KeyError, ValueError) as error:
            chunks.append(DamagedError(f"{name}: {error}"))
    return chunks


def _chunk(arrays: dict[str, Array], begin: int, chain: int, like: Phi) -> Chunk:
    drawn = {}
    for phase, prefix in PHASES.items():
        if f"{prefix}states" in arrays:
            traces = {name: array for name, array in arrays.items() if name.startswith(f"{prefix}trace_")}
            record = Record(
                chain,
                arrays[f"{prefix}n_states"],
                arrays[f"{prefix}beta"],
                arrays[f"{prefix}initial"],
                arrays[f"{prefix}rows"],
                rebuild(like, (arrays[f"{prefix}phi_{name}"] for name in phi_fields(like))),
                {name.removeprefix(f"{prefix}trace_"): trace for name, trace in traces.items()},
            )
            drawn[phase] = (arrays[f"{prefix}states"], record)
    return Chunk(begin, drawn, _checkpoint(arrays, like) if "after" in arrays else None)


def _checkpoint(arrays: dict[str, Array], like: Phi) -> Checkpoint:
    after = _from_text(arrays["after"])
    transitions = Transitions(*(arrays[f"now_{name}"] for name in Transitions._fields))
    phi = rebuild(like, (arrays[f"now_phi_{name}"] for name in phi_fields(like)))
    hyper, components = Hyper(*arrays["now_hyper"].tolist()), arrays.get("now_components")
    draw = Draw(Trajectory(arrays["now_states"]), transitions, phi, hyper, components)
    return Checkpoint(after["sweeps"], draw, after["generator"])


def _gather(chains: list[list[Chunk]], phase: str, n_steps: int) -> Kept | None:
    """The draws of one phase, the chunks of each chain put together."""
    drawn = [[chunk.drawn[phase] for chunk in chunks if phase in chunk.drawn] for chunks in chains]
    started = [parts for parts in drawn if parts]
    if not started:
        return None
    records = [_joined([record for _, record in parts]) for parts in started]
    longest = max(map(len, records))
    dtype = np.result_type(*(states.dtype for parts in started for states, _ in parts))
    block = np.zeros((len(started), longest, n_steps), dtype)
    for row, parts in zip(block, started, strict=True):
        n = 0
        for states, _ in parts:
            row[n : n + len(states)] = states
            n += len(states)
    return Kept(block, records)


def _joined(records: list[Record]) -> Record:
    first = records[0]
    if len(records) == 1:
        return first
    traces = {name: np.concatenate([record.traces[name] for record in records]) for name in first.traces}
    return Record(
        first.chain,
        np.concatenate([record.n_states for record in records]),
        np.concatenate([record.beta for record in records]),
        np.concatenate([record.initial for record in records]),
        np.concatenate([record.rows for record in records]),
        join(*(record.phi for record in records)),
        traces,
    )


# Files


def _write_chunk(path: Path, arrays: dict[str, Array]) -> None:
    objects = [name for name, array in arrays.items() if array.dtype.hasobject]
    if objects:
        raise TypeError(f"{', '.join(objects)} cannot be saved: the emission made an array of Python objects")
    buffer = io.BytesIO()
    np.savez_compressed(buffer, allow_pickle=False, **cast(Any, arrays))
    content = buffer.getvalue()
    _write_whole(path, MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def _write_whole(path: Path, content: bytes) -> None:
    """All of it or nothing, and on the disk before this returns."""
    draft = path.with_name(f".{path.name}.{uuid.uuid4().hex[:12]}")
    try:
        with draft.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # the name too, where folders can be flushed
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read_chunk(path: Path, name: str) -> dict[str, Array]:
    try:
        first, content = path.read_bytes().split(b"\n", 1)
    except (FileNotFoundError, ValueError) as error:
        raise DamagedError(f"{name} is missing or cut short") from error
    if first != MAGIC + hashlib.sha256(content).hexdigest().encode():
        raise DamagedError(f"{name} is not as it was written")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            return {Path(entry.filename).stem: _read_array(archive, entry) for entry in archive.infolist()}
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        raise DamagedError(f"{name} is not an archive of arrays ({error})") from error


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> Array:
    """One array, whose header must not promise more than there is."""
    with archive.open(entry) as file:
        major, _ = np.lib.format.read_magic(file)
        reader = np.lib.format.read_array_header_1_0 if major == 1 else np.lib.format.read_array_header_2_0
        shape, _, dtype = reader(file)
        size = int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize
        if dtype.hasobject or size != entry.file_size - file.tell():
            raise ValueError(f"{entry.filename} is said to have shape {shape} of {dtype}, which it has not")
    with archive.open(entry) as file:
        return np.lib.format.read_array(file, allow_pickle=False)


def _text(value: Any) -> Array:
    """Something of JSON as an array of bytes."""
    return np.frombuffer(json.dumps(value).encode(), np.uint8)


def _from_text(array: Array) -> Any:
    return json.loads(array.astype(np.uint8).tobytes())


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock, which goes with the process however it ends."""
    with (folder / LOCK).open("a+b") as file:
        try:
            _lock(file)
        except OSError as error:
            raise RuntimeError(f"another process is working on {folder}; wait for it, or stop it first") from error
        yield


def busy(path: str | os.PathLike[str]) -> bool:
    """Whether a process is working on the run in this folder."""
    if not (Path(path) / LOCK).exists():
        return False
    try:
        with _locked(Path(path)):
            return False
    except RuntimeError:
        return True


def _lock(file: Any) -> None:
    if os.name == "nt":
        msvcrt = import_module("msvcrt")
        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        fcntl = import_module("fcntl")
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _may_replace(target: Path) -> bool:
    """Whether a folder is empty or a saved posterior; a run that may go on is never replaced."""
    if not target.is_dir():
        return False
    if not any(target.iterdir()):
        return True
    try:
        return _read_settings(target)["resumable"] is False
    except ValueError:
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
        if not (entry.name in (SETTINGS, OBSERVED, LOCK) or entry.match("chain-*")):
            entry.rename(target / entry.name)
    shutil.rmtree(aside)


# Objects as JSON: {"class": name, field: value, …}. Only classes of ihmm itself are ever made from a file.

_CLASSES: dict[str, Any] = {
    value.__name__: value
    for value in (Model, *(value for module in (priors, emissions, samplers, moves) for value in vars(module).values()))
    if isinstance(value, type) and is_dataclass(value)
}


class _UnknownClassError(Exception):
    pass


def _encode(value: Any) -> Any:
    """A value as JSON; of an object that is not ours, only the name of its class."""
    if _CLASSES.get(type(value).__name__) is type(value):
        return {"class": type(value).__name__} | {name: _encode(item) for name, item in _arguments(value).items()}
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"foreign": type(value).__name__}


def _arguments(value: Any) -> dict[str, Any]:
    """What its class makes the same object of."""
    if isinstance(value, emissions.Independent):
        return dict(zip(value.names, value.parts, strict=True))
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _decode(value: Any) -> Any:
    if isinstance(value, list):
        return tuple(_decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("class") not in _CLASSES:
        raise _UnknownClassError(value.get("class", value.get("foreign")))
    return _CLASSES[value["class"]](**{name: _decode(item) for name, item in value.items() if name != "class"})


def _decode_known(value: Any) -> Any:
    """The object, or None if this ihmm does not have its class: reading draws does not need it."""
    try:
        return _decode(value)
    except (_UnknownClassError, ValueError, TypeError):
        return None
