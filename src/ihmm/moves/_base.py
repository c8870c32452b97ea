"""What a move is."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm.data import Data
from ihmm.model import Hyper, Model
from ihmm.samplers import StateUpdate


class MoveInfo(NamedTuple):
    """Diagnostics of a move in one sweep."""

    n_split: int = 0  # states that were split in two
    n_merged: int = 0  # pairs of states that were merged


def skips(rng: np.random.Generator, data: Data, max_steps: int) -> bool:
    """Whether to skip this sweep. On more than `max_steps` time steps a move acts in a random share of the sweeps."""
    return rng.random() * len(data.y) > max_steps


class Move(Protocol):
    """A move that also takes models with durations has a class attribute `takes_durations = True`."""

    def acts(self, sweep: int, tune: int) -> bool:
        """Whether to act in this sweep; the first `tune` sweeps are discarded."""
        ...

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        """A new trajectory and β."""
        ...
