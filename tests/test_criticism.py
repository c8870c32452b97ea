"""Model criticism: data from the model itself pass, and each misfit is named with the setting that answers it."""

from types import SimpleNamespace

import numpy as np
import pytest

import ihmm
from ihmm.diagnostics.criticism import _with_memory, check_cycle, check_lines, criticise, visits_of
from ihmm.diagnostics.doubts import check_overlap
from ihmm.diagnostics.residuals import residuals
from ihmm.emissions._protocol import provides
from ihmm.emissions.noisy_levels import NoisyLevelsPhi
from ihmm.model import Draw, Hyper, Transitions
from ihmm.summaries.levels import DrawLevels
from ihmm.trajectory import Trajectory

STAY = 0.95


def markov(rng, n, n_states=2, stay=STAY):
    """States that stay with a probability and otherwise change to any other."""
    jump = np.where(rng.random(n) < stay, 0, rng.integers(1, max(n_states, 2), n))
    return np.cumsum(jump) % n_states


def parameters_given(rng, emission, data, states):
    """φ | y, s, after a few updates where `resample` is only a start."""
    rows, own = data.pair(states)
    phi = emission.resample(rng, rows, own, int(states.max()) + 1)
    for _ in range(20 * provides(emission, "update")):
        phi = emission.update(rng, rows, own, phi)
    return phi


def criticisms(emission, y, states, lengths=None, seed=0):
    """The criticisms given the true path, with φ drawn from its conditional: an exact draw from the posterior."""
    model = ihmm.Model(emission)
    data = model.observe(y if lengths is None else np.split(y, np.cumsum(lengths)[:-1]))
    n_states = int(states.max()) + 1
    rng = np.random.default_rng(seed)
    phi = [parameters_given(rng, emission, data, states) for _ in range(3)]
    draws = [SimpleNamespace(states=states, phi=each, n_states=n_states) for each in phi]
    names = getattr(phi[0], "_fields", ())
    parameters = {name: np.stack([getattr(each, name) for each in phi]) for name in names}
    summary = SimpleNamespace(states=states, n_states=n_states, parameters=parameters)
    centers = parameters["mean"].mean(axis=0) if "mean" in names and np.ndim(y) == 1 else None
    levels = SimpleNamespace(
        summary=summary,
        centers=centers,
        shares=np.bincount(states) / len(states),
        segmentation=states,
        n_levels=n_states,
        brief=np.empty(0, int),
        by_draw=[DrawLevels(0, np.arange(n_states), np.zeros(n_states, bool), n_states, n_states)],
    )
    return criticise(model, data, draws, levels, [np.arange(n_states)] * len(draws))


MODELS = {
    "normal": (ihmm.Normal(), lambda rng, s: 4.0 * s + rng.normal(size=len(s))),
    "student-t": (ihmm.StudentT(), lambda rng, s: 9.0 * s + rng.standard_t(4, len(s))),
    "poisson": (ihmm.Poisson(1, 0.1), lambda rng, s: rng.poisson(3.0 + 10 * s)),
    "columns": (ihmm.MultivariateNormal(2), lambda rng, s: 3.0 * s[:, None] + rng.normal(size=(len(s), 2))),
    "symbols": (ihmm.Categorical(3), lambda rng, s: np.where(rng.random(len(s)) < 0.8, s, 2)),
    "autoregressive": (ihmm.Autoregressive(1), None),
}


def simulate(name, rng, states):
    emission, observe = MODELS[name]
    if observe is not None:
        return emission, observe(rng, states)
    y = np.zeros(len(states))
    for t in range(1, len(y)):
        y[t] = np.array([0.9, -0.5])[states[t]] * y[t - 1] + rng.normal()
    return emission, y


@pytest.mark.law
def test_data_from_the_model_are_criticised_in_at_most_one_case_of_twenty():
    found = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        states = markov(rng, int(rng.choice([300, 1000, 3000])), stay=float(rng.choice([0.6, 0.9, 0.99])))
        states[0] = 1 - states[1:].min()  # both states occur
        name = list(MODELS)[seed % len(MODELS)]
        emission, y = simulate(name, rng, states)
        found += criticisms(emission, y, states, seed=seed)
    assert len(found) <= 6, found


@pytest.mark.parametrize("name", ["normal", "student-t", "poisson", "columns", "autoregressive"])
def test_residuals_are_standard_normal(name):
    rng = np.random.default_rng(1)
    states = markov(rng, 4000)
    emission, y = simulate(name, rng, states)
    model = ihmm.Model(emission)
    data = model.observe(y)
    draw = SimpleNamespace(states=states, phi=parameters_given(rng, emission, data, states), n_states=2)
    z = residuals(rng, model, data, draw)
    z = z[np.isfinite(z).all(axis=1)]
    assert len(z) >= 3999
    assert z.mean(axis=0) == pytest.approx(0, abs=0.08)
    assert z.std(axis=0) == pytest.approx(1, abs=0.06)


def test_symbols_have_no_residuals():
    rng = np.random.default_rng(0)
    model = ihmm.Model(ihmm.Categorical(3))
    draw = SimpleNamespace(phi=model.emission.sample_prior(rng, 1), states=np.zeros(3, int))
    assert residuals(rng, model, model.observe(np.array([0, 1, 2])), draw).shape == (3, 0)


def autoregressive_noise(rng, n, a):
    e = rng.normal(size=n)
    for t in range(1, n):
        e[t] = a * e[t - 1] + np.sqrt(1 - a**2) * e[t]
    return e


def test_noise_with_a_memory_is_named_with_its_setting():
    rng = np.random.default_rng(2)
    states = markov(rng, 2000)
    found = criticisms(ihmm.Normal(), 5.0 * states + autoregressive_noise(rng, 2000, 0.9), states)
    assert found[0].gross
    assert "lag-1 autocorrelation 0.8" in found[0].text or "lag-1 autocorrelation 0.9" in found[0].text
    assert found[0].setting == 'emission="levels", order=1'


def test_overdispersed_counts_are_named_with_their_setting():
    rng = np.random.default_rng(3)
    states = markov(rng, 3000)
    y = rng.negative_binomial(1, 1 / (1 + np.where(states, 20.0, 2.0)))
    (found,) = [each for each in criticisms(ihmm.Poisson(1, 0.1), y, states) if "vary more within" in each.text]
    assert found.gross
    assert found.setting == 'emission="negative-binomial"'
    assert not criticisms(ihmm.NegativeBinomial(1, 0.1), y, states)


def test_outliers_are_named_with_their_setting():
    rng = np.random.default_rng(3)
    states = markov(rng, 2000)
    found = criticisms(ihmm.Normal(), 9.0 * states + rng.standard_t(2.5, 2000), states)
    assert [criticism.setting for criticism in found] == ['emission="student-t"']
    assert "heavy tails" in found[0].text


def test_hum_is_named():
    rng = np.random.default_rng(4)
    z = rng.normal(size=(4000, 1)) + 0.5 * np.sin(np.arange(4000) * 2 * np.pi / 20)[:, None]
    model = ihmm.Model(ihmm.Normal())
    (found,) = check_lines(model, [z], z, np.array([0, 4000]))
    assert "period of 20 steps" in found.text
    assert found.gross
    white = rng.normal(size=(4000, 1))
    assert "order=4" in found.text
    longer = ihmm.NoisyLevels(4, filtered=True)
    (in_force,) = check_lines(ihmm.Model(longer), [z], z, np.array([0, 4000]))
    assert "order" not in in_force.text
    assert not check_lines(model, [white], white, np.array([0, 4000]))


def test_blurred_changes_of_level_are_named():
    rng = np.random.default_rng(5)
    path = markov(rng, 3000)
    y = 6.0 * path + rng.normal(size=3000)
    change = np.flatnonzero(path[1:] != path[:-1]) + 1
    change = change[np.diff(change, prepend=-5) > 2]
    y[change] = 3.0 + 0.3 * rng.normal(size=len(change))
    path[change] = 2
    found = criticisms(ihmm.Normal(), y, path)
    assert any(criticism.setting == "min_dwell=2" for criticism in found)


def test_regular_visits_are_named():
    rng = np.random.default_rng(6)
    lengths = rng.integers(8, 13, 300)
    path = np.repeat(np.arange(300) % 2, lengths)
    assert not criticisms(ihmm.Normal(), 5.0 * path + rng.normal(size=len(path)), path)  # 10% of one step: no effect
    short = np.repeat(np.arange(800) % 2, rng.integers(3, 5, 800))
    (found,) = criticisms(ihmm.Normal(), 5.0 * short + rng.normal(size=len(short)), short)
    assert found.setting == 'duration="negative binomial"'


def test_phases_of_one_movement_are_named():
    rng = np.random.default_rng(7)
    cycle = np.repeat(np.arange(200) % 4, rng.integers(2, 5, 200))
    (found,) = check_cycle(visits_of(cycle, np.array([0, len(cycle)])), 4)
    assert "0 → 1 → 2 → 3 → 0" in found.text
    random = markov(rng, 3000, 4, stay=0.7)
    assert not list(check_cycle(visits_of(random, np.array([0, 3000])), 4))


def test_movement_chopped_into_levels_is_named():
    rng = np.random.default_rng(8)
    y = autoregressive_noise(rng, 3000, 0.93)
    chopped = np.digitize(y + 0.3 * np.repeat(rng.normal(size=1500), 2), [-1.2, -0.4, 0.4, 1.2])
    assert any("neighbouring levels" in found.text and found.gross for found in criticisms(ihmm.Normal(), y, chopped))


def test_outliers_that_became_a_level_are_named():
    rng = np.random.default_rng(9)
    states = (rng.random(2000) < 0.1).astype(int)
    y = np.where(states == 1, 4.0, 1.0) * rng.normal(size=2000)
    assert any("times as wide" in found.text and found.gross for found in criticisms(ihmm.Normal(), y, states))


def test_a_number_of_levels_that_depends_on_the_threshold_is_named():
    levels = SimpleNamespace(
        n_levels=3, by_draw=[DrawLevels(d, np.arange(3), np.zeros(3, bool), 2, 3) for d in range(10)]
    )
    (found,) = check_overlap(levels)
    assert found.unsettled
    assert not found.gross
    assert "of the 3, 2 are left if slightly larger differences are ignored" in found.text
    assert not list(check_overlap(SimpleNamespace(n_levels=2, by_draw=levels.by_draw)))


def test_visits_know_their_neighbours_within_a_series():
    visits = visits_of(np.array([0, 0, 1, 2, 2, 0]), np.array([0, 3, 6]))
    assert visits.length.tolist() == [2, 1, 2, 1]
    assert visits.before.tolist() == [-1, 0, -1, 2]
    assert visits.after.tolist() == [1, -1, 0, -1]


def test_residuals_of_filtered_levels_are_their_innovations():
    emission = ihmm.NoisyLevels(2, filtered=True)
    phi = NoisyLevelsPhi(np.array([0.0, 6.0]), np.full(2, 0.3), np.tile([1.2, -0.4], (2, 1)), ())
    states = np.repeat(np.arange(40) % 2, 25)
    y = emission.sample_observations(np.random.default_rng(0), states, phi)
    model = ihmm.Model(emission, duration=ihmm.durations.Geometric())
    transitions = Transitions(np.full(3, 1 / 3), np.full(3, 1 / 3), np.full((2, 3), 1 / 3))
    draw = Draw(Trajectory(states), transitions, phi, Hyper(1.0, 1.0, 0.0))
    z = residuals(np.random.default_rng(1), model, model.observe(y), draw)[2:, 0]
    assert z.std() == pytest.approx(1, abs=0.1)
    assert np.abs(z).max() < 5


def test_residuals_of_correlated_columns_are_what_each_has_of_its_own():
    emission = ihmm.NoisyLevels(1, n_features=2, correlated=True)
    shared = np.full((2, 2), 0.3), np.full((2, 2, 1), 0.6), (), np.full((2, 1), 2.0)
    phi, states = NoisyLevelsPhi(np.array([[0.0, 1.0], [6.0, 2.0]]), *shared), np.repeat(np.arange(40) % 2, 25)
    y = emission.sample_observations(np.random.default_rng(0), states, phi)
    model = ihmm.Model(emission, duration=ihmm.durations.Geometric())
    transitions = Transitions(np.full(3, 1 / 3), np.full(3, 1 / 3), np.full((2, 3), 1 / 3))
    draw = Draw(Trajectory(states), transitions, phi, Hyper(1.0, 1.0, 0.0))
    z = residuals(np.random.default_rng(1), model, model.observe(y), draw)[1:]
    np.testing.assert_allclose(np.cov(z.T), np.eye(2), atol=0.12)


@pytest.mark.parametrize("tails", ["normal", "student-t"])
def test_tails_that_are_in_force_are_not_advised(tails):
    rng = np.random.default_rng(4)
    states = markov(rng, 2000)
    y = 9.0 * states + np.where(rng.random(2000) < 0.01, 30.0, 1.0) * rng.normal(size=2000)
    found = criticisms(ihmm.NoisyLevels(0, tails=tails, spread=10.0, dof=100.0), y, states)
    text = next(criticism for criticism in found if "heavy tails" in criticism.text)
    assert bool(text.setting) == (tails == "normal"), text
    assert ("emission=" in text.text) == (tails == "normal")


def test_no_longer_memory_is_advised_than_there_can_be():
    for order, expected in ((4, 'emission="levels", order=8'), (8, 'emission="levels", order=10'), (10, "")):
        setting, advice = _with_memory(ihmm.Model(ihmm.NoisyLevels(order, filtered=True)))
        assert setting == expected
        assert ("order=" in advice) == bool(expected)
