"""`kernels.direct`: what the observations of a state say about one more, against the evidence of the emissions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihmm.emissions import Categorical, Normal, NormalMean
from ihmm.kernels import direct
from ihmm.samplers.direct_assignment import FAMILIES

QUICK = settings(max_examples=40, deadline=None, derandomize=True)
EMISSIONS = [Normal(1.0, 0.5, 3.0, 2.0), NormalMean(0.7, 1.0, 2.0), Categorical(4, 0.6)]
every_family = pytest.mark.parametrize("emission", EMISSIONS, ids=repr)


def observations(emission, n, seed):
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 3, n)
    return emission.sample_observations(rng, states, emission.sample_prior(rng, 3)), states


def log_predictive(emission, before, value):
    """log p(value | before), by way of the sufficient statistics."""
    collapsed = emission.collapsed(np.append(before, value).astype(before.dtype))
    family, statistics = FAMILIES[collapsed.family], np.zeros((1, collapsed.size))
    direct.gather_statistics(family, statistics, collapsed.values[:-1], np.zeros(len(before), np.int64))
    return direct.log_predictive(family, collapsed.prior, statistics[0], collapsed.values[-1])


@every_family
@QUICK
@given(n=st.integers(0, 12), seed=st.integers(0, 1000))
def test_the_predictive_is_the_ratio_of_evidences(emission, n, seed):
    y, _ = observations(emission, n + 1, seed)
    expected = emission.log_evidence(y) - (emission.log_evidence(y[:-1]) if n else 0.0)
    assert log_predictive(emission, y[:-1], y[-1]) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_family
def test_every_state_is_given_its_own_observations(emission):
    y, states = observations(emission, 30, seed=1)
    collapsed = emission.collapsed(y)
    family = FAMILIES[collapsed.family]
    together = np.zeros((4, collapsed.size))
    direct.gather_statistics(family, together, collapsed.values, states)
    for k in range(4):
        alone = np.zeros((1, collapsed.size))
        own = collapsed.values[states == k]
        direct.gather_statistics(family, alone, own, np.zeros(len(own), np.int64))
        np.testing.assert_array_equal(together[k], alone[0])
        assert together[k, 0] == (states == k).sum()


@every_family
def test_an_observation_taken_away_again_leaves_no_trace(emission):
    y, _ = observations(emission, 20, seed=2)
    collapsed = emission.collapsed(y)
    family, statistic = FAMILIES[collapsed.family], np.zeros(collapsed.size)
    history = [statistic.copy()]
    for value in collapsed.values:
        direct.change_statistics(family, statistic, value, 1.0)
        history.append(statistic.copy())
    for value, before in zip(collapsed.values[::-1], history[-2::-1], strict=True):
        direct.change_statistics(family, statistic, value, -1.0)
        np.testing.assert_allclose(statistic, before, rtol=1e-9, atol=1e-9)
    assert not statistic.any()
