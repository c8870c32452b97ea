"""`kernels.families`: predictive densities by sufficient statistics, against the evidence of the emissions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihmm.emissions import (
    Bernoulli,
    Categorical,
    Independent,
    Multinomial,
    MultivariateNormal,
    Normal,
    NormalMean,
    Poisson,
)
from ihmm.kernels import families
from ihmm.kernels.families.poisson import log_negative_binomial

QUICK = settings(max_examples=40, deadline=None, derandomize=True)
EMISSIONS = [
    Normal(1.0, 0.5, 3.0, 2.0),
    NormalMean(0.7, 1.0, 2.0),
    Categorical(4, 0.6),
    Poisson(2.0, 0.3),
    MultivariateNormal(3, [1.0, 0.0, -2.0], 0.5, 5.5, [[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]]),
    MultivariateNormal(3, [1.0, 0.0, -2.0], 0.5, 5.5, [2.0, 1.0, 0.7], covariance="diagonal"),
    Bernoulli(1, 0.6, 2.0),
    Bernoulli(3, 0.6, 2.0),
    Multinomial(3, 0.7, total=5),
]
EMISSIONS.append(Independent(*EMISSIONS))
every_family = pytest.mark.parametrize("emission", EMISSIONS, ids=repr)


def observations(emission, n, seed):
    rng = np.random.default_rng(seed)
    states = rng.integers(0, 3, n)
    return emission.sample_observations(rng, states, emission.sample_prior(rng, 3)), states


def log_predictive(emission, y):
    """log p(the last of y | those before), by way of the sufficient statistics."""
    family, prior, values, size = emission.conjugate(y).compiled
    statistics = np.zeros((1, size))
    families.gather_statistics(family, statistics, values[:-1], np.zeros(len(y) - 1, np.int64))
    return families.log_predictive(family, prior, statistics[0], values, len(y) - 1)


@every_family
@QUICK
@given(n=st.integers(0, 12), seed=st.integers(0, 1000))
def test_the_predictive_is_the_ratio_of_evidences(emission, n, seed):
    y, _ = observations(emission, n + 1, seed)
    expected = emission.log_evidence(y) - (emission.log_evidence(y[:-1]) if n else 0.0)
    assert log_predictive(emission, y) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_family
def test_every_state_is_given_its_own_observations(emission):
    y, states = observations(emission, 30, seed=1)
    family, _, values, size = emission.conjugate(y).compiled
    together = np.zeros((4, size))
    families.gather_statistics(family, together, values, states)
    for k in range(4):
        alone = np.zeros((1, size))
        own = values[states == k]
        families.gather_statistics(family, alone, own, np.zeros(len(own), np.int64))
        np.testing.assert_array_equal(together[k], alone[0])
        assert together[k, 0] == (states == k).sum()


@every_family
def test_an_observation_taken_away_again_leaves_no_trace(emission):
    y, _ = observations(emission, 20, seed=2)
    family, _, values, size = emission.conjugate(y).compiled
    statistic = np.zeros(size)
    history = [statistic.copy()]
    for t in range(20):
        families.change_statistics(family, statistic, values, t, 1.0)
        history.append(statistic.copy())
    for t in reversed(range(20)):
        before = history[t]
        families.change_statistics(family, statistic, values, t, -1.0)
        np.testing.assert_allclose(statistic, before, rtol=1e-9, atol=1e-9)
    assert not statistic.any()


@pytest.mark.parametrize(
    "emission",
    [
        EMISSIONS[5],
        Bernoulli(3, 0.6, 2.0),
        Independent(Normal(), Categorical(4), EMISSIONS[5], Bernoulli(2), Poisson()),
    ],
    ids=repr,
)
def test_columns_with_missing_values_are_judged_by_the_others(emission):
    y, _ = observations(emission, 25, seed=3)
    y[np.random.default_rng(4).random(y.shape) < 0.3] = np.nan
    y[7] = np.nan
    for t in range(1, 26):
        expected = emission.log_evidence(y[:t]) - emission.log_evidence(y[: t - 1])
        assert log_predictive(emission, y[:t]) == pytest.approx(expected, rel=1e-8, abs=1e-8)


@every_family
def test_a_step_that_is_missing_is_worth_nothing(emission):
    y, _ = observations(emission, 10, seed=5)
    family, prior, values, size = emission.conjugate(y).compiled
    values, statistics = np.array(values), np.zeros((1, size))
    values[3] = np.nan
    families.gather_statistics(family, statistics, values, np.zeros(10, np.int64))
    assert statistics[0, 0] == 9
    assert families.log_predictive(family, prior, statistics[0], values, 3) == 0.0


@pytest.mark.parametrize("y", [0, 1, 999_000, 1_000_000])
@pytest.mark.parametrize("shape", [3.0, 17.0, 4e11])
def test_counts_keep_their_precision_in_long_series(shape, y):
    # Γ(shape + y) / Γ(shape) y! is a product of y fractions
    rate, i = shape / 1e6, np.arange(y)
    expected = np.log((shape + i) / (i + 1)).sum() - shape * np.log1p(1 / rate) - y * np.log1p(rate)
    assert log_negative_binomial(shape, rate, float(y)) == pytest.approx(expected, abs=1e-6)
