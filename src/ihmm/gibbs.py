"""One sweep: Step 1 by the sampler, then the conditionals all samplers share.

T15 §3 lists the hyperparameters last. Their conditionals integrate π out, so π has to be drawn after them; the order
here is states → (moves) → c, ρ → tables → γ → β → π → φ.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ihmm import sums
from ihmm._typing import IntArray
from ihmm.kernels.conditionals import HyperPriors, resample_transitions
from ihmm.model import Data, DistantDraw, Draw, Hyper, Model, Prior, Transitions, distant
from ihmm.moves import Move, MoveInfo
from ihmm.priors import BetaPrior, GammaPrior
from ihmm.samplers._base import PassInfo, Path, Sampler
from ihmm.sticks import new_stream, total_states


class SweepInfo(NamedTuple):
    """Diagnostics of one sweep."""

    log_joint: float
    step: PassInfo
    moves: MoveInfo


def sweep(
    rng: np.random.Generator, data: Data, model: Model, draw: Draw, sampler: Sampler, moves: Iterable[Move] = ()
) -> tuple[Draw, SweepInfo]:
    """Renew everything once."""
    path, info = resample_states(rng, data, model, draw, sampler)
    moved = [MoveInfo()]
    for move in moves:
        path, made = move.apply(rng, data, model, path, draw.hyper)
        moved.append(made)
    draw, log_joint = resample_globals(rng, data, model, path, draw.hyper)
    return draw, SweepInfo(log_joint, info, MoveInfo(*map(sum, zip(*moved, strict=True))))


def resample_states(
    rng: np.random.Generator, data: Data, model: Model, draw: Draw, sampler: Sampler
) -> tuple[Path, PassInfo]:
    """Step 1; of a mixture given slices, with its components summed out, and then these."""
    if not model.is_mixture:
        return sampler.resample_states(rng, data, model, draw)
    data, sliced, draw = model.sliced(rng, data, draw)
    path, info = sampler.resample_states(rng, data, sliced, draw)
    components = sliced.emission.assign(rng, path.states, path.phi)  # type: ignore[attr-defined]
    return path._replace(components=components), info


def initial_draw(rng: np.random.Generator, data: Data, model: Model, states: IntArray) -> Draw:
    """Everything else given a first path: hyperparameters at their prior means, then one round of conditionals.

    Under a vague prior c begins lower than its mean: it finds its way up quickly, but down slowly.
    """
    prior = model.prior
    concentration = _mean(prior.concentration)
    if isinstance(prior.concentration, GammaPrior):
        concentration = min(concentration, LARGE)
    hyper = Hyper(_mean(prior.gamma), concentration, _mean(prior.stickiness))
    labels, states = np.unique(states, return_inverse=True)
    beta = np.full(len(labels) + 1, 1 / (len(labels) + 1))
    return resample_globals(rng, data, model, Path(states.astype(np.int64), beta), hyper)[0]


def resample_globals(
    rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
) -> tuple[Draw, float]:
    """Steps 2–5: everything but the path, given the path and β; also the joint log-likelihood of the result."""
    n_states, there = len(path.beta) - 1, distant(path)
    counts, statistics = sums.sum_up(data, model, path.states, n_states) if there is None else there.sums
    gamma, concentration, stickiness, beta, rows = resample_transitions(
        new_stream(rng), hyper_priors(model.prior), counts, path.beta, *hyper
    )
    components = None
    if statistics is not None:
        phi = model.emission.resample_given(rng, statistics)
        log_likelihood = model.emission.log_likelihood_given(statistics, phi)
    else:
        if model.is_mixture:
            phi, components = model.resample_mixtures(rng, data, path.states, path.components, n_states, path.phi)
        else:
            phi = model.resample_phi(rng, data, path.states, n_states, path.phi)
        log_likelihood = sums.log_likelihood(data, model, path.states, phi)
    transitions = Transitions(beta, rows[0], rows[1:])
    kind = Draw if there is None else DistantDraw
    draw = kind(path[0], transitions, phi, Hyper(gamma, concentration, stickiness), components)
    return draw, float((counts * np.log(rows[:, :-1])).sum()) + log_likelihood


def hyper_priors(prior: Prior) -> HyperPriors:
    """The priors as compiled code reads them."""
    gamma, concentration, stickiness = prior.gamma, prior.concentration, prior.stickiness
    return HyperPriors(
        total_states(prior),
        *((gamma.shape, gamma.rate) if isinstance(gamma, GammaPrior) else FIXED),
        *((concentration.shape, concentration.rate) if isinstance(concentration, GammaPrior) else FIXED),
        *((stickiness.a, stickiness.b) if isinstance(stickiness, BetaPrior) else FIXED),
    )


FIXED = (0.0, 0.0)
LARGE = 10.0


def _mean(quantity: float | GammaPrior | BetaPrior | None) -> float:
    if quantity is None:
        return np.inf
    return quantity.mean if isinstance(quantity, (GammaPrior, BetaPrior)) else float(quantity)
