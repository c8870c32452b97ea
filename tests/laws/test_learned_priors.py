"""Priors of emissions with parameters that are resampled: the law of the whole sweep, with and without moves."""

from dataclasses import replace

import numpy as np
import pytest

import ihmm
from ihmm._random import dirichlet
from ihmm.emissions.categorical import resample_concentration
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, PRIORS

pytestmark = pytest.mark.law

# Any concentration may be the right one of such a series, and partitions depend on it
PRIOR = ihmm.GammaPrior(0.5, 0.25)
SERIES = {"complete": [0, 0, 0, 1, 1, 1], "gap": [0, 0, 0, 1, np.nan, 1, 1]}
SAMPLERS = {
    "particle Gibbs": (ihmm.ParticleGibbs(2), ()),
    "direct assignment": (ihmm.DirectAssignment(), ()),
    "moves": (ihmm.ParticleGibbs(2), (ihmm.SplitMerge(attempts=2),)),
}


@pytest.mark.parametrize(
    ("name", "series"), [("particle Gibbs", "complete"), ("direct assignment", "gap"), ("moves", "gap")]
)
def test_partitions_are_visited_as_often_as_the_exact_posterior_says(name, series):
    result = visits(ihmm.Categorical(3, PRIOR, base=(3, 2, 1)), name, series)
    assert result.p_value > ALARM, result


def visits(emission, name, series):
    sampler, moves = SAMPLERS[name]
    model = ihmm.Model(emission, PRIORS["sticky"])
    return partition_test(model, [np.array(SERIES[series])], sampler, moves=moves, sweeps=4000, seed=3)


@pytest.mark.parametrize("name", ["direct assignment", "moves"])
def test_the_joint_law_is_left_alone(name):
    sampler, moves = SAMPLERS[name]
    missing = np.array([0, 0, 1, 0, 0, 0, 1], bool)
    model = ihmm.Model(ihmm.Categorical(3, ihmm.GammaPrior(1.5, 2.0), base=(3, 2, 1)), PRIORS["sticky-free"])
    result = geweke(model, [4, 3], sampler, moves=moves, sweeps=3000, seed=7, missing=missing)
    assert result.p_value > ALARM, result


class AtTheMean(ihmm.Categorical):
    """Broken on purpose: what is integrated out for samplers and moves has the prior mean of the concentration."""

    def conjugate(self, y):
        right = super().conjugate(y)
        return replace(right, given=lambda own, phi: replace(right.given(own, phi), compiled=own.compiled))


class Doubled(ihmm.Categorical):
    """Broken on purpose: the concentration is resampled as if every symbol had been observed twice."""

    def _draw(self, concentration, rng, statistics):
        concentration = resample_concentration(
            rng, self.concentration, self._weights, concentration, 2 * statistics.number
        )
        return self._pack(dirichlet(rng, concentration * self._weights + statistics.number), concentration)


class Forgetful(ihmm.Categorical):
    """Broken on purpose: a missing value counts as the symbol that stands in its place."""

    def conjugate(self, y):
        right = super().conjugate(y)
        return replace(right, given=lambda own, phi: right.given(right, phi))


@pytest.mark.parametrize(
    ("broken", "name", "series"),
    [
        (AtTheMean, "direct assignment", "complete"),
        (Forgetful, "direct assignment", "gap"),
        (Doubled, "particle Gibbs", "complete"),
    ],
)
def test_mistakes_are_caught(broken, name, series):
    result = visits(broken(3, PRIOR), name, series)
    assert result.p_value < 1e-6, result
