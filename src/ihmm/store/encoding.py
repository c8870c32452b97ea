"""Models, samplers and moves as JSON: ``{"class": name, field: value, …}``.

Only classes of ihmm are ever created from a file.
"""

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from ihmm import durations, emissions, moves, priors, samplers
from ihmm.model import Model

_CLASSES: dict[str, Any] = {
    value.__name__: value
    for value in (Model, *(value for module in (priors, emissions, samplers, moves) for value in vars(module).values()))
    if isinstance(value, type) and is_dataclass(value) and value is not emissions.Conjugate
} | {
    f"durations.{name}": value  # some are called as an emission is
    for name, value in vars(durations).items()
    if isinstance(value, type) and is_dataclass(value)
}
_NAMES = {value: name for name, value in _CLASSES.items()}


# Fields added later whose default is not what objects did before; files may lack them
_BEFORE_THE_FIELD = {"ParticleGibbs": {"resampling": "multinomial"}}


class UnknownClassError(Exception):
    """The class of an object in a file is not part of ihmm; the message is its name."""


def encode(value: Any) -> Any:
    """A value as JSON. An object of a class outside ihmm is reduced to the name of its class."""
    if type(value) in _NAMES:
        return {"class": _NAMES[type(value)]} | {name: encode(item) for name, item in _arguments(value).items()}
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    return value if value is None or isinstance(value, (bool, int, float, str)) else {"foreign": type(value).__name__}


def _arguments(value: Any) -> dict[str, Any]:
    """Arguments with which the class of an object creates an equal one."""
    if isinstance(value, emissions.Independent):
        return dict(zip(value.names, value.parts, strict=True))
    if isinstance(value, Model) and value.duration is None:
        return {"emission": value.emission, "prior": value.prior}  # as before there were durations
    return {field.name: getattr(value, field.name) for field in fields(value)}


def decode(value: Any) -> Any:
    """The inverse of `encode`."""
    if isinstance(value, list):
        return tuple(decode(item) for item in value)
    if not isinstance(value, dict):
        return value
    if value.get("class") not in _CLASSES:
        raise UnknownClassError(value.get("class", value.get("foreign")))
    name = value["class"]
    arguments = {field: decode(item) for field, item in value.items() if field != "class"}
    return _CLASSES[name](**_BEFORE_THE_FIELD.get(name, {}) | arguments)


def decode_or_none(value: Any) -> Any:
    """The object, or None if this version of ihmm cannot create it."""
    try:
        return decode(value)
    except (UnknownClassError, ValueError, TypeError):
        return None
