"""Dividing the steps of two states between them, again and again.

Two states that overlap share their steps in many ways, and a sweep changes that share by little: rows follow the path
and the path follows the rows. Here the rest of the path waits while two states go back and forth many times, at a
fraction of a sweep each.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.kernels.pairs import resample_pairs
from ihmm.model import Data, Hyper, Model
from ihmm.moves._base import MoveInfo, passes_over
from ihmm.samplers import Path
from ihmm.samplers._base import relative_densities
from ihmm.sticks import new_stream

LONG = 20_000  # steps beyond which not every sweep has it


@dataclass(frozen=True)
class PairGibbs:
    """Divide the steps of pairs of states anew, given φ, by exact Gibbs steps: in every sweep, or in some where series
    are long.

    Pairs are picked by how well both explain the same steps; where states hardly overlap, there are few. Any emission
    has it but a mixture, with any sampler that does not integrate φ out.

    Parameters
    ----------
    scans
        How many pairs at most, one after the other.
    """

    scans: int = 25

    def __post_init__(self) -> None:
        _checks.count("PairGibbs scans (pairs of states in a sweep, at most)", self.scans)

    def acts(self, sweep: int, tune: int) -> bool:
        return True

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        if path.phi is None or model.is_mixture or len(path.beta) < 3 or passes_over(rng, data, LONG):
            return path, MoveInfo()
        density, states = relative_densities(model, data, path.phi), path.states.copy()
        mass = hyper.concentration, hyper.stickiness
        resample_pairs(new_stream(rng), density, data.offsets, states, path.beta, *mass, self.scans)
        return path._replace(states=states), MoveInfo()
