"""Particle Gibbs with systematic thinning: the law of the whole sweep. Broken passes are in tests/kernels."""

from functools import partial

import numpy as np
import pytest

import ihmm
from ihmm.testing import geweke, partition_test
from reference.cases import (
    ALARM,
    COLUMNS,
    EMISSIONS,
    FINITE_PRIORS,
    LAYOUTS,
    NORMAL_SERIES,
    PRIORS,
    THOROUGH,
    some,
    split,
    trials,
)

pytestmark = pytest.mark.law

Thinned = partial(ihmm.ParticleGibbs, resampling="systematic")
CASE = ("emission", "series", "prior", "lengths", "sampler")
SAMPLERS = {
    f"{proposal}-{n_particles}": Thinned(n_particles, proposal)
    for n_particles in (2, 5)
    for proposal in ("posterior", "prior")
}
TWO = some(SAMPLERS, "posterior-2", "prior-2")
SEVERAL = some(LAYOUTS, "several sequences")
HIDDEN = np.array([False, True, False, False, True])
OTHERS = {
    **COLUMNS,
    "student-t": (ihmm.StudentT(dof=3.0, mean=0.0, strength=0.5, shape=2.0, rate=1.0), NORMAL_SERIES),
    "mixture": (ihmm.DPMixture(EMISSIONS["normal-mean"][0], ihmm.GammaPrior(2, 1), 0.2), NORMAL_SERIES),
}


@pytest.mark.parametrize(CASE, trials(some(PRIORS, "plain", "sticky-free"), SEVERAL, SAMPLERS, few=2))
def test_visits_every_partition_as_often_as_the_exact_posterior_says(emission, series, prior, lengths, sampler):
    result = partition_test(ihmm.Model(emission, prior), split(series, lengths), sampler, sweeps=5000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(CASE, trials(some(FINITE_PRIORS, "finite-sticky-free"), SEVERAL, TWO, THOROUGH))
def test_visits_every_partition_of_a_finite_model_as_often_as_it_should(emission, series, prior, lengths, sampler):
    result = partition_test(ihmm.Model(emission, prior), split(series, lengths), sampler, sweeps=4000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("n_particles", [2, 10])
@pytest.mark.parametrize("threshold", [0.3, 0.03, 1e-6])
def test_any_threshold_is_exact(threshold, n_particles):
    emission, series = EMISSIONS["normal-mean"]
    sampler = Thinned(n_particles, threshold=threshold)
    result = partition_test(ihmm.Model(emission, PRIORS["sticky-free"]), series, sampler, sweeps=10_000, seed=5)
    assert result.p_value > ALARM, result


# Every size of block with the usual settings; others with a block that ends within the series, and with single steps
@pytest.mark.parametrize(
    ("block_size", "settings"),
    [(1, {}), (2, {}), (3, {}), (1, {"proposal": "prior"}), (3, {"proposal": "prior"}), (2, {"threshold": 0.3})],
)
def test_blocks_of_any_size_are_exact(block_size, settings):
    emission, series = EMISSIONS["normal-mean"]
    sampler = Thinned(3, block_size=block_size, **settings)
    result = partition_test(ihmm.Model(emission, PRIORS["sticky-free"]), series, sampler, sweeps=5000, seed=6)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(CASE, trials(some(PRIORS, "sticky-free"), SEVERAL, TWO))
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(emission, series, prior, lengths, sampler):
    result = geweke(ihmm.Model(emission, prior), lengths, sampler, sweeps=5000, seed=7)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", TWO.values(), ids=TWO)
@pytest.mark.parametrize("family", [*EMISSIONS, *OTHERS])
def test_missing_values_and_other_families_are_exact(family, sampler):
    emission, series = (EMISSIONS | OTHERS)[family]
    y = np.array(series, float)
    y[HIDDEN] = np.nan
    model = ihmm.Model(emission, PRIORS["sticky-free"])
    result = partition_test(model, split(y, [3, 2]), sampler, sweeps=3000, seed=3)
    assert result.p_value > ALARM, result
