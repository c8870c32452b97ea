"""Merging states that emit the same, during tuning, for any emission and with or without durations.

Two states with the same meaning survive for long: each explains its own steps as well as the other would. This move
proposes to merge the pairs that overlap most, and accepts if that improves

    log p(y | s, φ)  +  log p(s)  −  ½ (number of parameters of φ) log T

along the current trajectory. It does not leave the posterior invariant, and never acts after tuning.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from ihmm import _checks
from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions._parameters import fields, size, take
from ihmm.kernels.counts import count_transitions
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.samplers import StateUpdate
from ihmm.trajectory import Trajectory

FIRST, EVERY = 10, 5  # sweeps in which it acts
REFITS = 2  # updates of φ after a merge
LOG_ZERO = -1e10  # stands for log 0


@dataclass(frozen=True)
class MergeTwins:
    """While tuning, merge pairs of states whose emissions overlap if a BIC-like score improves.

    It acts in every fifth sweep, after a few in which the trajectory settles: the score is that of one trajectory, and
    a bad one makes states look superfluous.

    Emissions that are conjugate in a model without durations are left to `GreedySplitMerge`, which integrates φ out,
    and mixtures to `GroupComponents`.

    Parameters
    ----------
    sweeps
        It acts up to this tuning sweep.
    tries
        Maximum number of merges that are refused per sweep.
    """

    sweeps: int = 100
    tries: int = 5
    takes_durations: ClassVar[bool] = True

    def __post_init__(self) -> None:
        _checks.count("MergeTwins sweeps", self.sweeps, least=0)
        _checks.count("MergeTwins tries (maximum number of refused merges per sweep)", self.tries)

    def acts(self, sweep: int, tune: int) -> bool:
        return FIRST <= sweep < min(self.sweeps, tune) and sweep % EVERY == 0

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
    ) -> tuple[StateUpdate, MoveInfo]:
        if model.is_mixture or (model.duration is None and data.conjugate is not None):
            return update, MoveInfo()
        n_merged = refused = 0
        while update.n_states > 1 and refused < self.tries:
            update = refit(rng, data, model, update)
            n_own = own_parameters(update.phi)
            now = score(data, model, update, n_own)
            for a, b in closest_pairs(data, model, update)[: self.tries - refused]:
                merged = refit(rng, data, model, merge(update, a, b))
                if score(data, model, merged, n_own) > now:
                    update, n_merged = merged, n_merged + 1
                    break
                refused += 1
            else:
                break
        return update, MoveInfo(0, n_merged)


def refit(rng: np.random.Generator, data: Data, model: Model, update: StateUpdate) -> StateUpdate:
    """The same trajectory with φ redrawn."""
    phi = update.phi
    for _ in range(REFITS):
        phi = model.resample_phi(rng, data, update.states, update.n_states, phi)
    return update._replace(phi=phi)


def closest_pairs(data: Data, model: Model, update: StateUpdate) -> list[tuple[int, int]]:
    """Pairs of states, those first of which one explains the observations of the other almost as well."""
    n_states = update.n_states
    table = np.maximum(model.log_density(data, update.phi), LOG_ZERO)
    fit = np.array([np.bincount(update.states, column, n_states) for column in table.T]).T
    loss = np.diag(fit)[:, None] - fit
    loss = np.minimum(loss, loss.T)
    a, b = np.triu_indices(n_states, 1)
    order = np.argsort(loss[a, b])
    return list(zip(a[order].tolist(), b[order].tolist(), strict=True))


def merge(update: StateUpdate, a: int, b: int) -> StateUpdate:
    """State b merged into state a; the larger of the two lends its parameters."""
    states, kept = update.states, np.delete(np.arange(update.n_states), b)
    larger = a if np.count_nonzero(states == a) >= np.count_nonzero(states == b) else b
    source = np.where(kept == a, larger, kept)
    labels = np.empty(update.n_states, np.int64)
    labels[kept] = np.arange(len(kept))
    labels[b] = labels[a]
    beta = np.delete(update.beta, b)
    beta[labels[a]] += update.beta[b]
    phi, durations = (None if own is None else take(own, source) for own in (update.phi, update.durations))
    return StateUpdate(Trajectory(labels[states]), beta, phi, durations=durations)


def score(data: Data, model: Model, update: StateUpdate, n_own: int) -> float:
    """log p(y | s, φ) + log p(s) − ½ (number of parameters) log T, with `n_own` parameters per state."""
    fit = model.log_likelihood(data, update.states, update.phi)
    counts = count_transitions(update.states, data.offsets, update.n_states)
    return fit + log_path(counts) - 0.5 * update.n_states * n_own * float(np.log(max(data.informative.sum(), 1)))


def log_path(counts: IntArray) -> float:
    """log p(s) with a staying probability for each state and a law of who follows whom, integrated under Jeffreys'
    priors, from transition counts with the initial row first."""
    follow = counts[1:].astype(np.float64)
    stays = np.diag(follow).copy()
    leaves = follow.sum(axis=1) - stays
    total = log_dirichlet(counts[0]) + sum(map(log_dirichlet, np.stack([stays, leaves], axis=1)))
    return total + sum(log_dirichlet(np.delete(row, j)) for j, row in enumerate(follow))


def log_dirichlet(counts: FloatArray | IntArray) -> float:
    """log ∫ Π p_k^n_k Dir(p | ½, …, ½) dp."""
    half = 0.5 * len(counts)
    rise = gammaln(half) - gammaln(half + counts.sum()) if len(counts) else 0.0
    return float(rise + (gammaln(counts + 0.5) - gammaln(0.5)).sum())


def own_parameters(phi: Phi) -> int:
    """Number of parameters that each state has for itself: those that are not the same in all states."""
    by_state = np.hstack([np.reshape(field, (size(phi), -1)) for field in fields(phi).values()])
    return int(np.count_nonzero(np.ptp(by_state, axis=0) > 0))
