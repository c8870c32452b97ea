"""Compiler flags."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Function = TypeVar("Function", bound=Callable[..., object])
# `_nrt`, reference counts, is explicit: without it a function would inherit the setting of the first one that calls it
FLAGS: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy", "_nrt": True}


def jit(function: Function) -> Function:
    """Compile, cache on disk, and release the GIL so that chains can run in threads of one process."""
    return cast(Function, numba.njit(**FLAGS)(function))


def inlined(function: Function) -> Function:
    """The same, but inlined into every caller: for the few lines that inner loops execute most often.

    It must not allocate: it is compiled without reference counts, which cost more than these lines (10 ns a call).
    """
    return cast(Function, numba.njit(**(FLAGS | {"forceinline": True, "_nrt": False}))(function))
