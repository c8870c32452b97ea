"""Regroup the components of mixture emissions into states.

If every component were a state of its own, the trajectory would be that of an ordinary model. States that follow each
other at random are then components of one state. Merging such states leaves all densities unchanged; the choice between
them, which was a transition, becomes a choice of component. The joint probability changes through

    Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + K log γ − Σ log β_k + Σ_k log Γ(σ)/Γ(σ+n_k).

Sampling alone finds components quickly, but hardly ever moves one from a state to another.
"""

from dataclasses import dataclass
from math import inf, lgamma, log

import numpy as np

from ihmm import _checks
from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.emissions._mixture_parameters import rearrange
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.kernels.counts import count_transitions
from ihmm.kernels.greedy import row_gain
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.priors import GammaPrior
from ihmm.samplers import StateUpdate
from ihmm.sticks import total_states
from ihmm.trajectory import Trajectory

MAX_LOSS = 5.0  # of log probability accepted for a merge: sampling splits states sooner than it merges them


@dataclass(frozen=True)
class GroupComponents:
    """In the first tuning sweeps, regroup the components of a `DPMixture` into states to raise the joint probability.

    Other emissions are left unchanged.

    Parameters
    ----------
    sweeps
        Number of tuning sweeps in which it acts.
    """

    sweeps: int = 100

    def __post_init__(self) -> None:
        _checks.count("GroupComponents sweeps", self.sweeps, least=0)

    def acts(self, sweep: int, tune: int) -> bool:
        return sweep < min(self.sweeps, tune)

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        emission = model.emission
        if not isinstance(emission, DPMixture) or update.phi is None:
            return update, MoveInfo()
        observed = data.informative
        apart, before = separate(update, observed)
        # σ of few states with many components is larger than that of many states with few: do not let it decide
        sigma = 1.0 if isinstance(emission.concentration, GammaPrior) else emission.concentration
        state, place, beta = group(apart, data, hyper, sigma, observed, total_states(model.prior))
        components = np.where(observed, place[apart.states], -1)
        phi = rearrange(update.phi, before, (state, place))
        n_more = len(beta) - len(update.beta)
        grouped = StateUpdate(Trajectory(state[apart.states]), beta, phi, components)
        return grouped, MoveInfo(max(n_more, 0), max(-n_more, 0))


def separate(update: StateUpdate, observed: BoolArray) -> tuple[StateUpdate, tuple[IntArray, IntArray]]:
    """Every component as a state of its own, and the state and component it came from.

    Steps without a value have no component; they follow the step before them in their state, or the first one."""
    assert update.components is not None
    components = update.components.copy()
    for k in range(update.n_states):
        own = np.flatnonzero(update.states == k)
        known = np.flatnonzero(observed[own])
        if len(known):
            last = np.searchsorted(known, np.arange(len(own)), side="right") - 1
            components[own] = components[own[known[np.maximum(last, 0)]]]
        else:
            components[own] = 0
    size = int(components.max()) + 1
    pairs, labels, count = np.unique(update.states * size + components, return_inverse=True, return_counts=True)
    state = pairs // size
    share = count / np.bincount(state, count)[state]
    beta = np.append(update.beta[state] * share, update.beta[-1])
    return StateUpdate(Trajectory(labels), beta), (state, pairs % size)


def group(
    apart: StateUpdate, data: Data, hyper: Hyper, sigma: float, observed: BoolArray, most: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Merge states into components of one, best pair first, until a merge loses too much and at most `most` are left.

    Returns the new state of each, its component there, and β over the new states.
    """
    n_states = apart.n_states
    gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0
    counts, beta = count_transitions(apart.states, data.offsets, n_states), apart.beta.copy()
    customers = np.bincount(apart.states[observed], minlength=n_states)
    alive, group = np.ones(n_states, bool), np.arange(n_states)

    def gain(a: int, b: int) -> float:
        weights = log(beta[a]) + log(beta[b]) - 2 * log(beta[a] + beta[b]) - log(gamma)
        rows = row_gain(counts, beta[:-1], hyper.concentration, hyper.stickiness, alive, a, b)
        return weights + float(rows) + _seats(sigma, customers[[a, b]])

    gains = np.full((n_states, n_states), -inf)
    stale = np.triu(np.ones((n_states, n_states), bool), 1)
    while True:
        for a, b in np.argwhere(stale & alive & alive[:, None]):
            gains[a, b] = gain(a, b)
        stale[:] = False
        a, b = np.unravel_index(np.argmax(gains), gains.shape)
        if (gains[a, b] <= -MAX_LOSS and alive.sum() <= most) or alive.sum() == 1:
            break
        beta[a] += beta[b]
        counts[a + 1] += counts[b + 1]
        counts[b + 1] = 0
        counts[:, a] += counts[:, b]
        counts[:, b] = 0
        customers[a] += customers[b]
        group[group == b] = a
        alive[b] = False
        gains[b], gains[:, b] = -inf, -inf
        stale[a, a + 1 :] = stale[:a, a] = True

    kept = np.flatnonzero(alive)
    place = np.array([np.count_nonzero(group[:i] == group[i]) for i in range(n_states)])
    return np.searchsorted(kept, group), place, np.append(beta[kept], beta[-1])


def _seats(sigma: float, customers: IntArray) -> float:
    """Change of Σ log Γ(σ)/Γ(σ+n) when two states are merged."""
    apart = sum(lgamma(sigma + n) - lgamma(sigma) for n in customers)
    return apart - lgamma(sigma + customers.sum()) + lgamma(sigma)
