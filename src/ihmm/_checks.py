"""Argument checks, with messages that state what was expected and what was passed."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np

from ihmm._typing import IntArray

# Names of emissions; defined here so that the command line does not have to import them
EMISSIONS = (
    "auto",
    "normal",
    "gaussian",
    "categorical",
    "poisson",
    "negative-binomial",
    "bernoulli",
    "multinomial",
    "autoregressive",
    "levels",
    "student-t",
    "von-mises",
    "mixture",
)


DURATIONS = ("geometric", "negative binomial", "poisson")


def positive(name: str, value: Any) -> float:
    return _real(name, value, "a positive number", lambda x: x > 0)


def not_negative(name: str, value: Any) -> float:
    return _real(name, value, "a number of at least 0", lambda x: x >= 0)


def fraction(name: str, value: Any) -> float:
    return _real(name, value, "a number in [0, 1)", lambda x: 0 <= x < 1)


def finite(name: str, value: Any) -> float:
    return _real(name, value, "a finite number", lambda _: True)


MAX_CHAINS = 10_000
MAX_SIZE = 1_000_000  # number of columns, symbols, states
MAX_MATRIX = 5_000  # columns whose covariances are a matrix


def count(name: str, value: Any, least: int = 1, most: int | None = None) -> int:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise ValueError(f"{name} must be a whole number of at least {least}, got {value!r}")
    if most is not None and int(value) > most:
        raise ValueError(f"{name} must be a whole number of at most {most}, got {value!r}")
    return int(value)


def one_of(name: str, value: Any, choices: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}, got {value!r}")
    return str(value)


def utf8(name: str) -> str:
    """A name that can be stored as text. Names of files may hold any bytes."""
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name!r} is not UTF-8 text; rename it") from error
    return name


def steps(values: Any, total: int) -> IntArray:
    """Indices of steps, as integers."""
    index = np.asarray(values)
    integral = index.dtype.kind in "iu" or (index.dtype.kind == "f" and bool(np.all(index == np.floor(index))))
    if index.ndim != 1 or not integral or (index.size and not (index.min() >= 0 and index.max() < total)):
        raise ValueError(f"steps must be a list of whole numbers from 0 to {total - 1}, got {values!r}")
    return index.astype(np.int64)


def _real(name: str, value: Any, expected: str, condition: Any) -> float:
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, Real) else float(value)
    except OverflowError:  # a whole number beyond all floating-point numbers
        number = math.inf
    if not math.isfinite(number) or not condition(number):
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return number
