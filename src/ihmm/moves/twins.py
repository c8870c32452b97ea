"""Merging states that emit the same, during tuning, for any emission and with or without durations.

Two states with the same meaning survive for long: each explains its own steps as well as the other would. This move
proposes to merge the pairs that overlap most, and accepts if that improves

    log p(y | s, φ)  +  log p(s)  −  ½ (number of parameters of φ) log T

along the current trajectory. If states have durations, p(s) is that of their duration laws. The move does not leave the
posterior invariant, and never acts after tuning.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import gammaln

from ihmm import _checks
from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import log_lengths
from ihmm.emissions._parameters import fields, size, take
from ihmm.kernels.counts import count_transitions
from ihmm.model import Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.samplers import StateUpdate
from ihmm.trajectory import Trajectory, runs

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
    """The same trajectory with φ redrawn, and the duration laws."""
    phi, omega = update.phi, update.durations
    for _ in range(REFITS):
        phi = model.resample_phi(rng, data, update.states, update.n_states, phi)
        if model.duration is not None:
            omega = model.duration.update(rng, runs(update.states, data.offsets, model.left_censored), omega)
    return update._replace(phi=phi, durations=omega)


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
    lasts = log_stays(counts) if model.duration is None else log_durations(data, model, update)
    parameters = 0.5 * update.n_states * n_own * float(np.log(max(data.informative.sum(), 1)))
    return fit + log_followers(counts) + lasts - parameters


def log_followers(counts: IntArray) -> float:
    """log p of who follows whom under Jeffreys' priors, from transition counts with the initial row first."""
    return log_dirichlet(counts[0]) + sum(log_dirichlet(np.delete(row, j)) for j, row in enumerate(counts[1:]))


def log_stays(counts: IntArray) -> float:
    """log p of how long states last, with a staying probability for each, integrated under Jeffreys' priors."""
    stays = np.diag(counts[1:])
    return sum(map(log_dirichlet, np.stack([stays, counts[1:].sum(axis=1) - stays], axis=1)))


def log_durations(data: Data, model: Model, update: StateUpdate) -> float:
    """The same given the duration laws, − ½ log(number of runs) for each of their parameters."""
    segments = runs(update.states, data.offsets, model.left_censored)
    lasts = float(log_lengths(model.duration, segments, update.durations).sum())  # type: ignore[arg-type]
    n_runs = np.bincount(segments.state, minlength=update.n_states)
    return lasts - 0.5 * len(fields(update.durations)) * float(np.log(n_runs).sum())


def log_dirichlet(counts: FloatArray | IntArray) -> float:
    """log ∫ Π p_k^n_k Dir(p | ½, …, ½) dp."""
    half = 0.5 * len(counts)
    rise = gammaln(half) - gammaln(half + counts.sum()) if len(counts) else 0.0
    return float(rise + (gammaln(counts + 0.5) - gammaln(0.5)).sum())


def own_parameters(phi: Phi) -> int:
    """Number of parameters that each state has for itself: those that are not the same in all states."""
    by_state = np.hstack([np.reshape(field, (size(phi), -1)) for field in fields(phi).values()])
    return int(np.count_nonzero(np.ptp(by_state, axis=0) > 0))
