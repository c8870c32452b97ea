"""`NegativeBinomial`: counts that are more variable than Poisson counts."""

import numpy as np
import pytest
from scipy import stats

import ihmm
from ihmm.choice import choose_model
from ihmm.emissions import NegativeBinomial
from ihmm.emissions.negative_binomial import NegativeBinomialPhi
from ihmm.pilot import fit_counts

EMISSION = NegativeBinomial(2.0, 0.3, 2.0, 0.8)


def counts(rates, size, length=1500, stay=0.97, seed=0):
    """States that last about 33 steps, and their counts; Poisson if the size is infinite."""
    rng = np.random.default_rng(seed)
    states = np.zeros(length, np.int64)
    for t in range(1, length):
        moves = len(rates) > 1 and rng.random() > stay
        states[t] = (states[t - 1] + rng.integers(1, len(rates))) % len(rates) if moves else states[t - 1]
    variation = 1.0 if np.isinf(size) else rng.gamma(size, 1 / size, length)
    return states, rng.poisson(np.asarray(rates)[states] * variation)


@pytest.mark.parametrize(("rate", "size"), [(0.2, 0.5), (3.0, 2.0), (40.0, 10.0), (5.0, 1e9), (2000.0, 0.3)])
def test_density_is_that_of_scipy(rate, size):
    y = np.array([0, 1, 2, 7, 50, 5000])
    phi = NegativeBinomialPhi(np.array([rate]), np.array([size]))
    expected = stats.poisson(rate).logpmf(y) if size >= 1e9 else stats.nbinom(size, size / (size + rate)).logpmf(y)
    np.testing.assert_allclose(EMISSION.log_density(y, phi)[:, 0], expected, rtol=1e-5)
    np.testing.assert_allclose(EMISSION.log_density(y[:5], phi)[:, 0], expected[:5], rtol=1e-5)


@pytest.mark.slow
def test_updates_visit_the_posterior_that_a_grid_gives():
    y, states = np.array([0, 3, 9, 1, 14]), np.zeros(5, np.int64)
    log_rate, log_size = np.meshgrid(np.linspace(-3, 5, 300), np.linspace(-5, 4, 300))
    phi = NegativeBinomialPhi(np.exp(log_rate.ravel()), np.exp(log_size.ravel()))
    log_weight = (
        EMISSION.log_density(y, phi).sum(axis=0) + EMISSION.log_prior(phi) + log_rate.ravel() + log_size.ravel()
    )
    weight = np.exp(log_weight - log_weight.max())
    rng, drawn, now = np.random.default_rng(1), [], NegativeBinomialPhi(np.ones(1), np.ones(1))
    for _ in range(20_000):
        now = EMISSION.update(rng, y, states, now)
        drawn.append((now.rate[0], now.size[0]))
    for sample, value in zip(np.transpose(drawn), phi, strict=True):
        expected = np.average(np.log(value), weights=weight)
        error = np.log(sample).reshape(100, -1).mean(axis=1).std() / 10
        assert abs(np.log(sample).mean() - expected) < 4.5 * error


def test_draws_have_the_mean_and_variance_of_the_parameters():
    phi = NegativeBinomialPhi(np.array([3.0, 20.0]), np.array([1.5, 8.0]))
    y = EMISSION.sample_observations(np.random.default_rng(0), np.repeat([0, 1], 100_000), phi).reshape(2, -1)
    np.testing.assert_allclose(y.mean(axis=1), phi.rate, rtol=0.02)
    np.testing.assert_allclose(y.var(axis=1), phi.rate + phi.rate**2 / phi.size, rtol=0.04)


@pytest.mark.parametrize(
    ("rates", "size"),
    [((4,), np.inf), ((4,), 1.5), ((2, 9), np.inf), ((2, 12), 3), ((1, 6, 20), 6), ((0.3, 3), np.inf)],
)
def test_the_first_fit_finds_the_states_and_whether_counts_are_overdispersed(rates, size):
    states, y = counts(rates, size, length=3000)
    fit, path = fit_counts(y[:, None].astype(float), np.array([0, len(y)]))
    assert fit.n_states == len(rates)
    assert fit.overdispersed == np.isfinite(size)
    order = np.argsort(fit.rate)
    np.testing.assert_allclose(fit.rate[order], rates, rtol=0.15)
    assert np.mean(np.argsort(order)[path] == states) > 0.94


def test_missing_counts_and_several_series_are_fitted():
    _, y = counts((2, 12), 3)
    values = y[:, None].astype(float)
    values[::7] = np.nan
    fit, path = fit_counts(values, np.array([0, 400, 1500]))
    assert fit.n_states == 2
    assert path.shape == (1500,)


def test_auto_chooses_it_for_overdispersed_counts_only():
    for size, family in ((np.inf, ihmm.Poisson), (3, NegativeBinomial)):
        _, y = counts((2, 9), size, seed=5)
        choice = choose_model(y[:, None], np.array([len(y)]))
        assert type(choice.model.emission) is family
        assert ("more variable within states than Poisson" in str(choice)) == (family is NegativeBinomial)


def test_few_overdispersed_states_are_preferred_to_many_poisson_ones():
    """An epidemic: counts that rise and fall between two levels, which Poisson states follow step by step."""
    rng = np.random.default_rng(3)
    rate = 3 + 100 * np.exp(-0.5 * ((np.arange(160) % 52 - 26) / 5) ** 2)
    y = rng.poisson(rate * rng.gamma(8, 1 / 8, 160))
    fit, _ = fit_counts(y[:, None].astype(float), np.array([0, 160]))
    assert fit.overdispersed
    assert fit.n_states <= 4


def test_whole_numbers_that_vary_less_than_counts_are_measurements():
    rng = np.random.default_rng(4)
    watts = np.round(np.where(np.arange(1200) // 60 % 2, 60, 2) + rng.normal(0, 1.5, 1200)).clip(0)
    choice = choose_model(watts[:, None], np.array([1200]))
    assert isinstance(choice.model.emission, ihmm.NoisyLevels)
    assert len(np.unique(choice.init)) == 2


@pytest.mark.slow
def test_overdispersed_counts_have_as_many_levels_as_they_were_made_with():
    for rates in ((4,), (2, 10)):
        _, y = counts(rates, 3, seed=8)
        assert ihmm.InfiniteHMM(draws=200, chains=2, random_state=0).fit(y).n_levels_ == len(rates)


@pytest.mark.parametrize("name", ["shape", "rate", "size_shape", "size_rate"])
def test_parameters_of_the_prior_are_positive(name):
    with pytest.raises(ValueError, match=f"NegativeBinomial {name} must be a positive number, got"):
        NegativeBinomial(**{name: -1.0})


@pytest.mark.parametrize("y", [[0.5, 1.0], [-1, 3], [[1, 2], [3, 4]]])
def test_only_counts_are_taken(y):
    with pytest.raises(ValueError, match=r"NegativeBinomial (expects non-negative whole numbers|takes one count)"):
        EMISSION.validate(np.array(y))
