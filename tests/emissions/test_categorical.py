"""`Categorical`: symbols 0 … n − 1 with Dirichlet probabilities."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

import ihmm
from ihmm.emissions import Categorical
from ihmm.emissions.categorical import CategoricalPhi
from reference.verdicts import assert_follows, assert_frequencies

QUICK = settings(max_examples=50, deadline=None, derandomize=True)
EMISSION = Categorical(4, concentration=0.7)


@st.composite
def families_with_symbols(draw):
    n_symbols = draw(st.integers(1, 6))
    emission = Categorical(n_symbols, draw(st.floats(0.05, 20)))
    return emission, np.array(draw(st.lists(st.integers(0, n_symbols - 1), min_size=1, max_size=10)))


@QUICK
@given(families_with_symbols(), st.integers(0, 100))
def test_density_is_the_probability_of_the_symbol(pair, seed):
    emission, y = pair
    phi = CategoricalPhi(np.random.default_rng(seed).dirichlet(np.ones(emission.n_symbols), 3))
    for k in range(3):
        law = stats.rv_discrete(values=(np.arange(emission.n_symbols), phi.probs[k]))
        np.testing.assert_allclose(emission.log_density(y, phi)[:, k], law.logpmf(y), rtol=1e-9, atol=1e-12)


@QUICK
@given(families_with_symbols())
def test_evidence_is_polyas_urn(pair):
    # the chance of the next symbol: (concentration + how often it came before) / (mass + how many came before)
    emission, y = pair
    total = 0.0
    for t, symbol in enumerate(y):
        before = (y[:t] == symbol).sum()
        total += np.log((emission.concentration + before) / (emission.n_symbols * emission.concentration + t))
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("concentration", [0.2, 1.0, 30.0])
def test_evidence_sums_to_one_over_all_series(concentration):
    emission = Categorical(3, concentration)
    total = sum(np.exp(emission.log_evidence(np.array(y))) for y in itertools.product(range(3), repeat=5))
    assert total == pytest.approx(1, abs=1e-10)


def test_marginal_is_the_same_for_every_symbol():
    np.testing.assert_allclose(EMISSION.log_marginal(np.arange(4)), np.log(1 / 4))


@QUICK
@given(st.integers(2, 6), st.floats(0.05, 20), st.integers(0, 100))
def test_prior_density_is_scipys(n_symbols, concentration, seed):
    probs = np.random.default_rng(seed).dirichlet(np.full(n_symbols, 5.0), 3)
    expected = [stats.dirichlet.logpdf(p, np.full(n_symbols, concentration)) for p in probs]
    actual = Categorical(n_symbols, concentration).log_prior(CategoricalPhi(probs))
    np.testing.assert_allclose(actual, expected, rtol=1e-8, atol=1e-8)


def test_prior_draws_follow_the_prior():
    assert_dirichlet(EMISSION.sample_prior(np.random.default_rng(0), 20_000).probs, np.full(4, 0.7))


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([0, 2, 2, 3]), 40_000
    states = (2 * np.arange(n // 2)[:, None] + np.array([0, 0, 0, 1])).ravel()
    probs = EMISSION.resample(np.random.default_rng(1), np.tile(y, n // 2), states, n).probs
    assert_dirichlet(probs[::2], 0.7 + np.array([1, 0, 2, 0]))
    assert_dirichlet(probs[1::2], 0.7 + np.array([0, 0, 0, 1]))


def assert_dirichlet(probs, concentration):
    """Any part of a Dirichlet vector is Beta."""
    np.testing.assert_allclose(probs.sum(axis=1), 1, atol=1e-12)
    inside = np.random.default_rng(9).random(probs.shape) < 0.5
    a, b = (inside * concentration).sum(axis=1), (~inside * concentration).sum(axis=1)
    proper = (a > 0) & (b > 0)
    part = stats.beta.cdf((inside * probs).sum(axis=1)[proper], a[proper], b[proper])
    assert_follows(part, stats.uniform.cdf)


def test_tiny_concentrations_give_each_symbol_its_share_and_none_probability_zero():
    emission = Categorical(4, concentration=1e-8)
    probs = emission.sample_prior(np.random.default_rng(2), 20_000).probs
    assert probs.min() > 0
    assert_frequencies(np.bincount(probs.argmax(axis=1), minlength=4), np.full(4, 0.25))
    assert np.isfinite(emission.log_density(np.arange(4), CategoricalPhi(probs))).all()


def test_observations_follow_the_probabilities_of_their_state():
    phi = CategoricalPhi(np.array([[0.1, 0.0, 0.6, 0.3], [0.5, 0.5, 0.0, 0.0]]))
    states = np.arange(40_000) % 2
    y = EMISSION.sample_observations(np.random.default_rng(3), states, phi)
    for k in range(2):
        assert_frequencies(np.bincount(y[states == k], minlength=4), phi.probs[k])


@pytest.mark.parametrize("bad", [-1, 4, 1.5, np.inf])
def test_values_that_are_no_symbols_are_refused_and_found(bad):
    with pytest.raises(ValueError, match=r"sequence 1: .* whole numbers from 0 to 3 .* at t = 2 \(1 such values\)"):
        ihmm.Model(EMISSION).observe([[0, 1], [0.0, 3.0, bad]])


def test_symbols_may_come_as_reals():
    y = EMISSION.validate(np.array([0.0, 3.0, 1.0]))
    assert y.dtype == np.int64
    assert y.tolist() == [0, 3, 1]


@pytest.mark.parametrize("bad", [0, -3, 2.0, True, "4", None])
def test_the_number_of_symbols_must_be_a_whole_number(bad):
    with pytest.raises(ValueError, match="n_symbols must be a whole number of at least 1, got"):
        Categorical(bad)


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, np.inf, "1", None, True])
def test_the_concentration_must_be_positive(bad):
    with pytest.raises(ValueError, match=r"Categorical concentration .* must be a positive number, got"):
        Categorical(3, bad)


def test_base_says_how_often_each_symbol_is_expected():
    emission = Categorical(3, 0.7, base=(6, 3, 1))
    parameters = 0.7 * 3 * np.array([0.6, 0.3, 0.1])
    assert_dirichlet(emission.sample_prior(np.random.default_rng(0), 20_000).probs, parameters)
    np.testing.assert_allclose(emission.log_marginal(np.arange(3)), np.log([0.6, 0.3, 0.1]))
    probs = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]])
    expected = [stats.dirichlet.logpdf(row, parameters) for row in probs]
    np.testing.assert_allclose(emission.log_prior(CategoricalPhi(probs)), expected)
    total = sum(np.exp(emission.log_evidence(np.array(y))) for y in itertools.product(range(3), repeat=4))
    assert total == pytest.approx(1, abs=1e-10)


def test_a_concentration_with_a_prior_is_shared_by_all_states():
    emission = Categorical(3, ihmm.GammaPrior(2, 1))
    phi = emission.sample_prior(np.random.default_rng(0), 4)
    new = emission.sample_new(np.random.default_rng(1), 2, phi)
    assert np.unique([*phi.concentration, *new.concentration]).size == 1
    value = phi.concentration[0]
    fixed = Categorical(3, value).log_prior(CategoricalPhi(phi.probs)).sum()
    assert emission.log_prior(phi).sum() == pytest.approx(fixed + stats.gamma(2).logpdf(value))


def test_the_concentration_is_learned_from_many_states():
    rng = np.random.default_rng(3)
    n, emission = 400, Categorical(5, ihmm.GammaPrior(1, 1))
    probs = rng.dirichlet(np.full(5, 0.3), n)
    states = np.repeat(np.arange(n), 20)
    y = emission.sample_observations(rng, states, CategoricalPhi(probs))
    phi = emission.resample(rng, y, states, n)
    conjugate = emission.conjugate(y)
    drawn = []
    for _ in range(200):
        phi = conjugate.given(conjugate, phi).draw(rng, conjugate.statistics(y, states, n))
        drawn.append(phi.concentration[0])
    assert abs(np.mean(drawn[20:]) - 0.3) < 3 * np.std(drawn[20:])


@pytest.mark.parametrize("wrap", [ihmm.Independent, ihmm.DPMixture])
def test_parts_and_components_may_not_share_parameters(wrap):
    with pytest.raises(TypeError, match="in place of priors"):
        wrap(Categorical(3, ihmm.GammaPrior()))


@pytest.mark.parametrize("base", [(1, 2), (1, 0, 2), (1, -1, 2), (1, np.nan, 2)])
def test_a_base_that_does_not_fit_is_refused(base):
    with pytest.raises(ValueError, match="Categorical base"):
        Categorical(3, base=base)
