"""What a move is."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm.model import Data, Hyper, Model
from ihmm.samplers import Path


class MoveInfo(NamedTuple):
    """Diagnostics of a move in one sweep."""

    n_split: int = 0  # states that became two
    n_merged: int = 0  # pairs of states that became one


class Move(Protocol):
    def acts(self, sweep: int, tune: int) -> bool:
        """Whether to act in this sweep, the first `tune` of which are thrown away."""
        ...

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        """A new path and β."""
        ...
