"""Summaries that need no labels, and the summary by state."""

from collections import namedtuple

import numpy as np
import pytest

import ihmm
from ihmm.emissions._angles import angle_fields
from ihmm.summaries import summary as summaries
from ihmm.trajectory import Trajectory

OFFSETS = np.array([0, 4, 6])


@pytest.fixture(scope="module")
def four_state():
    """Chains that start from 1, 10 and 30 states on the paper's four-state data."""
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


def test_co_assignment_does_not_depend_on_labels():
    states = np.array([[0, 0, 1, 1, 2, 2], [3, 3, 3, 0, 1, 1]])
    expected = [[1, 1, 0.5], [1, 1, 0.5], [0.5, 0.5, 1]]
    np.testing.assert_allclose(summaries.co_assignment(states, np.array([0, 1, 2])), expected)
    shuffled = np.array([[5, 5, 0, 0, 9, 9], [0, 0, 0, 7, 2, 2]])
    np.testing.assert_allclose(summaries.co_assignment(shuffled, np.array([0, 1, 2])), expected)


def test_runs_end_with_their_sequence():
    lengths, states = summaries.dwell_times(np.array([0, 0, 1, 1, 1, 1]), OFFSETS)
    assert lengths.tolist() == [2, 2, 2]
    assert states.tolist() == [0, 1, 1]


def test_label_free_summaries_of_a_posterior(four_state):
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


# The summary


def test_chains_from_one_ten_and_thirty_states_give_the_same_labels(four_state):
    recording, _, runs = four_state
    posterior = together(list(runs.values()))
    summary = posterior.summary()
    assert summary.n_states == 4
    mean = summary.parameters["mean"].reshape(3, 150, 4)
    order = np.argsort(np.argsort(recording.means))  # of the truth
    for chain in mean:  # a label has the same mean in every chain, and it is a true one
        nearest = np.abs(np.nanmedian(chain, axis=0)[:, None] - recording.means).argmin(axis=1)
        assert sorted(nearest) == order.tolist()
        np.testing.assert_allclose(np.nanmedian(chain, axis=0), recording.means[nearest], atol=0.1)
        np.testing.assert_array_equal(nearest, np.abs(summary.phi.mean[:, None] - recording.means).argmin(axis=1))
    for k, run in runs.items():  # each chain alone gives the segmentation of all together
        alone = run.summary(like=summary)
        assert np.mean(alone.states == summary.states) > 0.97, k
        np.testing.assert_allclose(alone.phi.mean[:4], summary.phi.mean, atol=0.05)


def test_like_must_be_a_summary_of_the_same_data(four_state):
    _, model, runs = four_state
    other = ihmm.sample(model, four_state[0].y[:50], draws=5, tune=0, chains=1, seed=1, progress=False)
    with pytest.raises(ValueError, match=r"same data, 4000 steps, got 50"):
        runs[10].summary(like=other.summary())


def test_states_are_ordered_by_use(four_state):
    summary = four_state[2][10].summary()
    count = np.bincount(summary.states)
    assert np.all(count[:-1] >= count[1:])


def test_summary_of_the_paper_data(four_state):
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


def test_a_draw_without_a_state_has_nan_there():
    model = ihmm.Model(ihmm.Normal())
    y = np.repeat([0.0, 8.0], 20) + np.random.default_rng(0).normal(0, 0.1, 40)
    two = ihmm.sample(model, y, draws=3, tune=5, chains=1, seed=1, init=np.repeat([0, 1], 20), progress=False)
    one = ihmm.sample(model, y, draws=1, tune=0, chains=1, seed=1, init=1, moves=(), progress=False)
    draws = [*two, one.draws[0][0]._replace(trajectory=Trajectory(np.zeros(40, np.int64)))]
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


def test_all_draws_of_chains_of_different_length_are_used(four_state):
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
