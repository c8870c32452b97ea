"""Predictions: compared with enumeration, as a proper distribution, and on the paper's data."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import ihmm
from ihmm.emissions.normal_mean import NormalMeanPhi
from ihmm.predictions import averages, forecasts, predict


def fit(model, y, **settings):
    settings = {"draws": 20, "tune": 20, "chains": 2, "seed": 1, "progress": False} | settings
    return ihmm.sample(model, y, **settings)


@pytest.fixture(scope="module")
def symbols():
    """An infinite model of two symbols and two sequences, with γ and c so large that unseen states matter."""
    model = ihmm.Model(ihmm.Categorical(2), ihmm.HDPPrior(gamma=2.0, concentration=3.0, stickiness=0.3))
    return fit(model, [[0, 0, 1, 1, 0, 0], [1, 1, 0, 1]])


@pytest.fixture(scope="module")
def finite():
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(3, concentration=2.0))
    return fit(model, np.random.default_rng(0).normal([0, 0, 4, 4, 0, 4, 4, 0], 0.5), draws=3, chains=1)


@pytest.fixture(scope="module")
def four_state():
    recording = ihmm.datasets.four_state()
    return recording, fit(ihmm.Model(ihmm.NormalMean(0.5, scale=2.0)), recording.y, draws=100, tune=60)


def paths(n_steps, n_states):
    return list(itertools.product(range(n_states), repeat=n_steps))


def log_joint(hmm, log_density, path):
    steps = np.log(hmm.initial[path[0]]) + sum(np.log(hmm.rows[a, b]) for a, b in itertools.pairwise(path))
    return steps + sum(log_density[t, k] for t, k in enumerate(path))


# Against enumeration


def test_likelihood_of_fixed_finite_parameters_is_the_sum_over_all_paths(finite):
    y = np.array([0.3, 3.5, 4.1, -0.2])
    expected = []
    for item in finite.labelled_draws:
        hmm = predict.finite_hmm(finite.model, item)
        log_density = finite.model.emission.log_density(y, hmm.phi)
        expected.append(logsumexp([log_joint(hmm, log_density, path) for path in paths(4, 3)]))
    by_draw = averages.log_likelihood(finite.model, finite.model.observe(y), finite.labelled_draws)
    np.testing.assert_allclose(by_draw[:, 0], expected, rtol=1e-10)
    np.testing.assert_allclose(finite.log_likelihood(y), logsumexp(expected) - np.log(3), rtol=1e-10)


@pytest.mark.parametrize("causal", [True, False])
def test_state_probabilities_are_those_of_all_paths(finite, causal):
    y = np.array([0.3, 3.5, 2.0, -0.2])
    n_labels = finite.summary().n_states
    expected = np.zeros((4, n_labels + 1))
    for item in finite.labelled_draws:
        hmm = predict.finite_hmm(finite.model, item)
        log_density = finite.model.emission.log_density(y, hmm.phi)
        for t in range(4):
            end = t + 1 if causal else 4
            weight = {path: np.exp(log_joint(hmm, log_density, path)) for path in paths(end, 3)}
            for path, w in weight.items():
                expected[t, hmm.label[path[t]]] += w / sum(weight.values()) / 3
    found = finite.filter(y) if causal else finite.smooth(y)
    np.testing.assert_allclose(found, expected, atol=1e-10)


def test_decoded_paths_are_the_best_of_all_paths(finite):
    y = np.array([0.3, 3.5, 2.0, -0.2])
    for item, found in zip(finite.labelled_draws, finite.decode(y), strict=True):
        hmm = predict.finite_hmm(finite.model, item)
        log_density = finite.model.emission.log_density(y, hmm.phi)
        best = max(paths(4, 3), key=lambda path: log_joint(hmm, log_density, path))
        assert found.tolist() == hmm.label[list(best)].tolist()


# The infinite model


def test_probabilities_of_all_possible_series_sum_to_one(symbols):
    """No mass of the infinite model is dropped."""
    series = [np.array(y) for y in itertools.product([0, 1], repeat=5)]
    assert np.exp(symbols.log_likelihood(series)).sum() == pytest.approx(1, abs=1e-12)


def test_the_remaining_mass_hardly_matters(symbols, monkeypatch):
    """Breaking the sticks a hundred times further changes the likelihood by less than the draws differ."""
    y = [0, 1, 1, 0, 1, 0, 0, 0, 1]
    coarse = averages.log_likelihood(symbols.model, symbols.model.observe(y), symbols.labelled_draws)
    monkeypatch.setattr(predict, "MAX_REMAINDER", 1e-4)
    fine = averages.log_likelihood(symbols.model, symbols.model.observe(y), symbols.labelled_draws)
    n_fine = np.mean([len(predict.finite_hmm(symbols.model, item).initial) for item in symbols.labelled_draws])
    assert n_fine > 10
    assert logsumexp(fine) - logsumexp(coarse) == pytest.approx(0, abs=0.05)


def test_the_states_of_the_draw_come_first_and_keep_their_probabilities(symbols):
    for item in symbols.labelled_draws[:10]:
        hmm, k = predict.finite_hmm(symbols.model, item), item.draw.n_states
        np.testing.assert_allclose(hmm.rows.sum(axis=1), 1)
        np.testing.assert_allclose(hmm.initial.sum(), 1)
        np.testing.assert_allclose(hmm.rows[:k, :k], item.draw.transitions.rows[:, :-1], rtol=1e-9)
        np.testing.assert_allclose(hmm.initial[:k], item.draw.transitions.initial[:-1], rtol=1e-9)
        assert (hmm.label[:k] >= 0).all()
        assert (hmm.label[k:] == predict.UNSEEN).all()


def test_a_value_unlike_all_others_is_assigned_to_unseen_states():
    y = np.random.default_rng(1).normal(0, 1, 200)
    posterior = fit(ihmm.Model(ihmm.Normal()), y)
    strange = np.concatenate([y[:20], np.full(20, 40.0)])
    unseen = posterior.smooth(strange)[:, -1]
    assert unseen[:19].max() < 0.2  # probability of unseen states, 0.06 to 0.13 with five seeds
    assert unseen[21:].min() > 0.99


def test_a_missing_value_is_summed_over(symbols):
    missing = symbols.log_likelihood([0.0, 1.0, np.nan, 1.0, 0.0])
    either = symbols.log_likelihood([np.array([0, 1, 0, 1, 0]), np.array([0, 1, 1, 1, 0])])
    assert missing[0] == pytest.approx(logsumexp(either), abs=1e-10)


def test_sequences_are_independent(symbols):
    a, b = np.array([0, 1, 1]), np.array([1, 0])
    both = symbols.log_likelihood([a, b])
    np.testing.assert_allclose(both, [symbols.log_likelihood(a)[0], symbols.log_likelihood(b)[0]], rtol=1e-12)
    np.testing.assert_allclose(
        symbols.smooth([a, b]), np.concatenate([symbols.smooth(a), symbols.smooth(b)]), rtol=1e-12
    )


def test_filtering_does_not_depend_on_the_future(four_state):
    recording, posterior = four_state
    y = recording.y[:50]
    changed = y.copy()
    changed[30:] += 3
    np.testing.assert_allclose(posterior.filter(y)[:30], posterior.filter(changed)[:30], rtol=1e-12)
    assert not np.allclose(posterior.smooth(y)[:30], posterior.smooth(changed)[:30])


def test_smoothing_the_fitted_series_gives_the_probabilities_of_the_summary(four_state):
    recording, posterior = four_state
    smoothed = posterior.smooth(recording.y)
    np.testing.assert_allclose(smoothed.sum(axis=1), 1)
    assert np.abs(smoothed[:, :-1] - posterior.summary().probabilities).mean() < 0.02


def test_results_are_reproducible_and_do_not_depend_on_threads(four_state, monkeypatch):
    recording, posterior = four_state
    y = recording.y[:300]
    first = posterior.smooth(y), posterior.log_likelihood(y), posterior.forecast(5).y
    monkeypatch.setattr("ihmm._threads.processors", lambda: 1)
    again = posterior.smooth(y), posterior.log_likelihood(y), posterior.forecast(5).y
    for a, b in zip(first, again, strict=True):
        np.testing.assert_array_equal(a, b)


def test_a_single_step_can_be_predicted(four_state):
    assert four_state[1].filter([4.0]).shape == (1, 5)


def test_new_data_are_checked(four_state):
    with pytest.raises(ValueError, match="one number per time step"):
        four_state[1].smooth(np.zeros((5, 2)))


# Forecasts


def test_one_step_ahead_follows_the_rows_and_the_emission(finite):
    """Repeated forecasts of a single draw follow its transition matrix."""
    item = finite.labelled_draws[0]
    hmm = predict.finite_hmm(finite.model, item)
    last = item.draw.states[-1]
    items = [item._replace(seed=(1, i)) for i in range(4000)]
    (future,) = forecasts.forecast(finite.model, finite.data, items, 3, None)
    for steps in (1, 3):
        expected = np.linalg.matrix_power(hmm.rows, steps)[last]
        for label in range(3):
            share = expected[hmm.label == label].sum()
            assert np.mean(future.states[:, steps - 1] == label) == pytest.approx(share, abs=0.03)
    mean = np.linalg.matrix_power(hmm.rows, 2)[last] @ hmm.phi.mean
    assert future.y[:, 1].mean() == pytest.approx(mean, abs=0.15)


def test_forecasts_of_the_fitted_series_and_of_a_copy_agree(four_state):
    recording, posterior = four_state
    own, given = posterior.forecast(3), posterior.forecast(3, recording.y)
    assert own.y.shape == given.y.shape == (200, 3)
    np.testing.assert_allclose(own.state_probabilities(4), given.state_probabilities(4), atol=0.15)
    np.testing.assert_allclose(own.state_probabilities(4).sum(axis=1), 1)
    low, high = own.interval(0.5)
    assert np.all(low < high)
    assert np.mean((own.y > low) & (own.y < high), axis=0) == pytest.approx(0.5, abs=0.02)


def test_forecasts_converge_to_the_stationary_distribution(four_state):
    recording, posterior = four_state
    far = posterior.forecast(60)
    assert far.mean[40:].mean() == pytest.approx(recording.y.mean(), abs=0.2)
    assert far.y[:, 40:].std() == pytest.approx(recording.y.std(), abs=0.2)


def test_several_sequences_give_several_forecasts(symbols):
    futures = symbols.forecast(4)
    assert [future.y.shape for future in futures] == [(40, 4), (40, 4)]
    assert set(np.unique(futures[0].y)) <= {0, 1}


@pytest.mark.parametrize("steps", [0, -1, 1.5])
def test_steps_to_forecast_must_be_a_positive_integer(symbols, steps):
    with pytest.raises(ValueError, match="steps"):
        symbols.forecast(steps)


def test_new_states_may_appear_in_a_forecast():
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=5.0, concentration=20.0))
    posterior = fit(model, np.random.default_rng(0).normal(size=10), draws=200)
    assert (posterior.forecast(20).states == predict.UNSEEN).any()


# Missing values


def test_without_missing_values_nothing_is_imputed(symbols):
    imputed = symbols.impute()
    assert imputed.steps.size == 0
    assert imputed.y.shape == (40, 0)


def test_missing_symbols_are_imputed_as_symbols():
    y = np.array([0, 1] * 20, float)
    y[[3, 10, 11]] = np.nan
    imputed = fit(ihmm.Model(ihmm.Categorical(2)), y).impute()
    assert imputed.steps.tolist() == [3, 10, 11]
    assert set(np.unique(imputed.y)) <= {0, 1}


def test_the_placeholder_of_a_missing_step_is_not_imputed():
    """The first row is the placeholder, and has a missing value itself."""
    y = np.random.default_rng(0).normal(size=(20, 2))
    y[0, 1] = y[7] = np.nan
    imputed = fit(ihmm.Model(ihmm.MultivariateNormal(2)), y).impute()
    assert imputed.steps.tolist() == [0, 7]
    assert (imputed.y[:, 0, 0] == y[0, 0]).all()
    assert len(np.unique(imputed.y[:, 1, 0])) == len(imputed.y)


@pytest.mark.slow
def test_imputed_values_cover_the_truth_at_the_nominal_rate():
    """A fifth of the values deleted at random and a gap of 200 steps: still four states, and calibrated intervals."""
    recording = ihmm.datasets.four_state()
    rng = np.random.default_rng(5)
    hidden = rng.random(4000) < 0.2
    hidden[1000:1200] = True
    y = np.where(hidden, np.nan, recording.y)
    posterior = ihmm.InfiniteHMM(draws=200, tune=200, chains=4, random_state=5).fit(y).posterior_
    assert posterior.summary().n_states == 4
    imputed = posterior.impute()
    assert imputed.steps.tolist() == np.flatnonzero(hidden).tolist()
    for nominal in (0.5, 0.8, 0.95):
        low, high = imputed.interval(nominal)
        covered = np.mean((low <= recording.y[hidden]) & (recording.y[hidden] <= high))
        assert covered == pytest.approx(nominal, abs=0.04), nominal


# Angles


@pytest.fixture(scope="module", params=["VonMises", "Independent", "DPMixture"])
def headings(request):
    """Angles around ±π with a gap; of Independent, beside a column of speeds."""
    rng = np.random.default_rng(0)
    y = rng.vonmises(np.pi, 8.0, 80)
    y[30:33] = np.nan
    if request.param == "Independent":
        emission = ihmm.Independent(heading=ihmm.VonMises(), speed=ihmm.Normal())
        return fit(ihmm.Model(emission), np.column_stack([y, rng.normal(3.0, 0.1, 80)]))
    emission = ihmm.VonMises() if request.param == "VonMises" else ihmm.DPMixture(ihmm.VonMises())
    return fit(ihmm.Model(emission, ihmm.HDPPrior(gamma=0.1, concentration=0.1)), y)


@pytest.mark.parametrize("task", ["forecast", "impute"])
def test_means_and_intervals_of_angles_are_taken_on_the_circle(headings, task):
    samples = headings.forecast(3) if task == "forecast" else headings.impute()
    mean, (low, high) = samples.mean, samples.interval(0.5)
    assert mean.shape == low.shape == samples.y.shape[1:]
    if mean.ndim == 2:
        speed = samples.y[..., 1]
        np.testing.assert_allclose(mean[:, 1], speed.mean(axis=0))
        np.testing.assert_allclose([low[:, 1], high[:, 1]], np.quantile(speed, [0.25, 0.75], axis=0))
        mean, low, high = mean[:, 0], low[:, 0], high[:, 0]
    assert np.cos(mean).max() < -0.8
    assert np.cos(low).max() < -0.7
    assert np.cos(high).max() < -0.7
    assert (high - low).max() < 1.5
    assert np.all(low < high)


# The paper's data


@pytest.mark.slow
@pytest.mark.parametrize("name", ["four_state", "ten_state"])
def test_held_out_likelihood_is_within_half_a_percent_of_the_truth(name):
    recording = getattr(ihmm.datasets, name)()
    fresh = getattr(ihmm.datasets, name)(seed=77)
    prior = ihmm.HDPPrior(concentration=ihmm.GammaPrior(1, 0.001), stickiness=ihmm.BetaPrior(1, 1))  # rows may be alike
    model = ihmm.Model(ihmm.NormalMean(recording.noise, scale=5.0), prior)
    posterior = fit(model, recording.y, draws=1000, tune=150, init="auto")
    (ours,) = posterior.log_likelihood(fresh.y)

    truth = ihmm.Model(ihmm.NormalMean(recording.noise), ihmm.FinitePrior(len(recording.means)))
    n_states = len(recording.means)
    hmm = predict.FiniteHMM(
        np.full(n_states, 1 / n_states),
        recording.transition,
        NormalMeanPhi(recording.means),
        open_ended=False,
        label=np.arange(n_states),
    )
    _, log_predictive = predict.run_filter(truth, truth.observe(fresh.y), hmm)
    assert abs(ours - log_predictive.sum()) < 0.005 * abs(log_predictive.sum())


@pytest.mark.parametrize("causal", [True, False])
def test_draws_side_by_side_have_the_probabilities_and_likelihoods_of_draws_one_by_one(symbols, monkeypatch, causal):
    y, labels = [[0, 1, 1, 0, 1], [1, 0, 0]], symbols.summary().n_states
    data, items = symbols.model.observe(y), symbols.labelled_draws

    def found():
        probabilities = averages.state_probabilities(symbols.model, data, items, labels, causal=causal)
        return probabilities, averages.log_likelihood(symbols.model, data, items)

    together = found()
    monkeypatch.setattr(averages, "MAX_STATES_IN_LANES", 6)  # some in lanes, some not
    mixed = found()
    monkeypatch.setattr(averages, "MAX_STATES_IN_LANES", 0)
    for probabilities, log_likelihood in (together, mixed):
        np.testing.assert_allclose(probabilities, found()[0], atol=1e-12)
        np.testing.assert_allclose(log_likelihood, found()[1], rtol=1e-12)


def test_no_transition_is_so_improbable_that_products_are_subnormal(four_state):
    """The processor is slow with subnormal numbers."""
    _, posterior = four_state
    for item in posterior.labelled_draws:
        hmm = predict.finite_hmm(posterior.model, item)
        assert (hmm.rows[hmm.rows > 0] > 1e-151).all()
        assert (hmm.initial[hmm.initial > 0] > 1e-151).all()


def test_as_many_draws_are_averaged_as_the_error_requires(four_state, monkeypatch):
    recording, posterior = four_state
    monkeypatch.setattr(averages, "DRAWS_PER_PART", 10)
    used = []
    exact = averages.probabilities_of
    monkeypatch.setattr(
        averages,
        "probabilities_of",
        lambda model, data, hmms, *rest, **how: used.append(len(hmms)) or exact(model, data, hmms, *rest, **how),
    )
    y = recording.y[:400]
    everything = posterior.smooth(y, error=0)
    assert sum(used) == 200
    n_used = {}
    for error in (0.1, 0.004, 1e-6):
        used.clear()
        found = posterior.smooth(y, error=error)
        n_used[error] = sum(used)
        assert np.abs(found - everything).max() < 4 * error
        assert np.array_equal(found, posterior.smooth(y, error=error))
    assert 40 <= n_used[0.1] < n_used[0.004] < n_used[1e-6] == 200, n_used


def test_an_error_that_is_not_a_number_of_at_least_zero_is_refused(finite):
    with pytest.raises(ValueError, match="error must be a standard error, or 0"):
        finite.filter([0.0, 1.0], error=-0.1)
