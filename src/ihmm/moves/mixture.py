"""Mixtures within states: components taken apart, and put together again as states.

If every component were a state of its own, the path would be that of an ordinary model. Its states that are visited at
random, one after the other, are components of one state: taking them for one leaves all densities as they are, and
what the path's choices between them cost is paid by the transitions before and by the mixture's weights after,

    Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + K log γ − Σ log β_k + Σ_k log Γ(σ)/Γ(σ+n_k).

Sampling alone finds components quickly, but hardly ever moves one from a state to another.
"""

from dataclasses import dataclass
from math import inf, lgamma, log

import numpy as np

from ihmm import _checks
from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.emissions.dp_mixture import DPMixture, rearrange
from ihmm.kernels.counts import count_transitions
from ihmm.kernels.greedy import row_gain
from ihmm.model import Data, Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.priors import GammaPrior
from ihmm.samplers import Path
from ihmm.sticks import total_states

LOSS = 5.0  # of log probability, up to which two states are made one: sampling finds new states sooner than it merges


@dataclass(frozen=True)
class GroupComponents:
    """In the first tuning sweeps, make states anew of the components of a `DPMixture`, as raises the joint probability.

    Other emissions are left alone.

    Parameters
    ----------
    sweeps
        How many tuning sweeps it acts in.
    """

    sweeps: int = 100

    def __post_init__(self) -> None:
        _checks.count("GroupComponents sweeps", self.sweeps, least=0)

    def acts(self, sweep: int, tune: int) -> bool:
        return sweep < min(self.sweeps, tune)

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        emission = model.emission
        if not isinstance(emission, DPMixture) or path.phi is None:
            return path, MoveInfo()
        observed = data.observed
        apart, before = take_apart(path, observed)
        # σ of few states with many components is larger than that of many with few: it must not stand in the way
        sigma = 1.0 if isinstance(emission.concentration, GammaPrior) else emission.concentration
        state, place, beta = put_together(apart, data, hyper, sigma, observed, total_states(model.prior))
        components = np.where(observed, place[apart.states], -1)
        renewed = Path(state[apart.states], beta, rearrange(path.phi, before, (state, place)), components)
        n_more = len(beta) - len(path.beta)
        return renewed, MoveInfo(max(n_more, 0), max(-n_more, 0))


def take_apart(path: Path, observed: BoolArray) -> tuple[Path, tuple[IntArray, IntArray]]:
    """Every component as a state of its own, and which component of which state it was.

    Steps without a value, which have none, go with the one before them in their state, or with the first."""
    assert path.components is not None
    components = path.components.copy()
    for k in range(len(path.beta) - 1):
        own = np.flatnonzero(path.states == k)
        known = np.flatnonzero(observed[own])
        if len(known):
            last = np.searchsorted(known, np.arange(len(own)), side="right") - 1
            components[own] = components[own[known[np.maximum(last, 0)]]]
        else:
            components[own] = 0
    size = int(components.max()) + 1
    pairs, labels, count = np.unique(path.states * size + components, return_inverse=True, return_counts=True)
    state = pairs // size
    share = count / np.bincount(state, count)[state]
    return Path(labels, np.append(path.beta[state] * share, path.beta[-1])), (state, pairs % size)


def put_together(
    path: Path, data: Data, hyper: Hyper, sigma: float, observed: BoolArray, most: int
) -> tuple[IntArray, IntArray, FloatArray]:
    """Take states for components of one, best pair first, until that would lose much and there are not too many.

    Returns the state that each is then a component of, which one, and β over the new states.
    """
    n_states = len(path.beta) - 1
    gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0
    counts, beta = count_transitions(path.states, data.offsets, n_states), path.beta.copy()
    customers = np.bincount(path.states[observed], minlength=n_states)
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
        if (gains[a, b] <= -LOSS and alive.sum() <= most) or alive.sum() == 1:
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
    """Change of Σ log Γ(σ)/Γ(σ+n) when the customers of two states become those of one."""
    apart = sum(lgamma(sigma + n) - lgamma(sigma) for n in customers)
    return apart - lgamma(sigma + customers.sum()) + lgamma(sigma)
