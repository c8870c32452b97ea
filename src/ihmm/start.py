"""How chains start: a random stream for each, and an initial trajectory."""

import numpy as np

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.gibbs import initial_draw
from ihmm.model import Draw, Model
from ihmm.moves import GreedySplitMerge
from ihmm.samplers import StateUpdate

AUTO_ROUNDS = 10  # rounds of splits and merges

InitialStates = int | str | IntArray  # number of states, "auto", or trajectory


def streams(seed: int, chains: int) -> list[np.random.SeedSequence]:
    """One independent seed per chain."""
    return np.random.SeedSequence(seed).spawn(chains)


def first_draw(rng: np.random.Generator, data: Data, model: Model, init: InitialStates) -> Draw:
    """State of a chain before its first sweep."""
    if isinstance(init, np.ndarray):
        trajectory = init
    elif isinstance(init, int):
        trajectory = rng.integers(init, size=len(data.y))
    else:
        trajectory = _greedy_trajectory(rng, data, model)
    return initial_draw(rng, data, model, trajectory)


def _greedy_trajectory(rng: np.random.Generator, data: Data, model: Model) -> IntArray:
    """The trajectory for ``init="auto"``: a single state, split and merged greedily a few times."""
    draw = initial_draw(rng, data, model, np.zeros(len(data.y), np.int64))
    update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
    for _ in range(AUTO_ROUNDS):
        update, _ = GreedySplitMerge().apply(rng, data, model, update, draw.hyper)
    return update.states
