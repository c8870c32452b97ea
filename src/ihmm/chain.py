"""Running chains: seeds, tuning, thinning, threads, progress, interruption."""

import itertools
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, ArrayLike, IntArray
from ihmm.gibbs import SweepInfo, initial_draw, sweep
from ihmm.model import Data, Draw, Model
from ihmm.moves import GreedySplitMerge, Move
from ihmm.posterior import Posterior
from ihmm.records import Recorder, gather
from ihmm.samplers import ParticleGibbs, Path, Sampler
from ihmm.sticks import total_states

POLL = 0.1  # seconds between two looks at the chains
AUTO_ROUNDS = 10  # of splits and merges that make a start
AUTO_STATES = 10  # of a random start, for emissions that cannot be split and merged
# What is done unless the user says otherwise: copies go in a few sweeps, then only what is one state in any case
MOVES: tuple[Move, ...] = (GreedySplitMerge(sweeps=6), GreedySplitMerge(sweeps=30, careful=True))

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
    progress: bool = True,
    save_warmup: bool = False,
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
        What else is done to the trajectory. By default states are split and merged greedily in the first tuning
        sweeps, which are thrown away; ``()`` switches that off.
    draws, tune, thin
        Each chain makes `tune` sweeps that are dropped, then keeps one draw every `thin` sweeps until it has `draws`.
    chains
        Number of chains.
    seed
        Governs everything random. If not given, one is chosen and can be read from ``posterior.seed``.
    init
        Where chains start: a number of states for uniformly random paths (no more than a finite model has), a path
        (for several sequences end to end, or a list of paths), or ``"auto"``: one state, split and merged greedily,
        or 10 random ones if the emission cannot be integrated out.
    cores
        Chains running at the same time, on threads; as many as there are processors if not given. The result
        does not depend on it.
    progress
        Show bars on the terminal or in the notebook.
    save_warmup
        Keep the tuning sweeps, all of them, in ``posterior.warmup``.
    """
    draws = _checks.count("draws (kept per chain)", draws)
    tune = _checks.count("tune (sweeps dropped per chain)", tune, least=0)
    chains = _checks.count("chains", chains)
    thin = _checks.count("thin (sweeps per kept draw)", thin)
    cores = _checks.count("cores", os.cpu_count() or 1 if cores is None else cores)
    seed = _check_seed(seed)
    data = _check_model(model).observe(y)
    sampler = _check_sampler(sampler, model, data)
    moves = _check_moves(moves)
    start = _check_init(init, data, model)

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
    """A number of states, a path, or None for "auto" where that can be done."""
    if isinstance(init, str):
        if init != "auto":
            raise ValueError(f'init must be a number of states, a path of states, or "auto", got {init!r}')
        return min(AUTO_STATES, total_states(model.prior)) if model.collapsed(data) is None else None
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
) -> Sweeps:
    if start is None:
        path = _greedy_path(rng, data, model)
    else:
        path = rng.integers(start, size=len(data.y)) if isinstance(start, int) else start
    draw = initial_draw(rng, data, model, path)
    for i in itertools.count():
        draw, info = sweep(rng, data, model, draw, sampler, [move for move in moves if move.acts(i, tune)])
        yield draw, info


def _greedy_path(rng: np.random.Generator, data: Data, model: Model) -> IntArray:
    """A path to start from: one state, split and merged for as long as that gains anything much."""
    draw = initial_draw(rng, data, model, np.zeros(len(data.y), np.int64))
    path = Path(draw.states, draw.transitions.beta)
    for _ in range(AUTO_ROUNDS):
        path = GreedySplitMerge().apply(rng, data, model, path, draw.hyper)
    return path.states


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

    def __init__(self, sweeps: Sweeps, schedule: _Schedule, kept: Recorder, warmup: Recorder | None) -> None:
        self.sweeps, self.schedule, self.kept, self.warmup = sweeps, schedule, kept, warmup
        self.done = 0
        self.n_states, self.log_joint = 0, float("nan")

    @property
    def finished(self) -> bool:
        return self.done == self.schedule.total

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


def _report_interruption(kept: list[int], draws: int) -> None:
    if max(kept) == 0:
        raise KeyboardInterrupt("stopped before the first draw")
    if min(kept) < draws:
        each = ", ".join(f"chain {c} has {n}" for c, n in enumerate(kept))
        dropped = "; chains without a draw are left out" if min(kept) == 0 else ""
        warnings.warn(
            f"sampling was stopped before all {draws} draws were made: {each}. `states` and `traces` hold the first "
            f"{min(n for n in kept if n)} of each chain, `draws[c]` holds all of chain c{dropped}",
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
    from rich.progress import BarColumn, Progress, Task, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class Rate(TextColumn):
        def render(self, task: Task) -> Text:
            return Text(f"{task.finished_speed or task.speed or 0:.3g}/s")

    console = Console(stderr=True)
    bars = Progress(
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
