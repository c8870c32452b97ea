"""Splitting and merging states exactly.

Two states that mean the same become one, by sampling alone, as slowly as a trait is lost in a population: after about
as many sweeps as they have steps. Here whole states are split and merged at once, at any time: the posterior is left as
it is.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.split_merge import split_and_merge
from ihmm.model import Data, Hyper, Model
from ihmm.moves._base import MoveInfo, passes_over
from ihmm.priors import FinitePrior
from ihmm.samplers import Path
from ihmm.samplers.direct_assignment import compiled_family
from ihmm.sticks import new_stream

PER_GAMMA, FEWEST, MOST = 8, 8, 64
LONG = 200_000  # steps beyond which not every sweep has it


@dataclass(frozen=True)
class SplitMerge:
    """Try to split and to merge states, by particle Gibbs over the steps of one or two of them: in every sweep, or in
    some where series are very long.

    It leaves the posterior as it is, for any settings. Infinite models whose emission integrates φ out have it;
    others are left alone.

    Parameters
    ----------
    attempts
        How many splits and merges are tried in a sweep; by default 8γ, about two for every state, and at least 8.
    n_particles
        How many ways to split a state are looked at together.
    """

    attempts: int | None = None
    n_particles: int = 2

    def __post_init__(self) -> None:
        if self.attempts is not None:
            _checks.count("SplitMerge attempts (in a sweep; None: about two for every state)", self.attempts)
        _checks.count("SplitMerge n_particles", self.n_particles, least=2)

    def acts(self, sweep: int, tune: int) -> bool:
        return True

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        collapsed = None if isinstance(model.prior, FinitePrior) or model.is_mixture else model.collapsed(data)
        if collapsed is None or passes_over(rng, data, LONG):
            return path, MoveInfo()
        attempts = self.attempts or self.usual_attempts(hyper)
        states, beta = path.states.copy(), np.concatenate([path.beta[:-1], np.zeros(attempts)])
        n_states, n_split, n_merged = split_and_merge(
            new_stream(rng),
            compiled_family(collapsed),
            Concentrations(*hyper),
            data.offsets,
            states,
            beta,
            len(path.beta) - 1,
            self.n_particles,
            attempts,
        )
        return Path(states, np.append(beta[:n_states], path.beta[-1])), MoveInfo(n_split, n_merged)

    @staticmethod
    def usual_attempts(hyper: Hyper) -> int:
        """A function of what the move leaves alone: were it one of the path, the law would be another."""
        return int(np.clip(np.ceil(PER_GAMMA * hyper.gamma), FEWEST, MOST))
