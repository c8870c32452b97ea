"""The pilot fit: what it finds in recordings whose truth is known."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from scipy import signal

import ihmm
from ihmm.choice import ModelOptions, _levels, choose_model
from ihmm.datasets import PANEL, eruptions, fret, paces, patch_clamp, returns, rhythms, steady
from ihmm.pilot import pilot
from ihmm.pilot._columns import differ
from ihmm.pilot._fit import Series, Structure, improve, start
from ihmm.pilot._search import reduce


def look(recording):
    values = np.concatenate([np.reshape(part, (len(part), -1)) for part in recording.series])
    return pilot(values, np.concatenate([[0], np.cumsum([len(part) for part in recording.series])]))


def look_at(values):
    return pilot(values[:, None], np.array([0, len(values)]))


def test_it_depends_on_the_data_alone():
    """So that the other tests may keep its results, see `tests/conftest.py`."""
    first, second = (look(fret(length=300, dwell=15.0)) for _ in range(2))
    assert pickle.dumps(first) == pickle.dumps(second)


def test_blurred_frames_are_no_levels():
    found = look(fret(length=600, dwell=15.0))
    assert found.n_states == 2
    assert found.min_dwell == 2
    np.testing.assert_allclose(np.sort(found.level[:, 0]), [0.25, 0.75], atol=0.03)


def test_states_whose_scales_hardly_differ_share_one():
    """Otherwise a state of blurred frames, with a large scale of its own, explains the recording better."""
    recording = next(variant for variant in PANEL if variant.kind == "fret").recording(seed=3)
    found = pilot(recording.series[0].reshape(-1, 1), np.array([0, len(recording.series[0])]))
    assert (found.n_states, found.scale) == (2, "shared")


def test_a_filter_is_recognised():
    found = look(patch_clamp(length=3000, seed=1))
    assert (found.n_states, found.filtered) == (2, True)
    assert any("filtered" in reason for reason in found.reasons)


@pytest.mark.parametrize("kind", ["white", "memory", "tails", "hum", "walk"])
def test_noise_alone_is_one_level(kind):
    assert look(steady(kind, length=800)).n_states == 1


def test_visits_of_single_steps_are_believed_if_there_are_many():
    recording = ihmm.datasets.four_state(length=1500)
    found = pilot(recording.y[:, None], np.array([0, 1500]))
    assert (found.n_states, found.min_dwell) == (4, 1)


@pytest.mark.parametrize("length", [2, 5, 30])
def test_a_recording_may_be_very_short(length):
    values = np.arange(length)[:, None] + 0.5
    assert choose_model(values, np.array([length])).model.duration is None


def test_constant_and_missing_values_do_no_harm():
    values = np.column_stack([np.full(300, 4.0), np.repeat([0.0, 5.0, 0.0], 100)])
    values[:, 1] += 0.1 * np.random.default_rng(0).standard_normal(300)
    values[40:50] = np.nan
    found = pilot(values, np.array([0, 300]))
    assert found.n_states == 2


def test_each_iteration_gains_likelihood():
    rng = np.random.default_rng(3)
    y = np.repeat(rng.standard_normal(30) * 2, 20)[:, None] + rng.standard_normal((600, 1))
    series = Series(y, np.array([0, 250, 600]))
    for structure in (Structure(2, 2, shared=False), Structure(2, 2, sharp=False)):
        fit, before = start(series, structure, (y[:, 0] > 0).astype(int), 2), -np.inf
        for _ in range(8):
            fit = improve(series, fit, 1)
            assert fit.log_likelihood > before - 1.0  # pseudo-counts and the grid of ν cost a little
            before = fit.log_likelihood


def test_levels_closer_than_the_separation_become_one():
    rng = np.random.default_rng(4)
    path = np.repeat(np.arange(30) % 3, 40)
    series = Series((np.array([0.0, 0.8, 6.0])[path] + rng.standard_normal(1200))[:, None], np.array([0, 1200]))
    fit = improve(series, start(series, Structure(), path, 3), 20)
    assert reduce(series, fit).n_states == 2


@pytest.mark.parametrize("n_levels", [2, 3])
def test_levels_that_last_may_be_closer_if_no_finer_ones_are_preferred(n_levels):
    rng = np.random.default_rng(n_levels)
    path = np.repeat(rng.permutation(np.arange(36) % n_levels), rng.integers(40, 80, 36))
    found = pilot((1.25 * path + rng.normal(size=len(path)))[:, None], np.array([0, len(path)]))
    assert found.n_states == n_levels
    assert np.mean(np.argsort(np.argsort(found.level[:, 0]))[found.states] == path) > 0.93


def test_a_wandering_level_is_not_several_close_ones():
    """The finer the levels, the better they explain it."""
    rng = np.random.default_rng(0)
    wave = 1.5 * np.sin(np.arange(2000) / 60) + np.sin(np.arange(2000) / 97)
    path = np.arange(2000) // 100 % 2
    found = pilot((12.0 * path + wave + rng.normal(size=2000))[:, None], np.array([0, 2000]))
    assert found.n_states == 2


def test_waves_around_levels_that_noise_with_a_memory_explains_are_no_close_levels():
    rng = np.random.default_rng(2)
    path, wave = np.arange(1500) // 150 % 2, rng.normal(size=1500)
    for t in range(1, 1500):
        wave[t] += 0.97 * wave[t - 1]
    found = pilot((7.0 * path + 0.7 * wave / wave.std() + rng.normal(size=1500))[:, None], np.array([0, 1500]))
    assert (found.n_states, found.order) == (2, 1)


def test_what_is_given_is_not_chosen():
    recording = fret(length=400)
    values, lengths = recording.series[0][:, None], np.array([400])
    assert choose_model(values, lengths, ModelOptions(min_dwell=5)).model.duration.minimum == 5
    assert choose_model(values, lengths, ModelOptions(resolution=0.3)).resolution == 0.3
    assert isinstance(choose_model(values, lengths, ModelOptions("student-t")).model.emission, ihmm.StudentT)
    assert choose_model(values, lengths, ModelOptions(sticky=False)).model.duration is None
    assert choose_model(values, lengths, ModelOptions(sampler=ihmm.Beam())).model.duration is None


def test_calm_and_turbulent_times_are_two_states():
    found = look(returns(length=1500))
    assert (found.n_states, found.scale) == (2, "own")


def test_levels_that_alternate_from_step_to_step_are_found():
    found = look(eruptions())
    assert (found.n_states, found.min_dwell) == (2, 1)


def test_noise_that_is_not_normal_is_one_level():
    rng, path = np.random.default_rng(6), np.repeat(np.arange(20) % 2, 60)
    values = np.where(path == 0, rng.beta(2, 12, 1200), rng.beta(12, 2, 1200))[:, None]
    assert pilot(values, np.array([0, 1200])).n_states == 2


def test_plateaus_of_a_smooth_series_are_levels_and_phases_of_a_cycle_are_not():
    found = look(paces())
    assert (found.n_states, found.number_given) == (2, True)
    cycle = np.sin(2 * np.pi * np.arange(600) / 40)[:, None] + 0.01 * np.random.default_rng(7).standard_normal((600, 1))
    assert pilot(cycle, np.array([0, 600])).n_states == 1


@pytest.mark.parametrize("trend", ["line", "wave", "parabola"])
def test_a_trend_is_not_a_sequence_of_levels(trend):
    rng, time = np.random.default_rng(8), np.linspace(-1, 1, 1200)
    slow = {"line": 3 * time, "wave": 2 * np.sin(20 * time), "parabola": 4 * time**2}[trend]
    values = (slow + rng.standard_normal(1200))[:, None]
    found = pilot(values, np.array([0, 1200]))
    assert found.n_states == 1
    if trend != "wave":
        assert found.number_given
        assert "trend" in found.reasons[0]


def test_a_step_is_not_a_trend():
    step = (np.arange(1200) > 700) * 3.0 + np.random.default_rng(8).standard_normal(1200)
    choice = choose_model(step[:, None], np.array([1200]))
    assert len(np.unique(choice.init)) == 2
    assert isinstance(choice.model.prior, ihmm.HDPPrior)


def test_a_random_walk_is_one_level_and_the_ambiguity_is_said():
    walk = np.cumsum(np.random.default_rng(5).standard_normal(400))[:, None]
    found = pilot(walk, np.array([0, 400]))
    assert found.n_states == 1
    assert "a few changes of level would look the same" in found.reasons[1]


def test_a_short_segment_far_from_the_rest_is_a_level():
    """As few probes of a deleted region are, where tails heavier than normal would explain them one by one."""
    rng = np.random.default_rng(9)
    values = rng.normal(0, 0.1, (400, 1))
    values[200:212] -= 0.8
    found = pilot(values, np.array([0, 400]))
    assert found.n_states == 2
    assert np.flatnonzero(found.states == found.states[205]).tolist() == list(range(200, 212))


def correlated(path: np.ndarray, seed: int) -> np.ndarray:
    """Two columns with a correlation of 0.9, of which only the difference tells the states apart."""
    rng = np.random.default_rng(seed)
    shared, own = rng.standard_normal((len(path), 1)), rng.standard_normal((len(path), 2))
    return 3 * shared + own + 2.5 * path[:, None] * np.array([1, -1])


def test_columns_with_correlated_noise_are_told_apart_by_what_they_do_not_share():
    path = np.repeat(np.arange(20) % 2, 60)
    values = correlated(path, 0)
    found = pilot(values, np.array([0, 1200]))
    assert (found.n_states, found.correlated) == (2, True)
    assert max(np.mean(found.states == path), np.mean(found.states != path)) > 0.98
    np.testing.assert_allclose(np.abs(np.diff(found.level, axis=0)), 2.5, atol=0.6)
    np.testing.assert_allclose(found.noise, np.sqrt(10), rtol=0.1)
    choice = _levels(values, np.array([1200]), found, ModelOptions())
    assert isinstance(choice.model.emission, ihmm.NoisyLevels)
    assert choice.model.emission.correlated
    assert "The noise of the columns is correlated" in str(choice)


def sensors(rng: np.random.Generator, path: np.ndarray, memory: float = 0.5) -> np.ndarray:
    """Four columns whose noise is correlated and has a memory; how noisy they are differs."""
    mixed = rng.standard_normal((len(path), 4)) @ (np.eye(4) + 0.5 * rng.standard_normal((4, 4)))
    noise = signal.lfilter([1.0], [1.0, -memory], mixed, axis=0)
    return noise * [1.0, 0.2, 5.0, 1.0] + path[:, None] * [4.0, 0.0, 5.0, -2.0]


def test_noise_that_is_correlated_and_has_a_memory_is_both():
    path = np.repeat(np.arange(6) % 2, 200)
    values = sensors(np.random.default_rng(4), path)
    choice = choose_model(values, np.array([1200]))
    assert isinstance(choice.model.emission, ihmm.NoisyLevels)
    assert (choice.model.emission.correlated, choice.model.emission.order) == (True, 1)
    assert isinstance(choice.model.prior, ihmm.HDPPrior)
    assert len(np.unique(choice.init)) == 2
    assert max(np.mean(choice.init == path), np.mean(choice.init != path)) > 0.98
    assert "has a memory of 1 step" in str(choice)


def test_correlations_around_levels_that_are_too_many_are_those_around_fewer():
    """Each level becomes two in noise that is taken for independent, around which it is hardly correlated."""
    rng, path = np.random.default_rng(5), np.repeat(np.arange(10) % 2, 120)
    values = rng.standard_normal((1200, 2))
    values[:, 1] += np.where(path == 0, 0.8, 0.0) * values[:, 0]
    found = pilot(values + 6.0 * path[:, None] * np.array([1, -1]), np.array([0, 1200]))
    assert (found.n_states, found.correlated) == (2, True)


@pytest.mark.parametrize("shared", [True, False])
def test_states_have_covariances_of_their_own_if_these_differ(shared):
    rng, path = np.random.default_rng(5), np.repeat(np.arange(10) % 2, 120)
    white = rng.standard_normal((1200, 2)) * (1.0 if shared else 1.0 + path[:, None]) + 6.0 * path[:, None]
    mixed = white.copy()
    mixed[:, 1] += np.where(path == 0, 0.5, -0.5) * white[:, 0]
    for values, expected in ((white, False), (mixed, True)):
        series = Series(values, np.array([0, 1200]))
        assert differ(series, start(series, Structure(0, 2, shared), path, 2), path) == expected


def test_covariances_of_their_own_are_those_of_multivariate_normal_states():
    path = np.repeat(np.arange(10) % 2, 120)
    values = correlated(path, 0)
    found = replace(pilot(values, np.array([0, 1200])), own_correlations=True)
    choice = _levels(values, np.array([1200]), found, ModelOptions())
    assert isinstance(choice.model.emission, ihmm.MultivariateNormal)


def test_columns_with_correlated_noise_and_nothing_else_are_one_level():
    found = pilot(correlated(np.zeros(1200, np.int64), 1), np.array([0, 1200]))
    assert found.n_states == 1


@pytest.mark.parametrize("seed", [0, 2])
def test_noise_that_the_model_does_not_quite_fit_does_not_split_a_level(seed):
    """The noise of the upper level has the longer memory, the memory of the model is that of both."""
    rng, path = np.random.default_rng(seed), np.repeat(np.arange(50) % 2, 100)
    noise = np.zeros(5000)
    for t in range(1, 5000):
        noise[t] = (0.8 if path[t] else 0.4) * noise[t - 1] + 0.3 * rng.standard_normal()
    assert pilot((1.6 * path + noise)[:, None], np.array([0, 5000])).n_states == 2


def test_the_number_of_levels_that_are_plain_to_see_is_not_in_question():
    recording = paces()
    choice = choose_model(recording.series[0][:, None], np.array([600]))
    assert isinstance(choice.model.prior, ihmm.FinitePrior)
    assert choice.model.prior.n_states == 2


def test_a_rhythm_that_changes_is_told_from_levels():
    found = look(rhythms(length=1500))
    assert found.family == "autoregressive"


def test_switching_dynamics_are_told_from_levels():
    variant = next(variant for variant in PANEL if variant.kind == "oscillators")
    assert look(variant.recording()).family == "autoregressive"


def test_structures_are_compared_on_the_same_values_if_some_are_missing():
    recording = ihmm.datasets.four_state()
    hidden = np.random.default_rng(5).random(4000) < 0.2
    found = pilot(np.where(hidden, np.nan, recording.y)[:, None], np.array([0, 4000]))
    assert (found.n_states, found.order) == (4, 0)
    hidden[:] = False
    hidden[1000:1200] = True
    found = pilot(np.where(hidden, np.nan, recording.y)[:, None], np.array([0, 4000]))
    assert (found.n_states, found.order) == (4, 0)


def test_levels_that_differ_in_spread_have_no_resolution_of_means():
    """The means of calm and volatile returns are the same, and draws of them may be arbitrarily close."""
    calm_and_volatile, levels = returns().series[0], fret(length=300, dwell=15.0).series[0]
    assert choose_model(calm_and_volatile[:, None], np.array([len(calm_and_volatile)])).resolution is None
    assert choose_model(levels[:, None], np.array([len(levels)])).resolution is not None


@pytest.mark.parametrize("seed", range(2))
def test_noise_without_a_memory_is_called_white(seed):
    rng = np.random.default_rng(seed)
    values = np.repeat([1.0, 6.0, 1.0], 300) * rng.exponential(size=900)
    assert "white" in look_at(values).reasons[0]


def test_a_staircase_has_more_levels_than_a_search_starts_from():
    rng = np.random.default_rng(1)
    step = np.searchsorted(np.sort(rng.choice(np.arange(20, 1980, 20), 20, replace=False)), np.arange(2000))
    found = look_at(8.0 * step + rng.normal(0, 2.0, 2000))
    assert found.n_states == 21
    np.testing.assert_array_equal(np.diff(found.states) != 0, np.diff(step) != 0)


def factors(seed, medians, spread, memory=0.0, length=1500):
    """Values whose noise is a factor with a memory, at levels that last for 50 steps."""
    rng = np.random.default_rng(seed)
    states = rng.integers(len(medians), size=length // 50).repeat(50)
    noise = np.zeros(length)
    for t in range(1, length):
        noise[t] = memory * noise[t - 1] + np.sqrt(1 - memory**2) * rng.normal(0, spread)
    return states, np.asarray(medians)[states] * np.exp(noise)


@pytest.mark.parametrize(
    ("medians", "spread", "memory"), [((3.0, 9.0), 0.3, 0.8), ((5.0, 60.0, 600.0), 0.6, 0.0)], ids=["wind", "steps"]
)
def test_noise_that_is_a_factor_is_modelled_on_the_scale_of_logarithms(medians, spread, memory):
    states, y = factors(1, medians, spread, memory)
    choice = choose_model(y[:, None], np.array([len(y)]))
    assert isinstance(choice.model.emission, ihmm.LogScale)
    assert choice.model.emission.order == (1 if memory else 0)
    assert "a factor rather than a sum" in choice.reasons[0]
    found = [np.median(y[choice.init == k]) for k in range(choice.init.max() + 1)]
    np.testing.assert_allclose(np.sort(found), np.unique(np.asarray(medians)[states]), rtol=0.3)


@pytest.mark.parametrize("shift", [0.0, -5.0], ids=["positive", "of both signs"])
def test_noise_that_is_a_sum_is_not_modelled_on_the_scale_of_logarithms(shift):
    states, _ = factors(1, (2.0, 9.0), 0.0)
    y = np.array([2.0, 9.0])[states] + np.random.default_rng(1).normal(0, 0.5, len(states)) + shift
    choice = choose_model(y[:, None], np.array([len(y)]))
    assert isinstance(choice.model.emission, ihmm.NoisyLevels)


def test_a_resolution_that_is_given_is_one_of_the_values_themselves():
    _, y = factors(1, (3.0, 9.0), 0.3)
    choice = choose_model(y[:, None], np.array([len(y)]), ModelOptions(resolution=2.0))
    assert not isinstance(choice.model.emission, ihmm.LogScale)
    assert choice.resolution == 2.0


def test_values_of_a_coarse_grid_have_the_noise_of_rounding():
    """Prices, for example: states of a single value each would have no noise at all, and an infinite likelihood."""
    y = 0.05 * np.repeat(np.random.default_rng(1).integers(4, 10, 40), 8)
    series = Series((y - y.mean())[:, None], np.array([0, len(y)]))
    assert series.least_scale == pytest.approx(0.05 / np.sqrt(12))
    fit = improve(series, start(series, Structure(dwell=1), np.unique(y, return_inverse=True)[1], 6), 10)
    assert np.isfinite(fit.log_likelihood)
    assert np.isfinite(look_at(y).resolution).all()


@pytest.mark.parametrize(
    ("sides", "lasts", "levels"), [((-1,), (2, 4), 2), ((-1, 1), (1, 2), 1)], ids=["blockades", "outliers"]
)
def test_brief_events_in_one_direction_are_a_level_and_single_steps_in_both_are_outliers(sides, lasts, levels):
    rng = np.random.default_rng(4)
    y = rng.normal(0, 1, 3000)
    for begin in rng.choice(2990, 45, replace=False):
        length = rng.integers(*lasts)
        y[begin : begin + length] += rng.choice(sides) * rng.uniform(20, 70, length)
    assert look_at(y).n_states == levels


def test_a_filter_that_is_longer_than_those_searched_is_found():
    """As in recordings that are sampled much faster than they change."""
    from scipy.signal import bessel, lfilter

    rng = np.random.default_rng(4)
    states = np.repeat(rng.integers(2, size=40), 100)
    b, a = bessel(4, 0.25)
    y = lfilter(b, a, 2.0 * states + 0.8 * rng.normal(size=4000))
    found = look_at(y)
    assert (found.n_states, found.order, found.filtered) == (2, 8, True)


def test_values_that_alternate_are_levels_although_the_columns_predict_each_other():
    """A geyser: a short eruption follows a short wait and is followed by a long one."""
    rng = np.random.default_rng(2)
    states = (np.cumsum(rng.random(400) < 0.85)) % 2
    y = np.array([[2.0, 54.0], [4.3, 80.0]])[states] + rng.normal(0, 1, (400, 2)) * [0.3, 5.0]
    y[:, 1] = np.roll(y[:, 1], -1)  # the wait after an eruption
    found = pilot(y, np.array([0, 400]))
    assert (found.family, found.n_states) == ("levels", 4)  # pairs of an eruption and a wait
