"""Greedy splits and merges of states during tuning.

Sampling alone finds new states quickly, but merges two states with the same meaning only after hundreds of sweeps.
Tuning sweeps are discarded, so they may optimise instead of sample: this move makes the splits and merges that raise
the joint probability. It does not leave the posterior invariant, and never acts after tuning.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import BoolArray, FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import join, take
from ihmm.emissions._parameters import size as n_choices
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.families import CompiledFamily, gather_statistics
from ihmm.kernels.families.dispatch import CHOICE
from ihmm.kernels.greedy import SCANS, keep_split, merge_best_first, try_splits
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.samplers import StateUpdate
from ihmm.sticks import new_stream, total_states
from ihmm.trajectory import Trajectory

LOG_ZERO = -1e10  # stands for log 0, so that sums and differences stay finite


@dataclass(frozen=True)
class GreedySplitMerge:
    """In the first tuning sweeps, make the splits and merges of states that raise the joint probability.

    One split of each state is proposed, based on how well its observations predict each other; then pairs are merged,
    best first, while that raises the joint. φ is integrated out if the emission is conjugate. Otherwise it takes one of
    a few values: draws given the observations of a state, of half a state, or of two similar states. Mixtures are left
    to `GroupComponents`.

    Parameters
    ----------
    sweeps
        Number of tuning sweeps in which it acts.
    careful
        Judge a merge with the choice between the two states summed out, instead of along the current trajectory. The
        trajectory alone removes duplicates quickly, but also merges states that merely overlap.
    """

    sweeps: int = 30
    careful: bool = False

    def __post_init__(self) -> None:
        _checks.count("GreedySplitMerge sweeps", self.sweeps, least=0)

    def acts(self, sweep: int, tune: int) -> bool:
        return sweep < min(self.sweeps, tune)

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        if model.is_mixture:
            return update, MoveInfo()
        gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0  # equal weights are judged as if γ were 1
        concentrations = Concentrations(gamma, hyper.concentration, hyper.stickiness)
        n_states = update.n_states
        states, beta = update.states.copy(), np.zeros(min(2 * n_states, total_states(model.prior)))
        beta[:n_states] = update.beta[:-1]

        compiled, choices = data.conjugate.compiled if data.conjugate is not None else None, None
        if compiled is not None:
            n_states = try_splits(new_stream(rng), compiled, concentrations, data.offsets, states, beta, n_states)
        else:
            leaves, choices = propose(rng, data, model, update)
            table = log_densities(model, data, choices)
            compiled = CompiledFamily(CHOICE, np.zeros((1, 1)), table, 1 + n_choices(choices))
            for k in range(n_states):
                if n_states < len(beta):
                    states[leaves & (update.states == k)] = n_states
                    n_states += keep_split(compiled, concentrations, data.offsets, states, beta, k, n_states)

        statistics = np.zeros((n_states, compiled.size))
        gather_statistics(compiled.family, statistics, compiled.values, states)
        counts = count_transitions(states, data.offsets, n_states)
        merge_best_first(
            compiled, concentrations, data.offsets, states, statistics, counts, beta[:n_states], self.careful
        )
        kept = compact(states, np.arange(n_states), states)
        phi = None if choices is None else take(choices, statistics[kept, 1:].argmax(axis=1))
        info = MoveInfo(n_states - update.n_states, n_states - len(kept))
        return StateUpdate(Trajectory(states), np.append(beta[kept], update.beta[-1]), phi), info


def propose(rng: np.random.Generator, data: Data, model: Model, update: StateUpdate) -> tuple[BoolArray, Phi]:
    """A split of each state, as the time steps that would leave it; and candidate parameters: those of the states, of
    their halves, and of the most similar pairs."""
    states = update.states
    phi = model.resample_phi(rng, data, states, update.n_states, update.phi)
    leaves, halves = halve(rng, data, model, states, phi)
    return leaves, join(phi, halves, pair(rng, data, model, states, phi))


def halve(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> tuple[BoolArray, Phi]:
    """The time steps of each state that go to its second half, and parameters of both halves.

    The second half starts from one observation that the state's φ explains badly. Then, a few times over, every
    observation is assigned to the half under whose φ it is more likely, and φ is redrawn. Uninformative steps follow
    the step before them.
    """
    n_states = n_choices(phi)
    known = data.informative
    observed, last_known = np.flatnonzero(known), np.maximum.accumulate(np.where(known, np.arange(len(states)), 0))
    surprise = -np.maximum(model.log_density_at(data, states, phi)[observed], LOG_ZERO)
    first, k = one_of_each(rng, states[observed], surprise)
    halves = join(phi, model.emission.resample(rng, data.observations[observed[first]], k, n_states))
    for _ in range(SCANS):
        stays, goes = (model.log_density_at(data, states + side * n_states, halves) for side in (0, 1))
        leaves = (goes > stays)[last_known]
        halves = redraw(rng, data, model, states + leaves * n_states, halves)
    return leaves, halves


def redraw(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> Phi:
    """φ redrawn for the states that have observations, unchanged for the others: `resample` of a user's emission need
    not support empty states."""
    found, steps = np.unique(states, return_inverse=True)
    fresh = model.resample_phi(rng, data, steps, len(found), take(phi, found))
    place = len(found) + np.arange(n_choices(phi))
    place[found] = np.arange(len(found))
    return take(join(fresh, phi), place)


def pair(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> Phi:
    """Parameters of each state merged with the other state whose φ explains its observations best."""
    table = model.log_density(data, phi)
    own = [states == k for k in range(table.shape[1])]
    fit = np.array([table[steps].sum(axis=0) for steps in own])
    np.fill_diagonal(fit, -np.inf)
    partner = fit.argmax(axis=1)
    pairs = [np.flatnonzero(steps | own[k]) for steps, k in zip(own, partner, strict=True)]
    steps, label = np.concatenate(pairs), np.repeat(np.arange(len(pairs)), [len(both) for both in pairs])
    return model.resample_phi(rng, data.take(steps), label, len(pairs), take(phi, partner))


def one_of_each(rng: np.random.Generator, states: IntArray, weight: FloatArray) -> tuple[IntArray, IntArray]:
    """One time step per state, drawn in proportion to its weight above the minimum of the state; and the states."""
    least = np.full(states.max(initial=0) + 1, np.inf)
    np.minimum.at(least, states, weight)
    # the minimum of exponential variables with these rates
    clock = rng.standard_exponential(len(states)) / np.maximum(weight - least[states], FLOOR)
    order = np.lexsort((clock, states))
    found, first = np.unique(states[order], return_index=True)
    return order[first], found


def log_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """log f(y_t | φ_m) as compiled code reads it: finite, and NaN at uninformative time steps."""
    table = np.maximum(model.log_density(data, phi), LOG_ZERO)
    if data.uninformative is not None:
        table[data.uninformative] = np.nan
    return np.ascontiguousarray(table)
