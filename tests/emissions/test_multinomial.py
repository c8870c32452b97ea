"""`Multinomial`: rows of counts given their totals, with probabilities that are Dirichlet."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ihmm
from ihmm.emissions import Multinomial
from ihmm.emissions.multinomial import MultinomialPhi
from ihmm.kernels.counts import log_rise
from reference.verdicts import assert_follows, assert_frequencies

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
ROWS = st.lists(st.lists(st.integers(0, 30), min_size=3, max_size=3), min_size=1, max_size=6).map(np.array)
EMISSION = Multinomial(3, concentration=0.7, total=6)


@QUICK
@given(ROWS)
def test_density_is_scipys(y):
    phi = MultinomialPhi(np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]]))
    expected = np.stack([stats.multinomial.logpmf(y, y.sum(axis=1), p) for p in phi.probs], axis=1)
    np.testing.assert_allclose(EMISSION.log_density(y, phi), expected, rtol=1e-9, atol=1e-9)


@QUICK
@given(ROWS)
def test_marginal_is_scipys_and_evidence_the_chain_of_marginals(y):
    total, alpha = 0.0, np.full(3, 0.7)
    for row in y:
        total += stats.dirichlet_multinomial.logpmf(row, alpha, row.sum())
        alpha = alpha + row
    assert EMISSION.log_evidence(y) == pytest.approx(total, rel=1e-9, abs=1e-8)
    expected = [stats.dirichlet_multinomial.logpmf(row, np.full(3, 0.7), row.sum()) for row in y]
    np.testing.assert_allclose(EMISSION.log_marginal(y), expected, rtol=1e-9, atol=1e-9)


def test_counts_may_come_as_reals():
    y, phi = np.array([[3, 0, 1], [20_000, 5, 7]]), EMISSION.sample_prior(np.random.default_rng(0), 2)
    assert EMISSION.validate(y.astype(float)).dtype == np.int64
    np.testing.assert_array_equal(EMISSION.log_density(y.astype(float), phi), EMISSION.log_density(y, phi))


def test_a_row_of_zeros_says_nothing():
    y, phi = np.zeros((1, 3), int), EMISSION.sample_prior(np.random.default_rng(0), 5)
    np.testing.assert_array_equal(EMISSION.log_density(y, phi), np.zeros((1, 5)))
    assert EMISSION.log_evidence(y) == pytest.approx(0.0, abs=1e-12)


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([[3, 0, 1], [2, 2, 0]]), 40_000
    probs = EMISSION.resample(np.random.default_rng(1), np.tile(y, (n, 1)), np.repeat(np.arange(n), 2), n).probs
    for d, count in enumerate(y.sum(axis=0)):
        assert_follows(probs[:, d], stats.beta(0.7 + count, 1.4 + y.sum() - count).cdf)


def test_observations_have_the_total_asked_for_and_follow_their_state():
    phi, states = MultinomialPhi(np.array([[0.2, 0.3, 0.5], [0.7, 0.2, 0.1]])), np.arange(20_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(2), states, phi)
    assert (y.sum(axis=1) == 6).all()
    for k in range(2):
        assert_frequencies(y[states == k].sum(axis=0), phi.probs[k])


def test_millions_are_counted_exactly():
    rng = np.random.default_rng(3)
    truth = np.repeat([0, 1, 0], 40)
    shares = np.array([[0.5, 0.3, 0.2], [0.501, 0.3, 0.199]])  # far apart for a million, not for a hundred
    y = np.array([rng.multinomial(1_000_000, shares[k]) for k in truth])
    posterior = ihmm.sample(ihmm.Model(Multinomial(3)), y, draws=10, tune=20, chains=1, seed=1, progress=False)
    assert np.isfinite(posterior.traces["log_joint"]).all()
    found = posterior.summary()
    assert np.array_equal(found.states[:, None] == found.states, truth[:, None] == truth)
    np.testing.assert_allclose(found.phi.probs, shares, atol=3e-4)


@pytest.mark.parametrize("y", [0.0, 1.0, 999.0, 1e6])
@pytest.mark.parametrize("x", [0.3, 17.0, 4e9])
def test_rising_factorials_keep_their_precision(x, y):
    expected = np.log(x + np.arange(int(y))).sum()
    assert log_rise(x, y) == pytest.approx(expected, rel=1e-12, abs=1e-7)


def test_fifty_categories_some_of_them_never_seen():
    rng = np.random.default_rng(4)
    truth = np.repeat([0, 1, 0], 30)
    shares = rng.dirichlet(np.full(50, 0.5), 2)
    shares[:, :3] = 0
    y = np.array([rng.multinomial(200, shares[k] / shares[k].sum()) for k in truth])
    model = ihmm.Model(Multinomial(50, concentration=0.01))
    posterior = ihmm.sample(model, y, draws=10, tune=20, chains=1, seed=1, progress=False)
    found = posterior.summary().states
    assert np.array_equal(found[:, None] == found, truth[:, None] == truth)


@pytest.mark.parametrize("bad", [-1, 1.5, np.inf, 1e17])
def test_values_that_are_no_counts_are_refused_and_found(bad):
    with pytest.raises(ValueError, match=r"sequence 1: Multinomial expects non-negative .* at t = 1 \(1 such rows\)"):
        ihmm.Model(EMISSION).observe([[[0, 1, 2], [1, 1, 1]], [[0, 1, 0], [0, bad, 2]]])


def test_a_row_is_missing_altogether_or_not_at_all():
    y = np.array([[1, 2, 3], [np.nan] * 3, [0, 1, 0]])
    assert ihmm.Model(EMISSION).observe(y).missing.tolist() == [False, True, False]
    y[2, 1] = np.nan
    with pytest.raises(ValueError, match=r"complete rows, got 1 .* \(first at t = 2\).* set the whole row to NaN"):
        ihmm.Model(EMISSION).observe(y)


def test_a_wrong_number_of_columns_is_refused():
    with pytest.raises(ValueError, match=r"n_categories = 3 takes rows of that length, shape \(T, 3\); got 2 columns"):
        EMISSION.validate(np.zeros((5, 2)))
    with pytest.raises(ValueError, match="got one number"):
        EMISSION.validate(np.zeros(5))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_categories": 1}, "n_categories must be a whole number of at least 2"),
        ({"n_categories": 3, "concentration": 0.0}, "concentration must be a positive number"),
        ({"n_categories": 3, "total": 0}, "total must be a whole number of at least 1"),
    ],
)
def test_parameters_are_checked(settings, message):
    with pytest.raises(ValueError, match=message):
        Multinomial(**settings)
