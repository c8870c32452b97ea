"""Families whose φ is renewed step by step: the law of the whole sweep, with every sampler that takes them."""

from dataclasses import astuple
from functools import cache

import numpy as np
import pytest

import ihmm
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, FINITE_PRIORS, NORMAL_SERIES, PRIORS, split

pytestmark = pytest.mark.law


class KeepsMarginals(ihmm.NegativeBinomial):
    """Integrates each count once: in a Geweke test, with new data in every sweep, that is most of the time."""

    def log_marginal(self, y):
        return np.array([log_marginal_of(astuple(self), count) for count in y.tolist()])


@cache
def log_marginal_of(settings, count):
    return float(ihmm.NegativeBinomial(*settings).log_marginal(np.array([count]))[0])


EMISSIONS = {
    "student-t": (ihmm.StudentT(dof=3.0, mean=0.0, strength=0.5, shape=2.0, rate=1.0), NORMAL_SERIES),
    "von-mises": (ihmm.VonMises(shape=1.5, rate=0.3, direction=0.5, strength=0.8), [-2.9, 3.1, 0.4, 0.6, -3.0]),
    "negative-binomial": (KeepsMarginals(2.0, 0.5, 2.0, 1.0), [0, 1, 9, 14, 2]),
}
SAMPLERS = {
    "posterior": (ihmm.ParticleGibbs(2), PRIORS["sticky-free"]),
    "prior": (ihmm.ParticleGibbs(2, "prior"), PRIORS["sticky-free"]),
    "beam": (ihmm.Beam(), PRIORS["sticky-free"]),
    "blocked": (ihmm.Blocked(), FINITE_PRIORS["finite-sticky-free"]),
}
HIDDEN = np.array([False, False, False, True, False])
every_trial = pytest.mark.parametrize(
    ("emission", "series", "sampler", "prior"),
    [
        pytest.param(*family, *sampler, id=f"{emission}-{name}")
        for emission, family in EMISSIONS.items()
        for name, sampler in SAMPLERS.items()
    ],
)


@every_trial
def test_visits_every_partition_as_often_as_the_exact_posterior_says(emission, series, sampler, prior):
    y = split(np.where(HIDDEN, np.nan, series), [3, 2])
    result = partition_test(ihmm.Model(emission, prior), y, sampler, sweeps=3000, seed=3)
    assert result.p_value > ALARM, result


@every_trial
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(emission, series, sampler, prior):
    result = geweke(ihmm.Model(emission, prior), [3, 2], sampler, sweeps=2000, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


class WrongShape(ihmm.StudentT):
    """Broken on purpose: draws the scales with the shape they have a priori."""

    def update(self, rng, y, states, phi):
        distance = np.square(y - phi.location[states]) / phi.scale2[states]
        weight = 2 * rng.standard_gamma(0.5 * self.dof, len(y)) / (self.dof + distance)
        return self._given_weights(rng, y, states, weight, len(phi.location))


class NotGivenTheScales(ihmm.StudentT):
    """Broken on purpose: takes all observations for equally reliable, in every sweep."""

    def update(self, rng, y, states, phi):
        return self.resample(rng, y, states, len(phi.location))


class ForgetsTheLogarithm(ihmm.VonMises):
    """Broken on purpose: steps in log κ by the density of κ."""

    def update(self, rng, y, states, phi):
        return ihmm.VonMises(self.shape - 1, self.rate, self.direction, self.strength).update(rng, y, states, phi)


class ForgetsTheLogarithmOfTheSize(KeepsMarginals):
    """Broken on purpose: steps in log r by the density of r."""

    def update(self, rng, y, states, phi):
        wrong = ihmm.NegativeBinomial(self.shape, self.rate, self.size_shape - 1, self.size_rate)
        return wrong.update(rng, y, states, phi)


BROKEN = {
    "wrong shape": (WrongShape(dof=3.0, strength=0.5), 6000),
    "not given the scales": (NotGivenTheScales(dof=3.0, strength=0.5), 3000),
    "no logarithm": (ForgetsTheLogarithm(shape=1.5, rate=0.3), 3000),
    "no logarithm of the size": (ForgetsTheLogarithmOfTheSize(2.0, 0.5, 2.0, 1.0), 3000),
}


@pytest.mark.parametrize(("broken", "sweeps"), BROKEN.values(), ids=BROKEN)
def test_a_wrong_step_is_caught(broken, sweeps):
    model = ihmm.Model(broken, PRIORS["sticky-free"])
    result = geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=sweeps, seed=7)
    assert result.p_value < 1e-6, result
