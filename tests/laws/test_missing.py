"""Missing values: the posterior given what was observed, no more."""

import numpy as np
import pytest

import ihmm
from ihmm.samplers import PassInfo, Path
from reference.cases import ALARM, EMISSIONS, FINITE_PRIORS, LAYOUTS, PRIORS, split

SAMPLERS = {
    "posterior": ihmm.ParticleGibbs(2),
    "prior": ihmm.ParticleGibbs(2, "prior"),
    "beam": ihmm.Beam(),
    "direct": ihmm.DirectAssignment(),
}
HIDDEN = np.array([False, True, False, False, True])
pytestmark = pytest.mark.law


def with_gaps(series: list[float], hidden: np.ndarray = HIDDEN) -> list[float]:
    return np.where(hidden, np.nan, series).tolist()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("prior", ["plain", "sticky-free"])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_exact_posterior(emission, prior, sampler, layout):
    family, series = EMISSIONS[emission]
    y = split(with_gaps(series), LAYOUTS[layout])
    result = ihmm.testing.partition_test(ihmm.Model(family, PRIORS[prior]), y, SAMPLERS[sampler], sweeps=6000)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", [ihmm.Blocked(), *SAMPLERS.values()], ids=["blocked", *SAMPLERS])
@pytest.mark.parametrize("emission", EMISSIONS)
def test_exact_posterior_of_finite_models(emission, sampler):
    family, series = EMISSIONS[emission]
    model = ihmm.Model(family, FINITE_PRIORS["finite-sticky-free"])
    result = ihmm.testing.partition_test(model, with_gaps(series), sampler, sweeps=6000)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_geweke(emission, sampler):
    model = ihmm.Model(EMISSIONS[emission][0], PRIORS["sticky-free"])
    result = ihmm.testing.geweke(model, [3, 2], SAMPLERS[sampler], sweeps=4000, missing=HIDDEN)
    assert result.p_value > ALARM, result


def test_a_sequence_without_a_value():
    family, series = EMISSIONS["normal"]
    y = split(with_gaps(series, np.array([False, False, False, True, True])), [3, 2])
    result = ihmm.testing.partition_test(ihmm.Model(family, PRIORS["plain"]), y, ihmm.ParticleGibbs(2))
    assert result.p_value > ALARM, result


class SeesTheStandIn(ihmm.ParticleGibbs):
    """Broken on purpose: takes the value that stands in for a missing one at its word."""

    def resample_states(self, rng, data, model, draw) -> tuple[Path, PassInfo]:
        return super().resample_states(rng, model.describe(data.y, data.offsets), model, draw)


def test_a_sampler_that_sees_what_is_missing_is_caught():
    family, series = EMISSIONS["normal-mean"]
    model = ihmm.Model(family, PRIORS["plain"])
    result = ihmm.testing.partition_test(model, with_gaps(series), SeesTheStandIn(2), sweeps=6000)
    assert result.p_value < 1e-8, result
