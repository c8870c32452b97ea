"""Exact split and merge moves.

Without them two states with the same meaning merge only by a random walk, which takes about as many sweeps as they have
time steps. Here whole states are split and merged at once. The move leaves the posterior invariant, so it runs
throughout.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.data import Data
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.split_merge import split_and_merge
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo, skips
from ihmm.priors import FinitePrior
from ihmm.samplers import StateUpdate
from ihmm.sticks import new_stream
from ihmm.trajectory import Trajectory

ATTEMPTS_PER_GAMMA, MIN_ATTEMPTS, MAX_ATTEMPTS = 8, 8, 64
MAX_STEPS = 200_000  # on longer data the move acts in a share of the sweeps


@dataclass(frozen=True)
class SplitMerge:
    """Propose splits and merges of states, by particle Gibbs over the time steps of one or two states.

    Leaves the posterior invariant for any settings. Acts on infinite models with a conjugate emission that has compiled
    code, and leaves other models unchanged. On more than 200 000 time steps it acts in a share of the sweeps.

    Parameters
    ----------
    attempts
        Number of proposals per sweep. By default 8γ, about two per state, and at least 8.
    n_particles
        Number of candidate splits that are built together.
    """

    attempts: int | None = None
    n_particles: int = 2

    def __post_init__(self) -> None:
        if self.attempts is not None:
            _checks.count("SplitMerge attempts (per sweep; None: about two per state)", self.attempts)
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
        states, beta = update.states.copy(), np.concatenate([update.beta[:-1], np.zeros(attempts)])
        n_states, n_split, n_merged = split_and_merge(
            new_stream(rng),
            compiled,
            Concentrations(*hyper),
            data.offsets,
            states,
            beta,
            update.n_states,
            self.n_particles,
            attempts,
        )
        beta = np.append(beta[:n_states], update.beta[-1])
        return StateUpdate(Trajectory(states), beta), MoveInfo(n_split, n_merged)

    @staticmethod
    def usual_attempts(hyper: Hyper) -> int:
        """Depends only on γ, which the move does not change: a dependence on the trajectory would change the law."""
        return int(np.clip(np.ceil(ATTEMPTS_PER_GAMMA * hyper.gamma), MIN_ATTEMPTS, MAX_ATTEMPTS))
