"""jax-moseq: a truncated sticky HDP-HMM with Gaussian emissions, assembled from its functions.

Its own model is autoregressive and does not support a single column: it infers the number of lags as the columns of [A
b] divided by its rows, which gives two instead of one. A sweep of `arhmm.resample_model` is reproduced here with the
same functions, with a regression on a constant only. α, κ and γ are fixed: the library has no priors for them.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from common import Problem, Stopwatch, Trace, jax_compilations, log_mean_exp, run
from dynamax.hidden_markov_model import hmm_filter
from jax_moseq.models.arhmm.gibbs import _resample_regression_params
from jax_moseq.utils.distributions import sample_hmm_stateseq
from jax_moseq.utils.transitions import init_hdp_transitions, resample_hdp_transitions

STATES = 20  # truncation level
PRIOR = {"alpha": 1.0, "kappa": 3.0, "gamma": 1.0}  # dwell times of about four time steps, as in these data
EVERY = 10  # thinning of the second half for the evaluation


def fit(problem: Problem) -> dict:
    jax.config.update("jax_enable_x64", True)  # the library requires it
    x = jnp.asarray(problem.train)
    mask = jnp.ones(x.shape)
    emission = base_measure(problem.train)
    watch = Stopwatch()
    with jax_compilations() as compiled:
        key, first, start = jax.random.split(jax.random.PRNGKey(problem.seed), 3)
        betas, _ = init_hdp_transitions(first, STATES, **PRIOR)
        z = jax.random.randint(start, x.shape, 0, STATES)
        trace, kept = Trace(), []
        while trace.unfinished:
            key, for_rows, for_phi, for_z = jax.random.split(key, 4)
            betas, rows = resample_hdp_transitions(for_rows, z, mask, betas, **PRIOR)
            phi = resample_phi(for_phi, x, z, emission)
            z = resample_z(for_z, x, rows, phi)
            trace.add(np.asarray(z))
            kept.append((rows, phi))
    spent = watch.read() | compiled
    draws = kept[len(kept) // 2 :: EVERY]
    held_out = jnp.asarray(problem.held_out)
    return trace.figures() | spent | {"held_out": log_mean_exp(np.array([score(held_out, *d) for d in draws])).tolist()}


def base_measure(y: np.ndarray) -> tuple:
    """ν, S, M and K of a normal–inverse-Wishart prior: means as spread as the data, noise about a tenth of that."""
    spread = y.var()
    return 3, jnp.array([[0.01 * spread]]), jnp.array([[y.mean()]]), jnp.array([[100.0]])


@jax.jit
def resample_phi(key, x, z, emission):
    """Means and variances of all states."""
    constant, values = jnp.ones((x.size, 1)), x.reshape(-1, 1)
    owned = jnp.eye(STATES)[:, z.reshape(-1)]
    regression = partial(_resample_regression_params, constant, values, *emission)
    mean, variance = jax.lax.map(regression, (jax.random.split(key, STATES), owned))
    return mean[:, 0, 0], variance[:, 0, 0]


@jax.jit
def resample_z(key, x, rows, phi):
    densities = log_density(x, phi)
    keys = jax.random.split(key, len(x))
    _, z = jax.vmap(sample_hmm_stateseq, (0, None, 0, 0))(keys, rows, densities, jnp.ones(x.shape))
    return z


@jax.jit
def score(y, rows, phi):
    """log p(y) of every sequence; the initial distribution is uniform, as in the library itself."""
    initial = jnp.full(STATES, 1 / STATES)
    return jax.vmap(lambda table: hmm_filter(initial, rows, table).marginal_loglik)(log_density(y, phi))


def log_density(y, phi):
    mean, variance = phi
    return jax.scipy.stats.norm.logpdf(y[..., None], mean, jnp.sqrt(variance))


if __name__ == "__main__":
    run(fit)
