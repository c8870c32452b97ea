"""Options of `ihmm fit`, and the TOML file that stores them in the run folder."""

import hashlib
import json
import tomllib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import ihmm
from ihmm import _checks, tables
from ihmm.series.clock import Clock, make_clock
from ihmm.store.archive import write_atomically

if TYPE_CHECKING:
    from ihmm.choice import Choice
    from ihmm.samplers import Sampler

FILE_NAME = "settings.toml"
DIGEST = "# SHA-256 of the lines below: "
SAMPLERS = ("particle-gibbs", "beam", "direct-assignment")


@dataclass(frozen=True)
class FitOptions:
    """Options of one run of `ihmm fit`, under the names they have on the command line."""

    files: tuple[str, ...]
    column: tuple[str, ...] = ()
    id: str | None = None
    time: str | None = None
    dt: str | None = None
    sample_rate: str | None = None
    delimiter: str | None = None
    decimal: str | None = None
    skip_rows: int = 0
    na: tuple[str, ...] = ()
    symbols: tuple[str, ...] = ()
    emission: str = "auto"
    order: int | None = None
    sticky: bool = True
    duration: str | None = None
    min_dwell: int | None = None
    left_censored: bool = False
    resolution: float | None = None
    sampler: str = "particle-gibbs"
    particles: int | None = None
    seed: int = 0
    chains: int = 4
    draws: int | str = "auto"
    tune: int = 300
    thin: int = 1
    init: int | str = "auto"
    order_by: str = "use"
    name: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not self.files:
            raise ValueError("no input file; name one on the command line or in the --config file")
        for text in (*self.files, *self.column, *self.na, *filter(None, (self.id, self.time, self.delimiter))):
            _checks.utf8(text)
        if self.particles is not None and self.sampler != "particle-gibbs":
            raise ValueError(f"--particles requires --sampler particle-gibbs, got --sampler {self.sampler}")
        if self.order is not None and self.emission not in ("autoregressive", "levels"):
            raise ValueError(f"--order requires --emission autoregressive or levels, got --emission {self.emission}")
        if self.resolution is not None and not self.resolution > 0:
            raise ValueError(f"--resolution must be positive, got {self.resolution}")
        if self.id is not None and self.id in self.column:
            raise ValueError(f"column {self.id} is given for both --column and --id; use it for only one of them")
        parse_names(self.name)
        given = [f"--{name.replace('_', '-')}" for name in ("time", "dt", "sample_rate") if getattr(self, name)]
        if len(given) > 1:
            raise ValueError(f"give one of --time, --dt and --sample-rate, got {' and '.join(given)}")

    @property
    def clock(self) -> Clock | None:
        return make_clock(self.dt, self.sample_rate)

    @property
    def layout(self) -> tables.Layout:
        return tables.Layout(self.delimiter, self.decimal, self.skip_rows, self.na)

    def read_table(self) -> tables.Table:
        return tables.read(
            self.files,
            self.column,
            by=self.id,
            time=self.time,
            clock=self.clock,
            layout=self.layout,
            emission=self.emission,
            symbols=self.symbols,
        )

    def make_choice(self, table: tables.Table, cores: int | None = None, *, progress: bool = False) -> "Choice":
        from ihmm.choice import ModelOptions, choose_model

        given = ModelOptions.of(self, sampler=self.make_sampler())
        lengths = np.array([len(part) for part in table.series])
        return choose_model(table.values, lengths, given, symbols=table.symbols, cores=cores, progress=progress)

    def make_sampler(self) -> "Sampler":
        if self.sampler == "particle-gibbs":
            return ihmm.ParticleGibbs() if self.particles is None else ihmm.ParticleGibbs(n_particles=self.particles)
        return ihmm.Beam() if self.sampler == "beam" else ihmm.DirectAssignment()


def parse_names(options: Sequence[str]) -> dict[int, str]:
    """Names of states from options such as 0=closed."""
    names = {}
    for option in options:
        number, _, name = option.partition("=")
        if not number.isdecimal() or not name:
            raise ValueError(f"--name must be the number of a state and its name, such as 0=closed, got {option!r}")
        names[int(number)] = name
    return names


STRING, STRINGS, WHOLE = (str, "a string"), (list, "a list of strings"), (int, "a whole number")
TYPES: dict[str, tuple[type | tuple[type, ...], str]] = {
    **dict.fromkeys(("files", "column", "symbols", "na", "name"), STRINGS),
    **dict.fromkeys(("id", "time", "dt", "sample_rate", "delimiter", "decimal", "emission", "sampler"), STRING),
    **dict.fromkeys(("duration", "order_by"), STRING),
    **dict.fromkeys(("sticky", "left_censored"), (bool, "true or false")),
    "resolution": ((int, float), "a number"),
    **dict.fromkeys(("skip_rows", "order", "min_dwell", "particles", "seed", "chains", "tune", "thin"), WHOLE),
    **dict.fromkeys(("init", "draws"), ((int, str), 'a whole number or "auto"')),
}


def read_toml(path: Path) -> dict[str, Any]:
    """Options set by a TOML file. Data files are relative to the folder of the TOML file."""
    try:
        values = tomllib.loads(path.read_text("utf-8"))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise ValueError(f"{path} is not valid TOML: {error}") from error
    for name, value in values.items():
        if name not in TYPES:
            raise ValueError(f"{path}: unknown option {name}; expected one of {', '.join(TYPES)}")
        kind, expected = TYPES[name]
        strings = not isinstance(value, list) or all(isinstance(item, str) for item in value)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool) or not strings:
            raise ValueError(f"{path}: {name} must be {expected}, got {value!r}")
    if "files" in values:
        values["files"] = [str(path.parent / file) for file in values["files"]]
    return values


def write_toml(folder: Path, options: FitOptions, table: tables.Table) -> None:
    """Write the options to the run folder, with absolute paths and the symbols found in the data."""
    files = tuple(str(Path(file).resolve()) for file in options.files)
    _write_values(folder, asdict(replace(options, files=files, symbols=table.symbols)))


def read_run(folder: Path) -> dict[str, Any]:
    """The options that a run was made with; empty if it has none. They must be as `ihmm fit` wrote them."""
    path = folder / FILE_NAME
    if not path.exists():
        return {}
    values = read_toml(path)
    _, _, sealed = path.read_text("utf-8").partition(DIGEST)
    digest, _, content = sealed.partition("\n")
    if sealed and digest != _digest(content):
        raise ValueError(
            f"{path} was changed after the run was made: it does not match its checksum; restore it, or delete it and "
            "give the options that are needed"
        )
    return values


def update_draws(folder: Path, draws: int) -> None:
    """Set the number of draws in the TOML file of a run, if it has one."""
    if options := read_run(folder):
        _write_values(folder, options | {"draws": draws})


def _write_values(folder: Path, values: dict[str, Any]) -> None:
    # Strings, numbers and lists have the same notation in JSON and in TOML.
    lines = [f"{name} = {json.dumps(value, ensure_ascii=False)}" for name, value in values.items() if _is_set(value)]
    content = "\n".join([*lines, ""]).replace("\x7f", "\\u007f")  # which TOML has only in this notation
    comment = f"# To repeat this run: ihmm fit --config {FILE_NAME} --out OTHER\n{DIGEST}{_digest(content)}\n"
    write_atomically(folder / FILE_NAME, (comment + content).encode())


def _digest(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _is_set(value: Any) -> bool:
    return value not in (None, ())
