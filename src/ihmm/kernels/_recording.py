"""Kernels that are interpreted and note what they are called with, so that they can be compiled in another order."""

from collections.abc import Iterator
from typing import Any, ClassVar

from numba.core.types import Omitted  # type: ignore[attr-defined]

from ihmm.kernels import _jit
from ihmm.kernels._compiler import Kernel


def record() -> None:
    """From now on, in this process, modules that are imported have kernels that are recorded."""
    _jit.Kernel = RecordedKernel


def recorded() -> Iterator[tuple[Kernel, tuple[Any, ...]]]:
    """Kernels that Python called and the types of their arguments, latest first."""
    return reversed(RecordedKernel.calls)


class RecordedKernel(Kernel):
    calls: ClassVar[dict[tuple[Kernel, tuple[Any, ...]], None]] = {}
    depth: ClassVar[int] = 0  # of calls by other kernels

    def __call__(self, *arguments: Any) -> Any:
        if RecordedKernel.depth == 0:
            n_missing = self.py_func.__code__.co_argcount - len(arguments)
            defaults = self.py_func.__defaults__[-n_missing:] if n_missing else ()
            kinds = *map(self.typeof_pyval, arguments), *map(Omitted, defaults)
            RecordedKernel.calls.setdefault((self, kinds))
        RecordedKernel.depth += 1
        try:
            return self.py_func(*arguments)
        finally:
            RecordedKernel.depth -= 1
