"""The file ``run.json``: settings of a run, and the versions it was started with."""

import platform
import warnings
from collections.abc import Callable
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from ihmm._checks import MAX_CHAINS
from ihmm.model import Model
from ihmm.store._base import Phase, RunSettings
from ihmm.store.archive import stored_digest
from ihmm.store.chunk_files import DATA
from ihmm.store.encoding import UnknownClassError, decode, decode_or_none, encode
from ihmm.store.sealed_json import read_sealed, write_sealed

FORMAT, FORMAT_VERSION = "ihmm run", 1
RUN_JSON = "run.json"


def write_run_json(
    folder: Path,
    settings: RunSettings,
    identity: str,
    *,
    resumable: bool,
    sizes: dict[int, dict[Phase, int]] | None = None,
) -> None:
    """`sizes`, the number of draws by chain and phase, is given for a run that is never extended."""
    written = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "id": identity,
        "resumable": resumable,
        "sizes": sizes,
        "versions": _versions(),
        "data": stored_digest(folder / DATA),
        **{field.name: encode(getattr(settings, field.name)) for field in fields(settings)},
    }
    write_sealed(folder / RUN_JSON, written)


def read_run_json(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        copies = [copy for copy in folder.parent.glob(f".{folder.name}.*") if (copy / RUN_JSON).exists()]
        hint = f", but {copies[0]} holds one that an interrupted save left behind; rename it" if copies else ""
        raise FileNotFoundError(f"there is no folder {folder}{hint}")
    try:
        written = read_sealed(folder / RUN_JSON)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{folder} is not a run or saved posterior: it has no {RUN_JSON}") from error
    if isinstance(program := written.get("format"), str) and program != FORMAT:
        raise ValueError(f"{folder} is not a run or saved posterior: the format in {RUN_JSON} is {program!r}")
    _check_fields(folder, written, HEADER)
    if written["format_version"] > FORMAT_VERSION:
        by = written["versions"].get("ihmm")
        raise ValueError(f"{folder} was written by a newer ihmm ({by}); upgrade to read it")
    _check_fields(folder, written, SETTINGS)
    return written


def _is_count(value: Any, least: int, most: int = 2**63) -> bool:
    return type(value) is int and least <= value <= most


def _are_sizes(value: Any) -> bool:
    """By chain and phase."""
    if not isinstance(value, dict):
        return value is None
    chains = [size for chain, size in value.items() if chain.isdecimal() and isinstance(size, dict)]
    return len(chains) == len(value) and all(_is_count(n, 0) for size in chains for n in size.values())


def _are_names(value: Any) -> bool:
    if not isinstance(value, list):
        return value is None
    return all(isinstance(pair, list) and [type(x) for x in pair] == [int, str] for pair in value)


def _is_resolution(value: Any) -> bool:
    values = value if isinstance(value, list) else [value]
    return value is None or all(type(x) in (int, float) and x > 0 for x in values)


Fields = dict[str, tuple[Callable[[Any], bool], str]]
HEADER: Fields = {
    "format": (lambda value: isinstance(value, str), "a string"),
    "format_version": (lambda value: _is_count(value, 1), "a whole number"),
    "versions": (lambda value: isinstance(value, dict), "an object"),
    "id": (lambda value: isinstance(value, str), "a string"),
    "resumable": (lambda value: isinstance(value, bool), "true or false"),
}
SETTINGS: Fields = {
    "model": (lambda value: isinstance(value, dict), "an object"),
    "moves": (lambda value: isinstance(value, list), "a list"),
    "seed": (lambda value: value is None or (type(value) is int and value >= 0), "a whole number or null"),
    "draws": (lambda value: _is_count(value, 1), "a whole number of at least 1"),
    "tune": (lambda value: _is_count(value, 0), "a whole number of at least 0"),
    "thin": (lambda value: _is_count(value, 1), "a whole number of at least 1"),
    "chains": (lambda value: _is_count(value, 1, MAX_CHAINS), f"a whole number from 1 to {MAX_CHAINS}"),
    "init": (lambda value: value in (None, "auto") or _is_count(value, 1), 'a whole number, "auto" or null'),
    "save_warmup": (lambda value: isinstance(value, bool), "true or false"),
    "order_by": (lambda value: value in (None, "use", "mean"), '"use" or "mean"'),
    "names": (_are_names, "pairs of a number and a name"),
    "resolution": (_is_resolution, "positive numbers"),
    "sizes": (_are_sizes, "numbers of draws"),
}


def _check_fields(folder: Path, written: dict[str, Any], expected: Fields) -> None:
    for name, (condition, description) in expected.items():
        value = written.get(name)
        if not condition(value):
            got = "nothing" if name not in written else repr(value)[:60]
            raise ValueError(
                f"{folder / RUN_JSON} is damaged or not written by ihmm ({name} must be {description}, got {got})"
            )


def settings_of(folder: Path, written: dict[str, Any], model: Model | None) -> RunSettings:
    """The settings in ``run.json``. The `model` is needed if its emission is not part of ihmm.

    A sampler or move that this version of ihmm does not have is left out: draws can be read without it.
    """
    try:
        return RunSettings(
            _model(folder, written["model"], model),
            decode_or_none(written["sampler"]),
            tuple(move for move in map(decode_or_none, written["moves"]) if move is not None),
            **{name: written[name] for name in ("seed", "draws", "tune", "thin", "chains", "init", "save_warmup")},
            order_by=written.get("order_by", "use"),
            names=tuple((k, name) for k, name in written.get("names", ())),
            resolution=decode(written.get("resolution")),
        )
    except (KeyError, TypeError, RecursionError) as error:
        raise _damaged(folder, error) from error


def _model(folder: Path, saved: Any, model: Model | None) -> Model:
    if model is not None:
        if encode(model) != saved:
            raise ValueError(f"the model given, {model}, is not the one saved in {folder}: {saved}")
        return model
    try:
        return cast(Model, decode(saved))
    except UnknownClassError as error:
        raise ValueError(
            f"the posterior in {folder} was made with {error}, which is not part of ihmm; pass the model: model=…"
        ) from error
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"the model in {folder / RUN_JSON} cannot be read ({error})") from error


def _damaged(folder: Path, error: Exception) -> ValueError:
    return ValueError(f"{folder / RUN_JSON} is damaged or not written by ihmm ({error!r})")


def compare_versions(folder: Path, written: dict[str, str], stacklevel: int) -> None:
    """Warn if a run was started with other versions than those in use."""
    other = {name: (was, now) for name, now in _versions().items() if (was := written.get(name)) != now}
    if other:
        changes = ", ".join(f"{name} {was} → {now}" for name, (was, now) in other.items())
        warnings.warn(
            f"{folder} was started with other versions ({changes}): further draws may not be identical, bit for bit, "
            "to those of an uninterrupted run",
            UserWarning,
            stacklevel + 1,
        )


def _versions() -> dict[str, str]:
    numba = import_module("numba").__version__
    return {"ihmm": version(), "numpy": np.__version__, "numba": numba, "python": platform.python_version()}


def version() -> str:
    """The version of ihmm, looked up at run time: this module must not import the package above it."""
    return str(import_module("ihmm").__version__)
