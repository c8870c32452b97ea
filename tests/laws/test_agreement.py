"""On data too long to enumerate, samplers that share nothing but the target agree with each other."""

import numpy as np
import pytest
from scipy import stats

import ihmm

pytestmark = pytest.mark.law

SWEEPS, BURN_IN, BATCHES = 6000, 600, 30
PAIRS = np.random.default_rng(0).integers(0, 200, size=(2, 40))
GAMMA = ihmm.GammaPrior(2, 1)
GROUPS = {
    "infinite": (
        ihmm.HDPPrior(GAMMA, GAMMA, ihmm.BetaPrior(2, 2)),
        [
            ihmm.ParticleGibbs(10),
            ihmm.ParticleGibbs(20, "prior"),
            ihmm.ParticleGibbs(800, ancestor_sampling=False),
            ihmm.Beam(),
            ihmm.DirectAssignment(),
        ],
    ),
    "finite": (
        ihmm.FinitePrior(6, GAMMA, GAMMA, ihmm.BetaPrior(2, 2)),
        [ihmm.Blocked(), ihmm.ParticleGibbs(10), ihmm.Beam(), ihmm.DirectAssignment()],
    ),
}


def series() -> np.ndarray:
    """Three overlapping levels, 200 steps."""
    rng = np.random.default_rng(4)
    levels = np.repeat(rng.permutation(np.tile([-1.0, 0.0, 1.5], 7))[:20], 10)
    return levels + rng.normal(0, 0.5, 200)


def averages(model: ihmm.Model, sampler: object, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Posterior means of K, log α, log γ, ρ and the co-assignment of pairs of steps, with their standard errors."""
    chain = ihmm.iterate(model, series(), sampler=sampler, seed=seed, init=3)
    values = []
    for i in range(SWEEPS):
        draw, _ = next(chain)
        if i >= BURN_IN:
            together = draw.states[PAIRS[0]] == draw.states[PAIRS[1]]
            hyper = [np.log(draw.hyper.alpha), np.log(draw.hyper.gamma), draw.hyper.stickiness]
            values.append([draw.n_states, *hyper, together.mean(), *together[:8]])
    batches = np.array(values).reshape(BATCHES, -1, len(values[0])).mean(axis=1)
    return batches.mean(axis=0), batches.std(axis=0, ddof=1) / np.sqrt(BATCHES)


@pytest.mark.parametrize(("prior", "samplers"), GROUPS.values(), ids=GROUPS)
def test_all_samplers_have_the_same_posterior_means(prior, samplers):
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, scale=2.0), prior)
    means, errors = map(np.array, zip(*(averages(model, s, seed) for seed, s in enumerate(samplers)), strict=True))
    for i, j in zip(*np.triu_indices(len(samplers), 1), strict=True):
        error = np.hypot(errors[i], errors[j])
        moving = error > 0
        z = (means[i] - means[j])[moving] / error[moving]
        p_value = len(z) * 2 * stats.t.sf(np.abs(z).max(), BATCHES - 1)
        assert p_value > 1e-4, f"{samplers[i]} and {samplers[j]}: {means[i]}, {means[j]}, z {z.round(1)}"
