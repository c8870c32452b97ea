"""Compilation in less time: optimise and translate to machine code only the functions that Python calls.

By default numba optimises, translates and stores every function, and everything that a function calls is optimised once
more with it: a function four calls deep is optimised four times. Here a function that is called by another is only
translated to LLVM's intermediate code, the part it contributes to its callers; it is optimised and translated with
each function that Python calls, of which it becomes a part. That is half of the work.

A part is compiled once for 64-bit integers, not again for 32-bit ones or for the values of constants.

Three more things are left out that numba would do: the entry point for C, the passes for closures and for expressions
of whole arrays, which kernels do not have, and garbage collection, a tenth of the time.

All of this uses internals of numba; `_jit` does without it if they are not what they were.
"""

import gc
import os
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from threading import Lock
from typing import Any, ClassVar

from numba import _dynfunc
from numba.core import types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompilerBase, DefaultPassBuilder, Flags
from numba.core.compiler_machinery import register_pass
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.typed_passes import NativeLowering, NopythonRewrites
from numba.core.untyped_passes import InlineClosureLikes

from ihmm.kernels._cache import cache_folder, version_of_sources

MAX_WAIT = 60.0  # seconds for another process to compile a function


class Kernel(CPUDispatcher):  # type: ignore[misc]
    """A compiled function: ready to be called by Python, and as a part of other compiled functions."""

    compiled: ClassVar[list["Kernel"]] = []  # by this process; once for each signature
    waiting: ClassVar[dict["Kernel", float]] = {}  # kernels being compiled or loaded, since when

    def __init__(self, py_func: Any, locals: Any, targetoptions: Any) -> None:
        super().__init__(py_func, locals, targetoptions, KernelCompiler)
        self._cache = KernelCache(py_func)
        self._part = CPUDispatcher(py_func, locals, targetoptions, PartCompiler)
        for each in (self, self._part):
            each._compiler._customize_flags = SteadyFlags

    def compile(self, sig: Any) -> Any:
        Kernel.waiting[self] = time.monotonic()
        try:
            # another process that compiles it now will have stored it by then
            with self._cache.locked(), no_garbage_collection:
                compiled = super().compile(sig)
            for overload in self.overloads.values():
                overload.library._shared_module = None  # for linking; megabytes, and only parts are linked
            return compiled
        finally:
            Kernel.waiting.pop(self, None)
            if sig in self._cache_misses:
                Kernel.compiled.append(self)

    @property
    def is_cold(self) -> bool:
        """Whether it has not been compiled for any arguments, by this process or another."""
        return not self.overloads and self._cache.is_empty

    def get_call_template(self, args: Any, kws: Any) -> Any:
        _, args = self._compiler.fold_argument_types(args, kws)
        return self._part.get_call_template(tuple(map(widened, args)), {})

    def get_overload(self, sig: Any) -> Any:
        return self._part.get_overload(sig)


class NoGarbageCollection:
    """Garbage is not collected as long as one thread or several are in this context."""

    def __init__(self) -> None:
        self._lock, self._depth, self._was_enabled = Lock(), 0, False

    def __enter__(self) -> None:
        with self._lock:
            if self._depth == 0:
                self._was_enabled = gc.isenabled()
                gc.disable()
            self._depth += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._depth -= 1
            if self._depth == 0 and self._was_enabled:
                gc.enable()


no_garbage_collection = NoGarbageCollection()


class SteadyFlags(Flags):  # type: ignore[misc]
    """Compiler flags that are not changed while they are in use. numba compares them at every call that it resolves."""

    __slots__ = ("_known",)

    def values(self) -> dict[str, Any]:
        if not hasattr(self, "_known"):
            self._known: dict[str, Any] = super().values()
        return self._known

    def __eq__(self, other: object) -> bool:
        return self is other or bool(super().__eq__(other))

    def __hash__(self) -> int:
        return int(super().__hash__())


def widened(kind: Any) -> Any:
    """The type of an argument, without the value of a constant, and 64-bit if it is an integer."""
    kind = types.unliteral(kind)  # type: ignore[attr-defined]
    is_short = isinstance(kind, types.Integer) and kind.bitwidth < 64  # type: ignore[attr-defined]
    return types.int64 if is_short else kind


class PartLibrary(JITCodeLibrary):  # type: ignore[misc]
    """Code to be linked into others; not optimised, not executable."""

    def _optimize_final_module(self) -> None:
        pass

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._finalized = True


@register_pass(mutates_CFG=True, analysis_only=False)
class PartLowering(NativeLowering):  # type: ignore[misc]
    _name = "ihmm_part_lowering"

    def run_pass(self, state: Any) -> bool:
        library = PartLibrary(state.targetctx.codegen(), state.func_id.func_qualname)
        state.library = library
        # Set here and not as options, so that parts and whole functions share what NumPy's functions compile to
        flags = state.flags
        flags.no_compile = flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
        super().run_pass(state)
        library.finalize()
        lowered = state["cr"]
        description = lowered.fndesc
        identity = _dynfunc.make_function(description.lookup_module(), "part", "", 0, lowered.env, (library,))
        state.targetctx.insert_user_function(identity, description, [library])
        state["cr"] = lowered._replace(cfunc=identity)
        return True


@register_pass(mutates_CFG=True, analysis_only=False)
class KernelLowering(NativeLowering):  # type: ignore[misc]
    _name = "ihmm_kernel_lowering"

    def run_pass(self, state: Any) -> bool:
        state.flags.no_cfunc_wrapper = True  # not an option, for the same reason
        return bool(super().run_pass(state))


class KernelCompiler(CompilerBase):  # type: ignore[misc]
    lowering: ClassVar[type] = KernelLowering

    def define_pipelines(self) -> list[Any]:
        pipeline = DefaultPassBuilder.define_nopython_pipeline(self.state)
        pipeline.passes = [
            (self.lowering if each is NativeLowering else each, why)
            for each, why in pipeline.passes
            if each not in (InlineClosureLikes, NopythonRewrites)
        ]
        pipeline._finalized = False
        pipeline.finalize()
        return [pipeline]


class PartCompiler(KernelCompiler):
    lowering = PartLowering


class Locator(_CacheLocator):  # type: ignore[misc]
    def __init__(self, py_func: Any, py_file: str) -> None:
        self._py_file = py_file
        self._module = py_func.__module__.removeprefix("ihmm.kernels.")  # all modules share the folder

    def get_cache_path(self) -> str:
        return str(cache_folder().path)

    def get_source_stamp(self) -> str:
        return version_of_sources()

    def get_disambiguator(self) -> str:
        return str(self._module)

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "Locator":
        return cls(py_func, py_file)


class KernelCacheImpl(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = (Locator,)


class KernelCache(FunctionCache):  # type: ignore[misc]
    _impl_class = KernelCacheImpl

    def __init__(self, py_func: Any) -> None:
        super().__init__(py_func)
        # Compared before the signatures in the index are read, which may have classes that are not there any more
        self._cache_file._version = f"{self._cache_file._version} {version_of_sources()}"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """As numba does, but without all that it needs in order to compile: 0.3 seconds and 20 MB."""
        rtsys.initialize(target_context)
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)

    @property
    def is_empty(self) -> bool:
        """Whether nothing is stored of this function, as it is now."""
        return not self._cache_file._load_index()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from compiling the same function at the same time; they wait and then load it.

        They do not wait forever: a process may have been suspended (Ctrl-Z) in the middle.
        """
        with ExitStack() as stack:
            with suppress(ImportError, OSError):  # on Windows, or where no file can be locked, several may compile it
                import fcntl

                os.makedirs(self._cache_path, exist_ok=True)
                file = stack.enter_context(open(f"{self._cache_file._index_path}.lock", "w"))
                end = time.monotonic() + MAX_WAIT
                while time.monotonic() < end:
                    with suppress(BlockingIOError):
                        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                        break
                    time.sleep(0.02)
            yield
