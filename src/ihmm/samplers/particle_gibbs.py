"""Particle Gibbs with ancestor sampling, truncation-free and exact (T15 §3.1–3.3).

Given the whole θ = (β, π, φ), infinitely many states of which only some have been looked at, the trajectory is renewed
by conditional SMC. The states scored explicitly are V = {k : β_k ≥ ε}: a function of θ alone. T15 §3.2 scores the
states of the reference path, which makes the proposal depend on the reference and the kernel not invariant.
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
from ihmm.emissions._base import size, take
from ihmm.kernels import csmc, particles, systematic
from ihmm.kernels.counts import rename
from ihmm.kernels.layout import relate_with_tail
from ihmm.kernels.particles import Cloud, Density
from ihmm.kernels.sticks import Theta
from ihmm.model import Data, Distant, Draw, Keeper, Model, Sums, distant
from ihmm.priors import FinitePrior
from ihmm.samplers._base import LEAST, DistantPath, PassInfo, Path, exponentials, finish, share_changed
from ihmm.sticks import copy_theta, extend_phi, grow, open_state, open_theta
from ihmm.sums import Part, piece_borders, put_together, sum_up_part

# Most steps, and about how many densities, held at once. Between two blocks threads wait for the interpreter's lock, so
# there are to be few of them.
BLOCK, CELLS = 17_000, 200_000
MOST_FRESH = 700  # ε rises with γ so that about this many fresh states, γ log(1/ε), are opened before a pass


@dataclass(frozen=True)
class ParticleGibbs:
    """Conditional SMC over the trajectory.

    Parameters
    ----------
    n_particles
        N, the reference included. 10 is enough for most data (T15 §4); at least 2.
    proposal
        ``"posterior"`` scores states by how well they explain the next observation; ``"prior"`` follows the
        transitions only and weighs afterwards: slower to mix, for comparison.
    ancestor_sampling
        Let the reference change its past at every step. False gives plain particle Gibbs, for comparison.
    threshold
        ε: states with β_k ≥ ε are scored explicitly. Any value is exact; small ones propose more new states.
    block_size
        Renew long sequences in blocks of so many steps, every other one given those between, then those. The blocks can
        be worked on at the same time (see `cores` of `sample`), and memory grows with them instead of the sequence.
    resampling
        ``"multinomial"`` draws the particles of a time step independently (T15). ``"systematic"`` merges particles in
        the same state and thins them with one uniform a time step: N is then the largest number of states kept, cost
        hardly grows with it, and the trajectory mixes faster. It always has ancestor sampling.
    """

    n_particles: int = 10
    proposal: str = "posterior"
    ancestor_sampling: bool = True
    threshold: float = 1e-3
    block_size: int | None = None
    resampling: str = "multinomial"

    def __post_init__(self) -> None:
        _checks.count("n_particles (the reference included)", self.n_particles, least=2)
        _checks.one_of("proposal", self.proposal, ("posterior", "prior"))
        _checks.positive("threshold", self.threshold)
        if self.block_size is not None:
            _checks.count("block_size (steps; None renews whole sequences)", self.block_size)
        _checks.one_of("resampling", self.resampling, ("multinomial", "systematic"))
        if self.resampling == "systematic" and not self.ancestor_sampling:
            raise ValueError(
                "ancestor_sampling=False needs resampling='multinomial'; systematic resampling merges particles, "
                "and the reference has no past of its own"
            )

    def check(self, model: Model, data: Data) -> None:
        pass  # serves every model

    def resample_states(self, rng: np.random.Generator, data: Data, model: Model, draw: Draw) -> tuple[Path, PassInfo]:
        stick_key, *keys = rng.integers(0, 2**63, 4, dtype=np.uint64)
        theta, order = self.open(model, draw, stick_key)
        known = take(extend_phi(model.emission, keys[0], draw.phi, len(order)), order)
        if self.block_size is None and data.sums_up and data.team.keeper is not None:
            return self.resample_there(keys, data, data.team.keeper, model, draw, theta, order, known)
        path = reference = np.empty(len(draw.states), np.min_scalar_type(len(order)))
        rename(draw.states, np.argsort(order), path)
        renew = partial(self.renew, keys, model, theta, known)
        rounds = blocks(rng, data, self.block_size) if self.block_size else [whole_sequences(data, data.offsets)]
        for stretches in rounds:
            jobs = [Job.of(stretch, path) for stretch in stretches]
            results = data.team.over(renew, data, jobs)
            path = path.astype(max([path.dtype, *(renewed.dtype for renewed in results)]))
            for job, renewed in zip(jobs, results, strict=True):
                path[job.begin : job.end] = renewed

        # whoever opens a state finds the same, so here are once more those that the path visits
        last = int(path.max())
        phi = extend_phi(model.emission, keys[0], known, last + 1)
        return finish(path, share_changed(path, reference), open_state(theta, last), order, phi, draw)

    def resample_there(
        self,
        keys: list[np.uint64],
        data: Data,
        keeper: Keeper,
        model: Model,
        draw: Draw,
        theta: Theta,
        order: IntArray,
        known: Phi,
    ) -> tuple[Path, PassInfo]:
        """The same by a team that keeps the path: parameters go there, and sums come back."""
        there, label = distant(draw), np.argsort(order)
        if there is not None:
            label = label[there.label]
        renew = partial(self.renew_and_sum_up, keys, model, theta, known, small(label))
        stretches = whole_sequences(data, np.intersect1d(piece_borders(data.offsets), data.offsets))
        away, said = keeper.renew(renew, data, draw.states if there is None else there.away, stretches)
        counts, statistics = put_together(model.emission, [part for part, _ in said])

        visited = np.flatnonzero(counts.any(axis=0))
        last = int(visited[-1])
        phi = extend_phi(model.emission, keys[0], known, last + 1)
        update_rate = sum(n_changed for _, n_changed in said) / len(data.y)
        path, info = finish(visited, update_rate, open_state(theta, last), order, phi, draw)
        label = np.full(last + 1, -1)
        label[visited] = path.states
        kept = visited[np.argsort(path.states)]
        counts = counts[np.append(0, kept + 1)][:, kept]
        there = Distant(away, label, Sums(counts, take(statistics, kept)))
        return DistantPath._make([there, *path[1:]]), info

    def renew_and_sum_up(
        self,
        keys: list[np.uint64],
        model: Model,
        theta: Theta,
        known: Phi,
        label: IntArray,
        data: Data,
        path: IntArray,
        stretch: "Stretch",
    ) -> tuple[IntArray, tuple[Part, int]]:
        """New states for a stretch of whole sequences, what they sum up to, and how many are others than before.

        `label` is what the states of the path are called now.
        """
        reference = np.empty(len(path), label.dtype)
        rename(path, label, reference)
        job = Job(stretch.begin, stretch.end, stretch.starts, stretch.numbers, reference, -1, -1)
        renewed = self.renew(keys, model, theta, known, data, job)
        part = sum_up_part(data, model, renewed.astype(np.int64), int(renewed.max()) + 1)
        return renewed, (part, int(np.count_nonzero(renewed != reference)))

    def renew(self, keys: list[np.uint64], model: Model, theta: Theta, known: Phi, data: Data, job: "Job") -> IntArray:
        """New states for the steps of a job; `data` has those steps only."""
        keep_memory()
        phi_key, forward_key, backward_key = keys
        theta, phi, reference = copy_theta(theta), known, job.reference.astype(np.int64)
        sequence = np.full(len(reference), -1)
        sequence[job.starts] = job.numbers
        log_marginal = data.log_marginal if self.proposal == "posterior" else np.zeros(len(reference))
        kernel = systematic if self.resampling == "systematic" else csmc
        cloud = empty_cloud(len(reference), self.n_particles)
        if job.before >= 0:
            theta = open_state(theta, job.before)
            cloud.row[0] = theta.row_of[job.before]
        if job.after >= 0:
            theta = open_state(theta, job.after)

        stream = np.empty((3, 16), np.uint64)[1, :4]  # apart: threads that share a cache line slow each other down
        block = min(BLOCK, max(64, CELLS // size(known)))
        t = 0
        while t < len(reference):
            stop, begin = min(t + block, len(reference)), t
            steps = slice(t, stop)
            log_g = log_marginal[steps]
            density = score(model.log_density(data, known, steps), log_g, begin, theta)
            while t < stop:
                t, needed = kernel.forward(
                    t, stop, self.n_particles, theta, density, cloud, reference, sequence, forward_key, stream
                )
                if needed == particles.GROW:
                    theta = grow(theta)
                    density = widen(density, len(theta.beta))
                elif needed != particles.NOTHING:
                    phi = extend_phi(model.emission, phi_key, phi, needed + 1)
                    log_f = model.log_density(data, take(phi, np.array([needed])), steps)[:, 0]
                    density = add_column(density, needed, log_f - log_g)

        renewed = np.empty_like(reference)
        particles.trace_back(
            theta, cloud, reference, job.after, sequence, backward_key, self.ancestor_sampling, renewed
        )
        return small(renewed)

    def open(self, model: Model, draw: Draw, key: np.uint64) -> tuple[Theta, IntArray]:
        """θ with the states that are scored explicitly in front, see `open_theta`."""
        return open_theta(draw, model.prior, key, self.explicit_threshold(model, draw))

    def explicit_threshold(self, model: Model, draw: Draw) -> float:
        """ε, a function of the hyperparameters and never of the path.

        The prior proposal scores no state at all, the posterior proposal all states of a finite model.
        """
        if self.proposal == "prior":
            return math.inf
        if isinstance(model.prior, FinitePrior):
            return 0.0
        return max(self.threshold, math.exp(-MOST_FRESH / draw.hyper.gamma))


class Stretch(NamedTuple):
    """Consecutive steps that are renewed by themselves: whole sequences, or a block of one."""

    begin: int
    end: int
    starts: IntArray  # where sequences begin, or the block, among these steps
    numbers: IntArray  # of their random streams
    continues: bool = False  # the step before them is given
    is_continued: bool = False  # the step after them is given


class Job(NamedTuple):
    """A stretch of steps, and the states that are given: their own, that before them and that after them, or −1."""

    begin: int
    end: int
    starts: IntArray
    numbers: IntArray
    reference: IntArray
    before: int
    after: int

    @classmethod
    def of(cls, stretch: Stretch, path: IntArray) -> "Job":
        begin, end, starts, numbers, continues, is_continued = stretch
        before, after = int(path[begin - 1]) if continues else -1, int(path[end]) if is_continued else -1
        return cls(begin, end, starts, numbers, path[begin:end], before, after)


def whole_sequences(data: Data, borders: IntArray) -> list[Stretch]:
    """All sequences, shared among the team by cuts at some of these borders."""
    offsets = data.offsets
    n_parts = data.team.parts(len(data.y))
    ends = np.arange(n_parts + 1) * offsets[-1] // n_parts
    cuts = np.searchsorted(offsets, borders[np.unique(np.searchsorted(borders, ends))])
    return [
        Stretch(int(offsets[i]), int(offsets[j]), offsets[i:j] - offsets[i], np.arange(i, j))
        for i, j in pairwise(cuts.tolist())
    ]


def blocks(rng: np.random.Generator, data: Data, block_size: int) -> list[list[Stretch]]:
    """Every other block of each sequence in a first round, those between in a second.

    The grid of blocks is shifted from pass to pass, so that no step is always at a border.
    """
    rounds: list[list[Stretch]] = [[], []]
    shift = int(rng.integers(block_size))
    for begin, end in pairwise(data.offsets.tolist()):
        inside = range(begin + block_size - shift, end, block_size) if end - begin > block_size else ()
        for i, (low, high) in enumerate(pairwise([begin, *inside, end])):
            number = np.array([low])
            rounds[i % 2].append(Stretch(low, high, np.zeros(1, np.int64), number, low > begin, high < end))
    return rounds


def small(path: IntArray) -> IntArray:
    """A path in the smallest type that holds it, in case it has to travel."""
    return path.astype(np.min_scalar_type(path.max()))


def score(log_density: FloatArray, log_marginal: FloatArray, begin: int, theta: Theta) -> Density:
    """Densities of one block: V on a common scale at each step, the known tail states relative to g_t."""
    n_explicit, table = theta.size[2], np.ascontiguousarray(log_density.T)
    explicit = np.empty((len(log_marginal), n_explicit + 1))
    relate_with_tail(table, log_marginal, n_explicit, n_explicit < theta.n_total, LEAST, explicit)
    column_of = np.full(len(theta.beta), -1)
    column_of[n_explicit : len(table)] = np.arange(len(table) - n_explicit)
    return Density(begin, exponentials(explicit), column_of, table[n_explicit:])


def add_column(density: Density, state: int, log_ratio: FloatArray) -> Density:
    """The same densities with those of one more tail state; room for it is made by doubling."""
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


def empty_cloud(n_steps: int, n_particles: int) -> Cloud:
    """Room for every step's pairs, and pair 0: the initial row, of mass one."""
    most = n_particles + 2  # rounding may add to N
    size = 1 + n_steps * most  # pages that no pair reaches are never touched
    state, row, number = (np.empty(size, np.int32) for _ in range(3))
    cloud = Cloud(np.empty(n_steps + 1, np.int64), state, row, number, np.empty(size))
    cloud.first[0], cloud.row[0], cloud.number[0], cloud.mass[0] = 1, 0, most, 1.0
    return cloud
