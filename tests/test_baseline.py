"""Levels around a slow trend, and levels that rise or fall within visits: what the pilot subtracts."""

import numpy as np
import pytest

import ihmm
from ihmm.choice import choose_model
from ihmm.pilot import pilot

LENGTH = 900
TIME = np.arange(LENGTH) / LENGTH
TRENDS = {"line": 6 * TIME, "wave": 2 * np.sin(9 * TIME)}


def visits(seed: int, mean: float = 25.0) -> np.ndarray:
    """(LENGTH,): a path of two states, each visit of about `mean` steps."""
    rng = np.random.default_rng(seed)
    lengths = rng.integers(int(0.6 * mean), int(1.4 * mean), LENGTH)
    return np.repeat(np.arange(LENGTH) % 2, lengths)[:LENGTH]


def noise(seed: int, scale: float) -> np.ndarray:
    return scale * np.random.default_rng(seed + 100).standard_normal(LENGTH)


def after_switching_on(path: np.ndarray) -> np.ndarray:
    """(LENGTH,): 6 e^(−age/5) in visits of state 1, except the first visit, which is old."""
    begins = np.flatnonzero(np.diff(path, prepend=path[0])) if len(path) else np.empty(0, int)
    age = (
        np.arange(LENGTH) - np.concatenate([[-1000], begins])[np.searchsorted(begins, np.arange(LENGTH), side="right")]
    )
    return 6 * np.exp(-age / 5) * (path == 1)


def look(y: np.ndarray):
    return pilot(y[:, None], np.array([0, len(y)]))


def agreement(found: np.ndarray, path: np.ndarray) -> float:
    return max(np.mean(found == path), np.mean(found != path))


@pytest.mark.parametrize("trend", TRENDS)
def test_two_levels_around_a_trend_are_two(trend):
    path = visits(0)
    found = look(3.0 * path + TRENDS[trend] + noise(0, 0.4))
    assert found.n_states == 2
    assert "baseline" in found.reasons[0]
    away = found.baseline[:, 0] - (TRENDS[trend] - TRENDS[trend].mean())
    assert np.std(away) < 0.15
    assert agreement(found.states, path) > 0.99
    np.testing.assert_allclose(np.ptp(found.level), 3.0, atol=0.15)


def test_a_trend_around_levels_is_found_if_values_are_missing():
    y = 3.0 * visits(1) + TRENDS["line"] + noise(1, 0.4)
    y[300:320] = np.nan
    assert look(y).n_states == 2


def test_a_staircase_is_not_a_trend():
    y = np.repeat(np.arange(6.0), 150) + noise(2, 0.2)
    found = look(y)
    assert (found.n_states, found.baseline) == (6, None)


def test_levels_without_a_trend_have_no_baseline():
    path = np.random.default_rng(3).integers(3, size=45).repeat(20)
    found = look(3.0 * path + noise(3, 0.5))
    assert (found.n_states, found.baseline) == (3, None)


def test_a_decay_after_each_switching_on_is_not_a_level():
    path = visits(4)
    found = look(10.0 * path + after_switching_on(path) + noise(4, 0.3))
    assert found.n_states == 2
    assert "each visit" in found.reasons[0]
    assert agreement(found.states, path) == 1.0
    inside = path == 1
    assert np.corrcoef(found.baseline[inside, 0], after_switching_on(path)[inside])[0, 1] > 0.99


def test_brief_levels_that_single_values_do_not_show_are_one():
    rng = np.random.default_rng(5)
    change = np.array([[0.0, 0.1, 0.9], [0.65, 0.35, 0.0], [0.6, 0.3, 0.1]])
    path = [0]
    for _ in range(400):
        path.append(rng.choice(3, p=change[path[-1]]))
    y = np.array([2.0, 4.0, 4.55])[path] + 0.27 * rng.standard_normal(401)
    found = look(y)
    assert (found.n_states, found.min_dwell) == (2, 1)
    assert found.resolution[0] > 0.7  # so that the sampler does not tell them apart, either


def test_scattered_missing_values_leave_a_short_memory():
    rng, path = np.random.default_rng(6), visits(6, 50.0)
    innovation, y = rng.standard_normal(LENGTH), np.zeros(LENGTH)
    for t in range(1, LENGTH):
        y[t] = 0.6 * y[t - 1] + innovation[t]
    y += 5.0 * path
    y[rng.random(LENGTH) < 0.1] = np.nan
    found = look(y)
    assert found.n_states == 2
    assert found.order > 0


@pytest.fixture(scope="module")
def drifting():
    path = visits(7)
    y = 3.0 * path + TRENDS["line"] + noise(7, 0.4)
    return y, path, ihmm.InfiniteHMM(draws=30, tune=30, chains=1, random_state=0).fit(y)


def test_the_estimator_fits_what_is_left(drifting):
    y, path, hmm = drifting
    assert hmm.n_levels_ == 2
    assert agreement(hmm.labels_, path) > 0.99
    np.testing.assert_allclose(np.ravel(hmm.posterior_.data.values) + hmm.choice_.baseline[:, 0], y)
    np.testing.assert_array_equal(hmm.predict(y), hmm.labels_)


def test_other_series_have_another_baseline(drifting):
    y, _, hmm = drifting
    for other in (y[:100], y + 1.0):
        with pytest.raises(ValueError, match="baseline"):
            hmm.predict(other)


def test_the_posterior_knows_the_baseline_too(drifting, tmp_path):
    y, path, hmm = drifting
    hmm.posterior_.save(tmp_path / "saved")
    for posterior in (hmm.posterior_, hmm.posterior_.thin(2), ihmm.Posterior.load(tmp_path / "saved")):
        np.testing.assert_allclose(np.ravel(posterior.data.values) + posterior.data.baseline[:, 0], y)
        assert agreement(posterior.smooth(y)[:, :-1].argmax(axis=1), path) > 0.99
        left = posterior.data.values  # without it already
        np.testing.assert_allclose(posterior.log_likelihood(y), posterior.log_likelihood(left))
        for method in (posterior.log_likelihood, posterior.smooth, posterior.filter, posterior.decode):
            with pytest.raises(ValueError, match="that of other series is not known"):
                method(y + 1.0)
        with pytest.raises(ValueError, match="that of other series is not known"):
            posterior.forecast(3, y[:100])


def test_imputed_values_are_around_the_baseline():
    y = 3.0 * visits(7) + TRENDS["line"] + noise(7, 0.4)
    gap = np.arange(200, 900, 50)
    known = y.copy()
    known[gap] = np.nan
    hmm = ihmm.InfiniteHMM(draws=30, tune=30, chains=1, random_state=0).fit(known)
    assert hmm.choice_.baseline is not None
    imputed = hmm.posterior_.impute()
    np.testing.assert_array_equal(imputed.steps, gap)
    assert np.median(np.abs(np.ravel(imputed.mean) - y[gap])) < 0.6


def test_simulations_without_the_baseline_say_so(drifting):
    _, _, hmm = drifting
    for simulate in (hmm.forecast, hmm.sample, hmm.posterior_.forecast):
        with pytest.warns(UserWarning, match="without the slow baseline of the fit"):
            simulate(3)


def test_the_model_is_for_the_values_without_the_baseline():
    y = 3.0 * visits(8) + TRENDS["line"] + noise(8, 0.4)
    choice = choose_model(y[:, None], np.array([LENGTH]))
    data = choice.without_baseline(ihmm.series.sequences.Sequences.of(y))
    assert np.std(data.values) < np.std(y)
    assert choice.left_censored().baseline is choice.baseline
