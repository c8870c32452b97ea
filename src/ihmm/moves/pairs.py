"""Gibbs updates of pairs of states.

Two states that overlap can divide their time steps in many ways, and a full sweep changes the division only a little
because rows and trajectory are strongly correlated. This move holds the rest of the trajectory fixed and updates two
states at a time, many times per sweep, at a fraction of the cost of a sweep.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.data import Data
from ihmm.kernels.pairs import resample_pairs
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo, skips
from ihmm.samplers import StateUpdate
from ihmm.samplers._densities import relative_densities
from ihmm.sticks import new_stream
from ihmm.trajectory import Trajectory

MAX_STEPS = 5000  # on longer data the move acts in a share of the sweeps


@dataclass(frozen=True)
class PairGibbs:
    """Resample which of two states each of their time steps belongs to, given φ, by exact Gibbs updates.

    Pairs of states that explain the same observations well are chosen most often; states that hardly overlap are rarely
    chosen. Supports every emission except mixtures, and every sampler that does not integrate φ out. On more than 5000
    time steps it acts in a share of the sweeps.

    Parameters
    ----------
    scans
        Maximum number of pairs per sweep.
    """

    scans: int = 25

    def __post_init__(self) -> None:
        _checks.count("PairGibbs scans (maximum number of pairs per sweep)", self.scans)

    def acts(self, sweep: int, tune: int) -> bool:
        return True

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        if update.phi is None or model.is_mixture or update.n_states < 2 or skips(rng, data, MAX_STEPS):
            return update, MoveInfo()
        density, states = relative_densities(model, data, update.phi), update.states.copy()
        mass = hyper.concentration, hyper.stickiness
        resample_pairs(new_stream(rng), density, data.offsets, states, update.beta, *mass, self.scans)
        return update._replace(trajectory=Trajectory(states)), MoveInfo()
