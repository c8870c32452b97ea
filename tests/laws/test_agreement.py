"""On data too long to enumerate, all samplers have the same posterior means.

The chains run without moves, so that the samplers draw the states in ways that have no step in common. They share what
`ihmm.gibbs.sweep` does after that: the conditionals of transitions, hyperparameters and φ given the states. Those are
tested on their own, in `tests/kernels/test_conditionals.py`, and by the Geweke tests in this folder.
"""

import numpy as np
import pytest
from scipy import stats

import ihmm

pytestmark = pytest.mark.law

BATCHES = 30
PAIRS = np.random.default_rng(0).integers(0, 200, size=(2, 40))
GAMMA = ihmm.GammaPrior(2, 1)
# Sampler → sweeps: the more autocorrelated its chain, the more of them, so that all have about the same standard error
GROUPS = {
    "infinite": (
        ihmm.HDPPrior(GAMMA, GAMMA, ihmm.BetaPrior(2, 2)),
        {
            ihmm.ParticleGibbs(): 15_000,
            ihmm.ParticleGibbs(20, "prior"): 18_000,
            ihmm.ParticleGibbs(800, ancestor_sampling=False, resampling="multinomial"): 10_000,
            ihmm.Beam(): 20_000,
            ihmm.DirectAssignment(): 72_000,
        },
    ),
    "finite": (
        ihmm.FinitePrior(6, GAMMA, GAMMA, ihmm.BetaPrior(2, 2)),
        {
            ihmm.Blocked(): 6000,
            ihmm.ParticleGibbs(): 9000,
            ihmm.Beam(): 9000,
            ihmm.DirectAssignment(): 9000,
        },
    ),
}


def series() -> np.ndarray:
    """Three overlapping levels, 200 steps."""
    rng = np.random.default_rng(4)
    levels = np.repeat(rng.permutation(np.tile([-1.0, 0.0, 1.5], 7))[:20], 10)
    return levels + rng.normal(0, 0.5, 200)


def averages(model: ihmm.Model, sampler: object, sweeps: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of K, log α, log γ, ρ and the co-assignment of pairs of steps, with their standard errors."""
    chain = ihmm.iterate(model, series(), sampler=sampler, seed=seed, init=3, moves=())
    values = []
    for i in range(sweeps):
        draw, _ = next(chain)
        if i >= sweeps // 10:
            together = draw.states[PAIRS[0]] == draw.states[PAIRS[1]]
            hyper = [np.log(draw.hyper.alpha), np.log(draw.hyper.gamma), draw.hyper.stickiness]
            values.append([draw.n_states, *hyper, together.mean(), *together[:8]])
    batches = np.array(values).reshape(BATCHES, -1, len(values[0])).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)


@pytest.mark.parametrize(("prior", "sweeps"), GROUPS.values(), ids=GROUPS)
def test_all_samplers_have_the_same_posterior_means(prior, sweeps):
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, scale=2.0), prior)
    samplers = list(sweeps)
    found = [averages(model, sampler, sweeps[sampler], seed) for seed, sampler in enumerate(samplers)]
    means, errors = map(np.array, zip(*found, strict=True))
    for i, j in zip(*np.triu_indices(len(samplers), 1), strict=True):
        error = np.hypot(errors[i], errors[j])
        moving = error > 0
        z = (means[i] - means[j])[moving] / error[moving]
        p_value = len(z) * 2 * stats.t.sf(np.abs(z).max(), BATCHES - 1)
        assert p_value > 1e-4, f"{samplers[i]} and {samplers[j]}: {means[i]}, {means[j]}, z {z.round(1)}"
