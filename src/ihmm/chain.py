"""Sampling from the posterior: `sample`, `resume` and `iterate`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._threads import processors
from ihmm._typing import ArrayLike
from ihmm.model import Model
from ihmm.moves import GreedySplitMerge, GroupComponents, MergeTwins, Move, PairGibbs, SplitMerge
from ihmm.posterior import Posterior
from ihmm.running.arguments import (
    check_executor,
    check_init,
    check_model,
    check_moves,
    check_resolution,
    check_sampler,
    check_seed,
)
from ihmm.running.chains import Resources, run_chains, run_to_convergence
from ihmm.running.data_checks import concerns
from ihmm.running.one_chain import Sweeps as Sweeps
from ihmm.running.one_chain import sweeps
from ihmm.running.start import start_of_chain, streams
from ihmm.samplers import Sampler
from ihmm.series.clock import make_clock
from ihmm.store import Backend, MemoryBackend, RunFolder, RunSettings
from ihmm.workers import Workers

# Greedy moves merge duplicate states in the first tuning sweeps, then only where two states are clearly the same. Exact
# moves act in every sweep. Moves that need φ come first.
MOVES: tuple[Move, ...] = (
    PairGibbs(),
    GreedySplitMerge(sweeps=6),
    GreedySplitMerge(sweeps=30, careful=True),
    GroupComponents(sweeps=100),  # of mixtures
    MergeTwins(sweeps=100),  # if φ cannot be integrated out, or states have durations
    SplitMerge(),
)

FIRST_AUTO_DRAWS = 500  # per chain, for draws="auto"

Init = int | str | ArrayLike | Sequence[ArrayLike]


def sample(
    model: Model,
    y: Any,
    *,
    sampler: Sampler | None = None,
    moves: Iterable[Move] = MOVES,
    draws: int | str = 1000,
    tune: int = 500,
    chains: int = 4,
    seed: int | None = None,
    init: Init = 10,
    thin: int = 1,
    resolution: float | tuple[float, ...] | None = None,
    dt: Any = None,
    sample_rate: Any = None,
    cores: int | None = None,
    workers: Workers | None = None,
    executor: Executor | None = None,
    progress: bool | str = True,
    save_warmup: bool = False,
    store: str | os.PathLike[str] | None = None,
) -> Posterior:
    """Draw from the posterior with several chains.

    Ctrl-C stops after the current sweep and returns the draws made so far. A second Ctrl-C abandons that sweep, and the
    draws that are not yet in a `store`.

    Parameters
    ----------
    model
        Emissions and prior.
    y
        One series, (T,) or (T, D), or a list of them.
    sampler
        How the trajectory is resampled; ``ParticleGibbs()`` by default.
    moves
        Further updates of the trajectory. By default states are split and merged, greedily in the first tuning sweeps,
        which are discarded, and exactly in all sweeps; ``()`` disables all moves.
    draws, tune, thin
        Each chain makes `tune` sweeps that are discarded, then keeps one draw every `thin` sweeps until it has `draws`.
        ``draws="auto"`` keeps 500 and doubles the number until the chains have converged by ``posterior.check()``, up
        to 4000.
    chains
        Number of chains.
    seed
        Determines all random numbers. By default one is chosen, available as ``posterior.seed``.
    init
        Where chains start: a number of states for uniformly random trajectories (limited to the number of states of a
        finite model), a trajectory (for several sequences concatenated, or a list of trajectories), an array with a
        row for each chain that holds its trajectory, or ``"auto"``: a single state, split and merged greedily, or for
        mixtures 10 random states.
    resolution
        Levels whose means differ by less, a number or one for each column, are not told apart in ``posterior.levels()``
        and ``posterior.check()``, by which ``draws="auto"`` ends.
    dt, sample_rate
        Time between steps, in seconds or as a text such as ``"0.1ms"``, or steps per second, such as ``"10kHz"``. Dwell
        times, rates and plots are then in seconds. By default the times of a pandas index of dates, if there is one.
    cores
        Number of threads, by default the number of processors. Chains run in parallel; with fewer chains than threads,
        so do the sequences of a chain, or the blocks of ``ParticleGibbs(block_size=…)``. Results do not depend on it.
    workers
        Workers that share the sequences of a chain, instead of threads: ``ihmm.distributed.Cluster(client)``.
    executor
        Runs the chains, a few seconds at a time, instead of threads of this process: any
        `concurrent.futures.Executor`, such as ``ProcessPoolExecutor()`` or the ``get_executor()`` of a Dask client.
    progress
        Show progress bars on the terminal or in the notebook; ``"compilation"`` shows only how far compilation is, in
        the first run on a machine.
    save_warmup
        Keep all tuning sweeps, in ``posterior.warmup``.
    store
        A folder that the run is written to every few seconds. If the process is killed, `resume` continues from there,
        and the finished run has the same draws, bit for bit, as one that was never interrupted.
    """
    automatic = draws == "auto"
    draws = FIRST_AUTO_DRAWS if automatic else _checks.count('draws (kept per chain, or "auto")', draws)
    tune = _checks.count("tune (sweeps discarded per chain)", tune, least=0)
    chains = _checks.count("chains", chains, most=_checks.MAX_CHAINS)
    thin = _checks.count("thin (sweeps per kept draw)", thin)
    resources = _check_resources(cores, workers, executor)
    seed = check_seed(seed)
    data = check_model(model).observe(y, clock=make_clock(dt, sample_rate))
    sampler = check_sampler(sampler, model, data)
    moves = check_moves(moves)
    resolution = check_resolution(resolution, data)
    start = check_init(init, data, model)
    for concern in concerns(model, data):
        warnings.warn(concern, UserWarning, stacklevel=2)

    trajectory, n_states = (start, None) if isinstance(start, np.ndarray) else (None, start)
    settings = RunSettings(
        model, sampler, moves, seed, draws, tune, thin, chains, n_states, save_warmup, resolution=resolution
    )
    backend: AbstractContextManager[Backend]
    if store is None:
        backend = nullcontext(MemoryBackend(settings, data, trajectory))
    else:
        backend = RunFolder.create(store, settings, data, trajectory)
    with backend as run:
        return (run_to_convergence if automatic else run_chains)(run, resources, progress)


def resume(
    path: str | os.PathLike[str],
    *,
    draws: int | None = None,
    cores: int | None = None,
    workers: Workers | None = None,
    executor: Executor | None = None,
    progress: bool | str = True,
    model: Model | None = None,
) -> Posterior:
    """Continue a run that `sample` wrote to a folder, or add draws to a finished one.

    Damaged files are named in a warning, and their draws are recomputed.

    Parameters
    ----------
    path
        The folder.
    draws
        Total number of draws per chain; by default as many as `sample` was asked for.
    cores, workers, executor, progress
        As in `sample`.
    model
        Needed if the emission is not part of ihmm.
    """
    resources = _check_resources(cores, workers, executor)
    with RunFolder.reopen(path, model) as folder:
        if draws is not None:
            folder.extend(_checks.count("draws (total per chain)", draws))
        return run_chains(folder, resources, progress)


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
    """Run one chain without end, sweep by sweep; stop whenever you like.

    Yields the draw and the diagnostics of each sweep, tuning sweeps included. With the same seed and `tune` these are
    the sweeps of the first chain of `sample`, which has the same arguments. The first `tune` sweeps are not draws from
    the posterior.
    """
    tune = _checks.count("tune (sweeps that are not draws)", tune, least=0)
    seed = check_seed(seed)
    data = check_model(model).observe(y)
    sampler = check_sampler(sampler, model, data)
    moves = check_moves(moves)
    start = check_init(init, data, model)
    settings = RunSettings(
        model, sampler, moves, seed, draws=1, tune=tune, thin=1, chains=1, init=None, save_warmup=False
    )
    rng = np.random.Generator(np.random.PCG64(streams(seed, 1)[0]))
    return sweeps(rng, data, settings, start_of_chain(start, 0))


def _check_resources(cores: int | None, workers: Workers | None, executor: Executor | None) -> Resources:
    cores = _checks.count("cores", processors() if cores is None else cores)
    check_executor(executor, workers)
    return Resources(cores, workers, executor)
