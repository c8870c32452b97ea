"""The one place for compiler flags."""

from collections.abc import Callable
from typing import TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])


def jit(function: Function) -> Function:
    """Compile once, keep on disk, run without the interpreter's lock so that chains can share a process."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inlined(function: Function) -> Function:
    """Compile into every function that calls it: for the few lines that an inner loop runs most."""
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy", forceinline=True)(function))
