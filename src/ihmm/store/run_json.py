"""The file ``run.json``: settings of a run, and the versions it was started with."""

import json
import platform
import warnings
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import numpy as np

from ihmm.model import Model
from ihmm.store._base import Phase, RunSettings
from ihmm.store.archive import write_atomically
from ihmm.store.encoding import UnknownClassError, decode, decode_or_none, encode

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
        **{field.name: encode(getattr(settings, field.name)) for field in fields(settings)},
    }
    write_atomically(folder / RUN_JSON, json.dumps(written, indent=2).encode())


def read_run_json(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        copies = [copy for copy in folder.parent.glob(f".{folder.name}.*") if (copy / RUN_JSON).exists()]
        hint = f", but {copies[0]} holds one that an interrupted save left behind; rename it" if copies else ""
        raise FileNotFoundError(f"there is no folder {folder}{hint}")
    try:
        written: dict[str, Any] = json.loads((folder / RUN_JSON).read_text("utf-8"))
        program, format_version, by, _, _ = (
            written[name] for name in ("format", "format_version", "versions", "id", "resumable")
        )
    except (FileNotFoundError, NotADirectoryError) as error:
        raise ValueError(f"{folder} is not a run or saved posterior: it has no {RUN_JSON}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise _damaged(folder, error) from error
    if program != FORMAT:
        raise ValueError(f"{folder} is not a run or saved posterior: the format in {RUN_JSON} is {program!r}")
    if format_version > FORMAT_VERSION:
        raise ValueError(f"{folder} was written by a newer ihmm ({by['ihmm']}); upgrade to read it")
    return written


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
        )
    except (KeyError, TypeError) as error:
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
    except (ValueError, TypeError) as error:
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
