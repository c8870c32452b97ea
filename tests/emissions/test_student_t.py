"""`StudentT`: a location and a squared scale with the prior of `Normal`, and robustness to outliers."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import ihmm
from ihmm.emissions import Normal, StudentT
from ihmm.emissions.normal import NormalPhi
from ihmm.emissions.student_t import StudentTPhi
from reference.steps import after_steps
from reference.verdicts import assert_follows

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
REAL, POSITIVE = st.floats(-20, 20), st.floats(0.05, 20)
FAMILY = st.builds(StudentT, dof=POSITIVE, mean=REAL, strength=POSITIVE, shape=POSITIVE, rate=POSITIVE)
EMISSION = StudentT(dof=3.0, mean=0.5, strength=0.7, shape=2.5, rate=0.8)


@QUICK
@given(FAMILY, st.lists(REAL, min_size=1, max_size=8).map(np.array), REAL, POSITIVE)
def test_density_is_scipys(emission, y, location, scale2):
    phi = StudentTPhi(np.array([location]), np.array([scale2]))
    expected = stats.t.logpdf(y, emission.dof, location, np.sqrt(scale2))
    np.testing.assert_allclose(emission.log_density(y, phi)[:, 0], expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("dof", [0.5, 1.0, 4.0, 1e6])
def test_the_marginal_integrates_to_one(dof):
    emission = StudentT(dof, 0.5, 0.7, 2.5, 0.8)
    # y = mean ± eˣ, so that heavy tails are within reach
    x = np.linspace(-30, 150, 20_001)
    value = 2 * np.exp(emission.log_marginal(0.5 + np.exp(x)) + x)
    assert integrate.trapezoid(value, x) == pytest.approx(1, abs=1e-4)


@QUICK
@given(FAMILY, REAL)
def test_with_many_degrees_of_freedom_the_marginal_is_that_of_a_normal(emission, y):
    many = StudentT(1e7, emission.mean, emission.strength, emission.shape, emission.rate)
    normal = Normal(emission.mean, emission.strength, emission.shape, emission.rate)
    expected = normal.log_marginal(np.array([y]))
    np.testing.assert_allclose(many.log_marginal(np.array([y])), expected, atol=1e-4)


def test_the_marginal_goes_through_long_series_in_pieces():
    y = np.random.default_rng(0).normal(size=9000)
    whole = EMISSION.log_marginal(y)
    for t in (0, 4095, 4096, 8999):
        assert whole[t] == pytest.approx(EMISSION.log_marginal(y[t : t + 1])[0], rel=1e-12)


def test_prior_is_that_of_the_normal_family():
    normal = Normal(0.5, 0.7, 2.5, 0.8)
    phi = EMISSION.sample_prior(np.random.default_rng(0), 1000)
    np.testing.assert_array_equal(phi, normal.sample_prior(np.random.default_rng(0), 1000))
    np.testing.assert_array_equal(EMISSION.log_prior(phi), normal.log_prior(NormalPhi(*phi)))


def posterior_cdfs(y):
    """Distribution functions of the location and of log σ² given y from one state, by summing over a fine grid."""
    location, log_scale2 = np.linspace(-15, 15, 3001), np.linspace(-5, 8, 651)
    grid = np.meshgrid(location, log_scale2, indexing="ij")
    phi = StudentTPhi(grid[0].ravel(), np.exp(grid[1].ravel()))
    log_weight = (EMISSION.log_density(y, phi).sum(axis=0) + EMISSION.log_prior(phi)).reshape(grid[0].shape) + grid[1]
    weight = np.exp(log_weight - log_weight.max())
    for axis, points in ((1, location), (0, log_scale2)):
        total = weight.sum(axis=axis)
        cdf = (np.cumsum(total) - 0.5 * total) / total.sum()
        yield lambda x, points=points, cdf=cdf: np.interp(x, points, cdf)


Y = np.array([0.3, -0.4, 1.1, 6.0])


def test_steps_lead_to_the_posterior():
    phi = after_steps(EMISSION, Y, rounds=40)
    for drawn, cdf in zip((phi.location, np.log(phi.scale2)), posterior_cdfs(Y), strict=True):
        assert_follows(drawn, cdf)


class WrongShape(StudentT):
    """Broken on purpose: scales with the shape they have a priori."""

    def update(self, rng, y, states, phi):
        distance = np.square(y - phi.location[states]) / phi.scale2[states]
        weight = 2 * rng.standard_gamma(0.5 * self.dof, len(y)) / (self.dof + distance)
        return self._given_weights(rng, y, states, weight, len(phi.location))


def test_steps_with_scales_of_the_wrong_shape_lead_elsewhere():
    phi = after_steps(WrongShape(3.0, 0.5, 0.7, 2.5, 0.8), Y, rounds=40)
    cdf = list(posterior_cdfs(Y))[1]
    assert stats.kstest(np.log(phi.scale2), cdf).pvalue < 1e-12


def test_observations_follow_the_density_of_their_state():
    phi, states = StudentTPhi(np.array([-1.0, 30.0]), np.array([0.25, 9.0])), np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        assert_follows(y[states == k], stats.t(3.0, phi.location[k], np.sqrt(phi.scale2[k])).cdf)


@pytest.mark.parametrize("name", ["dof", "strength", "shape", "rate"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_parameters_must_be_positive(name, bad):
    with pytest.raises(ValueError, match=f"StudentT {name} must be a positive number, got"):
        StudentT(**{name: bad})


def test_direct_assignment_says_what_to_do_instead():
    with pytest.raises(TypeError, match=r"which StudentT does not support .* use ParticleGibbs or Beam"):
        ihmm.sample(ihmm.Model(StudentT()), Y, sampler=ihmm.DirectAssignment())


# Outliers


def with_outliers(length, seed):
    """The paper's four states; one value in a hundred is ten standard deviations off."""
    recording, rng = ihmm.datasets.four_state(length, seed), np.random.default_rng(seed)
    far = rng.choice([-10, 10], length) * recording.noise
    return np.where(rng.random(length) < 0.01, recording.y + far, recording.y)


def states_found(emission, seed):
    y = with_outliers(2000, seed)
    return ihmm.InfiniteHMM(emission, draws=80, tune=80, chains=1, random_state=seed).fit(y).n_states_


@pytest.mark.slow
def test_outliers_make_states_of_their_own_if_states_are_normal_but_not_here():
    seeds = range(5)
    assert np.median([states_found("student-t", seed) for seed in seeds]) == 4
    assert min(states_found("normal", seed) for seed in seeds) > 4
