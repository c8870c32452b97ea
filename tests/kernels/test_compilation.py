"""How kernels are compiled, where they are kept, and what is said meanwhile."""

import gc
import io
import os
import pickle
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import ihmm
from ihmm.chain import MOVES
from ihmm.durations import Geometric
from ihmm.kernels import _cache, _compiler, compilation, draws
from ihmm.kernels._compiler import Kernel
from ihmm.kernels._jit import jit
from ihmm.running import compiling, progress
from ihmm.running.compiling import kernels_of
from ihmm.samplers import ParticleGibbs


@jit
def shifted(x, n):
    return x + n


@jit
def shifted_in_every_way(values, small):
    return shifted(values[0], 0) + shifted(values[0], 1) + shifted(values[1], small[0])


def test_a_part_is_compiled_once_whatever_the_integers():
    assert shifted_in_every_way(np.array([1.0, 2.0]), np.array([3], np.int32)) == 8.0
    shifted_in_every_way.recompile()  # an earlier run may have stored it
    assert len(shifted._part.signatures) == 1


def test_a_part_can_be_called_by_python_too():
    assert shifted(1.0, 2) == 3.0


def test_garbage_is_collected_again_after_compiling():
    assert gc.isenabled()
    with _compiler.no_garbage_collection:
        with _compiler.no_garbage_collection:
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_garbage_collection_that_the_user_has_turned_off_stays_off():
    gc.disable()
    try:
        with _compiler.no_garbage_collection:
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()


def folder(monkeypatch, *, chosen="", read_only=()):
    monkeypatch.setattr(_cache.config, "CACHE_DIR", chosen)
    monkeypatch.setattr(_cache, "is_writable", lambda place: not any(place.is_relative_to(each) for each in read_only))
    return _cache.cache_folder.__wrapped__()


def test_compiled_kernels_are_kept_beside_the_sources(monkeypatch):
    assert folder(monkeypatch) == (_cache.KERNELS / "__pycache__", "")


def test_the_environment_variable_of_numba_chooses_the_folder(monkeypatch, tmp_path):
    path, reason = folder(monkeypatch, chosen=str(tmp_path), read_only=[_cache.KERNELS])
    assert path.parent == tmp_path
    assert not reason


def test_a_read_only_installation_keeps_them_in_the_cache_folder_of_the_user(monkeypatch, tmp_path):
    monkeypatch.setattr(_cache, "user_caches", lambda: tmp_path)
    path, reason = folder(monkeypatch, read_only=[_cache.KERNELS])
    assert path.is_relative_to(tmp_path / "ihmm")
    assert "read-only" in reason


def test_without_a_home_they_are_kept_in_a_temporary_folder_of_this_user(monkeypatch, tmp_path):
    monkeypatch.setattr(_cache, "user_caches", lambda: tmp_path / "home")
    monkeypatch.setattr(_cache.tempfile, "gettempdir", lambda: str(tmp_path))
    path, reason = folder(monkeypatch, read_only=[_cache.KERNELS, tmp_path / "home"])
    assert path.is_relative_to(tmp_path)
    assert path.parent.stat().st_mode & 0o077 == 0
    assert "NUMBA_CACHE_DIR" in reason


def test_a_temporary_folder_of_another_user_is_not_trusted(monkeypatch, tmp_path):
    monkeypatch.setattr(_cache.os, "getuid", lambda: 12345)
    assert not _cache.is_private(tmp_path)


def test_all_kernels_are_compiled_again_when_any_source_changes(monkeypatch, tmp_path):
    (tmp_path / "a.py").write_text("x = 1")
    monkeypatch.setattr(_cache, "KERNELS", tmp_path)
    before = _cache.version_of_sources.__wrapped__()
    (tmp_path / "a.py").write_text("x = 2")
    assert _cache.version_of_sources.__wrapped__() != before


def test_an_index_of_other_sources_is_not_read_as_its_classes_may_be_gone(monkeypatch, tmp_path):
    function = draws.uniform.py_func
    with monkeypatch.context() as patch:
        patch.setattr(_compiler, "version_of_sources", lambda: "older")
        older = _compiler.KernelCache(function)._cache_file._version
    cache = _compiler.KernelCache(function)
    index = tmp_path / "index"
    index.write_bytes(pickle.dumps(older) + b"cihmm.kernels.sticks\nGone\n.")
    monkeypatch.setattr(cache._cache_file, "_index_path", str(index))
    assert cache.is_empty


@pytest.fixture
def console():
    return Console(file=io.StringIO(), force_terminal=True, width=100)


def shown(bar, console):
    bar.update()
    console.print(bar.bar)
    return console.file.getvalue()


def test_nothing_is_shown_when_nothing_is_compiled(console):
    assert "Compiling" not in shown(progress.CompilationBar((), console), console)


def test_a_bar_shows_how_many_kernels_are_compiled(console, monkeypatch):
    monkeypatch.setattr(compilation, "is_cold", lambda kernel: True)
    monkeypatch.setattr(progress, "compilation", compilation.Compilation(()))
    bar = progress.CompilationBar((shifted, draws.uniform), console)
    monkeypatch.setattr(Kernel, "waiting", {shifted: time.monotonic() - 1.0})
    assert "Compiling for this machine, once: 0 of 2" in shown(bar, console)
    monkeypatch.setattr(compilation, "is_cold", lambda kernel: kernel is shifted)
    assert "once: 1 of 2" in shown(bar, console)


@pytest.fixture
def watched(monkeypatch, console):
    """What is shown on a terminal while somebody waits for a kernel."""
    monkeypatch.setattr(progress, "_console", lambda: console)
    monkeypatch.setattr(progress, "compilation", compilation.Compilation(()))
    for module in (progress, compilation):
        monkeypatch.setattr(module, "is_cold", lambda kernel: True)
    monkeypatch.setattr(Kernel, "waiting", {shifted: time.monotonic() - 1.0})
    return console.file


@pytest.mark.parametrize("emission", ["auto", "normal"])
def test_an_estimator_without_progress_bars_shows_that_it_compiles(watched, emission):
    ihmm.InfiniteHMM(emission, draws=2, tune=2, chains=1, random_state=0).fit(np.sin(np.arange(60.0)))
    assert "Compiling for this machine, once: 0 of" in watched.getvalue()
    assert "chain" not in watched.getvalue()


def test_nothing_is_shown_if_no_progress_is_wanted(watched):
    ihmm.sample(ihmm.Model(ihmm.Normal()), np.sin(np.arange(60.0)), draws=2, tune=2, chains=1, seed=0, progress=False)
    assert watched.getvalue() == ""


def test_counting_goes_on_from_the_first_look_to_the_run(monkeypatch):
    compiled = set()
    monkeypatch.setattr(compilation, "is_cold", lambda kernel: kernel not in compiled)
    progress = compilation.Compilation((shifted, draws.uniform, draws.normal))
    compiled.add(shifted)
    progress.expect((draws.normal, draws.split))  # the model that was expected is not the one that was chosen
    assert (progress.done, progress.total) == (1, 3)
    compiled.update((draws.normal, draws.split))
    progress.expect((draws.uniform,))  # another run
    assert (progress.done, progress.total) == (0, 1)


def test_kernels_that_were_not_expected_do_not_count_as_those_that_were(monkeypatch):
    monkeypatch.setattr(Kernel, "compiled", [])
    compiled = set()
    monkeypatch.setattr(compilation, "is_cold", lambda kernel: kernel not in compiled)
    progress = compilation.Compilation((shifted, draws.uniform))
    compiled.add(shifted)
    Kernel.compiled.extend([shifted, shifted, draws.normal])  # for two kinds of arguments, and another one
    assert (progress.done, progress.total) == (3, 4)


def in_new_process(code, cache, **keywords):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, **({"text": True} | keywords))


def test_a_process_that_stopped_while_it_compiled_is_not_waited_for_forever(monkeypatch):
    monkeypatch.setattr(_compiler, "MAX_WAIT", 0.2)
    begin = time.monotonic()
    with shifted._cache.locked(), shifted._cache.locked():
        assert 0.2 <= time.monotonic() - begin < 10


@pytest.mark.slow
def test_kernels_are_compiled_as_usual_by_another_numba(tmp_path):
    """The compiler uses internals of numba; without them kernels compute the same."""
    code = """
import numba.core.caching
if {broken}:
    del numba.core.caching._CacheLocator
import numpy as np
from ihmm.kernels import _jit, compilation, counts, draws
assert (_jit.Kernel is None) == {broken}
stream = np.arange(1, 5, dtype=np.uint64)
print([draws.draw_poisson(stream, 3.5) for _ in range(5)], counts.count_transitions.__name__)
progress = compilation.Compilation((draws.draw_poisson,))
print(progress.done, progress.is_active)
"""
    both = [in_new_process(code.format(broken=broken), tmp_path, stdout=subprocess.PIPE) for broken in (True, False)]
    without, usual = (process.communicate()[0] for process in both)
    assert without == usual != ""


@pytest.mark.slow
def test_two_processes_at_once_compile_a_kernel_once(tmp_path):
    code = "import numpy as np; from ihmm.kernels import draws; print(draws.normal(np.arange(1, 5, dtype=np.uint64)))"
    both = [in_new_process(code, tmp_path, stdout=subprocess.PIPE) for _ in range(2)]
    first, second = (process.communicate()[0] for process in both)
    assert first == second != ""
    assert len([*Path(tmp_path).rglob("*.nbc")]) == 1


@pytest.mark.slow
@pytest.mark.parametrize("emission", ["auto", "normal"])
def test_the_kernels_expected_of_a_run_are_those_it_calls(emission):
    code = f"""
import numpy as np, ihmm
from ihmm.running.compiling import OF_PILOT, kernels_of
from ihmm.chain import MOVES
y = np.repeat([0.0, 5.0, 0.0, 5.0], 25) + np.random.default_rng(1).standard_normal(100)
hmm = ihmm.InfiniteHMM("{emission}", draws=300, tune=20, chains=1, random_state=0).fit(y)
expected = kernels_of(hmm.posterior_.model, ihmm.ParticleGibbs(), MOVES)
expected += OF_PILOT if hmm.emission == "auto" else ()
print([kernel.py_func.__name__ for kernel in expected if not kernel.overloads])
"""
    process = in_new_process(code, os.environ.get("NUMBA_CACHE_DIR", ""), stdout=subprocess.PIPE)
    assert process.communicate()[0].strip() == "[]"


def test_more_kernels_are_expected_of_runs_with_moves():
    model = ihmm.Model(ihmm.Normal())
    assert set(kernels_of(model, ParticleGibbs(), ())) < set(kernels_of(model, ParticleGibbs(), MOVES))


def test_a_rehearsal_applies_every_move():
    calls = []
    moves = Recorded(calls, "first"), Recorded(calls, "last")
    compiling.Rehearsal(ihmm.Model(ihmm.Normal()), np.sin(np.arange(20.0)), ParticleGibbs(), moves).sweep()
    assert calls == ["first", "last"]


class Recorded:
    """A move that only notes its turn."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def apply(self, rng, data, model, update, hyper):
        self.calls.append(self.name)


class Process:
    """A process that is never started."""

    def __init__(self, task):
        self.task, self.killed = task, False

    def kill(self):
        self.killed = True

    def wait(self):
        pass


@pytest.fixture
def started(monkeypatch):
    """The processes that would have been started on an idle machine without compiled kernels."""
    processes = []
    monkeypatch.setattr(compiling, "_start", lambda task: processes.append(Process(task)) or processes[-1])
    monkeypatch.setattr(compiling, "_is_idle", lambda: True)
    monkeypatch.setattr(compiling, "is_cold", lambda kernel: True)
    return processes


def task(emission=None, duration=None):
    return compiling.Rehearsal(ihmm.Model(emission or ihmm.Normal(), duration=duration), Y, ParticleGibbs(), MOVES)


Y = np.arange(10.0)


@pytest.mark.parametrize(("cold", "cores"), [(False, 2), (True, 1), (True, 2)])
def test_a_second_process_is_started_only_if_it_is_worth_it(monkeypatch, started, cold, cores):
    monkeypatch.setattr(compiling, "is_cold", lambda kernel: cold)
    compiling.SecondCompiler().start(task(), cores)
    assert len(started) == (cold and cores == 2)


def test_the_second_process_of_the_first_look_goes_on_if_the_run_calls_the_same_kernels(started):
    compiler = compiling.SecondCompiler()
    for emission in (ihmm.NoisyLevels(), ihmm.NoisyLevels(1)):
        compiler.start(task(emission, Geometric(minimum=2)), 2)
    assert not started[0].killed
    compiler.start(task(), 2)
    assert [process.killed for process in started] == [True, False]
    compiler.stop()
    assert started[1].killed


@pytest.mark.slow
@pytest.mark.parametrize("duration", [None, Geometric(minimum=2)], ids=["moves", "durations"])
def test_a_second_process_compiles_what_a_run_calls(tmp_path, duration):
    """Interpreted kernels have arguments of the same types as compiled ones: hardly anything is compiled again."""
    emission = ihmm.Normal() if duration is None else ihmm.NoisyLevels()
    contents = pickle.dumps(task(emission, duration)._replace(y=np.repeat([0.0, 5.0, 0.0], 20)))
    process = in_new_process(compiling.SECOND_PROCESS, tmp_path, stdin=subprocess.PIPE, text=False)
    process.communicate(contents)
    assert process.returncode == 0
    code = """
import pickle, sys
from ihmm.running import compiling
from ihmm.kernels._compiler import Kernel
task = pickle.load(sys.stdin.buffer)
task.sweep()
print(len(Kernel.compiled))
"""
    process = in_new_process(code, tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=False)
    assert int(process.communicate(contents)[0]) <= 1
