"""The one place for compiler flags."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def jit(function: Function) -> Function:
    """Compile once, keep on disk, run without the interpreter's lock so that chains can share a process."""
    return cast(Function, numba.njit(**FLAGS)(function))


def inlined(function: Function) -> Function:
    """Compile into every function that calls it: for the few lines that an inner loop runs most."""
    return cast(Function, numba.njit(**FLAGS, forceinline=True)(function))
