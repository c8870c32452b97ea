"""`VonMises`: angles with a mean direction and a concentration."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import ihmm
from ihmm.emissions import VonMises
from ihmm.emissions.von_mises import VonMisesPhi
from reference.steps import after_steps
from reference.verdicts import assert_follows

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
ANGLE, POSITIVE = st.floats(-np.pi, np.pi), st.floats(0.05, 20)
FAMILY = st.builds(VonMises, shape=POSITIVE, rate=POSITIVE, direction=ANGLE, strength=st.floats(0, 50))
EMISSION = VonMises(shape=2.0, rate=0.5, direction=0.7, strength=1.3)
Y = np.array([2.9, -3.0, 2.2, -2.4])


@QUICK
@given(st.lists(ANGLE, min_size=1, max_size=8).map(np.array), ANGLE, st.floats(0, 1e6))
def test_density_is_scipys(y, direction, concentration):
    phi = VonMisesPhi(np.array([direction]), np.array([concentration]))
    expected = stats.vonmises.logpdf(y, concentration, direction)
    np.testing.assert_allclose(EMISSION.log_density(y, phi)[:, 0], expected, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("concentration", [1e8, 1e12, 1e16])
def test_a_high_concentration_is_a_narrow_normal(concentration):
    direction, z = 0.3, np.array([0.0, -1.0, 3.0])
    phi = VonMisesPhi(np.array([direction]), np.array([concentration]))
    y = direction + z / np.sqrt(concentration)
    z = (y - direction) * np.sqrt(concentration)  # as rounding has left it
    expected = stats.norm.logpdf(z) + 0.5 * np.log(concentration)
    np.testing.assert_allclose(EMISSION.log_density(y, phi)[:, 0], expected, atol=1e-4)


@QUICK
@given(FAMILY)
def test_the_marginal_integrates_to_one(emission):
    y = np.linspace(-np.pi, np.pi, 2001)
    assert integrate.trapezoid(np.exp(emission.log_marginal(y)), y) == pytest.approx(1, abs=1e-6)


@QUICK
@given(FAMILY, ANGLE, POSITIVE)
def test_prior_density_is_scipys(emission, direction, concentration):
    expected = stats.gamma.logpdf(concentration, emission.shape, scale=1 / emission.rate)
    expected += stats.vonmises.logpdf(direction, emission.strength, emission.direction)
    phi = VonMisesPhi(np.array([direction]), np.array([concentration]))
    assert emission.log_prior(phi)[0] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def posterior_cdfs(emission, y):
    """Distribution functions of direction and log κ given y from one state, by summing over a fine grid."""
    direction, log_kappa = np.linspace(-np.pi, np.pi, 1001), np.linspace(-9, 6, 1001)
    grid = np.meshgrid(direction, log_kappa, indexing="ij")
    phi = VonMisesPhi(grid[0].ravel(), np.exp(grid[1].ravel()))
    log_weight = (emission.log_density(y, phi).sum(axis=0) + emission.log_prior(phi)).reshape(grid[0].shape) + grid[1]
    weight = np.exp(log_weight - log_weight.max())
    for axis, points in ((1, direction), (0, log_kappa)):
        total = weight.sum(axis=axis)
        cdf = np.append(0.0, np.cumsum(0.5 * (total[1:] + total[:-1])))
        yield lambda x, points=points, cdf=cdf / cdf[-1]: np.interp(x, points, cdf)


@pytest.mark.parametrize("emission", [EMISSION, VonMises()], ids=repr)
def test_steps_lead_to_the_posterior(emission):
    phi = after_steps(emission, Y, rounds=6)
    for drawn, cdf in zip((phi.direction, np.log(phi.concentration)), posterior_cdfs(emission, Y), strict=True):
        assert_follows(drawn, cdf)


class ForgetsTheLogarithm(VonMises):
    """Broken on purpose: steps in log κ by the density of κ."""

    def update(self, rng, y, states, phi):
        return VonMises(self.shape - 1, self.rate, self.direction, self.strength).update(rng, y, states, phi)


def test_steps_without_the_jacobian_lead_elsewhere():
    phi = after_steps(ForgetsTheLogarithm(2.0, 0.5, 0.7, 1.3), Y, rounds=6)
    cdf = list(posterior_cdfs(EMISSION, Y))[1]
    assert stats.kstest(np.log(phi.concentration), cdf).pvalue < 1e-12


def test_observations_follow_the_density_of_their_state():
    phi, states = VonMisesPhi(np.array([-1.0, 3.0]), np.array([0.5, 60.0])), np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        turned = np.angle(np.exp(1j * (y[states == k] - phi.direction[k])))
        assert_follows(turned, stats.vonmises(phi.concentration[k]).cdf)


def test_angles_of_any_turn_are_wrapped():
    y = np.array([0.5, np.pi, -np.pi, 4.0, -7.0, 2 * np.pi])
    expected = [0.5, np.pi, -np.pi, 4.0 - 2 * np.pi, -7.0 + 2 * np.pi, 0.0]
    np.testing.assert_allclose(EMISSION.validate(y), expected, atol=1e-12)
    followed = np.cumsum(np.full(300, 1.0))  # round and round
    assert np.abs(EMISSION.validate(followed)).max() <= np.pi


@pytest.mark.parametrize("degrees", [[10.0, 350.0, 20.0], [-170.0, 175.0, -3.0]])
def test_degrees_are_recognised(degrees):
    with pytest.raises(ValueError, match=r"expects radians, .* look like degrees; .* np.deg2rad"):
        ihmm.Model(EMISSION).observe(degrees)


@pytest.mark.parametrize("name", ["shape", "rate"])
@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "1", None, True])
def test_parameters_must_be_positive(name, bad):
    with pytest.raises(ValueError, match=f"VonMises {name} must be a positive number, got"):
        VonMises(**{name: bad})


def test_a_strength_may_be_zero_but_not_less():
    with pytest.raises(ValueError, match="VonMises strength must be a number of at least 0, got -1"):
        VonMises(strength=-1)


def test_direct_assignment_says_what_to_do_instead():
    with pytest.raises(TypeError, match=r"which VonMises does not support .* use ParticleGibbs or Beam"):
        ihmm.sample(ihmm.Model(VonMises()), Y, sampler=ihmm.DirectAssignment())


def test_directions_about_pi_are_averaged_round_the_circle():
    rng = np.random.default_rng(0)
    path = np.repeat([0, 1, 0, 1], 30)
    y = np.array([np.pi, 0.5])[path] + rng.vonmises(0, 20, 120)
    posterior = ihmm.sample(ihmm.Model(VonMises()), y, draws=40, tune=20, chains=2, seed=1, init=path, progress=False)
    found = posterior.summary()
    k = found.states[0]
    assert abs(np.angle(np.exp(1j * (found.phi.direction[k] - np.pi)))) < 0.2
    assert np.ptp(found.parameters["direction"][:, k]) < 1.0
