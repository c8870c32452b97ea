"""`Normal`: y ~ N(μ, σ²), μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate)."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import ihmm
from ihmm.emissions import Normal
from ihmm.emissions.normal import NormalPhi
from reference.verdicts import assert_follows

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
REALS = st.floats(-50, 50)
POSITIVE = st.floats(0.05, 20)
NORMALS = st.builds(Normal, mean=REALS, strength=POSITIVE, shape=POSITIVE, rate=POSITIVE)
SERIES = st.lists(REALS, min_size=1, max_size=8).map(np.array)
EMISSION = Normal(mean=1.0, strength=0.5, shape=3.0, rate=2.0)


@QUICK
@given(SERIES, st.lists(st.tuples(REALS, POSITIVE), min_size=1, max_size=4))
def test_density_is_scipys(y, parameters):
    mean, variance = np.transpose(parameters)
    expected = stats.norm.logpdf(y[:, None], mean, np.sqrt(variance))
    np.testing.assert_allclose(Normal().log_density(y, NormalPhi(mean, variance)), expected, rtol=1e-11, atol=1e-11)


@QUICK
@given(NORMALS, SERIES)
def test_marginal_is_students_t(emission, y):
    scale = np.sqrt(emission.rate / emission.shape * (1 + 1 / emission.strength))
    expected = stats.t.logpdf(y, 2 * emission.shape, emission.mean, scale)
    np.testing.assert_allclose(emission.log_marginal(y), expected, rtol=1e-9, atol=1e-9)


@QUICK
@given(NORMALS, SERIES)
def test_evidence_is_the_chain_of_marginals_under_priors_updated_one_by_one(emission, y):
    total, prior = 0.0, emission
    for value in y:
        total += prior.log_marginal(np.array([value]))[0]
        prior = updated(prior, value)
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-9, abs=1e-9)


def updated(prior, value):
    """The posterior after one observation, as a textbook has it."""
    strength = prior.strength + 1
    return Normal(
        mean=(prior.strength * prior.mean + value) / strength,
        strength=strength,
        shape=prior.shape + 0.5,
        rate=prior.rate + 0.5 * prior.strength / strength * (value - prior.mean) ** 2,
    )


def test_evidence_is_the_integral_of_density_times_prior():
    y = np.array([0.3, 1.9, 1.1])

    def integrand(mean, log_variance):
        phi = NormalPhi(np.array([mean]), np.exp([log_variance]))
        log_value = EMISSION.log_prior(phi)[0] + EMISSION.log_density(y, phi).sum() + log_variance
        return np.exp(log_value)

    value, _ = integrate.dblquad(integrand, -5, 5, -12, 14, epsabs=1e-9, epsrel=1e-7)
    assert EMISSION.log_evidence(y) == pytest.approx(np.log(value), abs=1e-5)


@QUICK
@given(NORMALS, REALS, POSITIVE)
def test_prior_density_is_scipys(emission, mean, variance):
    expected = stats.invgamma.logpdf(variance, emission.shape, scale=emission.rate)
    expected += stats.norm.logpdf(mean, emission.mean, np.sqrt(variance / emission.strength))
    phi = NormalPhi(np.array([mean]), np.array([variance]))
    assert emission.log_prior(phi)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_prior_draws_follow_the_prior():
    phi = EMISSION.sample_prior(np.random.default_rng(0), 40_000)
    assert_normal_inverse_gamma(phi, EMISSION)


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([-0.4, 2.2, 3.1, 0.7]), 40_000
    # states 0, 2, 4 … own the first three values, the odd ones own the last
    values = np.tile(y, n // 2)
    states = (2 * np.arange(n // 2)[:, None] + np.array([0, 0, 0, 1])).ravel()
    phi = EMISSION.resample(np.random.default_rng(1), values, states, n)
    for own, which in ((y[:3], slice(0, None, 2)), (y[3:], slice(1, None, 2))):
        posterior = EMISSION
        for value in own:
            posterior = updated(posterior, value)
        assert_normal_inverse_gamma(NormalPhi(phi.mean[which], phi.variance[which]), posterior)


def assert_normal_inverse_gamma(phi, law):
    assert_follows(phi.variance, stats.invgamma(law.shape, scale=law.rate).cdf)
    # given the variance the mean is normal, and what is left of it independent
    residual = (phi.mean - law.mean) / np.sqrt(phi.variance / law.strength)
    assert_follows(residual, stats.norm.cdf)
    assert_follows(residual[phi.variance > np.median(phi.variance)], stats.norm.cdf)


def test_posterior_keeps_its_precision_far_from_zero():
    rng = np.random.default_rng(2)
    n = 5000
    y = 1e9 + np.tile([-1.0, 0.0, 1.0], n)
    phi = Normal(mean=1e9, strength=1.0, shape=3.0, rate=1.0).resample(rng, y, np.repeat(np.arange(n), 3), n)
    assert_follows(phi.variance, stats.invgamma(4.5, scale=2.0).cdf)


def test_observations_follow_the_density_of_their_state():
    phi = NormalPhi(np.array([-1.0, 4.0]), np.array([0.25, 9.0]))
    states = np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        assert_follows(y[states == k], stats.norm(phi.mean[k], np.sqrt(phi.variance[k])).cdf)


@pytest.mark.parametrize("bad", [np.inf, -np.inf])
def test_values_that_are_not_finite_are_refused_and_found(bad):
    with pytest.raises(ValueError, match=r"sequence 1: Normal expects finite values, got 1 .* \(first at t = 2\)"):
        ihmm.Model(EMISSION).observe([np.zeros(3), np.array([0.0, 1.0, bad])])


def test_whole_numbers_are_taken_as_reals():
    assert EMISSION.validate(np.array([1, 2, 3])).dtype == np.float64


@pytest.mark.parametrize("name", ["strength", "shape", "rate"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_parameters_that_must_be_positive_are_checked(name, bad):
    with pytest.raises(ValueError, match=f"Normal {name} must be a positive number, got"):
        Normal(**{name: bad})


@pytest.mark.parametrize("bad", [np.nan, np.inf, "0", None])
def test_the_mean_must_be_finite(bad):
    with pytest.raises(ValueError, match="Normal mean must be a finite number, got"):
        Normal(mean=bad)
