"""The kernels that a run will need, and a second process to compile half of them on a machine that has none yet."""

import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Thread
from typing import Any

import numpy as np

from ihmm._threads import processors
from ihmm._typing import Array
from ihmm.data import Data
from ihmm.kernels import (
    conditionals,
    counts,
    csmc,
    draws,
    families,
    forward_backward,
    greedy,
    layout,
    pairs,
    particles,
    segments,
    split_merge,
    sticks,
    systematic,
)
from ihmm.kernels.compilation import is_cold
from ihmm.model import Model
from ihmm.moves import GreedySplitMerge, Move, PairGibbs, SplitMerge
from ihmm.samplers import Beam, ParticleGibbs, Sampler, StateUpdate
from ihmm.start import first_draw

WORTH_A_PROCESS = 8  # kernels to compile; a process takes a second to start
REHEARSAL_STEPS = 60
SEED = 1  # of the rehearsal: any will do

Kernels = tuple[Callable[..., Any], ...]

ALWAYS: Kernels = (
    conditionals.resample_transitions,
    counts.compact,
    counts.count_overlap,
    counts.count_transitions,
    counts.rename,
    draws.seed_stream,
)
OF_PARTICLE_GIBBS: Kernels = (
    layout.relate_with_tail,
    sticks.arrange,
    sticks.break_until,
    sticks.bring_forward,
    sticks.extend_row,
    sticks.open_row,
    sticks.start,
)
OF_DURATIONS: Kernels = (segments.describe_runs, segments.forward, segments.trace_back)
OF_BEAM: Kernels = (forward_backward.filter_beam, forward_backward.filter_wide_beam, forward_backward.sample_beam)
OF_MOVES: dict[type, Kernels] = {
    PairGibbs: (layout.relate, pairs.resample_pairs),
    GreedySplitMerge: (families.gather_statistics, greedy.merge_best_first, greedy.try_splits),
    SplitMerge: (split_merge.split_and_merge,),
}


def kernels_of(model: Model, sampler: Sampler | None, moves: Sequence[Move]) -> Kernels:
    """Nearly all kernels of a run; others depend on the emission and on what happens."""
    kernels = set(ALWAYS)
    if model.duration is not None:
        return tuple(kernels.union(OF_PARTICLE_GIBBS, OF_DURATIONS))
    if isinstance(sampler, ParticleGibbs):
        forward = systematic.forward if sampler.resampling == "systematic" else csmc.forward
        kernels.update(OF_PARTICLE_GIBBS, {forward, particles.trace_back})
    if isinstance(sampler, Beam):
        kernels.update(OF_BEAM)
    for move in moves:
        kernels.update(OF_MOVES.get(type(move), ()))
    return tuple(kernels)


@contextmanager
def second_compiler(data: Data, model: Model, sampler: Sampler, moves: Sequence[Move], cores: int) -> Iterator[None]:
    """If most kernels have never been compiled and a processor is idle, another process compiles from the other end.

    A process that comes to a kernel which the other one is compiling waits until it is stored, and loads it.
    """
    process = None
    if cores > 1 and _is_idle() and sum(map(is_cold, kernels_of(model, sampler, moves))) >= WORTH_A_PROCESS:
        # an emission that cannot be pickled is compiled by one process
        with suppress(OSError, pickle.PickleError, AttributeError, TypeError):
            process = _start((model, np.asarray(data.y[:REHEARSAL_STEPS]), sampler, tuple(moves)))
    try:
        yield
    finally:
        if process is not None:
            process.kill()
            process.wait()


def _is_idle() -> bool:
    """Whether another process can be started and has a processor, besides the one that this process keeps busy."""
    if not sys.executable or getattr(sys, "frozen", False):  # an application with Python inside
        return False
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return processors() - load > 1.0


def _start(task: tuple[Model, Array, Sampler, tuple[Move, ...]]) -> "subprocess.Popen[bytes]":
    contents = pickle.dumps(task)
    process = subprocess.Popen(
        [sys.executable, "-c", "import ihmm.compiling as compiling; compiling.main()"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with process.stdin as file:
        file.write(contents)
    return process


def main() -> None:
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    rehearse(*pickle.load(sys.stdin.buffer))


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)


def rehearse(model: Model, y: Array, sampler: Sampler, moves: Sequence[Move]) -> None:
    """Call the kernels of a sweep once, those of the last move first: a run begins at the other end."""
    rng = np.random.default_rng(SEED)
    data = model.observe(y)
    draw = first_draw(rng, data, model, 2)
    update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
    for move in reversed(moves if model.duration is None else ()):
        move.apply(rng, data, model, update, draw.hyper)
    sampler.resample_states(rng, data, model, draw)
