"""Step 1 of the hidden semi-Markov model: the pass over (state, age) of `kernels.segments`, block by block."""

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ihmm._memory import keep_memory
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import Omega, checked_hazard, residual_hazards
from ihmm.emissions._parameters import size, take
from ihmm.kernels import particles, segment_particles, segments
from ihmm.kernels.layout import relate_with_tail
from ihmm.kernels.segment_particles import Exits, Hazards, Reference, SegmentDensity, Segments
from ihmm.kernels.sticks import Sticks
from ihmm.model import Model
from ihmm.samplers._densities import MIN_LOG_DENSITY, exponentials, steps_at_a_time
from ihmm.samplers._streams import Keys, empty_stream, stream_numbers
from ihmm.sticks import copy_sticks, extend_omega, extend_phi, grow
from ihmm.trajectory import smallest_type
from ihmm.workers import Segment

if TYPE_CHECKING:
    from ihmm.samplers.particle_gibbs import ParticleGibbs

FIRST_AGES = 64  # ages for which hazards are computed before more are needed
MAX_AGE = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, eq=False)
class SegmentPass:
    """Conditional SMC over whole sequences, given θ and ω. It can be sent to another process."""

    settings: "ParticleGibbs"
    key: Keys
    model: Model
    sticks: Sticks
    known: Phi  # φ of the columns of θ
    omega: Omega  # ω of the columns of θ

    def run(self, data: Data, reference: IntArray, segment: Segment) -> IntArray:
        """New states for the time steps of a segment, in columns of θ; `data` has only these steps."""
        keep_memory()
        model, n_particles = self.model, self.settings.n_particles
        duration = model.duration
        assert duration is not None
        sticks, phi, omega = copy_sticks(self.sticks), self.known, self.omega
        sequence, log_marginal = stream_numbers(segment, len(reference)), self.settings.log_g(data)

        hazards = start_hazards(model, omega, len(sticks.beta), reference)
        path = Reference(reference, *(np.empty_like(reference) for _ in range(3)))
        segment_particles.describe_runs(sequence, hazards.cap, model.memory, path)
        exits = start_exits(sticks)
        system = empty_system(len(reference), n_particles)
        stream, block = empty_stream(), steps_at_a_time(size(self.known))
        t = 0
        while t < len(reference):
            stop, begin = min(t + block, len(reference)), t
            steps = slice(t, stop)
            density = score(model.log_density(data, self.known, steps), log_marginal[steps], begin, sticks)
            after = model.after_change(data, phi, steps)
            while t < stop:
                t, needed = segments.forward(
                    t, stop, n_particles, sticks, exits, hazards, density, after, system, path, sequence,
                    self.key.forward, stream,
                )  # fmt: skip
                if needed == particles.GROW:
                    sticks = grow(sticks)
                    exits = Exits(*(widen(array, len(sticks.rest), -1.0) for array in exits))
                    density = density._replace(column_of=widen(density.column_of, len(sticks.beta), -1))
                    hazards = resize_hazards(hazards, len(sticks.beta), hazards.hazard.shape[1])
                elif needed <= segments.OLDER:
                    k = segments.OLDER - needed
                    omega = extend_omega(duration, self.key.omega, omega, k + 1)
                    hazards = more_ages(model, omega, hazards, k)
                elif needed != particles.NOTHING:
                    phi = extend_phi(model.emission, self.key.phi, phi, needed + 1)
                    log_f = model.log_density(data, take(phi, np.array([needed])), steps)[:, 0]
                    density = add_column(density, needed, log_f)
                    after = model.after_change(data, phi, steps)

        states = np.empty_like(reference)
        oldest, key = path.oldest, self.key.backward
        segment_particles.trace_back(sticks, exits, hazards, model.memory, system, oldest, sequence, key, states)
        return smallest_type(states)


def score(log_density: FloatArray, log_marginal: FloatArray, begin: int, sticks: Sticks) -> SegmentDensity:
    """Densities of one block: V on a common scale at each time step, all known states relative to g_t."""
    n_explicit, table = sticks.size[2], np.ascontiguousarray(log_density.T)
    explicit = np.empty((len(log_marginal), n_explicit + 1))
    has_tail = n_explicit < sticks.n_total
    relate_with_tail(table, log_marginal, n_explicit, has_tail, MIN_LOG_DENSITY, explicit)
    table[:n_explicit] -= log_marginal
    column_of = np.full(len(sticks.beta), -1)
    column_of[: len(table)] = np.arange(len(table))
    return SegmentDensity(begin, exponentials(explicit), column_of, table, np.array(log_marginal))


def add_column(density: SegmentDensity, state: int, log_density: FloatArray) -> SegmentDensity:
    """The same densities with those of one more tail state; the array grows by doubling."""
    used = int(density.column_of.max()) + 1
    if used >= len(density.log_ratio):
        density = density._replace(log_ratio=widen(density.log_ratio, 2 * used + 4, 0.0))
    density.log_ratio[used] = log_density - density.log_marginal
    density.column_of[state] = used
    return density


def start_exits(sticks: Sticks) -> Exits:
    """Exits of the initial row; those of the others are measured when they are first needed."""
    total, tail = np.full(len(sticks.rest), -1.0), np.full(len(sticks.rest), -1.0)
    total[0], tail[0] = 1.0, sticks.tail[0]
    return Exits(total, tail)


def start_hazards(model: Model, omega: Omega, capacity: int, reference: IntArray) -> Hazards:
    """Hazards of the known states: at all ages that are told apart or, if there is no end to them, at more ages than
    the reference has."""
    duration, n_states = model.duration, size(omega)
    assert duration is not None
    if duration.constant_from is None:
        last = [-1, *np.flatnonzero(reference[1:] != reference[:-1]).tolist(), len(reference) - 1]  # steps of runs
        longest = max(end - before for before, end in pairwise(last))
        cap, n_ages = MAX_AGE, max(FIRST_AGES, 1 << longest.bit_length())
    else:
        # one age more than the noise remembers, so that the previous state can be forgotten
        cap = n_ages = max(duration.constant_from, model.memory + 1)
    hazard, known = np.empty((capacity, n_ages)), np.zeros(capacity, np.int64)
    first = np.empty_like(hazard) if model.left_censored else hazard
    hazards = Hazards(cap, hazard, first, known)
    fill_hazards(model, omega, hazards, np.arange(n_states), n_ages)
    return hazards


def fill_hazards(model: Model, omega: Omega, hazards: Hazards, states: IntArray, n_ages: int) -> None:
    """Compute the hazards of some states at the ages 1 … n_ages."""
    assert model.duration is not None
    own = take(omega, states)
    hazards.hazard[states, :n_ages] = found = checked_hazard(model.duration, n_ages, own)
    if model.left_censored:
        hazards.first[states, :n_ages] = residual_hazards(model.duration, found, own)
    hazards.known[states] = n_ages


def more_ages(model: Model, omega: Omega, hazards: Hazards, state: int) -> Hazards:
    """Hazards of a state at twice as many ages, or at the first ones."""
    n_ages = hazards.hazard.shape[1]
    if hazards.known[state] == n_ages:
        n_ages *= 2
        hazards = resize_hazards(hazards, len(hazards.hazard), n_ages)
    fill_hazards(model, omega, hazards, np.array([state]), n_ages)
    return hazards


def resize_hazards(hazards: Hazards, capacity: int, n_ages: int) -> Hazards:
    """The same hazards with room for more states and ages."""

    def fit(array: FloatArray) -> FloatArray:
        out = np.zeros((capacity, n_ages))
        out[: len(array), : array.shape[1]] = array
        return out

    hazard = fit(hazards.hazard)
    first = hazard if hazards.first is hazards.hazard else fit(hazards.first)
    return hazards._replace(hazard=hazard, first=first, known=widen(hazards.known, capacity, 0))


def widen(array: Array, size: int, fill: float) -> Array:
    """The array with room for more entries."""
    out = np.full((size, *array.shape[1:]), fill, array.dtype)
    out[: len(array)] = array
    return out


def empty_system(n_steps: int, n_particles: int) -> Segments:
    """Arrays for the particles of every time step; memory that is not used is never touched."""
    size = n_steps * (n_particles + 2)  # rounding may add to N
    state, row, age, previous = (np.empty(size, np.int32) for _ in range(4))
    first = np.zeros(n_steps + 1, np.int64)
    return Segments(first, state, row, age, previous, np.empty(size))
