"""What `ihmm fit` was asked for, as a TOML file that repeats it, and where its data and numbers come from."""

import hashlib
import json
import platform
import shlex
import sys
import tomllib
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ihmm
from ihmm import tables

if TYPE_CHECKING:
    from ihmm.model import Model
    from ihmm.samplers import Sampler

SETTINGS, PROVENANCE = "settings.toml", "provenance.json"
SAMPLERS = ("particle-gibbs", "beam", "direct-assignment")
PACKAGES = ("ihmm", "numpy", "scipy", "numba", "pandas")


@dataclass(frozen=True)
class Settings:
    """A run of `ihmm fit`; the fields are its options."""

    files: tuple[str, ...]
    column: tuple[str, ...] = ()
    id: str | None = None
    delimiter: str | None = None
    symbols: tuple[str, ...] = ()
    emission: str = "auto"
    order: int | None = None
    sticky: bool = True
    sampler: str = "particle-gibbs"
    particles: int | None = None
    seed: int = 0
    chains: int = 4
    draws: int = 1000
    tune: int = 500
    thin: int = 1
    init: int | str = "auto"

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("give a file to fit, or a --config that names one")
        if self.particles is not None and self.sampler != "particle-gibbs":
            raise ValueError(f"--particles goes with --sampler particle-gibbs, not with {self.sampler}")
        if self.order is not None and self.emission != "autoregressive":
            raise ValueError(f"--order goes with --emission autoregressive, not with {self.emission}")
        if self.id is not None and self.id in self.column:
            raise ValueError(f"{self.id} is named by --column and by --id; it can be one of them")

    def table(self) -> tables.Table:
        return tables.read(
            self.files,
            self.column,
            by=self.id,
            delimiter=self.delimiter,
            emission=self.emission,
            symbols=self.symbols,
        )

    def model(self, table: tables.Table) -> "Model":
        from ihmm.model import model_for

        emission = ihmm.Categorical(n_symbols=max(len(table.symbols), 2)) if table.symbols else self.emission
        return model_for(table.values, emission, self.sticky, 1 if self.order is None else self.order)

    def make_sampler(self) -> "Sampler":
        if self.sampler == "particle-gibbs":
            return ihmm.ParticleGibbs() if self.particles is None else ihmm.ParticleGibbs(n_particles=self.particles)
        return ihmm.Beam() if self.sampler == "beam" else ihmm.DirectAssignment()


TEXT, TEXTS, WHOLE = (str, "a text"), (list, "a list of texts"), (int, "a whole number")
KINDS: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("files", "column", "symbols"), TEXTS),
    **dict.fromkeys(("id", "delimiter", "emission", "sampler"), TEXT),
    "sticky": (bool, "true or false"),
    **dict.fromkeys(("order", "particles", "seed", "chains", "draws", "tune", "thin"), WHOLE),
    "init": ((int, str), 'a whole number or "auto"'),
}


def read(path: Path) -> dict[str, Any]:
    """The options that a TOML file sets; the files it names are looked for from where it is."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    for name, value in values.items():
        if name not in KINDS:
            raise ValueError(f"{path} sets {name}, which is not known; known are {', '.join(KINDS)}")
        kind, expected = KINDS[name]
        texts = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool) or not texts:
            raise ValueError(f"{path}: {name} must be {expected}, got {value!r}")
    if "files" in values:
        values["files"] = [str(path.parent / file) for file in values["files"]]
    return values


def write(folder: Path, settings: Settings, table: tables.Table) -> None:
    """Both files; the paths in them are full ones."""
    files = tuple(str(Path(file).resolve()) for file in settings.files)
    _write_settings(folder, asdict(replace(settings, files=files, symbols=table.symbols)))
    _write_record(folder, _record(settings, table))


def _write_settings(folder: Path, values: dict[str, Any]) -> None:
    """The way JSON writes texts, numbers and lists is TOML's too."""
    lines = [f"{name} = {_json(value)}" for name, value in values.items() if value not in (None, ())]
    head = f"# ihmm fit --config {SETTINGS} --out OTHER    makes the same draws again"
    (folder / SETTINGS).write_text("\n".join([head, *lines, ""]), "utf-8")


def _record(settings: Settings, table: tables.Table) -> dict[str, Any]:
    """Versions, seed, digests of the data, command and date, and what the series, columns and symbols are called."""
    return {
        **_now(),
        "seed": settings.seed,
        "files": [{"path": str(Path(file).resolve()), "sha256": _digest(Path(file))} for file in settings.files],
        "sequences": table.names,
        "columns": table.columns,
        "symbols": table.symbols,
        "resumed": [],
    }


def note_resumption(folder: Path, draws: int | None) -> None:
    """In the files of a run of `ihmm fit`: when it went on, and how many draws were asked for."""
    record = read_provenance(folder)
    if record:
        _write_record(folder, record | {"resumed": [*record["resumed"], _now()]})
        _write_settings(folder, read(folder / SETTINGS) | ({} if draws is None else {"draws": draws}))


def read_provenance(folder: Path) -> dict[str, Any]:
    """Nothing, if the run was not made by `ihmm fit`."""
    try:
        record: dict[str, Any] = json.loads((folder / PROVENANCE).read_text("utf-8"))
    except FileNotFoundError:
        return {}
    return record


def _write_record(folder: Path, record: dict[str, Any]) -> None:
    (folder / PROVENANCE).write_text(_json(record, indent=2) + "\n", "utf-8")


def _now() -> dict[str, Any]:
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "command": shlex.join(sys.argv), "versions": versions, "platform": platform.platform()}


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _json(value: Any, **how: Any) -> str:
    return json.dumps(value, ensure_ascii=False, **how)
