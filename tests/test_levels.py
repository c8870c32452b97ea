"""Levels: states that emit the same are found to be one level, others are not, in every family."""

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest

import ihmm
from ihmm.emissions.normal import NormalPhi
from ihmm.summaries.grouping import _within, absorb_brief, draw_levels
from ihmm.summaries.levels import _usual_number
from ihmm.summaries.overlap import _compare, densities_at_own_points, group, least_overlap


def normal_draw(mean, variance, sizes):
    """A draw with these normal states, of these sizes."""
    states = np.repeat(np.arange(len(sizes)), sizes)
    phi = NormalPhi(np.asarray(mean, float), np.asarray(variance, float))
    return SimpleNamespace(phi=phi, states=states, n_states=len(sizes))


def observe(emission, y):
    model = ihmm.Model(emission)
    return model, model.observe(y)


def pairwise_overlap(density):
    """(K, K): overlap of the laws of all pairs of states."""
    n_states = len(density)
    overlap = np.eye(n_states)
    label, own = np.arange(n_states), density[np.arange(n_states), np.arange(n_states)]
    for a in range(n_states):
        row = np.full((n_states, n_states), -1.0)
        _compare(row, label, density, own, np.ones(n_states), a)
        overlap[a] = np.where(row[a] < 0, overlap[a], row[a])
    return overlap


@pytest.mark.parametrize("distance", [0.0, 0.5, 1.0, 3.0])
def test_overlap_of_two_normal_laws_is_what_theory_says(distance):
    from scipy.stats import norm

    model, data = observe(ihmm.Normal(), np.zeros(20))
    draw = normal_draw([0, distance], [1, 1], [10, 10])
    table = [pairwise_overlap(densities_at_own_points(np.random.default_rng(i), model, data, draw)) for i in range(50)]
    assert np.mean(table, axis=0)[0, 1] == pytest.approx(2 * norm.cdf(-distance / 2), abs=0.01)
    assert np.allclose(np.mean(table, axis=0)[0, 0], 1)


@pytest.mark.parametrize(
    ("mean", "variance", "levels"),
    [
        ([0.0, 0.1, 5.0], [1, 1, 1], [0, 0, 1]),  # two kinetic states of one level
        ([0.0, 2.0, 4.0], [1, 1, 1], [0, 1, 2]),  # barely separated
        ([0.0, 5.0, 10.0], [1, 1, 1], [0, 1, 2]),
        ([0.0, 0.0, 0.1], [1, 9, 1.1], [0, 1, 0]),  # the same mean, another spread
        ([0.0, 1.1, 6.0], [1, 1, 1], [0, 0, 1]),  # one peak in a histogram
        ([0.0, 0.0, 6.0], [1, 4.5, 1], [0, 1, 2]),  # spreads that differ by a factor of two do not come from drift
        ([0.0, 0.6, 1.2, 1.8, 2.4], [1] * 5, [0, 0, 1, 1, 1]),  # no chain of small differences becomes one level
    ],
)
def test_states_that_emit_the_same_are_one_level(mean, variance, levels):
    model, data = observe(ihmm.Normal(), np.zeros(50 * len(mean)) + 0.5)
    found = draw_levels(np.random.default_rng(0), model, data, normal_draw(mean, variance, [50] * len(mean)))[0]
    if len(mean) == 5:
        assert 1 < found.max() + 1 < 5
    else:
        assert found.tolist() == levels


def test_differences_below_the_resolution_are_one_level():
    model, data = observe(ihmm.Normal(), np.zeros(200) + 0.5)
    draw = normal_draw([0, 5, 20, 26], [1, 1, 1, 1], [50] * 4)
    assert draw_levels(np.random.default_rng(0), model, data, draw)[0].tolist() == [0, 1, 2, 3]
    assert draw_levels(np.random.default_rng(0), model, data, draw, resolution=5.5)[0].tolist() == [0, 0, 1, 2]


def test_differences_above_the_resolution_are_levels_although_their_laws_overlap():
    model, data = observe(ihmm.Normal(), np.zeros(200) + 0.5)
    draw = normal_draw([0, 1.2, 2.4], [1, 1, 1], [60, 70, 70])
    assert draw_levels(np.random.default_rng(0), model, data, draw)[0].max() < 2
    assert draw_levels(np.random.default_rng(0), model, data, draw, resolution=0.6)[0].tolist() == [0, 1, 2]


@pytest.mark.parametrize(("n_visits", "n_levels"), [(1, 2), (50, 1)])
def test_a_difference_in_spread_is_seen_in_long_visits_only(n_visits, n_levels):
    model, data = observe(ihmm.Normal(), np.zeros(1000) + 0.5)
    draw = normal_draw([0.0, 0.1], [1, 1.7**2], [500, 500])
    draw.states = np.tile(np.repeat([0, 1], 500 // n_visits), n_visits)
    assert draw_levels(np.random.default_rng(0), model, data, draw)[0].max() + 1 == n_levels


ROWS = np.array([[0.97, 0.0, 0.03], [0.0, 0.5, 0.5], [0.06, 0.2, 0.74]])  # states 0 and 1 emit the same
FAMILIES = {
    "student-t": (ihmm.StudentT(), lambda rng, s: np.array([0.0, 0.0, 8.0])[s] + rng.standard_t(4, len(s))),
    "poisson": (ihmm.Poisson(1, 0.1), lambda rng, s: rng.poisson(np.array([2.0, 2.0, 15.0])[s])),
    "negative-binomial": (
        ihmm.NegativeBinomial(1, 0.1),
        lambda rng, s: rng.negative_binomial(9, 9 / (9 + np.array([2.0, 2.0, 40.0])[s])),
    ),
    "categorical": (
        ihmm.Categorical(4),
        lambda rng, s: (rng.integers(0, 2, len(s)) + 2 * (s == 2)).astype(np.int64),
    ),
    "columns": (
        ihmm.MultivariateNormal(2),
        lambda rng, s: np.array([[0, 0], [0, 0], [4.0, -4.0]])[s] + rng.normal(size=(len(s), 2)),
    ),
    "von-mises": (ihmm.VonMises(), lambda rng, s: rng.vonmises(np.array([0.0, 0.0, 3.0])[s], 6.0)),
    "autoregressive": (ihmm.Autoregressive(1, scale=1.0), None),
}


def known_path(rng, n):
    states = np.zeros(n, np.int64)
    for t in range(1, n):
        states[t] = rng.choice(3, p=ROWS[states[t - 1]])
    return states


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_has_levels(family):
    """Given the true path with two kinetic states on one level, φ drawn from its conditional is grouped so."""
    emission, observe_given = FAMILIES[family]
    rng = np.random.default_rng(3)
    states = known_path(rng, 1200)
    if observe_given is None:
        y = np.zeros(len(states))
        for t in range(1, len(y)):
            y[t] = np.array([0.9, 0.9, -0.7])[states[t]] * y[t - 1] + rng.normal()
    else:
        y = observe_given(rng, states)
    model, data = observe(emission, y)
    rows, own = data.pair(states)
    draw = SimpleNamespace(states=states, n_states=3)
    for _ in range(5):
        draw.phi = emission.resample(rng, rows, own, 3)
        assert draw_levels(rng, model, data, draw)[0].tolist() == [0, 0, 1]


def test_small_differences_matter_for_symbols_but_not_for_measurements():
    assert least_overlap(np.array([0, 1, 2])) > least_overlap(np.array([0.5, 1.0, 2.0]))
    assert least_overlap(np.array([0.0, 1.0, np.nan])) == 0.9


def test_brief_states_belong_to_the_level_around_them():
    states = np.repeat([0, 1, 0, 2, 0, 1], [300, 400, 200, 1, 300, 200])
    level, brief = absorb_brief(np.arange(3), states, np.array([0, len(states)]))
    assert level.tolist() == [0, 1, 0]
    assert brief.tolist() == [False, False, True]


def test_a_rare_level_of_long_visits_is_not_brief():
    states = np.repeat([0, 1, 0], [5000, 30, 5000])
    assert not absorb_brief(np.arange(2), states, np.array([0, len(states)]))[1].any()


def test_a_single_visit_of_some_length_is_a_level_and_a_few_scattered_steps_are_not():
    ends, states = np.array([0, 3000]), np.zeros(3000, np.int64)
    states[700:709] = 1
    assert absorb_brief(np.arange(2), states, ends)[0].tolist() == [0, 1]
    states[700:709] = 0
    states[100:2800:300] = 1
    assert absorb_brief(np.arange(2), states, ends)[0].tolist() == [0, 0]


def test_the_number_of_levels_reported_is_that_of_most_draws():
    """States 1 and 2 are mostly two states on one level; those draws that have both apart are in the minority."""
    groupings = [(np.array(label), np.zeros(3, bool)) for label in ([0, 1, 2], [0, 0, 0], [0, 1, 1], [0, 1, 2])]
    for number, levels in ((Counter({2: 66, 3: 34}), 2), (Counter({2: 45, 3: 30, 4: 25}), 3), (Counter({5: 90}), 3)):
        assert _usual_number(groupings, number)[0].max() + 1 == levels


def test_blurred_changes_of_level_are_not_a_level():
    """One step in the middle at every change; an intermediate level that lasts, or is left as it came, is one."""
    center = np.array([[0.0], [1.0], [0.5]])
    ends = np.array([0, 420])
    blurred = np.tile(np.repeat([0, 2, 1, 2], [20, 1, 20, 1]), 10)
    assert absorb_brief(np.arange(3), blurred, ends, center)[1].tolist() == [False, False, True]
    assert absorb_brief(np.arange(3), blurred, ends)[0].max() == 2
    lasting = np.tile(np.repeat([0, 2, 1, 2], [16, 5, 16, 5]), 10)
    assert not absorb_brief(np.arange(3), lasting, ends, center)[1].any()
    returning = np.tile(np.repeat([0, 2, 0, 1], [10, 1, 10, 21]), 10)
    assert not absorb_brief(np.arange(3), returning, ends, center)[1].any()


def test_blurred_changes_that_must_last_some_steps_are_not_a_level():
    """If every state lasts two steps, so does a blurred change, and it may hide a brief visit: some return."""
    center = np.array([[0.0], [1.0], [0.5]])
    path = np.tile(np.repeat([0, 2, 1, 2, 1, 2], [20, 2, 20, 2, 20, 2]), 10)
    ends = np.array([0, len(path)])
    assert not absorb_brief(np.arange(3), path, ends, center)[1].any()
    assert absorb_brief(np.arange(3), path, ends, center, minimum=2)[1].tolist() == [False, False, True]
    lasting = np.tile(np.repeat([0, 2, 1, 2], [20, 4, 20, 4]), 10)
    assert not absorb_brief(np.arange(3), lasting, np.array([0, len(lasting)]), center, minimum=2)[1].any()


def test_grouping_does_not_depend_on_the_order_of_states():
    rng = np.random.default_rng(0)
    model, data = observe(ihmm.Normal(), np.zeros(10))
    mean = np.array([0.0, 4.0, 0.2, 4.1, 9.0])
    order = rng.permutation(5)
    for chosen in (np.arange(5), order):
        draw = normal_draw(mean[chosen], np.ones(5), [40] * 5)
        label = group(densities_at_own_points(rng, model, data, draw), np.full(5, 40.0), 0.7)
        found = np.empty(5, int)
        found[chosen] = label
        assert found[0] == found[2]
        assert found[1] == found[3]
        assert len(set(found[[0, 1, 4]])) == 3


@pytest.fixture(scope="module")
def kinetic():
    """A short run on two levels, of which the lower has two kinetic states; chains start at the truth."""
    rng = np.random.default_rng(5)
    rows = np.array([[0.99, 0.0, 0.01], [0.0, 0.4, 0.6], [0.02, 0.28, 0.7]])
    states = np.zeros(1500, np.int64)
    for t in range(1, len(states)):
        states[t] = rng.choice(3, p=rows[states[t - 1]])
    y = np.array([0.0, 0.0, 6.0])[states] + rng.normal(size=len(states))
    model = ihmm.Model(ihmm.Normal(rate=1), ihmm.HDPPrior(gamma=0.1, concentration=1.0, stickiness=0.0))
    return ihmm.sample(model, y, draws=60, tune=20, chains=2, seed=1, init=states, progress=False), states


def test_levels_of_a_posterior_with_two_kinetic_states(kinetic):
    posterior, states = kinetic
    levels = posterior.levels()
    assert levels.n_levels == 2
    assert levels.n_levels_probabilities[2] > 0.8
    assert np.mean(levels.segmentation == (states == 2)) > 0.98
    assert np.array_equal(levels.level_of_state[posterior.summary().states], levels.segmentation)
    assert levels.centers == pytest.approx([0, 6], abs=0.3)
    assert len(levels.states_of(0)) == 2
    assert levels.headline.startswith("2 levels; the lower one has two kinetic states with dwell times")
    assert levels.probabilities.sum(axis=1) == pytest.approx(1)
    assert levels.shares.sum() == pytest.approx(1)
    assert list(levels.table()["states"].str.count(",")) == [1, 0]
    assert "have 2 levels" in repr(levels)


def test_levels_are_the_same_when_asked_again_and_after_loading(kinetic, tmp_path):
    posterior, _ = kinetic
    posterior.save(tmp_path / "run")
    again = ihmm.Posterior.load(tmp_path / "run").levels()
    assert again.n_levels_probabilities == posterior.levels().n_levels_probabilities
    assert np.array_equal(again.segmentation, posterior.levels().segmentation)


def test_a_resolution_wider_than_the_data_leaves_one_level(kinetic):
    posterior, _ = kinetic
    levels = posterior.levels(resolution=20)
    assert levels.n_levels == 1
    assert "differ by less than 20" in repr(levels)
    with pytest.raises(ValueError, match="resolution"):
        posterior.levels(resolution=0)
    with pytest.raises(ValueError, match="overlap"):
        posterior.levels(overlap=2)


def test_dynamics_may_overlap_in_a_single_step():
    """An oscillation that comes and goes: a single step says little about it, a visit of 200 steps everything."""
    rng = np.random.default_rng(2)
    states = np.repeat(np.arange(10) % 2, 200)
    y = np.zeros(2000)
    for t in range(2, 2000):
        a, b = ((1.5, -0.9), (0.6, -0.1))[states[t]]
        y[t] = a * y[t - 1] + b * y[t - 2] + rng.normal()
    model = ihmm.Model(ihmm.Autoregressive(2), ihmm.HDPPrior(stickiness=0.9))
    posterior = ihmm.sample(model, y, draws=60, tune=60, chains=2, seed=1, init=states, progress=False)
    assert posterior.levels(overlap=0.55).n_levels == 1
    assert [(found.n_levels, found.n_coarse) for found in posterior.levels().by_draw].count((2, 2)) > 100


def test_a_chain_of_close_states_is_a_level_that_drifts_unless_its_ends_are_far_apart():
    """Gene copies with waves: 2 copies drift from −0.12 to 0.16, and 3 copies from 0.39 to 0.69."""
    mean = np.array([-0.9, -0.12, -0.05, 0.05, 0.16, 0.39, 0.52, 0.69])
    found = _within({"mean": mean}, 0.25)
    np.testing.assert_array_equal(found[1], np.isin(np.arange(8), [1, 2, 3, 4]))
    np.testing.assert_array_equal(found[6], np.isin(np.arange(8), [5, 6, 7]))
    assert found[0].sum() == 1
    assert _within({"mean": np.array([-0.3, -0.1, 0.1, 0.3])}, 0.25).all()
