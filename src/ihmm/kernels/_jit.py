"""Compiler flags."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

Kernel: Any
try:
    from ihmm.kernels import _compiler
except (ImportError, AttributeError):  # another version of numba: compiled as numba does it, which takes longer
    Kernel = None
else:
    Kernel = _compiler.Kernel

Function = TypeVar("Function", bound=Callable[..., object])
# `_nrt`, reference counts, is explicit: without it a function would inherit the setting of the first one that calls it
FLAGS: dict[str, Any] = {"nogil": True, "error_model": "numpy", "_nrt": True}


def jit(function: Function) -> Function:
    """Compile, cache on disk, and release the GIL so that chains can run in threads of one process."""
    return _compiled(function, FLAGS)


def in_place(function: Function) -> Function:
    """The same, for functions that neither allocate arrays nor return any: compiled without reference counts.

    A bundle of arrays is counted array by array wherever it is mentioned, which is much code to compile and to run.
    """
    return _compiled(function, FLAGS | {"_nrt": False})


def inlined(function: Function) -> Function:
    """The same, but inlined into every caller: for the few lines that inner loops execute most often.

    It must not allocate: it is compiled without reference counts, which cost more than these lines (10 ns a call).
    """
    return _compiled(function, FLAGS | {"forceinline": True, "_nrt": False})


def reordered(function: Function) -> Function:
    """The same, but sums may be computed in any order, and so by vector instructions."""
    return _compiled(function, FLAGS | {"fastmath": {"reassoc", "nsz", "contract"}})


def _compiled(function: Function, flags: dict[str, Any]) -> Function:
    if Kernel is None or numba.config.DISABLE_JIT:
        return cast(Function, numba.njit(cache=True, **flags)(function))
    return cast(Function, Kernel(function, {}, flags | {"nopython": True, "boundscheck": None}))
