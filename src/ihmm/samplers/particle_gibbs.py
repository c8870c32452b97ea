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
from ihmm._typing import FloatArray, IntArray
from ihmm.data import Data
from ihmm.emissions._parameters import take
from ihmm.kernels.sticks import Sticks
from ihmm.model import Draw, Model
from ihmm.priors import FinitePrior
from ihmm.samplers._base import NewPath, PassInfo, StateUpdate, finish
from ihmm.samplers._streams import Keys
from ihmm.samplers.segments import SegmentPass
from ihmm.samplers.states import StatePass
from ihmm.sticks import extend_omega, extend_phi, open_state, open_sticks
from ihmm.trajectory import PieceStatistics, Trajectory, combine, piece_statistics, relabel, smallest_type
from ihmm.workers import Segment

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
        key = Keys(*keys)
        sticks, order = self.open(model, draw, stick_key)
        phi = take(extend_phi(model.emission, key.phi, draw.phi, len(order)), order)
        column = np.argsort(order)  # of a state of the draw in θ
        if model.duration is not None:
            key = key._replace(omega=rng.integers(0, 2**63, dtype=np.uint64))
            omega = take(extend_omega(model.duration, key.omega, draw.durations, len(order)), order)
            new = resample_sequences(SegmentPass(self, key, model, sticks, phi, omega), data, draw.trajectory, column)
        elif self.block_size is None:
            new = resample_sequences(StatePass(self, key, model, sticks, phi), data, draw.trajectory, column)
        else:
            rounds = blocks(rng, data, self.block_size)
            new = resample_blocks(StatePass(self, key, model, sticks, phi), data, draw.trajectory, column, rounds)

        # Any worker that instantiates a state finds the same one, so the visited states can be instantiated here again
        n_states = int(new.visited[-1]) + 1
        phi = extend_phi(model.emission, key.phi, phi, n_states)
        if model.duration is None:
            return finish(new, open_state(sticks, n_states - 1), order, phi, draw)
        omega = extend_omega(model.duration, key.omega, omega, n_states)
        return finish(new, open_state(sticks, n_states - 1), order, phi, draw, omega)

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

    def log_g(self, data: Data) -> FloatArray:
        """log g_t, in place of the density of a state that is not scored explicitly: 0 for the prior proposal."""
        return data.log_marginal if self.proposal == "posterior" else np.zeros(len(data.y))


# Whole sequences


class SegmentSummary(NamedTuple):
    """What a worker reports of a segment it has resampled."""

    visited: IntArray
    n_changed: int
    statistics: PieceStatistics | None


def resample_sequences(
    csmc_pass: StatePass | SegmentPass, data: Data, trajectory: Trajectory, column: IntArray
) -> NewPath:
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
    csmc_pass: StatePass | SegmentPass,
    labels: IntArray,
    with_statistics: bool,
    data: Data,
    path: IntArray,
    segment: Segment,
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
    csmc_pass: StatePass, data: Data, trajectory: Trajectory, column: IntArray, rounds: list[list[Segment]]
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


def resample_block(csmc_pass: StatePass, data: Data, task: BlockTask) -> IntArray:
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
