"""Particle Gibbs with ancestor sampling, truncation-free and exact (T15 §3.1–3.3).

Given the whole θ = (β, π, φ), infinitely many states of which only some have been instantiated, the trajectory is
resampled by conditional SMC. The states scored explicitly are V = {k : β_k ≥ ε}, a function of θ alone. T15 §3.2 scores
the states of the reference path, which makes the proposal depend on the reference and the kernel not invariant.
"""

import math
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._memory import keep_memory
from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import size, take
from ihmm.kernels import csmc, particles, systematic
from ihmm.kernels.layout import relate_with_tail
from ihmm.kernels.particles import Density, ParticleSystem
from ihmm.kernels.sticks import Sticks
from ihmm.model import Draw, Model
from ihmm.priors import FinitePrior
from ihmm.samplers._base import NewPath, PassInfo, StateUpdate, finish
from ihmm.samplers._densities import MIN_LOG_DENSITY, exponentials
from ihmm.samplers.segments import SegmentPass
from ihmm.sticks import copy_sticks, extend_omega, extend_phi, grow, open_state, open_sticks
from ihmm.trajectory import PieceStatistics, Trajectory, combine, piece_statistics, relabel
from ihmm.workers import Segment

# Maximum number of time steps, and approximate number of densities, scored at a time. Threads wait for the interpreter
# lock between two blocks, so blocks are large.
MAX_BLOCK_STEPS, BLOCK_CELLS = 17_000, 200_000
MAX_FRESH = 700  # ε grows with γ so that about γ log(1/ε) ≤ MAX_FRESH new states are instantiated before a pass


@dataclass(frozen=True)
class ParticleGibbs:
    """Conditional SMC over the trajectory.

    Parameters
    ----------
    n_particles
        N, at least 2. With systematic resampling, the maximum number of states kept at a time step, including the
        state of the reference: a state with at least 1/N of the weight is always kept. 50 mixes nearly like forward
        filtering and backward sampling, and costs little more than 10. With multinomial resampling, the number of
        particles, including the reference; 10 is enough for most data (T15 §4), and the cost is linear in N.
    proposal
        ``"posterior"`` proposes states in proportion to transition probability and density; ``"prior"`` proposes from
        the transitions alone and corrects by weighting, which mixes more slowly. For comparison.
    ancestor_sampling
        Resample the ancestor of the reference at every time step. False is plain particle Gibbs, for comparison; it
        requires multinomial resampling.
    threshold
        ε: states with β_k ≥ ε are scored explicitly. The sampler is exact for any value; smaller values propose more
        new states.
    block_size
        Resample long sequences in blocks of this many time steps: the even blocks given the odd ones, then the reverse.
        Blocks run in parallel (see `cores` of `sample`), and memory grows with the block instead of the sequence.
    resampling
        ``"systematic"`` merges particles in the same state and thins the states with a single uniform per time step,
        so that the cost hardly grows with N. ``"multinomial"`` draws the particles of a time step independently; T15's
        sampler is ``ParticleGibbs(10, resampling="multinomial")``. Both are exact for any N.
    """

    n_particles: int = 50
    proposal: str = "posterior"
    ancestor_sampling: bool = True
    threshold: float = 1e-3
    block_size: int | None = None
    resampling: str = "systematic"

    def __post_init__(self) -> None:
        _checks.count("n_particles (including the reference)", self.n_particles, least=2, most=_checks.MAX_SIZE)
        _checks.one_of("proposal", self.proposal, ("posterior", "prior"))
        _checks.positive("threshold", self.threshold)
        if self.block_size is not None:
            _checks.count("block_size (time steps; None: whole sequences)", self.block_size)
        _checks.one_of("resampling", self.resampling, ("systematic", "multinomial"))
        if not isinstance(self.ancestor_sampling, bool):
            raise ValueError(f"ancestor_sampling must be True or False, got {self.ancestor_sampling!r}")
        if self.resampling == "systematic" and not self.ancestor_sampling:
            raise ValueError(
                "ancestor_sampling=False needs resampling='multinomial', got 'systematic' (the default), which merges "
                "particles, so that the reference has no past of its own"
            )

    def check(self, model: Model, data: Data) -> None:
        if model.duration is None:
            return
        if self.block_size is not None:
            raise ValueError(
                "block_size is for hidden Markov models: a segment of a model with durations may extend across any "
                "number of blocks; use block_size=None"
            )
        if not self.ancestor_sampling:
            raise ValueError("a model with durations merges particles, which needs ancestor_sampling=True")

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        stick_key, *keys = rng.integers(0, 2**63, 4, dtype=np.uint64)
        sticks, order = self.open(model, draw, stick_key)
        known = take(extend_phi(model.emission, keys[0], draw.phi, len(order)), order)
        column = np.argsort(order)  # of a state of the draw in θ
        if model.duration is not None:
            keys.append(rng.integers(0, 2**63, dtype=np.uint64))
            omega = take(extend_omega(model.duration, keys[3], draw.durations, len(order)), order)
            new = resample_sequences(
                SegmentPass(self, keys, model, sticks, known, omega), data, draw.trajectory, column
            )
            last = int(new.visited[-1])
            phi = extend_phi(model.emission, keys[0], known, last + 1)
            omega = extend_omega(model.duration, keys[3], omega, last + 1)
            return finish(new, open_state(sticks, last), order, phi, draw, omega)
        csmc_pass = Pass(self, keys, model, sticks, known)
        if self.block_size is None:
            new = resample_sequences(csmc_pass, data, draw.trajectory, column)
        else:
            new = resample_blocks(csmc_pass, data, draw.trajectory, column, blocks(rng, data, self.block_size))

        # Any worker that instantiates a state finds the same one, so the visited states can be instantiated here again
        last = int(new.visited[-1])
        phi = extend_phi(model.emission, keys[0], known, last + 1)
        return finish(new, open_state(sticks, last), order, phi, draw)

    def open(self, model: Model, draw: Draw, key: np.uint64) -> tuple[Sticks, IntArray]:
        """θ with the explicitly scored states in front; see `open_sticks`."""
        return open_sticks(draw, model.prior, key, self.explicit_threshold(model, draw))

    def explicit_threshold(self, model: Model, draw: Draw) -> float:
        """ε, a function of the hyperparameters and never of the trajectory.

        The prior proposal scores no state explicitly, the posterior proposal all states of a finite model.
        """
        if self.proposal == "prior":
            return math.inf
        if isinstance(model.prior, FinitePrior):
            return 0.0
        return max(self.threshold, math.exp(-MAX_FRESH / draw.hyper.gamma))


@dataclass(frozen=True, eq=False)
class Pass:
    """Conditional SMC over any part of the data, given θ. It can be sent to another process."""

    settings: ParticleGibbs
    keys: list[np.uint64]  # of the random streams: φ of new states, forward pass, trace back
    model: Model
    sticks: Sticks
    known: Phi  # φ of the columns of θ

    def run(self, data: Data, reference: IntArray, segment: Segment, before: int = -1, after: int = -1) -> IntArray:
        """New states for the time steps of a segment, in columns of θ; `data` has only these steps.

        `before` and `after` are the states of the steps on either side if these are given, −1 if not.
        """
        keep_memory()
        phi_key, forward_key, backward_key = self.keys
        model, n_particles = self.model, self.settings.n_particles
        sticks, phi = copy_sticks(self.sticks), self.known
        sequence = np.full(len(reference), -1)
        sequence[segment.starts] = segment.streams
        log_marginal = data.log_marginal if self.settings.proposal == "posterior" else np.zeros(len(reference))
        kernel = systematic if self.settings.resampling == "systematic" else csmc
        system = empty_system(len(reference), n_particles)
        if before >= 0:
            sticks = open_state(sticks, before)
            system.row[0] = sticks.row_of[before]
        if after >= 0:
            sticks = open_state(sticks, after)

        stream = np.empty((3, 16), np.uint64)[1, :4]  # in a cache line of its own, which threads do not share
        block = min(MAX_BLOCK_STEPS, max(64, BLOCK_CELLS // size(self.known)))
        t = 0
        while t < len(reference):
            stop, begin = min(t + block, len(reference)), t
            steps = slice(t, stop)
            log_g = log_marginal[steps]
            density = score(model.log_density(data, self.known, steps), log_g, begin, sticks)
            while t < stop:
                t, needed = kernel.forward(
                    t, stop, n_particles, sticks, density, system, reference, sequence, forward_key, stream
                )
                if needed == particles.GROW:
                    sticks = grow(sticks)
                    density = widen(density, len(sticks.beta))
                elif needed != particles.NOTHING:
                    phi = extend_phi(model.emission, phi_key, phi, needed + 1)
                    log_f = model.log_density(data, take(phi, np.array([needed])), steps)[:, 0]
                    density = add_column(density, needed, log_f - log_g)

        states = np.empty_like(reference)
        ancestor_sampling = self.settings.ancestor_sampling
        particles.trace_back(sticks, system, reference, after, sequence, backward_key, ancestor_sampling, states)
        return smallest_type(states)


# Whole sequences


class SegmentSummary(NamedTuple):
    """What a worker reports of a segment it has resampled."""

    visited: IntArray
    n_changed: int
    statistics: PieceStatistics | None


def resample_sequences(csmc_pass: Pass | SegmentPass, data: Data, trajectory: Trajectory, column: IntArray) -> NewPath:
    """Resample every sequence; workers may keep the path and return its statistics instead."""
    labels = column if trajectory.labels is None else column[trajectory.labels]
    with_statistics = data.workers.keep_paths and data.conjugate is not None
    update = partial(resample_segment, csmc_pass, labels, with_statistics)
    path, summaries = data.workers.resample(update, data, trajectory.path, data.workers.segments(data.offsets))
    visited = summaries[0].visited
    if len(summaries) > 1:
        visited = np.unique(np.concatenate([summary.visited for summary in summaries]))
    update_rate = sum(summary.n_changed for summary in summaries) / len(data.y)
    pieces = [summary.statistics for summary in summaries if summary.statistics is not None]
    return NewPath(path, visited, update_rate, combine(data.conjugate, pieces) if pieces else None)


def resample_segment(
    csmc_pass: Pass | SegmentPass, labels: IntArray, with_statistics: bool, data: Data, path: IntArray, segment: Segment
) -> tuple[IntArray, SegmentSummary]:
    """New states for a segment of whole sequences; `labels` maps the states of the old path to columns of θ."""
    reference = relabel(path, labels)
    states = csmc_pass.run(data, reference, segment)
    visited = np.flatnonzero(np.bincount(states))
    statistics = None
    if with_statistics:
        statistics = piece_statistics(data, states.astype(np.int64), int(visited[-1]) + 1)
    return states, SegmentSummary(visited, int(np.count_nonzero(states != reference)), statistics)


# Blocks of long sequences


class BlockTask(NamedTuple):
    """A block, its present states, and those of the time steps before and after it (−1: none)."""

    begin: int
    end: int
    segment: Segment
    reference: IntArray
    before: int
    after: int


def resample_blocks(
    csmc_pass: Pass, data: Data, trajectory: Trajectory, column: IntArray, rounds: list[list[Segment]]
) -> NewPath:
    """Resample the blocks of each round in parallel, given all other time steps."""
    reference = relabel(trajectory.states, column)
    path, is_border = reference.copy(), np.zeros(len(reference) + 1, bool)
    is_border[data.offsets] = True
    for segments in rounds:
        tasks = [
            BlockTask(
                begin,
                end,
                segment,
                smallest_type(path[begin:end]),
                -1 if is_border[begin] else int(path[begin - 1]),
                -1 if is_border[end] else int(path[end]),
            )
            for segment in segments
            for begin, end in [segment[:2]]
        ]
        for task, states in zip(tasks, data.workers.map(partial(resample_block, csmc_pass), data, tasks), strict=True):
            path[task.begin : task.end] = states
    return NewPath.of(path, reference)


def resample_block(csmc_pass: Pass, data: Data, task: BlockTask) -> IntArray:
    return csmc_pass.run(data, task.reference.astype(np.int64), task.segment, task.before, task.after)


def blocks(rng: np.random.Generator, data: Data, block_size: int) -> list[list[Segment]]:
    """The even blocks of every sequence in a first round, the odd ones in a second.

    The grid of blocks is shifted at random, so that no time step is always at a border.
    """
    rounds: list[list[Segment]] = [[], []]
    shift = int(rng.integers(block_size))
    for begin, end in pairwise(data.offsets.tolist()):
        inside = range(begin + block_size - shift, end, block_size) if end - begin > block_size else ()
        for i, (low, high) in enumerate(pairwise([begin, *inside, end])):
            rounds[i % 2].append(Segment(low, high, np.zeros(1, np.int64), np.array([low])))
    return rounds


def smallest_type(states: IntArray) -> IntArray:
    """The same states in the smallest integer type that holds them, to be stored or sent."""
    return states.astype(np.min_scalar_type(states.max()))


# Densities and particles in the form that the kernel reads


def score(log_density: FloatArray, log_marginal: FloatArray, begin: int, sticks: Sticks) -> Density:
    """Densities of one block: V on a common scale at each time step, the instantiated tail states relative to g_t."""
    n_explicit, table = sticks.size[2], np.ascontiguousarray(log_density.T)
    explicit = np.empty((len(log_marginal), n_explicit + 1))
    relate_with_tail(table, log_marginal, n_explicit, n_explicit < sticks.n_total, MIN_LOG_DENSITY, explicit)
    column_of = np.full(len(sticks.beta), -1)
    column_of[n_explicit : len(table)] = np.arange(len(table) - n_explicit)
    return Density(begin, exponentials(explicit), column_of, table[n_explicit:])


def add_column(density: Density, state: int, log_ratio: FloatArray) -> Density:
    """The same densities with those of one more tail state; the array grows by doubling."""
    used = int(density.column_of.max()) + 1
    if used >= len(density.log_tail):
        room = np.empty((2 * used + 4, len(log_ratio)))
        room[:used] = density.log_tail[:used]
        density = density._replace(log_tail=room)
    density.log_tail[used] = log_ratio
    density.column_of[state] = used
    return density


def widen(density: Density, capacity: int) -> Density:
    column_of = np.full(capacity, -1)
    column_of[: len(density.column_of)] = density.column_of
    return density._replace(column_of=column_of)


def empty_system(n_steps: int, n_particles: int) -> ParticleSystem:
    """Arrays for the pairs of every time step, and pair 0: the initial row, with mass one."""
    most = n_particles + 2  # rounding may add to N
    size = 1 + n_steps * most  # memory that is not used is never touched
    state, row, number = (np.empty(size, np.int32) for _ in range(3))
    system = ParticleSystem(np.empty(n_steps + 1, np.int64), state, row, number, np.empty(size))
    system.first[0], system.row[0], system.number[0], system.mass[0] = 1, 0, most, 1.0
    return system
