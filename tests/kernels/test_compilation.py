"""How kernels are compiled, where they are kept, and what is said meanwhile."""

import io
import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

import ihmm
from ihmm import compiling, progress
from ihmm.chain import MOVES
from ihmm.compiling import kernels_of
from ihmm.kernels import _cache, compilation, draws
from ihmm.kernels._compiler import Kernel
from ihmm.kernels._jit import jit
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
    bar = progress.CompilationBar((shifted, draws.uniform), console)
    monkeypatch.setattr(Kernel, "waiting", {shifted: time.monotonic() - 1.0})
    assert "Compiling for this machine, once: 0 of 2" in shown(bar, console)
    monkeypatch.setattr(compilation, "is_cold", lambda kernel: kernel is shifted)
    assert "once: 1 of 2" in shown(bar, console)


def in_new_process(code, cache, **keywords):
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-c", code], env=environment, text=True, **keywords)


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
from ihmm.compiling import kernels_of
from ihmm.chain import MOVES
y = np.repeat([0.0, 5.0, 0.0, 5.0], 25) + np.random.default_rng(1).standard_normal(100)
hmm = ihmm.InfiniteHMM("{emission}", draws=20, tune=20, chains=1, random_state=0).fit(y)
expected = kernels_of(hmm.posterior_.model, ihmm.ParticleGibbs(), MOVES)
print([kernel.py_func.__name__ for kernel in expected if not kernel.overloads])
"""
    process = in_new_process(code, os.environ.get("NUMBA_CACHE_DIR", ""), stdout=subprocess.PIPE)
    assert process.communicate()[0].strip() == "[]"


def test_more_kernels_are_expected_of_runs_with_moves():
    model = ihmm.Model(ihmm.Normal())
    assert set(kernels_of(model, ParticleGibbs(), ())) < set(kernels_of(model, ParticleGibbs(), MOVES))


def test_a_rehearsal_calls_the_kernels_of_a_sweep():
    model = ihmm.Model(ihmm.Normal())
    calls = []
    sampler = ParticleGibbs()
    moves = [Recorded(calls, "first"), Recorded(calls, "last")]
    compiling.rehearse(model, np.sin(np.arange(20.0)), sampler, moves)
    assert calls == ["last", "first"]


class Recorded:
    """A move that only notes its turn."""

    def __init__(self, calls, name):
        self.calls, self.name = calls, name

    def apply(self, rng, data, model, update, hyper):
        self.calls.append(self.name)


def test_a_second_process_is_started_only_if_it_is_worth_it(monkeypatch):
    started = []
    monkeypatch.setattr(compiling, "_start", started.append)
    monkeypatch.setattr(compiling, "_is_idle", lambda: True)
    model = ihmm.Model(ihmm.Normal())
    data = model.observe(np.arange(10.0))
    for cold, cores in ((False, 2), (True, 1), (True, 2)):
        monkeypatch.setattr(compiling, "is_cold", lambda kernel, cold=cold: cold)
        with compiling.second_compiler(data, model, ParticleGibbs(), MOVES, cores):
            assert len(started) == (cold and cores == 2)
