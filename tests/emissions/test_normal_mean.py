"""`NormalMean`: y ~ N(μ, noise²), μ ~ N(mean, scale²)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

from ihmm.emissions import NormalMean
from ihmm.emissions.normal_mean import NormalMeanPhi
from reference.verdicts import assert_follows

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
REALS = st.floats(-50, 50)
POSITIVE = st.floats(0.05, 20)
FAMILY = st.builds(NormalMean, noise=POSITIVE, mean=REALS, scale=POSITIVE)
SERIES = st.lists(REALS, min_size=1, max_size=8).map(np.array)
EMISSION = NormalMean(noise=0.8, mean=1.0, scale=2.0)


@QUICK
@given(FAMILY, SERIES, st.lists(REALS, min_size=1, max_size=4).map(np.array))
def test_density_is_scipys(emission, y, mean):
    expected = stats.norm.logpdf(y[:, None], mean, emission.noise)
    np.testing.assert_allclose(emission.log_density(y, NormalMeanPhi(mean)), expected, rtol=1e-11, atol=1e-11)


@QUICK
@given(FAMILY, REALS)
def test_prior_density_is_scipys(emission, mean):
    expected = stats.norm.logpdf(mean, emission.mean, emission.scale)
    assert emission.log_prior(NormalMeanPhi(np.array([mean])))[0] == pytest.approx(expected, rel=1e-11, abs=1e-11)


@QUICK
@given(FAMILY, SERIES)
def test_evidence_is_the_joint_normal_density(emission, y):
    # y ~ N(mean, noise² I + scale² 11ᵀ)
    covariance = emission.noise**2 * np.eye(len(y)) + emission.scale**2
    expected = stats.multivariate_normal.logpdf(y, np.full(len(y), emission.mean), covariance)
    assert emission.log_evidence(y) == pytest.approx(expected, rel=1e-7, abs=1e-7)


@QUICK
@given(FAMILY, SERIES)
def test_evidence_is_the_chain_of_marginals_under_priors_updated_one_by_one(emission, y):
    total, prior = 0.0, emission
    for value in y:
        total += prior.log_marginal(np.array([value]))[0]
        prior = updated(prior, value)
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-8, abs=1e-8)


def updated(prior, value):
    """The posterior after one observation."""
    precision = 1 / prior.scale**2 + 1 / prior.noise**2
    center = (prior.mean / prior.scale**2 + value / prior.noise**2) / precision
    return NormalMean(prior.noise, center, 1 / np.sqrt(precision))


@QUICK
@given(FAMILY, REALS)
def test_marginal_is_normal_with_both_variances(emission, value):
    expected = stats.norm.logpdf(value, emission.mean, np.hypot(emission.noise, emission.scale))
    assert emission.log_marginal(np.array([value]))[0] == pytest.approx(expected, rel=1e-11, abs=1e-11)


def test_marginal_and_evidence_are_integrals_of_density_times_prior():
    y = np.array([0.3, 1.9, 2.5])

    def integral(values):
        def integrand(mean):
            phi = NormalMeanPhi(np.array([mean]))
            return np.exp(EMISSION.log_prior(phi)[0] + EMISSION.log_density(values, phi).sum())

        return np.log(integrate.quad(integrand, -20, 20, points=[1.5], epsabs=1e-12)[0])

    assert EMISSION.log_marginal(y) == pytest.approx([integral(y[t : t + 1]) for t in range(3)], abs=1e-8)
    assert EMISSION.log_evidence(y) == pytest.approx(integral(y), abs=1e-8)


def test_prior_draws_follow_the_prior():
    assert_follows(EMISSION.sample_prior(np.random.default_rng(0), 40_000).mean, stats.norm(1.0, 2.0).cdf)


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([-0.4, 2.2, 3.1, 0.7]), 40_000
    states = (2 * np.arange(n // 2)[:, None] + np.array([0, 0, 0, 1])).ravel()
    drawn = EMISSION.resample(np.random.default_rng(1), np.tile(y, n // 2), states, n).mean
    for own, which in ((y[:3], slice(0, None, 2)), (y[3:], slice(1, None, 2))):
        posterior = EMISSION
        for value in own:
            posterior = updated(posterior, value)
        assert_follows(drawn[which], stats.norm(posterior.mean, posterior.scale).cdf)


def test_observations_follow_the_density_of_their_state():
    phi = NormalMeanPhi(np.array([-1.0, 4.0]))
    states = np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        assert_follows(y[states == k], stats.norm(phi.mean[k], EMISSION.noise).cdf)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_and_found(bad):
    with pytest.raises(ValueError, match=r"NormalMean expects finite values, got 2 .* \(first at t = 1\)"):
        EMISSION.validate(np.array([0.0, bad, bad]))


@pytest.mark.parametrize("name", ["noise", "scale"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_parameters_that_must_be_positive_are_checked(name, bad):
    with pytest.raises(ValueError, match=f"NormalMean {name} must be a positive number, got"):
        NormalMean(**{name: bad})


@pytest.mark.parametrize("bad", [np.nan, np.inf, "0", None])
def test_the_mean_must_be_finite(bad):
    with pytest.raises(ValueError, match="NormalMean mean must be a finite number, got"):
        NormalMean(mean=bad)
