"""Running chains: seeds, tuning, thinning, threads, progress, interruption."""

import itertools
import os
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Executor, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from tempfile import TemporaryDirectory
from threading import Event, Lock
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._threads import processors
from ihmm._typing import Array, ArrayLike, IntArray
from ihmm.data import Data
from ihmm.gibbs import SweepInfo, initial_draw, sweep
from ihmm.model import Draw, Model
from ihmm.moves import GreedySplitMerge, GroupComponents, Move, PairGibbs, SplitMerge
from ihmm.posterior import Posterior
from ihmm.records import Record, Recorder, gather
from ihmm.samplers import ParticleGibbs, Sampler, StateUpdate
from ihmm.sticks import total_states
from ihmm.store import Checkpoint, Chunk, Run, Settings, load
from ihmm.workers import Threads, Workers

POLL = 0.1  # seconds between two looks at the chains
CHUNK_SECONDS, CHUNK_SHARE = 2.0, 0.02  # draws are written so often, or later in proportion to the time gone by
STEPS_PER_THREAD = 4000  # below which a thread costs more than it saves
AUTO_ROUNDS = 10  # of splits and merges that make a start
MIXED_STATES = 10  # of a random start, for mixtures
# What is done unless the user says otherwise: copies go in a few sweeps, then only what is one state in any case;
# the exact moves go on for good. Those that need φ come first
MOVES: tuple[Move, ...] = (
    PairGibbs(),
    GreedySplitMerge(sweeps=6),
    GreedySplitMerge(sweeps=30, careful=True),
    GroupComponents(sweeps=100),  # of mixtures
    SplitMerge(),
)

Init = int | str | ArrayLike | Sequence[ArrayLike]
Sweeps = Iterator[tuple[Draw, SweepInfo]]


def sample(
    model: Model,
    y: Any,
    *,
    sampler: Sampler | None = None,
    moves: Iterable[Move] = MOVES,
    draws: int = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int | None = None,
    init: Init = 10,
    thin: int = 1,
    cores: int | None = None,
    team: Workers | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    save_warmup: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Posterior:
    """Draw from the posterior with several chains.

    Ctrl-C stops after the current sweep and returns what was drawn so far.

    Parameters
    ----------
    model
        Emissions and prior.
    y
        One series, (T,) or (T, D), or a list of them.
    sampler
        How the trajectory is renewed; ``ParticleGibbs()`` if not given.
    moves
        What else is done to the trajectory. By default states are split and merged, greedily in the first tuning
        sweeps, which are thrown away, and exactly in all; ``()`` switches that off.
    draws, tune, thin
        Each chain makes `tune` sweeps that are dropped, then keeps one draw every `thin` sweeps until it has `draws`.
    chains
        Number of chains.
    seed
        Governs everything random. If not given, one is chosen and can be read from ``posterior.seed``.
    init
        Where chains start: a number of states for uniformly random paths (no more than a finite model has), a path
        (for several sequences end to end, or a list of paths), or ``"auto"``: one state, split and merged greedily, or
        for mixtures 10 random ones.
    cores
        Threads, as many as there are processors if not given. Chains run at the same time; if there are fewer chains
        than threads, so do the sequences of a chain, or the blocks of ``ParticleGibbs(block_size=…)``. The result does
        not depend on it.
    team
        Who works on the sequences of a chain instead of those threads: ``ihmm.distributed.Cluster(client)``.
    executor
        Where the chains run instead of threads of this process, a few seconds at a time: any
        `concurrent.futures.Executor`, such as ``ProcessPoolExecutor()`` or the ``get_executor()`` of a Dask client.
    progress
        Show bars on the terminal or in the notebook.
    save_warmup
        Keep the tuning sweeps, all of them, in ``posterior.warmup``.
    store
        A folder to write the run to as it goes, every few seconds. If the process is killed, `resume` goes on from
        there, and the finished run has the same draws, bit for bit, as one that was never interrupted.
    """
    draws = _checks.count("draws (kept per chain)", draws)
    tune = _checks.count("tune (sweeps dropped per chain)", tune, least=0)
    chains = _checks.count("chains", chains)
    thin = _checks.count("thin (sweeps per kept draw)", thin)
    cores = _checks.count("cores", processors() if cores is None else cores)
    seed = _check_seed(seed)
    data = _share(_check_model(model).observe(y), team, cores, chains)
    sampler = _check_sampler(sampler, model, data)
    moves = _check_moves(moves)
    start = _check_init(init, data, model)
    _check_executor(executor, team)

    if store is not None or executor is not None:
        number = start if isinstance(start, int) else None if start is not None else "auto"
        settings = Settings(model, sampler, moves, seed, draws, tune, thin, chains, number, save_warmup)
        path = start if isinstance(start, np.ndarray) else None
        somewhere = nullcontext(store) if store is not None else TemporaryDirectory(prefix="ihmm-")
        with somewhere as folder, Run.create(folder, settings, data, path) as run:
            return _go_on(run, team, executor, cores, progress, advise=store is not None)

    kept = np.empty((chains, draws, len(data.y)), np.uint8)
    warmup = np.empty((chains, tune if save_warmup else 0, len(data.y)), np.uint8)
    running = [
        _Chain(
            sweeps=_sweeps(rng, data, model, sampler, start, tune, moves),
            schedule=_Schedule(draws, tune, thin),
            kept=Recorder(c, kept[c]),
            warmup=Recorder(c, warmup[c]) if save_warmup else None,
        )
        for c, rng in enumerate(_generators(seed, chains))
    ]
    _run(running, min(cores, chains), progress)
    _report_interruption([len(chain.kept) for chain in running], draws)

    def posterior(recorders: list[Recorder], block: Array, warmup: Posterior | None) -> Posterior:
        return Posterior(model, data, *gather(recorders, block), sampler=sampler, seed=seed, warmup=warmup)

    tuned = [chain.warmup for chain in running if chain.warmup is not None]
    before = posterior(tuned, warmup, None) if any(map(len, tuned)) else None
    return posterior([chain.kept for chain in running], kept, before)


def resume(
    path: str | os.PathLike[str],
    *,
    draws: int | None = None,
    cores: int | None = None,
    team: Workers | None = None,
    executor: Executor | None = None,
    progress: bool = True,
    model: Model | None = None,
) -> Posterior:
    """Go on with a run that `sample` wrote to a folder, or add draws to it when it is finished.

    What is damaged is named in a warning and computed again.

    Parameters
    ----------
    path
        The folder.
    draws
        How many draws each chain is to have in the end; as many as `sample` was asked for if not given.
    cores, team, executor, progress
        As in `sample`.
    model
        Needed if the emission is not part of ihmm.
    """
    cores = _checks.count("cores", processors() if cores is None else cores)
    _check_executor(executor, team)
    with Run.reopen(path, model) as run:
        if draws is not None:
            run.extend(_checks.count("draws (of each chain in the end)", draws))
        return _go_on(run, team, executor, cores, progress)


def iterate(
    model: Model,
    y: Any,
    *,
    sampler: Sampler | None = None,
    moves: Iterable[Move] = MOVES,
    tune: int = 0,
    seed: int | None = None,
    init: Init = 10,
) -> Sweeps:
    """One chain without end, sweep by sweep, for those who stop when they like.

    Yields the draw and the diagnostics of each sweep, tuning included. With the same seed and `tune` these are the
    sweeps of the first chain of `sample`. The arguments are those of `sample`; the first `tune` sweeps are not draws
    from the posterior.
    """
    tune = _checks.count("tune (sweeps that are not draws)", tune, least=0)
    seed = _check_seed(seed)
    data = _check_model(model).observe(y)
    sampler = _check_sampler(sampler, model, data)
    moves = _check_moves(moves)
    start = _check_init(init, data, model)
    return _sweeps(_generators(seed, 1)[0], data, model, sampler, start, tune, moves)


def _share(data: Data, team: Workers | None, cores: int, chains: int) -> Data:
    """Data with those who work on them: the team, or each chain's share of the threads, if they have enough to do."""
    return data._replace(workers=team or Threads(max(1, min(cores // chains, len(data.y) // STEPS_PER_THREAD))))


def _check_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
    return _checks.count("seed (None chooses one)", seed, least=0)


def _check_sampler(sampler: Any, model: Model, data: Data) -> Sampler:
    if sampler is None:
        return ParticleGibbs()
    if isinstance(sampler, type):
        raise TypeError(f"sampler must be an instance, got the class; call it: {sampler.__name__}(…)")
    if not callable(getattr(sampler, "resample_states", None)):
        raise TypeError(f"sampler must have resample_states, as ihmm.ParticleGibbs() does, got {sampler!r}")
    if callable(getattr(sampler, "check", None)):
        sampler.check(model, data)
    return sampler  # type: ignore[no-any-return]


def _check_executor(executor: Any, team: Workers | None) -> None:
    if executor is None:
        return
    if not callable(getattr(executor, "submit", None)):
        example = "concurrent.futures.ProcessPoolExecutor()"
        raise TypeError(f"executor must be an Executor such as {example}, got {executor!r}")
    if team is not None:
        raise ValueError("give an executor, to which chains go, or a team, which shares their sequences, not both")


def _check_moves(moves: Any) -> tuple[Move, ...]:
    try:
        checked: tuple[Move, ...] = tuple(moves)
    except TypeError as error:
        expected = "a sequence such as (ihmm.GreedySplitMerge(),), or () for none"
        raise TypeError(f"moves must be {expected}, got {moves!r}") from error
    for move in checked:
        if isinstance(move, type) or not callable(getattr(move, "apply", None)):
            raise TypeError(f"a move must have `acts` and `apply`, as ihmm.GreedySplitMerge() does, got {move!r}")
    return checked


def _check_model(model: Any) -> Model:
    if not isinstance(model, Model):
        got = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise TypeError(f"model must be an ihmm.Model such as ihmm.Model(ihmm.Normal()), got {got}; sample(model, y)")
    return model


def _check_init(init: Any, data: Data, model: Model) -> int | IntArray | None:
    """A number of states, a path, or None for "auto" by splits and merges."""
    if isinstance(init, str):
        if init != "auto":
            raise ValueError(f'init must be a number of states, a path of states, or "auto", got {init!r}')
        return min(MIXED_STATES, total_states(model.prior)) if model.is_mixture else None
    several = isinstance(init, (list, tuple)) and any(np.ndim(part) > 0 for part in init)
    if not several and np.ndim(init) == 0:
        return min(_checks.count("init (a number of states, or a path of states)", init), total_states(model.prior))
    paths = [np.asarray(part) for part in (init if several else [init])]
    lengths, expected = [path.shape for path in paths], data.lengths if several else [len(data.y)]
    if lengths != [(n,) for n in expected]:
        whole = " in all" if not several and len(data.lengths) > 1 else ""
        raise ValueError(
            f"init must give one state a step, shape {_shapes((n,) for n in expected)}{whole}, got {_shapes(lengths)}"
        )
    path = np.concatenate(paths)
    if path.dtype.kind not in "iu":
        raise ValueError(f"init must hold whole numbers, got dtype {path.dtype}; convert it with .astype(int)")
    if path.min() < 0:
        raise ValueError(f"init must hold states numbered from 0, got {path.min()} at t = {path.argmin()}")
    if len(np.unique(path)) > total_states(model.prior):
        raise ValueError(f"init visits {len(np.unique(path))} states, more than the prior has: {model.prior}")
    return path.astype(np.int64)


def _shapes(shapes: Any) -> str:
    return ", ".join(str(tuple(map(int, shape))) for shape in shapes)


def _generators(seed: int, chains: int) -> list[np.random.Generator]:
    return [np.random.Generator(np.random.PCG64(child)) for child in np.random.SeedSequence(seed).spawn(chains)]


def _sweeps(
    rng: np.random.Generator,
    data: Data,
    model: Model,
    sampler: Sampler,
    start: int | IntArray | None,
    tune: int,
    moves: tuple[Move, ...],
    after: Checkpoint | None = None,
) -> Sweeps:
    """Sweep after sweep, from the start or from where a chain stood before."""
    if after is None:
        if start is None:
            path = _greedy_path(rng, data, model)
        else:
            path = rng.integers(start, size=len(data.y)) if isinstance(start, int) else start
        draw = initial_draw(rng, data, model, path)
    else:
        draw = after.draw
    for i in itertools.count(after.sweeps if after is not None else 0):
        draw, info = sweep(rng, data, model, draw, sampler, [move for move in moves if move.acts(i, tune)])
        yield draw, info


def _greedy_path(rng: np.random.Generator, data: Data, model: Model) -> IntArray:
    """A path to start from: one state, split and merged for as long as that gains anything much."""
    draw = initial_draw(rng, data, model, np.zeros(len(data.y), np.int64))
    update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
    for _ in range(AUTO_ROUNDS):
        update, _ = GreedySplitMerge().apply(rng, data, model, update, draw.hyper)
    return update.states


@dataclass(frozen=True)
class _Schedule:
    draws: int
    tune: int
    thin: int

    @property
    def total(self) -> int:
        return self.tune + self.draws * self.thin


class _Chain:
    """One chain, what it keeps, and the few numbers that the display reads while it runs."""

    def __init__(
        self,
        sweeps: Sweeps,
        schedule: _Schedule,
        kept: Recorder,
        warmup: Recorder | None,
        done: int = 0,
        stop: int | None = None,
        writer: "_Writer | None" = None,
    ) -> None:
        self.sweeps, self.schedule, self.kept, self.warmup = sweeps, schedule, kept, warmup
        self.done, self.stop, self.writer = done, schedule.total if stop is None else stop, writer
        self.n_states, self.log_joint = 0, float("nan")

    @property
    def finished(self) -> bool:
        return self.done == self.stop

    def advance(self) -> None:
        """One sweep."""
        try:
            draw, info = next(self.sweeps)
        except Exception as error:
            error.add_note(f"in chain {self.kept.chain}, sweep {self.done}")
            raise
        if self.done < self.schedule.tune:
            if self.warmup is not None:
                self.warmup.keep(draw, info)
        elif (self.done - self.schedule.tune + 1) % self.schedule.thin == 0:
            self.kept.keep(draw, info)
        self.done += 1
        self.n_states, self.log_joint = draw.n_states, info.log_joint
        if self.writer is not None:
            self.writer.draw = draw
            if self.finished or self.writer.due():
                self.write()

    def write(self) -> None:
        """What was kept since the last time goes to the disk, and is forgotten here."""
        if self.writer is None or self.writer.begin == self.done:
            return
        phases = {"kept": self.kept, "warmup": self.warmup}
        self.writer.write(
            {name: (r.states[: len(r)], r.record()) for name, r in phases.items() if r is not None and len(r)},
            self.done,
        )
        self.kept = Recorder(self.kept.chain, self.kept.states)
        self.warmup = Recorder(self.kept.chain, self.warmup.states) if self.warmup is not None else None


class _Writer:
    """Writes the chunks of one chain, at intervals that grow with the run, so that there are never very many.

    Where damaged chunks are made anew, `until` is the number of the next whole one: the first of them gets all their
    draws, the others are empty.
    """

    def __init__(
        self,
        append: Callable[[int, Chunk], None],
        number: int,
        begin: int,
        rng: np.random.Generator,
        until: int | None = None,
    ) -> None:
        self._append, self.number, self.begin, self.rng, self.until = append, number, begin, rng, until
        self.started = self.last = time.monotonic()
        self.draw: Draw | None = None

    def due(self) -> bool:
        now = time.monotonic()
        return self.until is None and now - self.last >= max(CHUNK_SECONDS, CHUNK_SHARE * (now - self.started))

    def write(self, drawn: dict[str, tuple[Array, Record]], done: int) -> None:
        assert self.draw is not None  # a sweep was made
        self.append(Chunk(self.begin, drawn, Checkpoint(done, self.draw, dict(self.rng.bit_generator.state))))

    def append(self, chunk: Chunk) -> None:
        assert chunk.after is not None  # it can be gone on from
        self._append(self.number, chunk)
        for number in range(self.number + 1, self.until or 0):
            self._append(number, Chunk(chunk.after.sweeps, {}, chunk.after))
        self.number, self.begin, self.last = self.number + 1, chunk.after.sweeps, time.monotonic()


@dataclass(frozen=True)
class _Stretch:
    """Sweeps of one chain that are to be made, in a form that can be sent elsewhere."""

    data: Data
    settings: Settings
    start: int | IntArray | None
    chain: int
    schedule: _Schedule
    generator: dict[str, Any]  # its state at the start of the chain
    stop: int  # the number of sweeps after which it ends

    def begin(
        self, before: Checkpoint | None, append: Callable[[int, Chunk], None], number: int = 0, until: int | None = None
    ) -> _Chain:
        """A chain that goes on from a checkpoint, or from its start, and writes from chunk `number` on."""
        settings = self.settings
        assert settings.sampler is not None  # or the run was not opened
        generator = np.random.Generator(np.random.PCG64())
        generator.bit_generator.state = before.generator if before is not None else self.generator
        arguments = self.data, settings.model, settings.sampler, self.start, settings.tune, settings.moves, before
        done = before.sweeps if before is not None else 0
        empty = np.empty((0, len(self.data.y)), np.uint8)
        return _Chain(
            sweeps=_sweeps(generator, *arguments),
            schedule=self.schedule,
            kept=Recorder(self.chain, empty),
            warmup=Recorder(self.chain, empty) if settings.save_warmup else None,
            done=done,
            stop=self.stop,
            writer=_Writer(append, number, done, generator, until),
        )

    def make(self, before: Checkpoint | None, seconds: float) -> Chunk:
        """What the chain draws in about so much time."""
        chunks: list[Chunk] = []
        chain = self.begin(before, lambda _, chunk: chunks.append(chunk), until=0)
        end = time.monotonic() + seconds
        while not chain.finished and time.monotonic() < end:
            chain.advance()
        chain.write()
        return chunks[0]


class _DistantChain(_Chain):
    """A chain of which an executor makes the draws, a few seconds' worth at a time."""

    def __init__(self, chain: _Chain, executor: Executor, stretch: _Stretch, before: Checkpoint | None) -> None:
        super().__init__(chain.sweeps, chain.schedule, chain.kept, chain.warmup, chain.done, chain.stop, chain.writer)
        self.executor, self.stretch, self.before = executor, stretch, before

    def advance(self) -> None:
        assert self.writer is not None
        seconds = CHUNK_SECONDS if self.writer.until is None else np.inf
        chunk = self.executor.submit(self.stretch.make, self.before, seconds).result()
        self.writer.append(chunk)
        assert chunk.after is not None
        self.before, self.done, self.n_states = chunk.after, chunk.after.sweeps, chunk.after.draw.n_states


def _go_on(
    run: Run, team: Workers | None, executor: Executor | None, cores: int, progress: bool, advise: bool = True
) -> Posterior:
    """Make the sweeps that a run lacks, and read it when they are made."""
    settings = run.settings
    generators = _generators(settings.seed or 0, settings.chains)
    data = _share(run.data, team, cores, settings.chains)
    chains = [chain for c, rng in enumerate(generators) for chain in _missing(run, data, executor, c, rng)]
    try:
        if chains:
            _run(chains, min(cores, len(chains)) if executor is None else len(chains), progress)
    finally:
        for chain in chains:
            chain.write()
    contents = load(run.folder, settings.model)
    _report_interruption(contents.sizes, settings.draws, f'; ihmm.resume("{run.folder}") goes on' if advise else "")
    return Posterior.of(contents)


def _missing(run: Run, data: Data, executor: Executor | None, c: int, rng: np.random.Generator) -> Iterator[_Chain]:
    """Chains for the stretches of chain c that are not in the folder: what is damaged, and what is not made yet."""
    settings = run.settings
    schedule = _Schedule(settings.draws, settings.tune, settings.thin)
    start = settings.init if isinstance(settings.init, int) else run.init  # None: "auto"

    def stretch(before: Checkpoint | None, number: int, stop: int, until: int | None = None) -> _Chain:
        whole = _Stretch(data, settings, start, c, schedule, dict(rng.bit_generator.state), stop)
        chain = whole.begin(before, partial(run.append, c), number, until)
        return chain if executor is None else _DistantChain(chain, executor, whole, before)

    chunks = run.chunks(c)
    before: Checkpoint | None = None
    gap: int | None = None  # the first damaged chunk since the last whole one
    for number, chunk in enumerate(chunks):
        if not isinstance(chunk, Chunk):
            warnings.warn(f"{chunk}: it is computed again", UserWarning, stacklevel=5)
            gap = number if gap is None else gap
            continue
        if gap is not None:
            yield stretch(before, gap, chunk.begin, until=number)
            gap = None
        before = chunk.after
    if gap is not None:
        run.discard(c, gap)
    if (before.sweeps if before is not None else 0) < schedule.total:
        yield stretch(before, len(chunks) if gap is None else gap, schedule.total)


def _run(chains: list[_Chain], cores: int, progress: bool) -> None:
    """Let `cores` threads advance the chains until all have finished, one has failed, or Ctrl-C."""
    waiting, lock, stop = list(chains), Lock(), Event()
    workers: list[Future[None]] = []
    with ThreadPoolExecutor(cores, "ihmm") as pool:
        try:
            workers += [pool.submit(_work, waiting, lock, stop) for _ in range(cores)]
            with _display(chains, progress) as refresh:
                running = True
                while running:
                    done, others = wait(workers, POLL, FIRST_EXCEPTION)
                    running = bool(others) and not any(worker.exception() for worker in done)
                    refresh()
        except KeyboardInterrupt:
            pass  # what was drawn is kept
        finally:
            stop.set()
    for worker in workers:
        error = worker.exception()
        if error is not None and not isinstance(error, KeyboardInterrupt):
            raise error


def _work(waiting: list[_Chain], lock: Lock, stop: Event) -> None:
    """Advance by one sweep whichever chain is furthest behind: an interruption then cuts all of them alike."""
    while not stop.is_set():
        with lock:
            if not waiting:
                return
            chain = min(waiting, key=lambda chain: chain.done)
            waiting.remove(chain)
        chain.advance()
        if not chain.finished:
            with lock:
                waiting.append(chain)


def _report_interruption(kept: list[int], draws: int, advice: str = "") -> None:
    if max(kept) == 0:
        raise KeyboardInterrupt(f"stopped before the first draw{advice}")
    if min(kept) < draws:
        each = ", ".join(f"chain {c} has {n}" for c, n in enumerate(kept))
        dropped = "; chains without a draw are left out" if min(kept) == 0 else ""
        warnings.warn(
            f"sampling was stopped before all {draws} draws were made: {each}. `states` and `traces` hold the first "
            f"{min(n for n in kept if n)} of each chain, `draws[c]` holds all of chain c{dropped}{advice}",
            UserWarning,
            stacklevel=3,
        )


@contextmanager
def _display(chains: list[_Chain], progress: bool) -> Iterator[Callable[[], None]]:
    """Bars on a terminal or in a notebook, else nothing; yields the function that brings them up to date."""
    terminal = sys.stderr is not None and sys.stderr.isatty()
    if not progress or not (terminal or "ipykernel" in sys.modules):
        yield lambda: None
        return

    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.3g}/s")

    console = Console(stderr=True)
    bars = Progress(
        SpinnerColumn(),
        TextColumn("chain {task.description} {task.fields[phase]}"),
        BarColumn(None),
        TextColumn("{task.completed}/{task.total}"),
        Rate(""),
        TextColumn("{task.fields[n_states]} states  log joint {task.fields[log_joint]:.1f}"),
        TimeRemainingColumn(compact=True),
        expand=True,
        console=console,
        auto_refresh=False,
        disable=not (console.is_terminal or console.is_jupyter),
    )

    def state(chain: _Chain) -> dict[str, Any]:
        phase = "tune" if chain.done < chain.schedule.tune else "draw"
        return {"completed": chain.done, "phase": phase, "n_states": chain.n_states, "log_joint": chain.log_joint}

    with bars:
        tasks = [bars.add_task(str(c), total=chain.schedule.total, **state(chain)) for c, chain in enumerate(chains)]

        def refresh() -> None:
            for task, chain in zip(tasks, chains, strict=True):
                bars.update(task, **state(chain))
            bars.refresh()

        yield refresh
