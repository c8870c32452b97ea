"""Run folders: a run killed at any moment can be resumed bit for bit, and damage is detected, reported and repaired."""

import errno
import hashlib
import io
import itertools
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import warnings
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

import ihmm
from ihmm import store
from ihmm.running import chains as running
from ihmm.running.chains import Resources, run_chains
from ihmm.store import SweepRange, archive, chunk_files, chunk_writer
from ihmm.store.archive import MAGIC

MODEL = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(stickiness=ihmm.BetaPrior()))
Y = [np.repeat([0.0, 3.0, 0.0], 12) + np.random.default_rng(1).normal(0, 0.5, 36), np.array([0.1, 3.2, np.nan, 2.8])]
SETTINGS = {"draws": 60, "tune": 20, "chains": 2, "seed": 5, "init": 4, "progress": False}


def run(folder=None, **settings) -> ihmm.Posterior:
    return ihmm.sample(MODEL, Y, store=folder, **(SETTINGS | settings))


def assert_same(one: ihmm.Posterior, other: ihmm.Posterior) -> None:
    np.testing.assert_array_equal(one.states, other.states)
    assert one.traces.keys() == other.traces.keys()
    for name in one.traces:
        np.testing.assert_array_equal(one.traces[name], other.traces[name])
    for a, b in zip(one, other, strict=True):
        for x, y in zip([*a.transitions, *a.phi], [*b.transitions, *b.phi], strict=True):
            np.testing.assert_array_equal(x, y)
    assert (one.warmup is None) == (other.warmup is None)
    if one.warmup is not None:
        assert_same(one.warmup, other.warmup)


@pytest.fixture(scope="module")
def whole() -> ihmm.Posterior:
    """The same run in memory, never interrupted."""
    return run()


@pytest.fixture
def often(monkeypatch):
    """A chunk after every few sweeps."""
    monkeypatch.setattr(chunk_writer, "CHUNK_SECONDS", 0.003)


@pytest.fixture(scope="module")
def template(tmp_path_factory, whole) -> Path:  # `whole` has compiled the kernels: chunks are written by the clock
    folder = tmp_path_factory.mktemp("template") / "run"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunk_writer, "CHUNK_SECONDS", 0.003)
        run(folder)
    assert len(list(folder.rglob("*.chunk"))) > 6
    return folder


@pytest.fixture
def finished(tmp_path, often, template) -> Path:
    """A finished run with several chunks per chain."""
    return Path(shutil.copytree(template, tmp_path / "run"))


# Writing


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"save_warmup": True},
        {"thin": 3},
        {"init": "auto"},
        {"init": [np.arange(36) % 3, np.zeros(4, int)]},
        {"sampler": ihmm.Beam()},
        {"sampler": ihmm.DirectAssignment(), "moves": ()},
        {"tune": 0},
    ],
    ids=repr,
)
def test_a_run_in_a_folder_has_the_draws_of_one_in_memory(tmp_path, often, settings):
    expected = run(**settings)
    assert_same(run(tmp_path / "run", **settings), expected)
    assert_same(ihmm.Posterior.load(tmp_path / "run"), expected)
    assert_same(ihmm.resume(tmp_path / "run", progress=False), expected)  # already finished


def test_other_files_in_the_folder_are_left_alone(tmp_path, whole):
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "settings.toml").write_text("mine")
    assert_same(run(tmp_path / "run"), whole)
    assert (tmp_path / "run" / "settings.toml").read_text() == "mine"


def test_a_folder_that_holds_a_run_is_not_overwritten(finished, whole):
    with pytest.raises(FileExistsError, match=r"already holds a run: continue with ihmm\.resume"):
        run(finished)
    with pytest.raises(FileExistsError, match="is not a saved posterior"):
        whole.save(finished)
    assert_same(ihmm.Posterior.load(finished), whole)


def test_a_file_in_place_of_the_folder_is_refused(tmp_path):
    (tmp_path / "run").write_text("x")
    with pytest.raises(FileExistsError, match="is a file"):
        run(tmp_path / "run")


def test_intervals_grow_so_that_chunks_stay_few(monkeypatch):
    now = 0.0
    monkeypatch.setattr(chunk_writer.time, "monotonic", lambda: now)
    writer = chunk_writer.ChunkWriter(lambda number, chunk: None, SweepRange(0, None, 10), n_steps=3)
    chunks = 0
    for now in np.arange(0, 36_000, 1.0):  # ten hours
        if writer.due():
            chunks, writer._last = chunks + 1, now
    assert 100 < chunks < 400


# Resuming


def stop_after(sweeps: int, monkeypatch) -> None:
    """Interrupt particle Gibbs after this many sweeps, counted over all chains."""
    original, calls = ihmm.ParticleGibbs.resample_states, itertools.count(1)

    def impatient(self, *arguments):
        if next(calls) > sweeps:
            raise KeyboardInterrupt
        return original(self, *arguments)

    monkeypatch.setattr(ihmm.ParticleGibbs, "resample_states", impatient)


@pytest.mark.parametrize("sweeps", [50, 90])
def test_an_interrupted_run_keeps_all_draws_and_can_be_resumed(tmp_path, whole, monkeypatch, sweeps):
    stop_after(sweeps, monkeypatch)
    with pytest.warns(UserWarning, match=r"stopped before all 60 draws .* continue with ihmm\.resume\("):
        part = run(tmp_path / "run", cores=1)
    monkeypatch.undo()
    made = sum(len(draws) for draws in part.draws)
    assert made == sweeps - 40  # two chains of 20 tuning sweeps: no draw is lost
    with pytest.warns(UserWarning, match="is not finished: chain 0 has"):
        ihmm.Posterior.load(tmp_path / "run")
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)


def test_a_run_interrupted_before_its_first_draw_can_be_resumed(tmp_path, whole, monkeypatch):
    stop_after(10, monkeypatch)
    with pytest.raises(KeyboardInterrupt, match=r"before the first draw; continue with ihmm\.resume"):
        run(tmp_path / "run", cores=1)
    monkeypatch.undo()
    with pytest.raises(ValueError, match="has no draws yet"):
        ihmm.Posterior.load(tmp_path / "run")
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)


@pytest.mark.parametrize("sweeps", [50, 90])
def test_a_run_that_failed_in_the_middle_of_a_sweep_resumes_bit_for_bit(tmp_path, whole, monkeypatch, sweeps):
    original, calls = ihmm.ParticleGibbs.resample_states, itertools.count(1)

    def failing(self, rng, *arguments):
        result = original(self, rng, *arguments)  # advances the generator
        if next(calls) > sweeps:
            raise ArithmeticError
        return result

    monkeypatch.setattr(ihmm.ParticleGibbs, "resample_states", failing)
    with pytest.raises(ArithmeticError):
        run(tmp_path / "run", cores=1)
    monkeypatch.undo()
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)


def test_a_sweep_abandoned_by_a_second_ctrl_c_stores_nothing(tmp_path, often, whole, monkeypatch):
    original, calls = ihmm.ParticleGibbs.resample_states, itertools.count(1)
    sweeping, proceed, pools = threading.Event(), threading.Event(), []

    def slow(self, *arguments):
        found = original(self, *arguments)  # the generator is ahead of the last draw from here on
        if next(calls) == 50:
            sweeping.set()
            proceed.wait(60)
        return found

    def first_ctrl_c(*_):
        sweeping.wait(60)
        raise KeyboardInterrupt

    class SecondCtrlC(ThreadPoolExecutor):
        def __exit__(self, *_):
            pools.append(self)
            raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(ihmm.ParticleGibbs, "resample_states", slow)
        patch.setattr(running, "wait", first_ctrl_c)
        patch.setattr(running, "ThreadPoolExecutor", SecondCtrlC)
        with pytest.raises(KeyboardInterrupt):
            run(tmp_path / "run", cores=1)
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)
    proceed.set()
    pools[0].shutdown()
    assert_same(ihmm.Posterior.load(tmp_path / "run"), whole)


def test_more_draws_can_be_added(finished):
    assert_same(ihmm.resume(finished, draws=90, progress=False), run(draws=90))
    with pytest.raises(ValueError, match="is of 90 draws per chain and cannot be cut to 60"):
        ihmm.resume(finished, draws=60)


def test_more_draws_can_be_added_to_a_run_in_memory():
    settings = store.RunSettings(MODEL, ihmm.ParticleGibbs(), (), 1, 4, 2, 1, 2, 3, save_warmup=True)
    data = MODEL.observe(Y)
    with ThreadPoolExecutor(2) as pool:
        for resources in (Resources(2), Resources(2, executor=pool)):
            memory = store.MemoryBackend(settings, data, None)
            run_chains(memory, resources, progress=False)
            memory.extend(9)
            at_once = run_chains(store.MemoryBackend(memory.settings, data, None), resources, progress=False)
            assert_same(run_chains(memory, resources, progress=False), at_once)


def test_a_run_from_before_systematic_resampling_goes_on_as_it_began(tmp_path):
    sampler = ihmm.ParticleGibbs(10, resampling="multinomial")
    run(tmp_path / "run", sampler=sampler, draws=20)
    file = tmp_path / "run" / "run.json"
    settings = json.loads(file.read_text("utf-8"))
    del settings["sampler"]["resampling"], settings["sha256"]  # earlier versions wrote neither
    file.write_text(json.dumps(settings), "utf-8")
    assert_same(ihmm.resume(tmp_path / "run", draws=40, progress=False), run(sampler=sampler, draws=40))


def test_a_saved_posterior_cannot_be_resumed(tmp_path, whole):
    whole.save(tmp_path / "saved")
    with pytest.raises(ValueError, match="holds a saved posterior, not a run"):
        ihmm.resume(tmp_path / "saved")


def test_other_versions_are_reported(finished, whole):
    edit(finished, versions={"ihmm": "0.0.1", "numpy": np.__version__})
    with pytest.warns(UserWarning, match=r"started with other versions \(ihmm 0\.0\.1 → "):
        assert_same(ihmm.resume(finished, progress=False), whole)


SCRIPT = """
import sys, numpy as np, ihmm
from ihmm.store import chunk_writer
chunk_writer.CHUNK_SECONDS = 0.003
sys.path.insert(0, sys.argv[2])
from test_store import MODEL, Y, SETTINGS
print("ready", flush=True)
ihmm.sample(MODEL, Y, store=sys.argv[1], **(SETTINGS | {"draws": 400}))
print("done", flush=True)
"""


# Imports everything once; each run is then a process of its own, which may be killed.
STARTER = """
import os, sys, numpy as np, ihmm
from ihmm.store import chunk_writer
chunk_writer.CHUNK_SECONDS = 0.003
sys.path.insert(0, sys.argv[1])
from test_store import MODEL, Y, SETTINGS
for line in iter(sys.stdin.readline, ""):
    child = os.fork()
    if child == 0:
        print(os.getpid(), flush=True)
        ihmm.sample(MODEL, Y, store=line.strip(), **(SETTINGS | {"draws": 400}))
        os._exit(0)
    os.waitpid(child, 0)
    print("over", flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs fork and SIGKILL")
def test_a_killed_run_goes_on_bit_for_bit(tmp_path):
    """SIGKILL at twenty random moments, some of them while a chunk is being written."""
    expected = run(draws=400)
    command = [sys.executable, "-c", STARTER, str(Path(__file__).parent)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as starter:

        def begin(folder: Path) -> int:
            """Start a run and return the number of its process."""
            print(folder, file=starter.stdin, flush=True)
            return int(starter.stdout.readline())

        begin(tmp_path / "timed")
        started = time.monotonic()
        assert starter.stdout.readline() == "over\n"
        lasts = time.monotonic() - started

        rng, cut_short = np.random.default_rng(0), 0
        for i in range(20):
            folder = tmp_path / f"run-{i}"
            process = begin(folder)
            time.sleep(rng.uniform(0.05, 0.75) * lasts)
            with suppress(ProcessLookupError):  # a run that has ended already
                os.kill(process, signal.SIGKILL)
            assert starter.stdout.readline() == "over\n"
            if not (folder / "run.json").exists():
                continue  # killed before the run started
            before = [len(chunk.draws["kept"][1]) for c in range(2) for chunk in chunks_of(folder, c) if chunk.draws]
            cut_short += sum(before) < 800
            posterior = ihmm.resume(folder, progress=False)
            assert_same(posterior, expected)
            shutil.rmtree(folder)
        starter.stdin.close()
    assert cut_short >= 10


def chunks_of(folder: Path, c: int) -> list[store.Chunk]:
    identity = json.loads((folder / "run.json").read_text())["id"]
    chunks = chunk_files.read_chunks(folder, identity, c, MODEL, sum(map(len, Y)))
    assert all(isinstance(chunk, store.Chunk) for chunk in chunks)  # a kill leaves no incomplete chunk
    return chunks


@pytest.mark.parametrize(("owner", "step"), [(os, "fsync"), (Path, "replace")], ids=["fsync", "replace"])
@pytest.mark.parametrize("last", [5, 9])
def test_a_kill_while_a_chunk_is_written_leaves_the_ones_before(tmp_path, often, whole, monkeypatch, owner, step, last):
    """The process ends before the bytes are on the disk, or before the file is renamed."""
    original, calls = getattr(owner, step), itertools.count(1)

    class Killed(BaseException):
        pass

    def die(*arguments):
        if next(calls) >= last:
            raise Killed
        return original(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(owner, step, die)
        with pytest.raises(Killed):
            run(tmp_path / "run", cores=1)
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)


# Damage


def edit(folder: Path, **changes) -> None:
    path = folder / "run.json"
    written = json.loads(path.read_text()) | changes
    written.pop("sha256", None)  # as earlier versions wrote it
    path.write_text(json.dumps(written))


def flip(path: Path, where: float = 0.5) -> None:
    content = bytearray(path.read_bytes())
    content[int(where * (len(content) - 1))] ^= 0x04
    path.write_bytes(content)


def truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


@pytest.mark.parametrize("hurt", [flip, truncate, lambda path: path.write_bytes(b""), lambda path: flip(path, 0.001)])
@pytest.mark.parametrize("which", [[0], [1], [2, 3], [0, 1, 2], [-1], [-2, -1], [1, -1]], ids=str)
def test_damaged_chunks_are_named_and_computed_again(finished, whole, hurt, which):
    last = len(list((finished / "chain-0").glob("*.chunk"))) - 1
    numbers = sorted(n if n >= 0 else last + 1 + n for n in which)
    untouched = {path: path.read_bytes() for path in finished.rglob("*.chunk")}
    for number in numbers:
        hurt(finished / "chain-0" / f"{number}.chunk")
        untouched.pop(finished / "chain-0" / f"{number}.chunk")
    with pytest.raises(ValueError, match=rf"is damaged \(chain-0/{numbers[0]}\.chunk .*ihmm\.resume"):
        ihmm.Posterior.load(finished)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        assert_same(ihmm.resume(finished, progress=False), whole)
    assert len(said) == len(numbers)
    for number, warning in zip(numbers, said, strict=True):
        assert str(warning.message).startswith(f"chain-0/{number}.chunk ")
        assert "computed again" in str(warning.message)
    assert_same(ihmm.Posterior.load(finished), whole)
    assert all(path.read_bytes() == content for path, content in untouched.items())


def test_an_interrupted_repair_leaves_no_gap(finished, whole, monkeypatch):
    for number in range(len(list((finished / "chain-0").glob("*.chunk"))) - 1):
        truncate(finished / "chain-0" / f"{number}.chunk")
    stop_after(3, monkeypatch)
    with pytest.warns(UserWarning, match="computed again"), pytest.raises(ValueError, match=r"0\.chunk .*resume"):
        ihmm.resume(finished, progress=False)
    monkeypatch.undo()
    with pytest.warns(UserWarning, match="computed again"):
        assert_same(ihmm.resume(finished, progress=False), whole)


def test_warnings_point_at_the_call(finished, tmp_path, monkeypatch):
    truncate(finished / "chain-0" / "1.chunk")
    edit(finished, versions={"ihmm": "0.0.1"})
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        ihmm.resume(finished, progress=False)
        for folder in (None, tmp_path / "other"):
            stop_after(50, monkeypatch)
            run(folder, cores=1)
            monkeypatch.undo()
    assert ["versions" in str(said[0].message), "again" in str(said[1].message)] == [True, True]
    assert len(said) == 4
    assert {warning.filename for warning in said} == {__file__}


def test_a_chunk_of_another_run_or_position_is_not_used(finished, whole, tmp_path):
    run(tmp_path / "other", seed=6)
    for stranger in (tmp_path / "other" / "chain-0" / "1.chunk", finished / "chain-1" / "1.chunk"):
        shutil.copy(stranger, finished / "chain-0" / "1.chunk")
        with pytest.raises(ValueError, match=r"chain-0/1\.chunk belongs to another run or position"):
            ihmm.Posterior.load(finished)
        with pytest.warns(UserWarning, match="computed again"):
            assert_same(ihmm.resume(finished, progress=False), whole)


@pytest.mark.parametrize("hurt", [flip, truncate, Path.unlink])
def test_damaged_data_are_reported(finished, hurt):
    hurt(finished / "data.chunk")
    for call in (ihmm.Posterior.load, ihmm.resume):
        with pytest.raises(ValueError, match=r"is damaged \(data\.chunk"):
            call(finished)


@pytest.mark.parametrize("text", ["", "{", "[]", '{"format": "ihmm run"}'])
def test_damaged_settings_are_reported(finished, text):
    (finished / "run.json").write_text(text)
    for call in (ihmm.Posterior.load, ihmm.resume):
        with pytest.raises(ValueError, match=r"run\.json is damaged or not written by ihmm"):
            call(finished)


def test_leftovers_of_an_interrupted_write_are_ignored(finished, whole):
    (finished / "chain-0" / ".9.chunk.0123456789ab").write_bytes(b"half a chunk")
    (finished / "chain-0" / "notes.chunk").write_bytes(b"?")
    assert_same(ihmm.resume(finished, progress=False), whole)


# A full disk


def test_a_full_disk_stops_the_run_with_advice_and_it_goes_on_later(tmp_path, often, whole, monkeypatch):
    original, calls = os.fsync, itertools.count(1)

    def limited(descriptor):
        if next(calls) > 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        return original(descriptor)

    said = r"No space left on device: draws cannot be written .* free some space, then"
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", limited)
        with pytest.raises(OSError, match=said) as caught:
            run(tmp_path / "run")
        assert caught.value.errno == errno.ENOSPC
    assert not [path for path in (tmp_path / "run").rglob("*") if path.name.startswith(".")]
    assert_same(ihmm.resume(tmp_path / "run", progress=False), whole)


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full(tmp_path):
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=100k", "tmpfs", small], capture_output=True).returncode:
        pytest.skip("this machine does not let us mount a small disk")
    try:
        with pytest.raises(OSError, match="No space left on device: draws cannot be written"):
            run(small / "run", draws=1_000)
        subprocess.run(["mount", "-o", "remount,size=20m", small], check=True)
        resumed = ihmm.resume(small / "run", progress=False)
    finally:
        subprocess.run(["umount", small], check=True)
    assert_same(resumed, run(draws=1_000))


# Locking


def test_a_run_in_use_is_refused_to_others(tmp_path):
    code = SCRIPT.replace('{"draws": 400}', '{"draws": 100_000}')
    command = [sys.executable, "-c", code, str(tmp_path / "run"), str(Path(__file__).parent)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "ready\n"
        while not (tmp_path / "run" / "chain-1" / "0.chunk").exists():
            time.sleep(0.05)
        with pytest.raises(RuntimeError, match="another process is working on"):
            ihmm.resume(tmp_path / "run")
        process.kill()
    store_is_free_again = store.RunFolder.reopen(tmp_path / "run", None)
    with store_is_free_again as reopened:
        assert reopened.settings.draws == 100_000


@pytest.fixture
def meanwhile(monkeypatch):
    """What another process does just before this one gets the lock of the folder."""
    original, actions = store.folder.locked, []

    def late(folder):
        while actions:
            actions.pop()()
        return original(folder)

    monkeypatch.setattr(store.folder, "locked", late)
    return actions


def test_a_run_that_another_process_made_meanwhile_is_not_overwritten(tmp_path, whole, meanwhile):
    meanwhile.append(lambda: run(tmp_path / "run"))
    with pytest.raises(FileExistsError, match="already holds a run"):
        run(tmp_path / "run", seed=2)
    assert_same(ihmm.Posterior.load(tmp_path / "run"), whole)


def test_draws_that_another_process_added_meanwhile_are_kept(finished, meanwhile):
    meanwhile.append(lambda: ihmm.resume(finished, draws=90, progress=False))
    assert_same(ihmm.resume(finished, progress=False), run(draws=90))


# Malicious folders


def forge(path: Path, **arrays) -> None:
    """Write a chunk with a valid digest and invalid contents."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, content in arrays.items():
            archive.writestr(name, content)
    content = buffer.getvalue()
    path.write_bytes(MAGIC + hashlib.sha256(content).hexdigest().encode() + b"\n" + content)


def header(shape: str, dtype: str = "<f8") -> bytes:
    text = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text.encode()


@pytest.mark.parametrize(
    "member",
    [
        {"y.npy": header("(1000000000000,)") + b"\0" * 8},
        {"y.npy": header("(1000000, 1000000, 1000000, 1000000)")},
        {"y.npy": header("(3,)", "|O") + b"\x80\x04."},
        {"y.npy": b"no array at all"},
        {"../../y.npy": header("(1000000000000,)")},
    ],
    ids=["huge", "huge product", "objects", "text", "path"],
)
def test_a_forged_chunk_is_refused_without_harm(finished, member):
    forge(finished / "data.chunk", **member)
    with pytest.raises(ValueError, match="is damaged"):
        ihmm.Posterior.load(finished)


def rewrite(path: Path, **changes) -> None:
    """Change arrays of a chunk, and its digest with them."""
    arrays = archive.read_archive(path, path.name)
    archive.write_archive(path, arrays | {name: change(arrays[name]) for name, change in changes.items()})


def far(array):
    return array + 10**6


BAD_CHUNKS = {
    "trajectory": {"now_states": far},
    "short trajectory": {"now_states": lambda array: array[:-1]},
    "trajectory of another type": {"now_states": lambda array: array.astype(float)},
    "rows": {"now_rows": lambda array: array[:, :-1]},
    "beta": {"now_beta": lambda array: np.full_like(array, np.nan)},
    "parameters": {"now_phi_mean": lambda array: array[:0]},
    "generator": {"after": lambda array: archive.to_bytes({"sweeps": 5, "generator": {"state": "far"}})},
    "sweeps": {"after": lambda array: archive.to_bytes(archive.from_bytes(array) | {"sweeps": -(10**9)})},
    "kept states": {"states": lambda array: np.full_like(array, 255)},
    "numbers of states": {"n_states": far},
    "kept rows": {"rows": lambda array: array[1:]},
    "traces": {"trace_gamma": lambda array: array[1:]},
}


@pytest.mark.parametrize("changes", BAD_CHUNKS.values(), ids=BAD_CHUNKS)
def test_a_forged_chunk_is_refused_before_compiled_code_reads_it(finished, whole, changes):
    last = len(list((finished / "chain-0").glob("*.chunk"))) - 1
    rewrite(finished / "chain-0" / f"{last}.chunk", **changes)
    with pytest.raises(ValueError, match=rf"is damaged \(chain-0/{last}.chunk does not fit the run: "):
        ihmm.Posterior.load(finished)
    with pytest.warns(UserWarning, match="computed again"):
        assert_same(ihmm.resume(finished, progress=False), whole)


BAD_DATA = {
    "offsets": {"offsets": far},
    "offsets that turn back": {"offsets": lambda array: np.array([0, 50, 40])},
    "no series": {"y": lambda array: array[:0]},
    "another type": {"y": lambda array: array.astype(np.float32)},
    "infinite values": {"y": lambda array: np.full_like(array, np.inf)},
    "mask": {"missing": lambda array: array[1:]},
}


@pytest.mark.parametrize("changes", BAD_DATA.values(), ids=BAD_DATA)
def test_forged_data_are_refused_before_compiled_code_reads_them(finished, changes):
    rewrite(finished / "data.chunk", **changes)
    for recorded in (True, False):
        for read in (ihmm.Posterior.load, ihmm.resume):
            with pytest.raises(ValueError, match="is damaged"):
                read(finished)
        if recorded:
            edit(finished, data=None)


def test_symbols_in_forged_data_are_refused(tmp_path):
    model = ihmm.Model(ihmm.Categorical(3))
    ihmm.sample(model, [0, 1, 2, 1] * 5, **(SETTINGS | {"draws": 2, "tune": 0}), store=tmp_path / "run")
    rewrite(tmp_path / "run" / "data.chunk", y=far)
    edit(tmp_path / "run", data=None)
    with pytest.raises(ValueError, match="is damaged"):
        ihmm.resume(tmp_path / "run", draws=5, progress=False)


def test_data_of_another_run_are_not_used(finished, tmp_path):
    ihmm.sample(MODEL, [y + 1 for y in Y], store=tmp_path / "other", **(SETTINGS | {"draws": 1, "tune": 0}))
    shutil.copy(tmp_path / "other" / "data.chunk", finished / "data.chunk")
    with pytest.raises(ValueError, match=r"data.chunk is not the one that the run was started with"):
        ihmm.resume(finished, draws=90, progress=False)


def test_a_changed_setting_is_noticed(finished):
    text = (finished / "run.json").read_text()
    assert '"rate": 1.0' in text
    (finished / "run.json").write_text(text.replace('"rate": 1.0', '"rate": 1.1', 1))
    for read in (ihmm.Posterior.load, ihmm.resume):
        with pytest.raises(ValueError, match=r"run.json is damaged or was changed: it does not match its checksum"):
            read(finished)


@pytest.mark.parametrize(
    "changes",
    [
        {"chains": 10**12},
        {"chains": True},
        {"draws": "60"},
        {"tune": -1},
        {"seed": [1]},
        {"versions": []},
        {"id": None},
        {"format_version": "1"},
        {"sizes": {"7": 3}},
        {"moves": {}},
        {"model": []},
        {"model": {"class": "Model", "emission": {"class": "Categorical", "n_symbols": "many"}}},
    ],
    ids=str,
)
def test_odd_settings_are_answered_with_one_sentence(finished, changes):
    edit(finished, **changes)
    for read in (ihmm.Posterior.load, ihmm.resume):
        with pytest.raises(ValueError, match=r"run.json .*(is damaged|cannot be read)"):
            read(finished)


def test_deeply_nested_settings_are_answered_with_one_sentence(finished):
    (finished / "run.json").write_text("[" * 10**5)
    with pytest.raises(ValueError, match=r"run.json is damaged"):
        ihmm.Posterior.load(finished)


def test_leftovers_of_killed_writes_are_removed(finished):
    drafts = [finished / ".run.json.0123456789ab", finished / "chain-0" / ".9.chunk.0123456789ab"]
    kept = finished / ".notes"
    for path in (*drafts, kept):
        path.write_text("half a file")
    ihmm.resume(finished, progress=False)
    assert not any(path.exists() for path in drafts)
    assert kept.exists()


def test_settings_cannot_name_files(finished):
    edit(finished, chains="../../etc")
    with pytest.raises((ValueError, TypeError)):
        ihmm.Posterior.load(finished)


def test_a_run_with_a_sampler_from_outside_ihmm_cannot_be_resumed(tmp_path):
    class Foreign(ihmm.ParticleGibbs):
        pass

    run(tmp_path / "run", sampler=Foreign())
    with pytest.raises(ValueError, match="is not part of this ihmm: the run cannot be resumed"):
        ihmm.resume(tmp_path / "run")
