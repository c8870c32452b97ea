"""Summaries: what needs no labels, the segmentation that agrees with the draws, and labels that mean the same."""

import itertools
from collections import namedtuple

import numpy as np
import pytest

import ihmm
from ihmm import summaries
from ihmm.emissions._angles import angle_fields
from ihmm.testing import set_partitions

OFFSETS = np.array([0, 4, 6])


def agreement(a, b):
    """The largest number of steps at which two paths agree, over all ways to pair their states."""
    a, b = np.asarray(a), np.asarray(b)
    size = max(a.max(), b.max()) + 1
    return max(np.sum(np.array(names)[a] == b) for names in itertools.permutations(range(size)))


@pytest.fixture(scope="module")
def four_state():
    """Chains from one, ten and thirty states on the paper's data."""
    recording = ihmm.datasets.four_state()
    model = ihmm.Model(ihmm.NormalMean(noise=0.5, scale=2.0))
    runs = {
        k: ihmm.sample(model, recording.y, draws=150, tune=100, chains=1, init=k, seed=k, progress=False)
        for k in (1, 10, 30)
    }
    return recording, model, runs


def together(runs):
    """Several runs of one chain as one posterior."""
    records = [record for run in runs for record in run._records]
    states = np.concatenate([run._states.astype(np.uint16) for run in runs])
    return ihmm.Posterior(runs[0].model, runs[0].data, states, records, seed=0)


# Without labels


def test_change_probability():
    states = np.array([[0, 0, 1, 1, 2, 2], [0, 1, 1, 1, 0, 2]])
    np.testing.assert_allclose(summaries.change_probability(states, OFFSETS), [0, 0.5, 0.5, 0, 0, 0.5])


def test_co_assignment_does_not_see_labels():
    states = np.array([[0, 0, 1, 1, 2, 2], [3, 3, 3, 0, 1, 1]])
    expected = [[1, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 1]]
    np.testing.assert_allclose(summaries.co_assignment(states, np.array([0, 1, 2])), expected)
    shuffled = np.array([[5, 5, 0, 0, 9, 9], [0, 0, 0, 7, 2, 2]])
    np.testing.assert_allclose(summaries.co_assignment(shuffled, np.array([0, 1, 2])), expected)


def test_dwell_times_end_with_their_sequence():
    lengths, states = summaries.dwell_times(np.array([0, 0, 1, 1, 1, 1]), OFFSETS)
    assert lengths.tolist() == [2, 2, 2]
    assert states.tolist() == [0, 1, 1]


def test_the_posterior_answers_them(four_state):
    posterior = four_state[2][10]
    share = {k: np.mean(posterior.n_states == k) for k in np.unique(posterior.n_states)}
    assert posterior.n_states_probabilities() == pytest.approx(share)
    assert posterior.change_probability().shape == (4000,)
    assert posterior.co_assignment().shape == (500, 500)
    steps = [0, 10, 3999]
    both = np.mean(posterior.states[0][:, 0] == posterior.states[0][:, 10])
    assert posterior.co_assignment(steps)[0, 1] == pytest.approx(both)


@pytest.mark.parametrize("steps", [[-1], [4000], [0.5], [[0]], "x"])
def test_steps_out_of_range_are_refused(four_state, steps):
    with pytest.raises(ValueError, match=r"steps must be a list of whole numbers from 0 to 3999"):
        four_state[2][10].co_assignment(steps)


# The segmentation


@pytest.mark.parametrize("seed", range(5))
def test_no_draw_agrees_better_with_the_draws_than_the_segmentation(seed):
    rng = np.random.default_rng(seed)
    truth = np.repeat([0, 1, 2, 0, 1], 8)
    draws = np.array([np.where(rng.random(40) < 0.15, rng.integers(4, size=40), truth) for _ in range(30)])
    draws = np.array([np.unique(draw, return_inverse=True)[1] for draw in draws])

    def score(candidate):
        return np.mean([agreement(draw, candidate) for draw in draws])

    found = summaries.segmentation(draws)
    assert score(found) >= max(map(score, draws))
    assert ihmm.testing.canonical(found) == tuple(truth)


def test_the_segmentation_of_a_tiny_series_is_the_best_of_all_partitions():
    rng = np.random.default_rng(3)
    draws = np.array([[0, 0, 1, 1, 2, 2]] * 6 + [[0, 0, 1, 1, 1, 1]] * 3 + [[0, 1, 1, 1, 2, 2]] * 2)
    draws = np.array([rng.permutation(3)[draw] for draw in draws])
    scores = {p: np.mean([agreement(d, p) for d in draws]) for p in set_partitions(6)}
    found = summaries.segmentation(draws)
    assert ihmm.testing.canonical(found) == max(scores, key=scores.get) == (0, 0, 1, 1, 2, 2)


def test_states_that_overlap_are_not_merged():
    """Every step changes its state in four draws of ten, but all draws have three states: so has the segmentation."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], 100)
    draws = np.array([np.where(rng.random(300) < 0.4, rng.integers(3, size=300), truth) for _ in range(50)])
    np.testing.assert_array_equal(summaries.segmentation(draws), truth)


def test_a_state_split_at_random_is_one_and_a_rare_one_is_kept():
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 2], [200, 197, 3])
    draws = np.array([np.where((truth == 0) & (rng.random(400) < 0.4), 3, truth) for _ in range(49)] + [truth])
    np.testing.assert_array_equal(summaries.segmentation(draws), truth)


def test_states_are_numbered_by_use():
    assert summaries.by_use(np.array([7, 3, 3, 5, 3, 5])).tolist() == [2, 0, 0, 1, 0, 1]


def test_states_named_after_others():
    other = np.repeat([0, 1, 2], [4, 5, 6])
    renamed = np.repeat([2, 0, 1], [4, 5, 6])
    assert summaries.named_after(renamed, other).tolist() == other.tolist()
    more = np.repeat([3, 0, 1, 2], [4, 3, 2, 6])  # 1 is in two parts: the smaller one comes last
    assert summaries.named_after(more, other).tolist() == np.repeat([0, 1, 3, 2], [4, 3, 2, 6]).tolist()


def test_a_summary_like_one_of_other_data_is_refused(four_state):
    _, model, runs = four_state
    other = ihmm.sample(model, four_state[0].y[:50], draws=5, tune=0, chains=1, seed=1, progress=False)
    with pytest.raises(ValueError, match=r"same data, 4000 steps, got 50"):
        runs[10].summary(like=other.summary())


# Matching


def test_permuted_labels_are_matched():
    reference = np.repeat([0, 1, 2], [5, 4, 3])
    found = summaries.match(np.array([2, 0, 1])[reference], 3, reference, 3)
    assert found.state.tolist() == [2, 0, 1]
    assert found.label.tolist() == [1, 2, 0]


def test_a_state_split_in_two_keeps_its_label_and_the_larger_part_stands_for_it():
    reference = np.repeat([0, 1], [10, 5])
    draw = np.repeat([0, 2, 1], [7, 3, 5])
    found = summaries.match(draw, 3, reference, 2)
    assert found.label.tolist() == [0, 1, 0]
    assert found.state.tolist() == [0, 1]


def test_a_stray_state_does_not_stand_for_one_that_is_not_there():
    reference = np.repeat([0, 1, 2], [10, 8, 6])
    draw = np.repeat([0, 1], [10, 14])  # 1 and 2 are one state here
    draw[0] = 2  # and one step of 0 has a state of its own
    found = summaries.match(draw, 3, reference, 3)
    assert found.label.tolist() == [0, 1, 0]
    assert found.state.tolist() == [0, 1, -1]


# The summary


def test_chains_from_one_ten_and_thirty_states_give_the_same_labels(four_state):
    recording, _, runs = four_state
    posterior = together(list(runs.values()))
    summary = posterior.summary()
    assert summary.n_states == 4
    mean = summary.parameters["mean"].reshape(3, 150, 4)
    order = np.argsort(np.argsort(recording.means))  # of the truth
    for chain in mean:  # the same label has the same mean in every chain, and it is one of the true ones
        nearest = np.abs(np.nanmedian(chain, axis=0)[:, None] - recording.means).argmin(axis=1)
        assert sorted(nearest) == order.tolist()
        np.testing.assert_allclose(np.nanmedian(chain, axis=0), recording.means[nearest], atol=0.1)
        np.testing.assert_array_equal(nearest, np.abs(summary.phi.mean[:, None] - recording.means).argmin(axis=1))
    for k, run in runs.items():  # and each alone gives the segmentation of all together
        alone = run.summary(like=summary)
        assert np.mean(alone.states == summary.states) > 0.97, k
        np.testing.assert_allclose(alone.phi.mean[:4], summary.phi.mean, atol=0.05)


def test_states_run_from_the_most_used_to_the_least(four_state):
    summary = four_state[2][10].summary()
    count = np.bincount(summary.states)
    assert np.all(count[:-1] >= count[1:])


def test_what_the_summary_says_of_the_states(four_state):
    recording, _, runs = four_state
    summary = runs[10].summary()
    name = np.abs(summary.phi.mean[:, None] - recording.means).argmin(axis=1)
    np.testing.assert_allclose(summary.probabilities.sum(axis=1), 1)
    np.testing.assert_allclose(summary.transitions.sum(axis=1), 1)
    np.testing.assert_allclose(summary.initial.sum(), 1)
    np.testing.assert_allclose(summary.transitions, recording.transition[np.ix_(name, name)], atol=0.06)
    np.testing.assert_allclose(np.median(summary.dwell, axis=0), 4.0, atol=0.8)
    np.testing.assert_allclose(summary.shares, np.bincount(recording.states)[name] / 4000, atol=0.02)
    assert np.mean(name[summary.states] == recording.states) > 0.96
    assert summary.support.tolist() == [1, 1, 1, 1]
    table = summary.table()
    assert table.index.tolist() == [0, 1, 2, 3]
    assert {"share", "support", "dwell", "dwell_low", "dwell_high", "mean", "mean_low", "mean_high"} == set(table)
    assert np.all((table["mean_low"] < table["mean"]) & (table["mean"] < table["mean_high"]))
    text = repr(summary)
    assert text.startswith("4 states; ")
    assert len(text.splitlines()) == 6


def test_a_draw_without_a_state_leaves_a_gap_there():
    model = ihmm.Model(ihmm.Normal())
    y = np.repeat([0.0, 8.0], 20) + np.random.default_rng(0).normal(0, 0.1, 40)
    two = ihmm.sample(model, y, draws=3, tune=5, chains=1, seed=1, init=np.repeat([0, 1], 20), progress=False)
    one = ihmm.sample(model, y, draws=1, tune=0, chains=1, seed=1, init=1, moves=(), progress=False)
    draws = [*two, one.draws[0][0]._replace(states=np.zeros(40, np.int64))]
    first = draws[3]
    draws[3] = first._replace(
        transitions=type(first.transitions)(np.array([0.5, 0.5]), np.array([0.5, 0.5]), np.array([[0.9, 0.1]])),
        phi=type(first.phi)(first.phi.mean[:1], first.phi.variance[:1]),
    )
    summary = summaries.summarise(draws, np.array([draw.states for draw in draws]))
    assert summary.n_states == 2
    assert sorted(summary.support.tolist()) == [0.75, 1.0]
    assert np.isnan(summary.parameters["mean"][3]).sum() == 1
    assert np.isfinite(summary.phi.mean).all()
    assert np.isfinite(summary.table().to_numpy()).all()


def test_vectors_get_a_column_for_each_entry():
    model = ihmm.Model(ihmm.Categorical(3))
    posterior = ihmm.sample(model, [0, 1, 2, 0, 1, 2] * 5, draws=20, tune=10, chains=1, seed=1, progress=False)
    assert {"probs[0]", "probs[2]_low", "probs[1]_high"} <= set(posterior.summary().table())


def test_chains_of_different_length_count_with_all_their_draws(four_state):
    _, _, runs = four_state
    records = [runs[1]._records[0], runs[10]._records[0]]
    short = ihmm.sample(runs[1].model, four_state[0].y, draws=60, tune=50, chains=1, seed=5, progress=False)
    states = np.zeros((2, 150, 4000), np.uint16)
    states[0], states[1, :60] = runs[1]._states[0], short._states[0]
    posterior = ihmm.Posterior(runs[1].model, runs[1].data, states, [records[0], short._records[0]])
    assert len(posterior.summary().matches) == 210
    assert posterior.summary().n_states == 4


# Angles

ANGLES = {
    "VonMises": (ihmm.VonMises(), "direction"),
    "Independent": (ihmm.Independent(heading=ihmm.VonMises(), speed=ihmm.Normal()), "heading_direction"),
    "DPMixture": (ihmm.DPMixture(ihmm.VonMises()), "direction"),
    "DPMixture of Independent": (
        ihmm.DPMixture(ihmm.Independent(heading=ihmm.VonMises(), speed=ihmm.Normal())),
        "heading_direction",
    ),
}


@pytest.fixture(scope="module", params=ANGLES)
def headings(request):
    """Draws from two states, one that points to ±π and one that points to 0, and the name of their direction."""
    emission, name = ANGLES[request.param]
    rng = np.random.default_rng(0)
    states = np.repeat([0, 1, 0], [60, 40, 50])
    y = rng.vonmises(np.array([np.pi, 0.0])[states], 8.0)
    if "Independent" in request.param:
        y = np.column_stack([y, rng.normal(4.0 * states, 1.0)])
    settings = {"draws": 60, "tune": 40, "chains": 2, "seed": 1, "init": states, "progress": False}
    return ihmm.sample(ihmm.Model(emission), y, **settings), name


def test_directions_on_both_sides_of_pi_are_averaged_on_the_circle(headings):
    posterior, name = headings
    summary = posterior.summary()
    direction = np.nanmean(summary.parameters[name], axis=0)[:2]
    np.testing.assert_allclose(np.cos(direction), [-1, 1], atol=0.02)
    if hasattr(summary.phi, name):  # a mixture pools the components of several draws instead
        np.testing.assert_allclose(getattr(summary.phi, name)[:2], direction)


def test_intervals_of_directions_do_not_span_the_circle(headings):
    posterior, name = headings
    table = posterior.summary().table()[:2]
    for column in (name, f"{name}_low", f"{name}_high"):
        np.testing.assert_allclose(np.cos(table[column]), [-1, 1], atol=0.05)
    assert np.all(table[f"{name}_high"] - table[f"{name}_low"] < 0.6)


def test_a_parameter_that_is_called_angles_is_not_taken_for_a_list_of_names():
    phi = namedtuple("Phi", "angles")(np.zeros(3))
    assert angle_fields(phi) == ()
