"""The kernels that a run will need, and a second process to compile half of them on a machine that has none yet."""

import atexit
import os
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from threading import Thread
from typing import Any, NamedTuple

import numpy as np

from ihmm._threads import processors
from ihmm._typing import Array
from ihmm.emissions._protocol import provides
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
    pilot,
    segment_particles,
    segments,
    split_merge,
    split_merge_segments,
    sticks,
    systematic,
)
from ihmm.kernels.compilation import is_cold
from ihmm.model import Model
from ihmm.moves import GreedySplitMerge, Move, PairGibbs, SplitMerge
from ihmm.running.start import first_draw
from ihmm.samplers import Beam, ParticleGibbs, Sampler, StateUpdate

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
OF_PILOT: Kernels = (pilot.decode, pilot.maximise, pilot.score, pilot.smooth)
OF_DURATIONS: Kernels = (segment_particles.describe_runs, segments.forward, segment_particles.trace_back)
OF_SPLITS_WITH_DURATIONS: Kernels = (
    split_merge.pick_anchors,
    split_merge_segments.longest_visit,
    split_merge_segments.split_or_merge_segments,
)
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
        kernels.update(OF_PARTICLE_GIBBS, OF_DURATIONS)
        if provides(model.emission, "conjugate") and any(isinstance(move, SplitMerge) for move in moves):
            kernels.update(OF_SPLITS_WITH_DURATIONS)
        return tuple(kernels)
    if isinstance(sampler, ParticleGibbs):
        forward = systematic.forward if sampler.resampling == "systematic" else csmc.forward
        kernels.update(OF_PARTICLE_GIBBS, {forward, particles.trace_back})
    if isinstance(sampler, Beam):
        kernels.update(OF_BEAM)
    for move in moves:
        kernels.update(OF_MOVES.get(type(move), ()))
    return tuple(kernels)


class Rehearsal(NamedTuple):
    """A sweep on a few time steps, to find out which kernels a run calls and with what."""

    model: Model
    y: Array
    sampler: Sampler
    moves: tuple[Move, ...]

    @property
    def kernels(self) -> Kernels:
        return kernels_of(self.model, self.sampler, self.moves)

    def sweep(self) -> None:
        rng = np.random.default_rng(SEED)
        data = self.model.observe(self.y[:REHEARSAL_STEPS])
        draw = first_draw(rng, data, self.model, 2)
        self.sampler.resample_states(rng, data, self.model, draw)
        update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi, durations=draw.durations)
        for move in self.moves:
            if self.model.duration is None or isinstance(move, SplitMerge):
                move.apply(rng, data, self.model, update, draw.hyper)


class SecondCompiler:
    """A process that compiles the kernels of a run in the opposite order.

    It is started if it is worth it: if most of them have never been compiled, and a processor is idle. A process that
    comes to a kernel which the other one is compiling waits until it is stored, and loads it.
    """

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._kernels: set[Callable[..., Any]] = set()

    def start(self, task: Rehearsal, cores: int) -> None:
        """Start it, or leave it as it is if it was started for the same kernels."""
        kernels = set(task.kernels)
        if self._process is not None and kernels == self._kernels:
            return
        self.stop()
        if cores > 1 and _is_idle() and sum(map(is_cold, kernels)) >= WORTH_A_PROCESS:
            # an emission that cannot be pickled is compiled by one process
            with suppress(OSError, pickle.PickleError, AttributeError, TypeError):
                self._process, self._kernels = _start(task), kernels

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


second_compiler = SecondCompiler()
atexit.register(second_compiler.stop)


def _is_idle() -> bool:
    """Whether another process can be started and has a processor, besides the one that this process keeps busy."""
    if not sys.executable or getattr(sys, "frozen", False):  # an application with Python inside
        return False
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    return processors() - load > 1.0


def _start(task: Rehearsal) -> "subprocess.Popen[bytes]":
    contents = pickle.dumps(task._replace(y=task.y[:REHEARSAL_STEPS]))
    process = subprocess.Popen(
        [sys.executable, "-c", SECOND_PROCESS],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdin is not None
    with process.stdin as file:
        file.write(contents)
    return process


SECOND_PROCESS = """
from ihmm.kernels._recording import record, recorded
record()
import ihmm.running.compiling as compiling
compiling.main(recorded)
"""


def main(recorded: Callable[[], Iterable[Any]]) -> None:
    Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    task: Rehearsal = pickle.load(sys.stdin.buffer)
    with np.errstate(all="ignore"):  # compiled code does not warn of overflow
        task.sweep()
    for kernel, arguments in recorded():
        kernel.compile(arguments)


def _end_with(parent: int) -> None:
    """End this process when the one that started it has ended, even if that was killed."""
    while os.getppid() == parent:
        time.sleep(1.0)
    os._exit(0)
