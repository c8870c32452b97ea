"""Laws that every family of emissions obeys, whatever its density."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import gammaln

import ihmm
from ihmm.emissions import (
    Autoregressive,
    Bernoulli,
    Categorical,
    Emission,
    Independent,
    Multinomial,
    MultivariateNormal,
    NegativeBinomial,
    Normal,
    NormalMean,
    Poisson,
    StudentT,
    VonMises,
)
from ihmm.emissions._parameters import fields, join, take
from ihmm.model import Model
from reference.verdicts import assert_mean

ONE_NUMBER = [
    Normal(),
    Normal(mean=-1.0, strength=2.0, shape=3.5, rate=0.7),
    NormalMean(),
    NormalMean(noise=0.3, mean=2.0, scale=4.0),
    Categorical(1),
    Categorical(4),
    Categorical(6, concentration=0.3),
    Poisson(),
    Poisson(shape=3.5, rate=0.2),
    Bernoulli(),
    Bernoulli(1, a=0.3, b=4.0),
]
SEVERAL_NUMBERS = [
    MultivariateNormal(1, strength=1.0),
    MultivariateNormal(2, strength=1.0, dof=6.0),
    MultivariateNormal(3, [1.0, -2.0, 0.0], 2.0, 5.5, [[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]]),
    MultivariateNormal(2, strength=1.0, dof=6.0, covariance="diagonal"),
    MultivariateNormal(3, [1.0, -2.0, 0.0], 2.0, 5.5, [2.0, 1.0, 0.7], covariance="diagonal"),
    Bernoulli(4, a=0.7, b=2.0),
    Multinomial(3, total=5),
    Multinomial(4, concentration=0.4, total=2),
    Independent(Normal()),
    Independent(Categorical(3), Normal(strength=1.0), MultivariateNormal(2, strength=1.0, dof=6.0)),
    Independent(wet=Bernoulli(2), seen=Poisson(shape=2.0), kinds=Multinomial(3, total=4)),
]
WITH_A_PAST = [
    Autoregressive(1, strength=1.0, precision=10.0),
    Autoregressive(2, 2, [1.0, -2.0], 2.0, 0.4, np.diag([10.0, 20.0, 30.0, 40.0]) + 3, 6.0, [[2.0, 0.5], [0.5, 1.0]]),
]
STEP_BY_STEP = [
    StudentT(),
    StudentT(dof=1.5, mean=-1.0, strength=2.0, shape=3.5, rate=0.7),
    VonMises(),
    VonMises(shape=2.0, rate=0.5, direction=-3.0, strength=1.5),
    NegativeBinomial(),
    NegativeBinomial(shape=3.0, rate=0.1, size_shape=5.0, size_rate=2.0),
]
CONJUGATE = ONE_NUMBER + SEVERAL_NUMBERS + WITH_A_PAST
every_family = pytest.mark.parametrize("emission", CONJUGATE + STEP_BY_STEP, ids=repr)
every_conjugate_family = pytest.mark.parametrize("emission", CONJUGATE, ids=repr)
one_number_a_step = pytest.mark.parametrize("emission", ONE_NUMBER + STEP_BY_STEP, ids=repr)


def some_series(emission, n=50, n_states=4, seed=0):
    """Parameters from the prior, a path over all but the last state, and observations."""
    rng = np.random.default_rng(seed)
    phi = emission.sample_prior(rng, n_states)
    states = rng.integers(0, n_states - 1, n)
    return phi, states, emission.sample_observations(rng, states, phi)


def some_data(emission, n=50, n_states=4, seed=0):
    """The same, the observations as the emission sees them."""
    phi, states, y = some_series(emission, n + 2, n_states, seed)
    return phi, states[2:], seen(emission, y)[2:]


def seen(emission, y):
    return Model(emission).describe(y, np.array([0, len(y)])).observations


@every_family
def test_a_model_accepts_it_and_what_it_draws_itself(emission):
    _, _, y = some_series(emission)
    data = Model(emission).observe([y[:20], y[20:]])
    np.testing.assert_array_equal(data.y, y)
    silent = np.zeros(50, bool) if data.uninformative is None else data.uninformative
    np.testing.assert_array_equal(data.log_marginal, np.where(silent, 0.0, emission.log_marginal(data.observations)))


@every_family
def test_density_has_one_row_a_step_and_one_column_a_state(emission):
    phi, _, y = some_data(emission)
    table = emission.log_density(y, phi)
    assert table.shape == (50, 4)
    assert table.dtype == np.float64
    for t in (0, 17, 49):  # a product of matrices is rounded in another order than one of vectors
        np.testing.assert_allclose(emission.log_density(y[t : t + 1], phi)[0], table[t], rtol=1e-13)
    for k in range(4):
        np.testing.assert_array_equal(emission.log_density(y, take(phi, np.array([k])))[:, 0], table[:, k])


@every_family
def test_density_is_laid_out_state_by_state(emission):
    phi, _, y = some_data(emission)
    assert emission.log_density(y, phi).T.flags.c_contiguous


@every_family
def test_density_and_its_arguments_are_not_tied_together(emission):
    phi, _, y = some_data(emission)
    before = y.copy(), [field.copy() for field in fields(phi).values()], emission.log_density(y, phi).copy()
    emission.log_density(y, phi)[:] = 0.0
    np.testing.assert_array_equal(y, before[0])
    for field, old in zip(fields(phi).values(), before[1], strict=True):
        np.testing.assert_array_equal(field, old)
    np.testing.assert_array_equal(emission.log_density(y, phi), before[2])


@every_family
def test_density_along_a_path_picks_from_the_table_as_the_default_does(emission):
    phi, states, y = some_data(emission)
    along = emission.log_density_at(y, states, phi)
    np.testing.assert_allclose(along, emission.log_density(y, phi)[np.arange(50), states], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(along, Emission.log_density_at(emission, y, states, phi), rtol=1e-12, atol=1e-12)


@every_conjugate_family
def test_marginal_of_a_step_is_the_evidence_of_that_step_alone(emission):
    _, _, y = some_data(emission)
    evidence = [emission.log_evidence(y[t : t + 1]) for t in range(50)]
    np.testing.assert_allclose(emission.log_marginal(y), evidence, rtol=1e-12, atol=1e-12)


@every_family
def test_marginal_is_the_average_density_over_the_prior(emission):
    _, _, y = some_data(emission, n=6)
    phi = emission.sample_prior(np.random.default_rng(1), 40_000)
    for density, log_marginal in zip(np.exp(emission.log_density(y, phi)), emission.log_marginal(y), strict=True):
        assert_near_mean(density, np.exp(log_marginal))


@every_family
def test_default_marginal_is_near_the_closed_form(emission):
    # 256 draws from the prior: good to a factor where the prior has draws at all
    phi = emission.sample_prior(np.random.default_rng(2), 100)
    y = seen(emission, emission.sample_observations(np.random.default_rng(3), np.arange(100), phi))
    difference = Emission.log_marginal(emission, y) - emission.log_marginal(y)
    assert np.isfinite(difference).all()
    assert np.median(np.abs(difference)) < 0.3


@every_conjugate_family
def test_evidence_is_the_same_in_any_order(emission):
    _, _, y = some_data(emission)
    shuffled = np.random.default_rng(4).permutation(y)
    assert emission.log_evidence(shuffled) == pytest.approx(emission.log_evidence(y), rel=1e-10)


@every_conjugate_family
def test_evidence_grows_by_the_average_density_over_the_posterior(emission):
    # p(y_0, y_1, y_2) / p(y_1, y_2) = E[f(y_0 | φ) | y_1, y_2]
    _, _, y = some_data(emission, n=3)
    n = 40_000
    others = np.concatenate([y[1:]] * n)
    phi = emission.resample(np.random.default_rng(5), others, np.repeat(np.arange(n), 2), n)
    density = np.exp(emission.log_density(y[:1], phi))[0]
    assert_near_mean(density, np.exp(emission.log_evidence(y) - emission.log_evidence(y[1:])))


@every_family
def test_a_state_without_observations_is_drawn_from_the_prior(emission):
    n = 20_000
    _, states, y = some_data(emission, n=5)
    empty = emission.resample(np.random.default_rng(6), y, states, n + 4)
    prior = emission.sample_prior(np.random.default_rng(7), n)
    for drawn, fresh in zip(fields(empty).values(), fields(prior).values(), strict=True):
        assert drawn.shape == (n + 4, *fresh.shape[1:])
        drawn, fresh = np.arctan(drawn[4:]), np.arctan(fresh)  # bounded, so that moments exist
        for one, other in zip(drawn.reshape(n, -1).T, fresh.reshape(n, -1).T, strict=True):
            if one.std() > 1e-9:
                assert_mean(one - other, 0.0)
                assert_mean((one - one.mean()) ** 2 - (other - other.mean()) ** 2, 0.0)


@pytest.mark.parametrize("emission", STEP_BY_STEP, ids=repr)
def test_a_step_for_states_without_observations_leaves_the_prior_as_it_is(emission):
    n = 20_000
    _, states, y = some_data(emission, n=5)
    before = emission.sample_prior(np.random.default_rng(7), n + 4)
    after = emission.update(np.random.default_rng(6), y, states, before)
    for old, new in zip(before, after, strict=True):
        old, new = np.arctan(old[4:]), np.arctan(new[4:])
        assert stats.ks_2samp(old, new).pvalue > 1e-7


@every_family
def test_what_is_drawn_depends_on_the_generator_alone(emission):
    phi, states, y = some_data(emission)
    for draw in (
        lambda rng: emission.sample_prior(rng, 5),
        lambda rng: emission.resample(rng, y, states, 6),
        lambda rng: (emission.sample_observations(rng, states, phi),),
    ):
        for one, other in zip(draw(np.random.default_rng(8)), draw(np.random.default_rng(8)), strict=True):
            np.testing.assert_array_equal(one, other)


@every_family
def test_taking_and_joining_states_undo_each_other(emission):
    phi = emission.sample_prior(np.random.default_rng(9), 6)
    back = join(take(phi, np.array([4, 1, 0])), take(phi, np.array([2, 5, 3])))
    order = np.argsort([4, 1, 0, 2, 5, 3])
    for field, old in zip(take(back, order), phi, strict=True):
        np.testing.assert_array_equal(field, old)


@one_number_a_step
def test_two_columns_are_refused(emission):
    with pytest.raises(ValueError, match=r"one (number|symbol|count) per time step, shape \(T,\); got 2 columns"):
        emission.validate(np.zeros((5, 2)))


@one_number_a_step
def test_one_column_is_as_good_as_none(emission):
    np.testing.assert_array_equal(ihmm.Model(emission).observe(np.zeros((5, 1))).y, np.zeros(5))


class Boxes(Normal):
    """A density that is zero outside a box: no draw from the prior explains what lies far away."""

    def log_density(self, y, phi):
        with np.errstate(divide="ignore"):
            return np.log((np.abs(y[:, None] - phi.mean) < 1) / 2)


def test_default_marginal_stays_finite_where_no_draw_explains_the_data():
    emission = Boxes()
    log_marginal = Emission.log_marginal(emission, np.array([0.0, 1e6, 1.0]))
    assert np.isfinite(log_marginal).all()
    assert log_marginal[1] == log_marginal[[0, 2]].min()
    assert np.isfinite(Emission.log_marginal(emission, np.array([1e6]))).all()


def test_default_marginal_goes_through_long_series_in_pieces():
    emission = NormalMean()
    y = np.random.default_rng(0).normal(size=9000)
    whole = Emission.log_marginal(emission, y)
    for t in (0, 4095, 4096, 8999):
        assert whole[t] == pytest.approx(Emission.log_marginal(emission, y[t : t + 1])[0], rel=1e-12)


def assert_near_mean(sample, mean):
    if np.ptp(sample) < 1e-12 * mean:
        assert sample[0] == pytest.approx(mean)
    else:
        assert_mean(sample, mean)


class Counts:
    """Poisson counts under a Gamma prior: no base class, φ a plain array, and only the six methods."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        return (y * np.log(phi)[:, None] - phi[:, None] - gammaln(y + 1)).T

    def sample_prior(self, rng, n):
        return rng.gamma(2.0, 2.0, n)

    def resample(self, rng, y, states, n_states):
        count, total = (np.bincount(states, weights=w, minlength=n_states) for w in (np.ones(len(y)), y))
        return rng.gamma(2.0 + total, 1 / (0.5 + count))

    def sample_observations(self, rng, states, phi):
        return rng.poisson(phi[states]).astype(float)

    def log_prior(self, phi):
        return stats.gamma(2.0, scale=2.0).logpdf(phi)


@pytest.mark.law
def test_an_emission_needs_no_base_class_and_its_parameters_no_names(tmp_path):
    prior = ihmm.HDPPrior(ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2))
    model = ihmm.Model(Counts(), prior)
    result = ihmm.testing.geweke(model, [3, 2], ihmm.ParticleGibbs(3), sweeps=4000, seed=1)
    assert result.p_value > 1e-4, result
    y = np.random.default_rng(0).poisson(np.repeat([2, 20], 30))
    posterior = ihmm.sample(model, y, draws=20, tune=20, chains=1, seed=1, progress=False)
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run", model=model)
    np.testing.assert_array_equal(loaded.draws[0][-1].phi, posterior.draws[0][-1].phi)
    assert isinstance(loaded.draws[0][-1].phi, np.ndarray)
