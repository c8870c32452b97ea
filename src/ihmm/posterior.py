"""Posterior: what sampling returns, kept small in memory, saved as a folder without pickle, handed to ArviZ."""

import hashlib
import io
import json
import os
import platform
import shutil
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, fields, is_dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, final, overload

import numpy as np

from ihmm import emissions, priors, samplers
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._base import fields as phi_fields
from ihmm.emissions._base import join, rebuild, take
from ihmm.gibbs import SweepInfo
from ihmm.model import Data, Draw, Hyper, Model, Transitions
from ihmm.samplers import Sampler

if TYPE_CHECKING:
    import xarray

FORMAT, FORMAT_VERSION = "ihmm posterior", 1
SETTINGS, OBSERVED, WARMUP = "posterior.json", "data.npz", "warmup"
HYPER = ("gamma", "alpha", "kappa", "concentration", "stickiness")


@final
class Posterior:
    """Draws from the posterior, with the model, the data and the settings that made them.

    Chains that were interrupted may differ in length. `states` and `traces` are rectangular: they hold the first draws
    of every chain, as many as the shortest one has. `draws` holds all draws of each chain.

    Attributes
    ----------
    model, data, sampler, seed
        What was sampled, from what, and how. `data` has the fields `y`, `offsets` and `lengths`.
    traces
        Name → (chains, draws): n_states, log_joint, the hyperparameters, and the sampler's diagnostics.
    warmup
        The tuning sweeps as a `Posterior`, or None if they were not saved.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        states: Array,
        records: "Sequence[Record]",
        *,
        sampler: Sampler | None = None,
        seed: int | None = None,
        warmup: "Posterior | None" = None,
    ) -> None:
        self.model, self.data, self.sampler, self.seed, self.warmup = model, data, sampler, seed, warmup
        self._states, self._records = states, tuple(records)
        shortest = min(len(record) for record in records)
        names = records[0].traces
        self.traces: dict[str, Array] = {
            name: np.stack([record.traces[name][:shortest] for record in records]) for name in names
        }

    @property
    def states(self) -> Array:
        """(chains, draws, total T), in the smallest unsigned integers that hold them."""
        return self._states[:, : self.n_states.shape[1]]

    @property
    def lengths(self) -> IntArray:
        """Steps of each sequence; they sum to total T."""
        return self.data.lengths

    @property
    def n_states(self) -> IntArray:
        """(chains, draws): states visited."""
        return self.traces["n_states"]

    @property
    def draws(self) -> "tuple[Draws, ...]":
        """`draws[c][d]` is a `Draw`; every draw of every chain is here."""
        return tuple(Draws(states, record) for states, record in zip(self._states, self._records, strict=True))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a folder of JSON and NumPy arrays. One that holds a saved posterior is replaced, no other is.

        The folder is written under another name and renamed at the end, so a crash never leaves half a posterior.
        """
        target = Path(path).resolve()
        if target.exists() and not _may_replace(target):
            raise FileExistsError(f"{target} exists and is not a saved posterior; give a path that does not exist yet")
        folder = _sibling(target)
        folder.mkdir(parents=True)
        try:
            _write(self, folder)
            _put_in_place(folder, target)
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, model: Model | None = None) -> "Posterior":
        """Read what `save` wrote. Emissions that are not part of ihmm cannot be named in a file: pass the `model`."""
        folder = Path(path)
        settings = _read_settings(folder)
        model = _read_model(folder, settings.get("model"), model)
        try:
            return _read(folder, settings, model)
        except (OSError, KeyError, ValueError) as error:
            raise ValueError(f"the posterior saved in {folder} is damaged ({error}); was it copied whole?") from error

    def to_datatree(self) -> "xarray.DataTree":
        """The posterior as ArviZ reads it: groups posterior, sample_stats, observed_data, and warmup_… if saved."""
        import xarray

        seed = self.seed if self.seed is None or self.seed < 2**63 else str(self.seed)  # netCDF has no larger integers
        attrs = {"inference_library": "ihmm", "inference_library_version": _version(), "seed": seed}
        groups = {name: xarray.Dataset(*group) for name, group in self._groups().items()}
        tree = xarray.DataTree.from_dict(groups)
        tree.attrs = {name: value for name, value in attrs.items() if value is not None}
        return tree

    def _groups(self) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
        """Variables and coordinates of each group."""
        sweep = {"chain": [record.chain for record in self._records], "draw": np.arange(self.n_states.shape[1])}
        time = _time(self.lengths)
        unknown = {name: (("chain", "draw"), self.traces[name]) for name in (*HYPER, "n_states")}
        stats = {name: trace for name, trace in self.traces.items() if name not in unknown}
        stats["lp"] = stats.pop("log_joint")
        y_dims = ("time", "column")[: self.data.y.ndim]
        groups: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
            "posterior": ({**unknown, "states": (("chain", "draw", "time"), self.states)}, {**sweep, **time}),
            "sample_stats": ({name: (("chain", "draw"), trace) for name, trace in stats.items()}, sweep),
            "observed_data": ({"y": (y_dims, self.data.values)}, time),
        }
        if self.warmup is not None:
            warmup = self.warmup._groups()
            groups |= {f"warmup_{name}": warmup[name] for name in ("posterior", "sample_stats")}
        return groups

    def __repr__(self) -> str:
        chains, draws = self.n_states.shape
        n_sequences, log_joint = len(self.lengths), self.traces["log_joint"]
        longer = [len(record) for record in self._records if len(record) > draws]
        lines = [
            f"Posterior of {chains} chain{'s' * (chains > 1)} × {draws} draw{'s' * (draws > 1)}, "
            f"T = {self.lengths.sum()}" + (f" in {n_sequences} sequences" if n_sequences > 1 else ""),
            f"  states     {_shares(self.n_states)}",
            f"  log_joint  {log_joint.min():.1f} to {log_joint.max():.1f}",
        ]
        if longer:
            lines.append(f"  chains have {', '.join(str(len(record)) for record in self._records)} draws, see .draws")
        return "\n".join(lines)


@dataclass(frozen=True, eq=False)
class Record:
    """All that one chain kept, but for its states: ragged arrays laid end to end, `n_states` tells them apart."""

    chain: int
    n_states: IntArray  # (draws,): K of each
    beta: FloatArray  # (Σ (K + 1),)
    initial: FloatArray  # (Σ (K + 1),)
    rows: FloatArray  # (Σ K(K + 1),)
    phi: Phi  # leading axis Σ K
    traces: dict[str, Array]  # (draws,) each

    def __len__(self) -> int:
        return len(self.n_states)

    @classmethod
    def of(cls, chain: int, kept: Sequence[tuple[Draw, SweepInfo]]) -> "Record":
        draws = [draw for draw, _ in kept]
        return cls(
            chain,
            np.array([draw.n_states for draw in draws]),
            np.concatenate([draw.transitions.beta for draw in draws]),
            np.concatenate([draw.transitions.initial for draw in draws]),
            np.concatenate([draw.transitions.rows.ravel() for draw in draws]),
            join(*(draw.phi for draw in draws)),
            _traces(kept),
        )


class Draws(Sequence[Draw]):
    """The draws of one chain, put together when asked for."""

    def __init__(self, states: Array, record: Record) -> None:
        self._states, self._record = states, record

    @property
    def chain(self) -> int:
        """The chain's number, counting those that were interrupted before their first draw."""
        return self._record.chain

    def __len__(self) -> int:
        return len(self._record)

    @overload
    def __getitem__(self, index: int) -> Draw: ...
    @overload
    def __getitem__(self, index: slice) -> list[Draw]: ...
    def __getitem__(self, index: int | slice) -> Draw | list[Draw]:
        if isinstance(index, slice):
            return [self[d] for d in range(len(self))[index]]
        d = range(len(self))[index]
        record, traces = self._record, self._record.traces
        before, k = record.n_states[:d], int(record.n_states[d])
        state, pair = int(before.sum()), int((before * (before + 1)).sum())
        transitions = Transitions(
            record.beta[state + d : state + d + k + 1],
            record.initial[state + d : state + d + k + 1],
            record.rows[pair : pair + k * (k + 1)].reshape(k, k + 1),
        )
        phi = take(record.phi, slice(state, state + k))
        hyper = Hyper(*(float(traces[name][d]) for name in Hyper._fields))
        return Draw(self._states[d].astype(np.int64), transitions, phi, hyper)

    def __repr__(self) -> str:
        return f"Draws of chain {self.chain}: {len(self)}"


class Recorder:
    """The draws of one chain while it runs. States go into an array made beforehand, wider integers when needed."""

    def __init__(self, chain: int, states: Array) -> None:
        self.chain, self.states = chain, states
        self._kept: list[tuple[Draw, SweepInfo]] = []

    def __len__(self) -> int:
        return len(self._kept)

    def keep(self, draw: Draw, info: SweepInfo) -> None:
        if draw.n_states - 1 > np.iinfo(self.states.dtype).max:
            self.states = self.states.astype(np.min_scalar_type(draw.n_states - 1))
        self.states[len(self)] = draw.states
        self._kept.append((draw._replace(states=self.states[:0]), info))

    def record(self) -> Record:
        return Record.of(self.chain, self._kept)


def gather(recorders: Sequence[Recorder], block: Array) -> tuple[Array, list[Record]]:
    """States and records of the chains that kept anything; `block` is the array their states were written to."""
    if any(recorder.states.dtype != block.dtype for recorder in recorders):
        block = np.stack([recorder.states for recorder in recorders])
    started = [i for i, recorder in enumerate(recorders) if len(recorder)]
    if len(started) < len(recorders):
        block = block[started]
    longest = max(len(recorders[i]) for i in started)
    return block[:, :longest], [recorders[i].record() for i in started]


def _traces(kept: Sequence[tuple[Draw, SweepInfo]]) -> dict[str, Array]:
    rows = [
        {
            "n_states": draw.n_states,
            "log_joint": info.log_joint,
            **{name: getattr(draw.hyper, name) for name in HYPER},
            **info.step._asdict(),
        }
        for draw, info in kept
    ]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _version() -> str:
    """Of the package above this module: asked for at run time, as imports go downwards only."""
    return str(import_module("ihmm").__version__)


def _time(lengths: IntArray) -> dict[str, Any]:
    """Coordinates of the time axis: the position, and with several sequences which one and the step within it."""
    time: dict[str, Any] = {"time": np.arange(lengths.sum())}
    if len(lengths) > 1:
        time["sequence"] = ("time", np.repeat(np.arange(len(lengths)), lengths))
        time["step"] = ("time", np.concatenate([np.arange(length) for length in lengths]))
    return time


def _shares(n_states: IntArray, most: int = 4) -> str:
    """'4 (93 %), 5 (6 %), …', the commonest numbers of states first."""
    values, count = np.unique(n_states, return_counts=True)
    order = np.argsort(-count, kind="stable")[:most]
    shown = [f"{values[i]} ({100 * count[i] / n_states.size:.0f} %)" for i in order]
    return ", ".join(shown) + (", …" if len(values) > most else "")


# The folder: posterior.json, data.npz, chain-0.npz, chain-1.npz, …, and warmup/chain-0.npz, …


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


def _write(posterior: Posterior, folder: Path) -> None:
    """The arrays first; the settings last, with a digest of every file of arrays."""
    data = posterior.data
    missing = {} if data.missing is None else {"missing": data.missing}
    _write_arrays(folder / OBSERVED, {"y": data.y, "offsets": data.offsets, **missing})
    chains = _write_chains(posterior, folder)
    warmup = _write_chains(posterior.warmup, folder / WARMUP) if posterior.warmup is not None else []
    settings = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "versions": {"ihmm": _version(), "numpy": np.__version__, "python": platform.python_version()},
        "model": _encode(posterior.model),
        "sampler": _encode(posterior.sampler),
        "seed": posterior.seed,
        "chains": chains,
        "warmup": warmup,
        "sha256": {path.relative_to(folder).as_posix(): _digest(path) for path in sorted(folder.rglob("*.npz"))},
    }
    with (folder / SETTINGS).open("w", encoding="utf-8") as file:
        json.dump(settings, file, indent=2)
        _flush(file)


def _write_chains(posterior: Posterior, folder: Path) -> list[dict[str, int]]:
    """One file a chain; returns the table of contents."""
    folder.mkdir(exist_ok=True)
    for states, record in zip(posterior._states, posterior._records, strict=True):
        arrays = {name: getattr(record, name) for name in ("n_states", "beta", "initial", "rows")}
        arrays |= {f"phi_{name}": field for name, field in phi_fields(record.phi).items()}
        arrays |= {f"trace_{name}": trace for name, trace in record.traces.items()}
        _write_arrays(folder / f"chain-{record.chain}.npz", {"states": states[: len(record)], **arrays})
    return [{"chain": record.chain, "draws": len(record)} for record in posterior._records]


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


def _read(folder: Path, settings: dict[str, Any], model: Model) -> Posterior:
    arrays = _read_arrays(folder, OBSERVED, settings)
    data = model.describe(arrays["y"], arrays["offsets"], arrays.get("missing"))
    sampler = _decode_sampler(settings["sampler"])

    def posterior(contents: list[dict[str, int]], within: str, warmup: Posterior | None) -> Posterior:
        states, records = _read_chains(folder, contents, within, settings, model, len(data.y))
        return Posterior(model, data, states, records, sampler=sampler, seed=settings["seed"], warmup=warmup)

    warmup = posterior(settings["warmup"], f"{WARMUP}/", None) if settings["warmup"] else None
    return posterior(settings["chains"], "", warmup)


def _read_chains(
    folder: Path, contents: list[dict[str, int]], within: str, settings: dict[str, Any], model: Model, n_steps: int
) -> tuple[Array, list[Record]]:
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
    return block, records


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
