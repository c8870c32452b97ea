"""How far compilation is, for those who wait for it."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from ihmm.kernels._cache import cache_folder
from ihmm.kernels._jit import Kernel

NOTICEABLE = 0.3  # seconds: kernels that have been compiled before are loaded in less


class Compilation:
    """The compilation of some kernels that a run will call, in this process or another."""

    def __init__(self, kernels: Sequence[Callable[..., Any]]) -> None:
        self._cold: list[Callable[..., Any]] = []
        self._before = len(_compiled())
        self.expect(kernels)

    def expect(self, kernels: Sequence[Callable[..., Any]]) -> None:
        """These are still to come, whatever was expected before. If nothing was, counting starts again."""
        done = [kernel for kernel in self._cold if not is_cold(kernel)]
        if len(done) == len(self._cold):
            done, self._before = [], len(_compiled())
        self._cold = done + [kernel for kernel in kernels if is_cold(kernel)]
        self.total = len(self._cold)

    @property
    def done(self) -> int:
        """Number of kernels compiled so far; it and `total` grow by those that were not expected."""
        expected = [kernel for kernel in self._cold if not is_cold(kernel)]
        here = _compiled()[self._before :]
        others = len(here) - len(set(here).intersection(expected))
        done = len(expected) + others
        self.total = max(len(self._cold) + others, done + self.is_active)
        return done

    @property
    def is_active(self) -> bool:
        """Whether somebody waits for a kernel at this moment."""
        since = min(Kernel.waiting.copy().values(), default=None) if Kernel is not None else None
        return since is not None and time.monotonic() - since > NOTICEABLE


def is_cold(kernel: Callable[..., Any]) -> bool:
    return bool(getattr(kernel, "is_cold", False))


def _compiled() -> list[Callable[..., Any]]:
    return Kernel.compiled if Kernel is not None else []


def where_kept() -> tuple[Path, str]:
    """The folder of the compiled kernels, and why it is not the usual one (empty if it is)."""
    return cache_folder()
