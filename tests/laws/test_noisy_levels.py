"""Levels in shared noise: the law of the whole sweep, without and with a memory that needs states to last."""

import numpy as np
import pytest

import ihmm
from ihmm.durations import Geometric, NegativeBinomial
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, NORMAL_SERIES, PRIORS, split

pytestmark = pytest.mark.law

LEVELS = {"mean": 0.3, "spread": 1.5, "shape": 2.5, "rate": 0.8}
WHITE = ihmm.NoisyLevels(0, "shared", "student-t", **LEVELS)
WHITE_COLUMNS = ihmm.NoisyLevels(0, "own", "normal", 2, **LEVELS)
HIDDEN = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [0, 0]], bool)


def test_white_noise_visits_every_partition_as_often_as_the_exact_posterior_says():
    y = split(np.where(HIDDEN[:, 0], np.nan, NORMAL_SERIES), [3, 2])
    result = partition_test(ihmm.Model(WHITE, PRIORS["sticky"]), y, ihmm.ParticleGibbs(2), sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", [ihmm.ParticleGibbs(2), ihmm.Beam()], ids=repr)
def test_white_noise_leaves_the_joint_law_alone(sampler):
    model = ihmm.Model(WHITE_COLUMNS, PRIORS["sticky-free"])
    result = geweke(model, [3, 2], sampler, sweeps=1500, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


CASES = {
    "order 1": (ihmm.NoisyLevels(1, "shared", "normal", **LEVELS), Geometric(2, 3)),
    "order 2": (ihmm.NoisyLevels(2, "own", "student-t", **LEVELS), NegativeBinomial(2.0, 2, 3, minimum=2)),
    "order 2, two columns": (ihmm.NoisyLevels(2, "shared", "normal", 2, **LEVELS), Geometric(2, 3, minimum=3)),
    "filtered": (ihmm.NoisyLevels(2, "shared", "normal", filtered=True, **LEVELS), Geometric(2, 3, minimum=2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["order 1", "order 2"])
def test_noise_with_a_memory_visits_every_partition_as_often_as_the_exact_posterior_says(case):
    emission, duration = CASES[case]
    model = ihmm.Model(emission, PRIORS["plain"], duration)
    y = split(NORMAL_SERIES, [5])
    result = partition_test(model, y, ihmm.ParticleGibbs(2), sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("case", CASES)
def test_noise_with_a_memory_leaves_the_joint_law_alone(case):
    emission, duration = CASES[case]
    result = geweke(ihmm.Model(emission, PRIORS["free"], duration), [6, 4], ihmm.ParticleGibbs(2), sweeps=1500, seed=7)
    assert result.p_value > ALARM, result


class SettlesAtOnce(ihmm.NoisyLevels):
    """Broken on purpose: after a change of state the pass forgets the level before."""

    def after_change(self, y, phi):
        after = super().after_change(y, phi)
        return after._replace(factor=0 * after.factor)


class OfOneState(ihmm.NoisyLevels):
    """Broken on purpose: updates as if all past values had come from the present state."""

    def update(self, rng, y, states, phi):
        return super().update(rng, y, states[:, 0], phi)


class ScaleOfItsOwn(ihmm.NoisyLevels):
    """Broken on purpose: a new state does not share the scale of the others."""

    def sample_new(self, rng, n, phi):
        return self.sample_prior(rng, n)


FAR = {"mean": 0.3, "spread": 3.0, "shape": 5.0, "rate": 1.0}


@pytest.mark.parametrize(
    ("broken", "duration"),
    [
        (SettlesAtOnce(1, **FAR), Geometric(2, 3)),
        (OfOneState(1, **FAR), Geometric(2, 3)),
        (ScaleOfItsOwn(0, **LEVELS), None),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_mistaken_emission_is_caught(broken, duration):
    result = geweke(ihmm.Model(broken, PRIORS["free"], duration), [6, 4], ihmm.ParticleGibbs(2), sweeps=1500, seed=7)
    assert result.p_value < 1e-6, result
