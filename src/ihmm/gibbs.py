"""One sweep: Step 1 by the sampler, then the conditionals that all samplers share.

T15 §3 lists the hyperparameters last. Their conditionals integrate π out, so π must be drawn after them. The order here
is states → (moves) → c, ρ → tables → γ → β → π → φ.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ihmm._typing import IntArray, Phi, Statistics
from ihmm.data import Data
from ihmm.durations import log_lengths
from ihmm.kernels.conditionals import HyperPriors, resample_transitions
from ihmm.model import Draw, Hyper, Model, Prior, Transitions
from ihmm.moves import Move, MoveInfo
from ihmm.priors import BetaPrior, GammaPrior
from ihmm.samplers import PassInfo, Sampler, StateUpdate
from ihmm.sticks import new_stream, total_states
from ihmm.trajectory import Trajectory, runs


class SweepInfo(NamedTuple):
    """Diagnostics of one sweep."""

    log_joint: float
    step: PassInfo
    moves: MoveInfo


def sweep(
    rng: np.random.Generator, data: Data, model: Model, draw: Draw, sampler: Sampler, moves: Iterable[Move] = ()
) -> tuple[Draw, SweepInfo]:
    """One Gibbs sweep over everything unknown."""
    data = data.given(draw.phi)
    update, info = resample_states(rng, data, model, draw, sampler)
    accepted = MoveInfo()
    for move in moves:
        if model.duration is not None and not getattr(move, "takes_durations", False):
            continue  # it takes transitions for those of a hidden Markov model
        update, move_info = move.apply(rng, data, model, update, draw.hyper)
        accepted = MoveInfo(*(a + b for a, b in zip(accepted, move_info, strict=True)))
    draw, log_joint = resample_globals(rng, data, model, update, draw.hyper)
    return draw, SweepInfo(log_joint, info, accepted)


def resample_states(
    rng: np.random.Generator, data: Data, model: Model, draw: Draw, sampler: Sampler
) -> tuple[StateUpdate, PassInfo]:
    """Step 1. For a mixture: given slice variables, with the components summed out; then the components."""
    if not model.is_mixture:
        return sampler.resample_states(rng, data, model, draw)
    data, sliced, draw = model.sliced(rng, data, draw)
    update, info = sampler.resample_states(rng, data, sliced, draw)
    components = sliced.emission.assign(rng, update.states, update.phi)  # type: ignore[attr-defined]
    return update._replace(components=components), info


def initial_draw(rng: np.random.Generator, data: Data, model: Model, states: IntArray) -> Draw:
    """Everything else given an initial trajectory: hyperparameters at their prior means, then one round of Steps 2–5.

    Under a vague prior γ and c start below their means, because they increase quickly but decrease slowly.
    """
    prior = model.prior
    gamma, concentration = (
        min(_mean(quantity), MAX_INITIAL_CONCENTRATION) if isinstance(quantity, GammaPrior) else _mean(quantity)
        for quantity in (prior.gamma, prior.concentration)
    )
    hyper = Hyper(gamma, concentration, _mean(prior.stickiness))
    labels, states = np.unique(states, return_inverse=True)
    beta = np.full(len(labels) + 1, 1 / (len(labels) + 1))
    omega = None if model.duration is None else model.duration.sample_prior(rng, len(labels))
    update = StateUpdate(Trajectory(states.astype(np.int64)), beta, durations=omega)
    return resample_globals(rng, data, model, update, hyper)[0]


def resample_globals(
    rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, hyper: Hyper
) -> tuple[Draw, float]:
    """Steps 2–5: everything but the trajectory, given it and β. Also returns the joint log-likelihood."""
    counts, statistics = update.trajectory.statistics(data, update.n_states)
    if model.duration is not None:
        counts = counts.copy()
        counts[np.arange(1, len(counts)), np.arange(len(counts) - 1)] = 0
    gamma, concentration, stickiness, beta, rows = resample_transitions(
        new_stream(rng),
        hyper_priors(model.prior),
        counts,
        update.beta,
        *hyper,
        *(() if model.duration is None else (True,)),
    )
    phi, components, log_likelihood = resample_emissions(rng, data, model, update, statistics)
    transitions = Transitions(beta, rows[0], rows[1:])
    draw = Draw(update.trajectory, transitions, phi, Hyper(gamma, concentration, stickiness), components)
    log_path = float((counts * np.log(np.maximum(rows[:, :-1], SMALLEST))).sum())
    if model.duration is not None:
        segments = runs(update.states, data.offsets, model.left_censored)
        draw = draw._replace(durations=model.duration.update(rng, segments, update.durations))
        log_path += float(log_lengths(model.duration, segments, draw.durations).sum())
    log_joint = log_path + log_likelihood
    if not log_joint < np.inf:
        raise ArithmeticError(
            f"the log joint density of data and draw is {log_joint}: {type(model.emission).__name__} has no finite "
            f"likelihood at its parameters {phi}"
        )
    return draw, log_joint


def resample_emissions(
    rng: np.random.Generator, data: Data, model: Model, update: StateUpdate, statistics: Statistics | None
) -> tuple[Phi, IntArray | None, float]:
    """φ given the trajectory, or its sufficient statistics; mixture components; and log p(y | s, φ)."""
    if data.conjugate is not None and statistics is not None:
        phi = data.conjugate.draw(rng, statistics)
        return phi, None, data.conjugate.log_likelihood(statistics, phi)
    states, components = update.states, None
    if model.is_mixture:
        phi, components = model.resample_mixtures(rng, data, states, update.components, update.n_states, update.phi)
    else:
        phi = model.resample_phi(rng, data, states, update.n_states, update.phi)
    return phi, components, model.log_likelihood(data, states, phi)


def hyper_priors(prior: Prior) -> HyperPriors:
    """The priors in the form that compiled code reads."""
    gamma, concentration, stickiness = prior.gamma, prior.concentration, prior.stickiness
    return HyperPriors(
        total_states(prior),
        *((gamma.shape, gamma.rate) if isinstance(gamma, GammaPrior) else FIXED),
        *((concentration.shape, concentration.rate) if isinstance(concentration, GammaPrior) else FIXED),
        *((stickiness.a, stickiness.b) if isinstance(stickiness, BetaPrior) else FIXED),
    )


FIXED = (0.0, 0.0)
SMALLEST = np.finfo(np.float64).tiny  # stands for probabilities of 0, which no transition has that is counted
MAX_INITIAL_CONCENTRATION = 10.0


def _mean(quantity: float | GammaPrior | BetaPrior | None) -> float:
    if quantity is None:
        return np.inf
    return quantity.mean if isinstance(quantity, (GammaPrior, BetaPrior)) else float(quantity)
