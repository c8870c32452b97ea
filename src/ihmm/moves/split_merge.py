"""Exact split and merge moves.

Without them two states with the same meaning merge only by a random walk, which takes about as many sweeps as they have
time steps. Here whole states are split and merged at once. The move leaves the posterior invariant, so it runs
throughout.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ihmm import _checks
from ihmm.data import Data
from ihmm.durations import Omega, checked_hazard, residual_hazards
from ihmm.emissions._parameters import join, size, take
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.families import CompiledFamily
from ihmm.kernels.split_merge import pick_anchors, split_and_merge
from ihmm.kernels.split_merge_segments import PairHazards, longest_visit, split_or_merge_segments
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo, skips
from ihmm.priors import FinitePrior
from ihmm.samplers import StateUpdate
from ihmm.sticks import new_stream
from ihmm.trajectory import Trajectory

ATTEMPTS_PER_GAMMA, MIN_ATTEMPTS, MAX_ATTEMPTS = 8, 8, 64
ATTEMPTS_PER_ONE_WITH_DURATIONS = 4  # an attempt takes longer there
N_PARTICLES, N_PARTICLES_WITH_DURATIONS = 2, 10
MAX_STEPS = 200_000  # on longer data the move acts in a share of the sweeps


@dataclass(frozen=True)
class SplitMerge:
    """Propose splits and merges of states, by particle Gibbs over the time steps of one or two states.

    Leaves the posterior invariant for any settings. Acts on infinite models with a conjugate emission that has compiled
    code, with or without durations, and leaves other models unchanged. On more than 200 000 time steps it acts in a
    share of the sweeps.

    Parameters
    ----------
    attempts
        Number of proposals per sweep. By default 8γ, about two per state, and at least 8; with durations, a quarter.
    n_particles
        Number of candidate splits that are built together. By default 2, or 10 with durations, where a bad choice
        cannot be corrected at the next step.
    """

    attempts: int | None = None
    n_particles: int | None = None
    takes_durations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.attempts is not None:
            _checks.count("SplitMerge attempts (per sweep; None: about two per state)", self.attempts)
        if self.n_particles is not None:
            _checks.count("SplitMerge n_particles", self.n_particles, least=2, most=_checks.MAX_SIZE)

    def acts(self, sweep: int, tune: int) -> bool:
        return True

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        compiled = data.conjugate.compiled if data.conjugate is not None else None
        if compiled is None or isinstance(model.prior, FinitePrior) or skips(rng, data, MAX_STEPS):
            return update, MoveInfo()
        attempts = self.attempts or self.usual_attempts(hyper)
        if model.duration is not None:
            attempts = self.attempts or attempts // ATTEMPTS_PER_ONE_WITH_DURATIONS
            return self.apply_with_durations(rng, data, model, update, hyper, compiled, attempts)
        states, beta = update.states.copy(), np.concatenate([update.beta[:-1], np.zeros(attempts)])
        n_states, n_split, n_merged = split_and_merge(
            new_stream(rng),
            compiled,
            Concentrations(*hyper),
            data.offsets,
            states,
            beta,
            update.n_states,
            self.n_particles or N_PARTICLES,
            attempts,
        )
        beta = np.append(beta[:n_states], update.beta[-1])
        return StateUpdate(Trajectory(states), beta), MoveInfo(n_split, n_merged)

    def apply_with_durations(
        self,
        rng: np.random.Generator,
        data: Data,
        model: Model,
        update: StateUpdate,
        hyper: Hyper,
        compiled: CompiledFamily,
        attempts: int,
    ) -> tuple[StateUpdate, MoveInfo]:
        law, stream, concentrations = model.duration, new_stream(rng), Concentrations(*hyper)
        n_particles = self.n_particles or N_PARTICLES_WITH_DURATIONS
        assert law is not None
        states, weights, rest, omega = update.states.copy(), update.beta[:-1], update.beta[-1], update.durations
        changes = []
        for _ in range(attempts):
            i, j = pick_anchors(stream, compiled, states, len(weights))
            if i == j:
                continue
            a, b = int(states[i]), int(states[j])
            laws = omega if a != b else join(omega, law.sample_prior(rng, 1))  # the new state's law comes last
            pair = np.array([a, b if a != b else len(weights)])
            hazards = hazards_of_pair(model, take(laws, pair), longest_visit(states, data.offsets, a, b))
            beta = np.concatenate([weights, [0.0, rest]])
            change = split_or_merge_segments(
                stream, compiled, concentrations, data.offsets, states, beta, len(weights), n_particles, i, j,
                hazards,
            )  # fmt: skip
            if change > 0:
                omega = laws
            elif change < 0:
                omega = take(omega, np.delete(np.arange(size(omega)), b))
            weights = beta[: len(weights) + change]
            changes.append(change)
        if not any(changes) and np.array_equal(states, update.states):
            return update, MoveInfo()
        moved = StateUpdate(Trajectory(states), np.append(weights, rest), durations=omega)
        return moved, MoveInfo(changes.count(1), changes.count(-1))

    @staticmethod
    def usual_attempts(hyper: Hyper) -> int:
        """Depends only on γ, which the move does not change: a dependence on the trajectory would change the law."""
        return int(np.clip(np.ceil(ATTEMPTS_PER_GAMMA * hyper.gamma), MIN_ATTEMPTS, MAX_ATTEMPTS))


def hazards_of_pair(model: Model, omega: Omega, longest: int) -> PairHazards:
    """Hazards of the two states at all ages that their runs can have, or at those that are told apart."""
    law = model.duration
    assert law is not None
    n_ages = law.constant_from or 1 << int(longest).bit_length()
    hazard = np.ascontiguousarray(checked_hazard(law, n_ages, omega))
    return PairHazards(hazard, residual_hazards(law, hazard, omega) if model.left_censored else hazard)
