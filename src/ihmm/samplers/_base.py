"""What a sampler is: one way to do Step 1 of the sweep (T15 §3)."""

from typing import NamedTuple, Protocol

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.model import Data, Draw, Model


class Path(NamedTuple):
    """What Step 1 hands on: the trajectory, and β over the states it visits (last entry: all others).

    The conditionals that follow integrate π and φ out and draw them afresh, so nothing else needs to survive.
    """

    states: IntArray
    beta: FloatArray


class PassInfo(NamedTuple):
    """Diagnostics of one Step 1, beside the state and not in it."""

    n_scored: int  # states the proposal scored explicitly
    n_born: int  # states on the new path that the old one did not visit
    update_rate: float  # share of steps whose state changed


class Sampler(Protocol):
    def resample_states(self, rng: np.random.Generator, data: Data, model: Model, draw: Draw) -> tuple[Path, PassInfo]:
        """Draw the trajectory given everything else, or by a kernel that leaves that law invariant."""
        ...
