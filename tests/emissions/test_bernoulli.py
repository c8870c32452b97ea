"""`Bernoulli`: columns of zeros and ones, each 1 with a probability that is Beta(a, b)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ihmm
from ihmm.emissions import Bernoulli, Categorical
from ihmm.emissions.bernoulli import BernoulliPhi
from ihmm.emissions.categorical import CategoricalPhi
from reference.verdicts import assert_follows, assert_frequencies

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
POSITIVE = st.floats(0.05, 20)
FAMILY = st.builds(Bernoulli, st.just(2), a=POSITIVE, b=POSITIVE)
ROWS = st.lists(st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=2, max_size=2), min_size=1, max_size=8)
EMISSION = Bernoulli(2, a=2.5, b=0.5)


def test_one_column_is_two_symbols():
    y, p = np.array([0, 1, 1, 0, 1]), np.array([0.2, 0.9])
    ones, symbols = Bernoulli(), Categorical(2)
    expected = symbols.log_density(y, CategoricalPhi(np.stack([1 - p, p], axis=1)))
    np.testing.assert_allclose(ones.log_density(y, BernoulliPhi(p[:, None])), expected, rtol=1e-12)
    np.testing.assert_allclose(ones.log_marginal(y), symbols.log_marginal(y), rtol=1e-12)
    assert ones.log_evidence(y) == pytest.approx(symbols.log_evidence(y), rel=1e-12)


@QUICK
@given(FAMILY, ROWS.map(np.array))
def test_evidence_is_the_chain_of_marginals_under_priors_updated_one_by_one(emission, y):
    total = 0.0
    for column in y.T:
        a, b = emission.a, emission.b
        for value in column[~np.isnan(column)]:
            total += np.log((a if value else b) / (a + b))
            a, b = a + value, b + 1 - value
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-9, abs=1e-9)


@QUICK
@given(ROWS.map(np.array))
def test_a_missing_value_leaves_the_others_as_they_are(y):
    phi = BernoulliPhi(np.array([[0.1, 0.7], [0.6, 0.2]]))
    expected = np.zeros((len(y), 2))
    for d in range(2):
        expected += np.nan_to_num(
            np.where(np.isnan(y[:, [d]]), 0.0, stats.bernoulli.logpmf(y[:, [d]], phi.probs[:, d]))
        )
    np.testing.assert_allclose(EMISSION.log_density(y, phi), expected, atol=1e-12)
    states = np.arange(len(y)) % 2
    np.testing.assert_allclose(EMISSION.log_density_at(y, states, phi), expected[np.arange(len(y)), states], atol=1e-12)


def test_draws_follow_prior_and_posterior():
    n = 40_000
    assert_follows(EMISSION.sample_prior(np.random.default_rng(0), n).probs[:, 1], stats.beta(2.5, 0.5).cdf)
    y = np.tile([[1.0, 0.0], [1.0, np.nan], [0.0, 1.0]], (n, 1))
    probs = EMISSION.resample(np.random.default_rng(1), y, np.repeat(np.arange(n), 3), n).probs
    assert_follows(probs[:, 0], stats.beta(2.5 + 2, 0.5 + 1).cdf)
    assert_follows(probs[:, 1], stats.beta(2.5 + 1, 0.5 + 1).cdf)


def test_prior_density_is_scipys():
    p = np.array([[0.1, 0.6], [0.5, 0.99]])
    np.testing.assert_allclose(EMISSION.log_prior(BernoulliPhi(p)), stats.beta(2.5, 0.5).logpdf(p).sum(axis=1))


def test_observations_follow_their_state():
    phi, states = BernoulliPhi(np.array([[0.2, 0.5], [0.9, 0.1]])), np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k, d in np.ndindex(2, 2):
        p = phi.probs[k, d]
        assert_frequencies(np.bincount(y[states == k, d].astype(int), minlength=2), [1 - p, p])


def test_fifty_columns_some_of_them_constant():
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1, 0], 50)
    y = (rng.random((150, 50)) < rng.uniform(0.2, 0.8, (2, 50))[truth]).astype(float)
    y[:, 0], y[:, 1] = 0, 1
    posterior = ihmm.sample(ihmm.Model(Bernoulli(50)), y, draws=20, tune=20, chains=1, seed=1, progress=False)
    assert np.isfinite(posterior.traces["log_joint"]).all()
    found = posterior.summary().states
    assert np.mean((found[:, None] == found) == (truth[:, None] == truth)) > 0.95


def test_a_probability_may_be_next_to_zero_or_one():
    phi = Bernoulli(1, a=1e-4, b=1e-4).sample_prior(np.random.default_rng(5), 1000)
    assert phi.probs.min() > 0
    assert np.isfinite(Bernoulli().log_density(np.array([0, 1]), phi)).all()


@pytest.mark.parametrize("bad", [2, -1, 0.5, np.inf])
def test_values_that_are_neither_zero_nor_one_are_refused_and_found(bad):
    with pytest.raises(
        ValueError, match=r"sequence 1: Bernoulli expects zeros and ones, .* at t = 2 \(1 such values\)"
    ):
        ihmm.Model(Bernoulli()).observe([[0, 1], [0.0, 1.0, bad]])


def test_a_wrong_number_of_columns_is_refused():
    with pytest.raises(ValueError, match=r"n_features = 3 takes rows of that length, shape \(T, 3\); got 2 columns"):
        Bernoulli(3).validate(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="got one number"):
        Bernoulli(3).validate(np.zeros(5))


def test_truth_values_are_taken():
    assert Bernoulli().validate(np.array([True, False])).tolist() == [1, 0]


@pytest.mark.parametrize("name", ["a", "b"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "1", None, True])
def test_parameters_must_be_positive(name, bad):
    with pytest.raises(ValueError, match=f"Bernoulli {name} must be a positive number, got"):
        Bernoulli(**{name: bad})
