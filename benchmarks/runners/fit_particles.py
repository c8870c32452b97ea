"""particles: its particle Gibbs for a hidden Markov model with a given number of states.

It supports a single series, samples states by a bootstrap filter and backward sampling, and leaves the parameter
updates to the user: here means, variances and rows are drawn from their conjugate posteriors. Means start at quantiles
of the data.
"""

import numpy as np
from common import Problem, Stopwatch, Trace, log_mean_exp, run
from particles import distributions, hmm, mcmc

PARTICLES = 10
EVERY = 10  # thinning of the second half for the evaluation


def fit(problem: Problem) -> dict:
    if len(problem.train) > 1:
        raise ValueError("particles.mcmc.ParticleGibbs supports one series only")
    np.random.seed(problem.seed)  # noqa: NPY002, its own generator
    y, n_states = problem.train[0], problem.n_states
    watch = Stopwatch()
    sampler = Gibbs(y, n_states)
    trace, kept = Trace(), []
    sampler.step0()
    for sweep in range(1, sampler.niter):
        sampler.step(sweep)
        trace.add(np.asarray(sampler.x).astype(int))
        kept.append(sampler.fk_mod(sampler.chain.theta[sweep]).ssm)
        if not trace.unfinished:
            break
    spent = watch.read()
    draws = kept[len(kept) // 2 :: EVERY]
    held_out = log_mean_exp(np.array([[score(draw, row) for row in problem.held_out] for draw in draws]))
    return trace.figures() | spent | {"held_out": held_out.tolist()}


class Gibbs(mcmc.ParticleGibbs):
    """With θ = (means, standard deviations, flattened rows)."""

    def __init__(self, y, n_states):
        self.n_states, self.spread, self.center = n_states, y.var(), y.mean()
        names = {"mus": n_states, "sigmas": n_states, "flat_rows": n_states**2}
        prior = distributions.StructDist({name: Vector(size) for name, size in names.items()})
        start = np.empty(1, prior.dtype)
        start["mus"] = np.quantile(y, (np.arange(n_states) + 0.5) / n_states)
        start["sigmas"], start["flat_rows"] = y.std() / n_states, 1 / n_states
        super().__init__(801, ssm_cls=Model, prior=prior, data=y, theta0=start, Nx=PARTICLES, backward_step=True)

    def update_theta(self, theta, x):
        x, new = np.asarray(x).astype(int), theta.copy()
        counts = np.zeros((self.n_states, self.n_states))
        np.add.at(counts, (x[:-1], x[1:]), 1)
        for k in range(self.n_states):
            new["mus"][k], new["sigmas"][k] = self.normal(self.data[x == k])
        new["flat_rows"] = np.concatenate([np.random.dirichlet(1 + row) for row in counts])  # noqa: NPY002
        return new

    def normal(self, y):
        """Mean and standard deviation from a normal–inverse-gamma posterior with a prior as spread as the data."""
        n, strength = len(y), 0.01
        mean = (strength * self.center + y.sum()) / (strength + n)
        rate = 0.01 * self.spread + 0.5 * (np.sum(y**2) + strength * self.center**2 - (strength + n) * mean**2)
        variance = rate / np.random.gamma(1 + 0.5 * n)  # noqa: NPY002
        return mean + np.sqrt(variance / (strength + n)) * np.random.standard_normal(), np.sqrt(variance)  # noqa: NPY002


class Model(hmm.GaussianHMM):
    def __init__(self, mus, sigmas, flat_rows):
        super().__init__(mus=mus, sigmas=sigmas, trans_mat=flat_rows.reshape(len(mus), len(mus)))


class Vector(distributions.ProbDist):
    """Declares the size of a parameter; it is never sampled."""

    dtype = "float64"

    def __init__(self, size):
        self.dim = size


def score(model, y) -> float:
    filtered = hmm.BaumWelch(hmm=model, data=y)
    filtered.forward()
    return float(np.sum(filtered.logpyt))


if __name__ == "__main__":
    run(fit)
