"""What a move is."""

from typing import Protocol

import numpy as np

from ihmm.model import Data, Hyper, Model
from ihmm.samplers import Path


class Move(Protocol):
    def acts(self, sweep: int, tune: int) -> bool:
        """Whether to act in this sweep, the first `tune` of which are thrown away."""
        ...

    def apply(self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper) -> Path:
        """A new path and β."""
        ...
