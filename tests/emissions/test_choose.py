"""The choice of an emission and its prior from the data."""

import re

import numpy as np
import pytest

import ihmm
from ihmm.emissions.choose import choose, guess


def fit(X, emission="auto") -> ihmm.InfiniteHMM:
    return ihmm.InfiniteHMM(emission, draws=30, tune=30, chains=1, random_state=0).fit(X)


def series() -> np.ndarray:
    """Two levels, (300, 1)."""
    rng = np.random.default_rng(0)
    level = np.repeat(rng.permutation(np.tile([0.0, 4.0], 8)), 20)[:300]
    return (level + rng.normal(0, 0.5, 300)).reshape(-1, 1)


@pytest.mark.parametrize(
    ("values", "family"),
    [
        (np.random.default_rng(0).normal(size=50), ihmm.Normal),
        (np.random.default_rng(0).integers(4, size=50), ihmm.Categorical),
        (np.random.default_rng(0).integers(2, size=50).astype(bool), ihmm.Categorical),
        (np.random.default_rng(0).poisson(20, 50), ihmm.Poisson),
        (np.random.default_rng(0).poisson(60, 50), ihmm.Normal),
        (np.where(np.arange(50) == 3, np.nan, 2.0), ihmm.Categorical),
        (np.random.default_rng(0).poisson(np.repeat([0.5, 4.0], 25)), ihmm.Poisson),
        (np.random.default_rng(0).poisson(2.0, 50), ihmm.Poisson),
        (np.random.default_rng(0).integers(1, 7, size=50), ihmm.Categorical),
        (np.random.default_rng(0).choice([1, 2, 3, 4, 5], 50, p=[0.1, 0.2, 0.4, 0.2, 0.1]), ihmm.Categorical),
        (
            np.random.default_rng(0).choice(20, 3000, p=np.random.default_rng(1).dirichlet(np.ones(20))),
            ihmm.Categorical,
        ),
        (np.random.default_rng(0).negative_binomial(2, 0.2, 3000), ihmm.Poisson),
        (5 * np.random.default_rng(0).poisson(2.0, 3000), ihmm.Poisson),
        (np.random.default_rng(0).binomial(20, 0.7, 3000), ihmm.Poisson),
        (-np.random.default_rng(0).poisson(30, 50), ihmm.Normal),
        (np.random.default_rng(0).normal(size=(50, 2)), ihmm.MultivariateNormal),
        (np.random.default_rng(0).integers(4, size=(50, 2)), ihmm.MultivariateNormal),
    ],
)
def test_the_family_is_chosen_from_the_data(values, family):
    assert type(choose("auto", values.reshape(len(values), -1))) is family


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_priors_scale_with_the_data(scale):
    y = scale * np.random.default_rng(0).normal(3, 2, (500, 1))
    emission = choose("normal", y)
    assert emission.mean == pytest.approx(y.mean())
    assert emission.rate == pytest.approx(0.1 * y.var())
    model = fit(scale * series())
    assert model.n_states_ == 2


def test_a_constant_series_has_one_state():
    assert fit(np.full(30, 5.5), "normal").n_states_ == 1
    assert fit(np.zeros(30), "normal").n_states_ == 1


def test_many_columns_have_a_diagonal_covariance():
    assert choose("auto", np.random.default_rng(0).normal(size=(50, 21))).covariance == "diagonal"
    assert choose("auto", np.random.default_rng(0).normal(size=(50, 20))).covariance == "full"


def test_an_emission_instance_is_used_unchanged():
    emission = ihmm.Normal(mean=1.0)
    assert fit(series()[:60], emission).emission_ is emission


@pytest.mark.parametrize("name", ["gauss", "Normal", ""])
def test_unknown_families_are_refused(name):
    with pytest.raises(ValueError, match=r"emission .* must be one of 'auto', 'normal', 'gaussian', 'categorical'"):
        fit(series()[:60], name)


@pytest.mark.parametrize("name", ["poisson", "categorical"])
def test_univariate_families_refuse_several_columns(name):
    with pytest.raises(ValueError, match="takes one column, got 2"):
        fit(np.ones((30, 2)), name)


def test_multinomial_needs_several_columns():
    with pytest.raises(ValueError, match="two columns or more"):
        fit(np.ones(30), "multinomial")


def test_simulated_rows_of_counts_have_the_median_total():
    X = np.random.default_rng(0).multinomial(17, [0.2, 0.3, 0.5], 40)
    fitted = fit(X, "multinomial")
    assert (fitted.forecast(5).y.sum(axis=2) == 17).all()


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_levels_have_priors_on_the_scale_of_levels_and_noise(scale):
    y = scale * series()
    y[[7, 90]] += [[1000 * scale], [np.nan]]
    emission = choose("levels", y)
    assert emission.order == 0
    assert emission.mean[0] == pytest.approx(2 * scale, abs=0.2 * scale)
    assert emission.spread[0] == pytest.approx(3 * scale, rel=0.2)
    assert emission.rate[0] == pytest.approx(2 * (0.5 * scale) ** 2, rel=0.3)
    assert choose("levels", y, order=2).order == 2


def test_levels_of_rounded_and_of_constant_values_have_noise():
    assert choose("levels", np.round(series())).rate[0] > 0
    assert choose("levels", np.full((30, 2), 5.5)).rate[1] > 0


def test_counts_of_every_rate_are_told_from_symbols_of_every_number():
    """At 300 steps, with one in twenty counts taken for symbols, the level of the test."""
    rng, right = np.random.default_rng(1), {"poisson": 0, "categorical": 0}
    for i in range(40):
        rates = rng.gamma(1.0, 1.5, size=3)
        counts = rng.poisson(np.repeat(rates, 100))
        symbols = rng.choice(n := 3 + i % 8, size=300, p=rng.dirichlet(np.full(n, 4.0)))
        right["poisson"] += counts.max() <= 1 or guess(counts[:, None]) == "poisson"
        right["categorical"] += guess(symbols[:, None]) == "categorical"
    assert right["poisson"] >= 38
    assert right["categorical"] >= 38


@pytest.mark.parametrize(
    ("X", "words"),
    [
        (
            np.random.default_rng(0).poisson(2.0, 50),
            "Whole numbers from 0 to .*, with the frequencies of counts: a Poisson",
        ),
        (np.random.default_rng(0).integers(4, size=50), "Whole numbers from 0 to 3, without the frequencies of counts"),
        (np.random.default_rng(0).choice(list("AB"), 50), "Texts: symbols"),
        (np.random.default_rng(0).normal(size=20), "Real numbers: a normal distribution"),
    ],
    ids=["counts", "codes", "texts", "short"],
)
def test_every_choice_has_a_reason(X, words):
    assert re.search(words, str(fit(X).choice_))


def test_large_whole_numbers_are_measurements():
    """Rounded values vary by other amounts than counts: a Poisson law would need many states for them."""
    rng = np.random.default_rng(8)
    flow = np.round(np.where(np.arange(100) < 28, 1100, 850) + 125 * rng.standard_normal(100))[:, None]
    assert guess(flow) == "normal"
    assert guess(rng.poisson(np.where(np.arange(500) % 100 < 50, 2, 25))[:, None]) == "poisson"
