"""Beam sampling (Van Gael et al. 2008): slices leave finitely many transitions, which are summed over exactly."""

from dataclasses import dataclass

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions._base import take
from ihmm.kernels.forward_backward import filter_beam, sample_beam
from ihmm.model import Data, Draw, Model
from ihmm.samplers._base import PassInfo, Path, by_step, finish, sequence_starts
from ihmm.sticks import extend_phi, open_below

SMALLEST = 1e-250  # slice, so that sticks always stop breaking
FAINTEST = -700.0  # logarithm of a filtered probability worth keeping, unless the slices leave nothing else


@dataclass(frozen=True)
class Beam:
    """The trajectory at once given slice variables u_t ~ U(0, π(s_t | s_{t−1})): exact, O(T·K²) a pass at worst."""

    def check(self, model: Model, data: Data) -> None:
        pass  # serves every model

    def resample_states(self, rng: np.random.Generator, data: Data, model: Model, draw: Draw) -> tuple[Path, PassInfo]:
        stick_key, phi_key, backward_key = rng.integers(0, 2**63, 3, dtype=np.uint64)
        sequence = sequence_starts(data.offsets)
        slices = draw_slices(rng, draw, sequence)
        theta = open_below(draw, model.prior, stick_key, slices.min())
        n_states = int(theta.size[0])
        phi = take(extend_phi(model.emission, phi_key, draw.phi, n_states), np.arange(n_states))
        rows = np.roll(theta.rows[: n_states + 1, :n_states], -1, axis=0)  # the initial row last
        order = np.argsort(-rows, axis=1)
        falling = np.take_along_axis(rows, order, axis=1)

        log_density = by_step(model.log_density(data, phi))
        messages = empty_messages(*log_density.shape)
        if filter_beam(log_density, sequence, falling, order, slices, FAINTEST, *messages) < 0:
            filter_beam(log_density, sequence, falling, order, slices, -np.inf, *messages)
        path = np.empty_like(draw.states)
        sample_beam(*messages, sequence, rows, slices, backward_key, path)
        return finish(path, draw.states, theta, np.arange(n_states), phi, draw)


def empty_messages(n_steps: int, n_states: int) -> tuple[IntArray, IntArray, FloatArray]:
    """Room for the filtered probabilities of all states at all steps; pages that are not reached are never touched."""
    size = n_states * n_steps
    return np.empty(n_steps + 1, np.int64), np.empty(size, np.int32), np.empty(size)


def draw_slices(rng: np.random.Generator, draw: Draw, sequence: IntArray) -> FloatArray:
    """u_t ~ U(0, π(s_t | s_{t−1})), the initial row at the first step of a sequence."""
    states, (_, initial, rows) = draw.states, draw.transitions
    taken = np.where(sequence >= 0, initial[states], rows[np.roll(states, 1), states])
    return np.maximum(rng.random(len(states)) * taken, SMALLEST)
