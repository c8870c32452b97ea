"""`Poisson`: y ~ Poisson(rate), rate ~ Gamma(shape, rate)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import ihmm
from ihmm.emissions import Poisson
from ihmm.emissions.poisson import PoissonPhi
from reference.verdicts import assert_follows, assert_frequencies

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
POSITIVE = st.floats(0.05, 20)
FAMILY = st.builds(Poisson, shape=POSITIVE, rate=POSITIVE)
SERIES = st.lists(st.integers(0, 60), min_size=1, max_size=8).map(np.array)
EMISSION = Poisson(shape=2.5, rate=0.5)


@QUICK
@given(SERIES, st.lists(POSITIVE, min_size=1, max_size=4).map(np.array))
def test_density_is_scipys(y, rate):
    expected = stats.poisson.logpmf(y[:, None], rate)
    np.testing.assert_allclose(EMISSION.log_density(y, PoissonPhi(rate)), expected, rtol=1e-10, atol=1e-10)


@QUICK
@given(FAMILY, SERIES)
def test_marginal_is_negative_binomial(emission, y):
    expected = stats.nbinom.logpmf(y, emission.shape, emission.rate / (1 + emission.rate))
    np.testing.assert_allclose(emission.log_marginal(y), expected, rtol=1e-9, atol=1e-9)


@QUICK
@given(FAMILY, SERIES)
def test_evidence_is_the_chain_of_marginals_under_priors_updated_one_by_one(emission, y):
    total, prior = 0.0, emission
    for value in y:
        total += prior.log_marginal(np.array([value]))[0]
        prior = Poisson(prior.shape + value, prior.rate + 1)
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-9, abs=1e-9)


def test_evidence_is_the_integral_of_density_times_prior():
    y = np.array([3, 7, 4])

    def integrand(rate):
        phi = PoissonPhi(np.array([rate]))
        return np.exp(EMISSION.log_prior(phi)[0] + EMISSION.log_density(y, phi).sum())

    value, _ = integrate.quad(integrand, 0, 60, points=[5], epsabs=1e-14)
    assert EMISSION.log_evidence(y) == pytest.approx(np.log(value), abs=1e-7)


def test_the_marginal_sums_to_one():
    assert np.exp(EMISSION.log_marginal(np.arange(2000))).sum() == pytest.approx(1, abs=1e-12)


@QUICK
@given(FAMILY, POSITIVE)
def test_prior_density_is_scipys(emission, rate):
    expected = stats.gamma.logpdf(rate, emission.shape, scale=1 / emission.rate)
    assert emission.log_prior(PoissonPhi(np.array([rate])))[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_prior_draws_follow_the_prior():
    assert_follows(EMISSION.sample_prior(np.random.default_rng(0), 40_000).rate, stats.gamma(2.5, scale=2).cdf)


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([3, 0, 9, 4]), 40_000
    states = (2 * np.arange(n // 2)[:, None] + np.array([0, 0, 0, 1])).ravel()
    rate = EMISSION.resample(np.random.default_rng(1), np.tile(y, n // 2), states, n).rate
    assert_follows(rate[::2], stats.gamma(2.5 + 12, scale=1 / 3.5).cdf)
    assert_follows(rate[1::2], stats.gamma(2.5 + 4, scale=1 / 1.5).cdf)


def test_observations_follow_the_density_of_their_state():
    phi, states = PoissonPhi(np.array([0.7, 12.0])), np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        law = stats.poisson(phi.rate[k])
        seen = np.bincount(np.minimum(y[states == k], 40), minlength=41)
        assert_frequencies(seen, np.append(law.pmf(np.arange(40)), law.sf(39)))


def test_a_million_is_a_count_like_any_other():
    y = np.array([999_000, 1_000_000, 1_001_500])
    phi = PoissonPhi(np.array([1e6]))
    expected = stats.norm.logpdf(y, 1e6, 1e3)  # near enough
    np.testing.assert_allclose(EMISSION.log_density(y, phi)[:, 0], expected, atol=2e-2)
    drawn = EMISSION.resample(np.random.default_rng(4), np.repeat(y, 10_000), np.tile(np.arange(10_000), 3), 10_000)
    assert_follows(drawn.rate, stats.gamma(2.5 + y.sum(), scale=1 / 3.5).cdf)


def test_a_rate_is_never_zero():
    rate = Poisson(shape=1e-4, rate=1.0).sample_prior(np.random.default_rng(5), 1000).rate
    assert rate.min() > 0
    assert np.isfinite(EMISSION.log_density(np.array([0, 5, 1_000_000]), PoissonPhi(rate))).all()


@pytest.mark.parametrize("bad", [-1, 1.5, np.inf, 1e17])
def test_values_that_are_no_counts_are_refused_and_found(bad):
    with pytest.raises(ValueError, match=r"sequence 1: Poisson expects non-negative .* at t = 2 \(1 such values\)"):
        ihmm.Model(EMISSION).observe([[0, 1], [0.0, 3.0, bad]])


def test_counts_may_come_as_reals():
    y = EMISSION.validate(np.array([0.0, 3.0, 1e6]))
    assert y.dtype == np.int64
    assert y.tolist() == [0, 3, 1_000_000]


@pytest.mark.parametrize("name", ["shape", "rate"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_parameters_must_be_positive(name, bad):
    with pytest.raises(ValueError, match=f"Poisson {name} must be a positive number, got"):
        Poisson(**{name: bad})
