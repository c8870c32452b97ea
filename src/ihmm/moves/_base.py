"""What a move is."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm.model import Data, Hyper, Model
from ihmm.samplers import Path


class MoveInfo(NamedTuple):
    """Diagnostics of a move in one sweep."""

    n_split: int = 0  # states that became two
    n_merged: int = 0  # pairs of states that became one


def passes_over(rng: np.random.Generator, data: Data, long: int) -> bool:
    """Whether a move leaves this sweep out, so that it stays a small part of the work on a series that is `long`."""
    return rng.random() * len(data.y) > long


class Move(Protocol):
    def acts(self, sweep: int, tune: int) -> bool:
        """Whether to act in this sweep, the first `tune` of which are thrown away."""
        ...

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        """A new path and β."""
        ...
