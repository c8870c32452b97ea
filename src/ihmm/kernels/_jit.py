"""Compiler flags."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}


def jit(function: Function) -> Function:
    """Compile, cache on disk, and release the GIL so that chains can run in threads of one process."""
    return cast(Function, numba.njit(**FLAGS)(function))


def inlined(function: Function) -> Function:
    """The same, but inlined into every caller: for the few lines that inner loops execute most often."""
    return cast(Function, numba.njit(**FLAGS, forceinline=True)(function))
