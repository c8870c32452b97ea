"""Forward filtering, backward sampling on a finite model (T15 §2.1; Fox et al. 2008 for the sticky one)."""

from dataclasses import dataclass

import numpy as np

from ihmm.data import Data
from ihmm.emissions._parameters import take
from ihmm.kernels.forward_backward import filter_forward, sample_backward
from ihmm.model import Draw, Model
from ihmm.priors import FinitePrior
from ihmm.samplers._base import NewPath, PassInfo, StateUpdate, finish, refuse_durations, sequence_starts
from ihmm.samplers._densities import relative_densities
from ihmm.sticks import extend_phi, open_below


@dataclass(frozen=True)
class Blocked:
    """The whole trajectory at once, exactly, in a finite model: O(T·L²) per pass. Needs a `FinitePrior`."""

    def check(self, model: Model, data: Data) -> None:
        refuse_durations(self, model)
        if not isinstance(model.prior, FinitePrior):
            raise TypeError(
                "Blocked sums over all states at every time step and needs a finite model: use "
                "prior=ihmm.FinitePrior(n_states=…), or ParticleGibbs or Beam for the infinite model"
            )

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        stick_key, phi_key, backward_key = rng.integers(0, 2**63, 3, dtype=np.uint64)
        sticks = open_below(draw, model.prior, stick_key, 0.0)
        n_states = int(sticks.size[0])
        phi = take(extend_phi(model.emission, phi_key, draw.phi, n_states), np.arange(n_states))
        initial, rows = sticks.rows[0, :n_states], np.ascontiguousarray(sticks.rows[1 : n_states + 1, :n_states])
        sequence = sequence_starts(data.offsets)

        density = relative_densities(model, data, phi)
        filtered = np.empty_like(density)
        filter_forward(density, sequence, initial, rows, filtered, np.empty(len(density)))
        path = np.empty_like(draw.states)
        sample_backward(filtered, sequence, np.ascontiguousarray(rows.T), backward_key, path)
        return finish(NewPath.of(path, draw.states), sticks, np.arange(n_states), phi, draw)
