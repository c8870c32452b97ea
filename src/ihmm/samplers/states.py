"""Step 1 of the hidden Markov model: conditional SMC over states, block of time steps by block."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ihmm._memory import keep_memory
from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import size, take
from ihmm.kernels import csmc, particles, systematic
from ihmm.kernels.layout import relate_with_tail
from ihmm.kernels.particles import Density, ParticleSystem
from ihmm.kernels.sticks import Sticks
from ihmm.model import Model
from ihmm.samplers._densities import MIN_LOG_DENSITY, exponentials, steps_at_a_time
from ihmm.samplers._streams import Keys, empty_stream, stream_numbers
from ihmm.sticks import copy_sticks, extend_phi, grow, open_state
from ihmm.trajectory import smallest_type
from ihmm.workers import Segment

if TYPE_CHECKING:
    from ihmm.samplers.particle_gibbs import ParticleGibbs


@dataclass(frozen=True, eq=False)
class StatePass:
    """Conditional SMC over any part of the data, given θ. It can be sent to another process."""

    settings: "ParticleGibbs"
    key: Keys
    model: Model
    sticks: Sticks
    known: Phi  # φ of the columns of θ

    def run(self, data: Data, reference: IntArray, segment: Segment, before: int = -1, after: int = -1) -> IntArray:
        """New states for the time steps of a segment, in columns of θ; `data` has only these steps.

        `before` and `after` are the states of the steps on either side if these are given, −1 if not.
        """
        keep_memory()
        model, n_particles = self.model, self.settings.n_particles
        sticks, phi = copy_sticks(self.sticks), self.known
        sequence, log_marginal = stream_numbers(segment, len(reference)), self.settings.log_g(data)
        kernel = systematic if self.settings.resampling == "systematic" else csmc
        system = empty_system(len(reference), n_particles)
        if before >= 0:
            sticks = open_state(sticks, before)
            system.row[0] = sticks.row_of[before]
        if after >= 0:
            sticks = open_state(sticks, after)

        stream, block = empty_stream(), steps_at_a_time(size(self.known))
        t = 0
        while t < len(reference):
            stop, begin = min(t + block, len(reference)), t
            steps = slice(t, stop)
            log_g = log_marginal[steps]
            density = score(model.log_density(data, self.known, steps), log_g, begin, sticks)
            while t < stop:
                t, needed = kernel.forward(
                    t, stop, n_particles, sticks, density, system, reference, sequence, self.key.forward, stream
                )
                if needed == particles.GROW:
                    sticks = grow(sticks)
                    density = widen(density, len(sticks.beta))
                elif needed != particles.NOTHING:
                    phi = extend_phi(model.emission, self.key.phi, phi, needed + 1)
                    log_f = model.log_density(data, take(phi, np.array([needed])), steps)[:, 0]
                    density = add_column(density, needed, log_f - log_g)

        states = np.empty_like(reference)
        ancestor_sampling = self.settings.ancestor_sampling
        particles.trace_back(sticks, system, reference, after, sequence, self.key.backward, ancestor_sampling, states)
        return smallest_type(states)


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
