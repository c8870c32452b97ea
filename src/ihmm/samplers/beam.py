"""Beam sampling (Van Gael et al. 2008): slice variables leave finitely many transitions, which are summed exactly."""

from dataclasses import dataclass

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import take
from ihmm.kernels.forward_backward import filter_beam, filter_faint_beam, filter_wide_beam, sample_beam
from ihmm.model import Draw, Model
from ihmm.samplers._base import NewPath, PassInfo, StateUpdate, finish, refuse_durations, sequence_starts
from ihmm.samplers._densities import log_densities, relative_densities
from ihmm.sticks import extend_phi, open_below

MIN_SLICE = 1e-250  # ensures that stick breaking ends
NARROW_COST = 14  # cost of one allowed transition relative to one that is only compared, on vector units


@dataclass(frozen=True)
class Beam:
    """The whole trajectory given slice variables u_t ~ U(0, π(s_t | s_{t−1})): exact, at worst O(T·K²) per pass."""

    def check(self, model: Model, data: Data) -> None:
        refuse_durations(self, model)

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        stick_key, phi_key, backward_key = rng.integers(0, 2**63, 3, dtype=np.uint64)
        sequence = sequence_starts(data.offsets)
        slices = draw_slices(rng, draw, sequence)
        sticks = open_below(draw, model.prior, stick_key, slices.min())
        n_states = int(sticks.size[0])
        phi = take(extend_phi(model.emission, phi_key, draw.phi, n_states), np.arange(n_states))
        rows = np.roll(sticks.rows[: n_states + 1, :n_states], -1, axis=0)  # the initial row last

        wide = is_wide(rows, slices, draw.states, sequence)
        messages, in_logarithms = filter_allowed(model, data, phi, sequence, rows, slices, wide)
        path = np.empty_like(draw.states)
        sample_beam(*messages, in_logarithms, sequence, rows, slices, backward_key, path)
        return finish(NewPath.of(path, draw.states), sticks, np.arange(n_states), phi, draw)


Messages = tuple[IntArray, IntArray, FloatArray]


def is_wide(rows: FloatArray, slices: FloatArray, path: IntArray, sequence: IntArray) -> bool:
    """Whether the slices allow so many transitions that comparing all of them is faster, judged from the number of
    allowed transitions at a sample of time steps."""
    some = slice(None, None, 1 + len(path) // 200)
    parents = np.where(sequence >= 0, -1, np.roll(path, 1))[some]  # −1: the initial row, which comes last
    allowed = (rows[parents] > slices[some, None]).sum(axis=1)
    return bool(NARROW_COST * allowed.mean() > rows.shape[1])


def filter_allowed(
    model: Model, data: Data, phi: Phi, sequence: IntArray, rows: FloatArray, slices: FloatArray, wide: bool
) -> tuple[Messages, bool]:
    """Filtered probabilities over the transitions that the slices allow, by the first method that does not underflow;
    also whether they are logarithms."""
    messages = empty_messages(len(slices), rows.shape[1])
    if wide and filter_wide_beam(relative_densities(model, data, phi), sequence, rows, slices, *messages):
        return messages, False
    order = np.argsort(-rows, axis=1)
    falling = np.take_along_axis(rows, order, axis=1)
    narrow = log_densities(model, data, phi), sequence, falling, order, slices
    if filter_beam(*narrow, *messages):
        return messages, False
    filter_faint_beam(*narrow, *messages)
    return messages, True


def empty_messages(n_steps: int, n_states: int) -> Messages:
    """Arrays for the filtered probabilities of all states at all time steps; unused memory is never touched."""
    size = n_states * n_steps
    return np.empty(n_steps + 1, np.int64), np.empty(size, np.int32), np.empty(size)


def draw_slices(rng: np.random.Generator, draw: Draw, sequence: IntArray) -> FloatArray:
    """u_t ~ U(0, π(s_t | s_{t−1})), with the initial row at the first step of a sequence."""
    states, (_, initial, rows) = draw.states, draw.transitions
    taken = np.where(sequence >= 0, initial[states], rows[np.roll(states, 1), states])
    return np.maximum(rng.random(len(states)) * taken, MIN_SLICE)
