"""Missing values: the posterior given what was observed, no more."""

import numpy as np
import pytest

import ihmm
from ihmm.samplers import PassInfo, StateUpdate
from reference.cases import ALARM, EMISSIONS, FINITE_PRIORS, LAYOUTS, PRIORS, THOROUGH, some, split, trials

SAMPLERS = {
    "posterior": ihmm.ParticleGibbs(2),
    "prior": ihmm.ParticleGibbs(2, "prior"),
    "beam": ihmm.Beam(),
    "direct": ihmm.DirectAssignment(),
}
ONE_NUMBER = (*THOROUGH, "poisson")
HIDDEN = np.array([False, True, False, False, True])
pytestmark = pytest.mark.law


def with_gaps(series: list, hidden: np.ndarray = HIDDEN) -> np.ndarray:
    """The series with NaN at steps, or in places, that are hidden."""
    y = np.array(series, float)
    y[hidden] = np.nan
    return y


@pytest.mark.parametrize(
    ("emission", "series", "prior", "lengths", "sampler"),
    trials(some(PRIORS, "plain", "sticky-free"), LAYOUTS, SAMPLERS, ONE_NUMBER),
)
def test_exact_posterior(emission, series, prior, lengths, sampler):
    y = split(with_gaps(series), lengths)
    result = ihmm.testing.partition_test(ihmm.Model(emission, prior), y, sampler, sweeps=4000)
    assert result.p_value > ALARM, result


# Every sampler and every family: any two of them meet in the tests above, and without gaps in test_other_samplers.py
@pytest.mark.parametrize(
    ("emission", "sampler"),
    [
        ("normal-mean", "blocked"),
        ("normal", "blocked"),
        ("categorical", "blocked"),
        ("normal", "posterior"),
        ("categorical", "prior"),
        ("normal", "beam"),
        ("normal-mean", "direct"),
    ],
)
def test_exact_posterior_of_finite_models(emission, sampler):
    family, series = EMISSIONS[emission]
    model = ihmm.Model(family, FINITE_PRIORS["finite-sticky-free"])
    sampler = (SAMPLERS | {"blocked": ihmm.Blocked()})[sampler]
    result = ihmm.testing.partition_test(model, with_gaps(series), sampler, sweeps=4000)
    assert result.p_value > ALARM, result


# Every family with one sampler, and every sampler: what follows Step 1 is the same with all
@pytest.mark.parametrize(
    ("emission", "sampler"),
    [
        *((emission, "posterior") for emission in ONE_NUMBER),
        ("normal-mean", "prior"),
        ("normal", "beam"),
        ("categorical", "direct"),
    ],
)
def test_geweke(emission, sampler):
    model = ihmm.Model(EMISSIONS[emission][0], PRIORS["sticky-free"])
    result = ihmm.testing.geweke(model, [3, 2], SAMPLERS[sampler], sweeps=3000, missing=HIDDEN)
    assert result.p_value > ALARM, result


def test_a_sequence_without_a_value():
    family, series = EMISSIONS["normal"]
    y = split(with_gaps(series, np.array([False, False, False, True, True])), [3, 2])
    result = ihmm.testing.partition_test(ihmm.Model(family, PRIORS["plain"]), y, ihmm.ParticleGibbs(2), sweeps=8000)
    assert result.p_value > ALARM, result


# Single values of a row

PLACES = np.array([[False, True], [True, True], [False, False], [True, False], [False, True]])
ROW_SAMPLERS = [
    pytest.param(emission, sampler, id=f"{emission}-{sampler}")
    for emission in ("full", "diagonal")
    for sampler in SAMPLERS
    if (emission, sampler) != ("full", "direct")  # which cannot be: see tests/emissions/test_multivariate_normal.py
]


@pytest.mark.parametrize(("emission", "sampler"), ROW_SAMPLERS)
def test_exact_posterior_given_parts_of_rows(emission, sampler):
    family, series = EMISSIONS[emission]
    y = split(with_gaps(series, PLACES), [3, 2])
    model = ihmm.Model(family, PRIORS["sticky-free"])
    result = ihmm.testing.partition_test(model, y, SAMPLERS[sampler], sweeps=4000)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("emission", ["full", "diagonal"])
def test_exact_posterior_of_finite_models_given_parts_of_rows(emission):
    family, series = EMISSIONS[emission]
    model = ihmm.Model(family, FINITE_PRIORS["finite-sticky-free"])
    result = ihmm.testing.partition_test(model, with_gaps(series, PLACES), ihmm.Blocked(), sweeps=4000)
    assert result.p_value > ALARM, result


# φ and the missing values are drawn after Step 1, in the same way with all samplers
@pytest.mark.parametrize(
    ("emission", "sampler"), [("full", "posterior"), ("diagonal", "posterior"), ("diagonal", "direct")]
)
def test_geweke_given_parts_of_rows(emission, sampler):
    model = ihmm.Model(EMISSIONS[emission][0], PRIORS["sticky-free"])
    result = ihmm.testing.geweke(model, [3, 2], SAMPLERS[sampler], sweeps=2500, missing=PLACES)
    assert result.p_value > ALARM, result


class SeesTheStandIn(ihmm.ParticleGibbs):
    """Broken on purpose: takes the value that stands in for a missing one at its word."""

    def resample_states(self, rng, data, model, draw) -> tuple[StateUpdate, PassInfo]:
        return super().resample_states(rng, model.describe(data.y, data.offsets), model, draw)


def test_a_sampler_that_sees_what_is_missing_is_caught():
    family, series = EMISSIONS["normal-mean"]
    model = ihmm.Model(family, PRIORS["plain"])
    result = ihmm.testing.partition_test(model, with_gaps(series), SeesTheStandIn(2), sweeps=3000)
    assert result.p_value < 1e-8, result


class KeepsTheAverage(ihmm.MultivariateNormal):
    """Broken on purpose: averages stand in for missing values in every sweep, and not just to begin with."""

    def update(self, rng, y, states, phi):
        return self.resample(rng, y, states, len(phi.mean))


class ForgetsTheRow(ihmm.MultivariateNormal):
    """Broken on purpose: draws missing values given their state alone, and not the other values of their row."""

    def update(self, rng, y, states, phi):
        alone = self.sample_observations(rng, states, phi)
        return self.resample(rng, np.where(np.isnan(y), alone, y), states, len(phi.mean))


@pytest.mark.parametrize("broken", [KeepsTheAverage, ForgetsTheRow])
def test_an_update_that_does_not_draw_missing_values_given_their_rows_is_caught(broken):
    family = EMISSIONS["full"][0]
    model = ihmm.Model(broken(2, family.mean, family.strength, family.dof, family.scale), PRIORS["sticky-free"])
    result = ihmm.testing.geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=4000, missing=PLACES)
    assert result.p_value < 1e-6, result
