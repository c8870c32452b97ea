"""One sweep: Step 1 by the sampler, then the conditionals all samplers share.

T15 §3 lists the hyperparameters last. Their conditionals integrate π out, so π has to be drawn after them; the order here
is states → tables → c, ρ, γ → β → π → φ.
"""

from typing import NamedTuple

import numpy as np

from ihmm._random import dirichlet
from ihmm._typing import FloatArray, IntArray
from ihmm.kernels import counts as count_kernels
from ihmm.kernels.draws import seed_stream
from ihmm.model import Data, Draw, Hyper, Model, Transitions, log_joint
from ihmm.priors import BetaPrior, GammaPrior, HDPPrior
from ihmm.samplers._base import PassInfo, Path, Sampler


class SweepInfo(NamedTuple):
    """Diagnostics of one sweep."""

    log_joint: float
    step: PassInfo


def sweep(
    rng: np.random.Generator, data: Data, model: Model, draw: Draw, sampler: Sampler
) -> tuple[Draw, SweepInfo]:
    """Renew everything once."""
    path, info = sampler.resample_states(rng, data, model, draw)
    draw, log_likelihood = resample_globals(rng, data, model, path, draw.hyper)
    return draw, SweepInfo(log_likelihood, info)


def initial_draw(rng: np.random.Generator, data: Data, model: Model, states: IntArray) -> Draw:
    """Everything else given a first path: hyperparameters at their prior means, then one round of conditionals."""
    prior = model.prior
    hyper = Hyper(_mean(prior.gamma), _mean(prior.concentration), _mean(prior.stickiness))
    labels, states = np.unique(states, return_inverse=True)
    beta = np.full(len(labels) + 1, 1 / (len(labels) + 1))
    return resample_globals(rng, data, model, Path(states.astype(np.int64), beta), hyper)[0]


def resample_globals(
    rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
) -> tuple[Draw, float]:
    """Steps 2–5: everything but the path, given the path and β; also the joint log-likelihood of the result."""
    n_states = len(path.beta) - 1
    counts = count_kernels.count_transitions(path.states, data.offsets, n_states)
    tables = resample_tables(rng, counts, path.beta, hyper)
    overrides = resample_overrides(rng, tables, path.beta, hyper)
    tables[1:].flat[:: n_states + 1] -= overrides  # m̄: what was not forced by the self bias
    hyper = resample_hyper(rng, model.prior, hyper, counts, tables, overrides)
    beta = resample_beta(rng, tables, hyper)
    transitions = resample_rows(rng, counts, beta, hyper)
    phi = model.emission.resample(rng, data.y, path.states, n_states)
    draw = Draw(path.states, transitions, phi, hyper)
    return draw, log_joint(model, data, draw, counts)


def resample_tables(rng: np.random.Generator, counts: IntArray, beta: FloatArray, hyper: Hyper) -> IntArray:
    """m_jk: tables of n_jk customers with concentration c((1−ρ)β_k + ρδ_jk); the initial row's is c β_k."""
    stream = np.empty(4, np.uint64)
    seed_stream(stream, rng.integers(0, 2**63, dtype=np.uint64), 0)
    return count_kernels.draw_tables(stream, counts, base_measure(beta, hyper)[:, :-1])


def resample_overrides(rng: np.random.Generator, tables: IntArray, beta: FloatArray, hyper: Hyper) -> IntArray:
    """w_j ~ Binomial(m_jj, ρ / (ρ + β_j(1−ρ))): tables of state j that the self bias put there."""
    rho = hyper.stickiness
    if rho == 0:
        return np.zeros(len(beta) - 1, np.int64)
    return rng.binomial(np.diagonal(tables[1:]), rho / (rho + beta[:-1] * (1 - rho)))


def resample_hyper(
    rng: np.random.Generator,
    prior: HDPPrior,
    hyper: Hyper,
    counts: IntArray,
    tables: IntArray,
    overrides: IntArray,
) -> Hyper:
    """c, ρ and γ given the tables, π and β integrated out. `tables` are without the overrides."""
    gamma, concentration, stickiness = hyper
    n_overrides = int(overrides.sum())
    n_free = int(tables.sum())

    if isinstance(prior.concentration, GammaPrior):
        # r_j ~ Beta(c + 1, n_j·), q_j ~ Bernoulli(n_j· / (n_j· + c)), one pair for every row with customers
        customers = counts.sum(axis=1)
        customers = customers[customers > 0]
        log_r = np.log(rng.beta(concentration + 1, customers)).sum()
        n_q = int((rng.random(len(customers)) * (customers + concentration) < customers).sum())
        shape = prior.concentration.shape + n_free + n_overrides - n_q
        concentration = _gamma(rng, shape, prior.concentration.rate - log_r)

    if isinstance(prior.stickiness, BetaPrior):
        # the initial row's tables never had the choice: they do not count
        free = int(tables[1:].sum())
        stickiness = float(rng.beta(prior.stickiness.a + n_overrides, prior.stickiness.b + free))

    if isinstance(prior.gamma, GammaPrior):
        # Escobar and West: η ~ Beta(γ + 1, M), then a mixture of two Gammas
        n_states = int((tables.sum(axis=0) > 0).sum())
        rate = prior.gamma.rate - np.log(rng.beta(gamma + 1, n_free))
        shape = prior.gamma.shape + n_states
        if rng.random() * (shape - 1 + n_free * rate) >= shape - 1:
            shape -= 1
        gamma = _gamma(rng, shape, rate)

    return Hyper(gamma, concentration, stickiness)


def resample_beta(rng: np.random.Generator, tables: IntArray, hyper: Hyper) -> FloatArray:
    """β ~ Dir(m̄_·1, …, m̄_·K, γ)."""
    return dirichlet(rng, np.append(tables.sum(axis=0), hyper.gamma))


def resample_rows(rng: np.random.Generator, counts: IntArray, beta: FloatArray, hyper: Hyper) -> Transitions:
    """π_j ~ Dir(n_j + c((1−ρ)β + ρδ_j)), the initial row without self bias."""
    concentration = base_measure(beta, hyper)
    concentration[:, :-1] += counts
    rows = dirichlet(rng, concentration)
    return Transitions(beta, rows[0], rows[1:])


def base_measure(beta: FloatArray, hyper: Hyper) -> FloatArray:
    """c((1−ρ)β + ρδ_j) for every row, shape (K + 1, K + 1); the initial row, first, is c β."""
    n_states = len(beta) - 1
    measure = np.empty((n_states + 1, n_states + 1))
    measure[0] = hyper.concentration * beta
    measure[1:] = hyper.alpha * beta
    measure[1:].flat[:: n_states + 2] += hyper.kappa
    return measure


def _gamma(rng: np.random.Generator, shape: float, rate: float) -> float:
    """A Gamma draw kept away from 0 and overflow, so that what is divided by it stays finite."""
    return float(np.clip(rng.standard_gamma(shape) / rate, 1e-12, 1e12))


def _mean(quantity: float | GammaPrior | BetaPrior) -> float:
    return float(quantity) if isinstance(quantity, (int, float)) else quantity.mean
