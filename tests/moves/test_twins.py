"""Merging states that emit the same: what is scored, what is merged, what is left alone."""

import numpy as np
import pytest

import ihmm
from ihmm.durations import Geometric
from ihmm.emissions.student_t import StudentTPhi
from ihmm.kernels.counts import count_transitions
from ihmm.model import Hyper
from ihmm.moves import twins
from ihmm.samplers import StateUpdate
from ihmm.trajectory import Trajectory

HYPER = Hyper(1.0, 1.0, 0.0)
OFFSETS = np.array([0, 7, 12])
STATES = np.array([0, 0, 1, 1, 2, 0, 0, 2, 2, 2, 1, 1])


def test_the_probability_of_a_path_is_that_of_predicting_each_step_from_the_ones_before():
    """With Jeffreys' prior the next one of m outcomes is k with probability (n_k + ½) / (n + m/2)."""
    seen, expected = {}, 0.0

    def predict(where, outcome, outcomes):
        counts = seen.setdefault(where, dict.fromkeys(outcomes, 0))
        probability = (counts[outcome] + 0.5) / (sum(counts.values()) + 0.5 * len(counts))
        counts[outcome] += 1
        return np.log(probability)

    for begin, end in ((0, 7), (7, 12)):
        expected += predict("first", STATES[begin], range(3))
        for before, now in zip(STATES[begin : end - 1], STATES[begin + 1 : end], strict=True):
            expected += predict(f"leaves {before}", before != now, (False, True))
            if before != now:
                expected += predict(f"follows {before}", now, [k for k in range(3) if k != before])
    counts = count_transitions(STATES, OFFSETS, 3)
    assert twins.log_followers(counts) + twins.log_stays(counts) == pytest.approx(expected)


def test_a_merge_keeps_the_parameters_of_the_larger_state_and_adds_weights():
    phi = StudentTPhi(np.array([1.0, 2.0, 3.0]), np.ones(3))
    update = StateUpdate(Trajectory(np.array([0, 1, 2, 2, 1, 2])), np.array([0.2, 0.3, 0.4, 0.1]), phi)
    merged = twins.merge(update, 0, 2)
    np.testing.assert_array_equal(merged.states, [0, 1, 0, 0, 1, 0])
    np.testing.assert_allclose(merged.beta, [0.6, 0.3, 0.1])
    np.testing.assert_array_equal(merged.phi.location, [3.0, 2.0])


def two_levels(distance, order=0):
    """A series of two levels and unit noise, and its states; every other run of the first level is named apart."""
    rng = np.random.default_rng(0)
    states = np.repeat(np.arange(40) % 2, 20)
    noise = rng.normal(size=len(states))
    for t in range(1, len(noise)):
        noise[t] += 0.5 * order * noise[t - 1]
    return states, np.where((np.arange(len(states)) // 40) % 2 * (states == 0), 2, states), distance * states + noise


MODELS = {
    "student-t": ihmm.Model(ihmm.StudentT(dof=30.0)),
    "shared noise": ihmm.Model(ihmm.NoisyLevels(spread=5.0)),
    "durations": ihmm.Model(ihmm.Normal(), duration=Geometric()),
    "durations and memory": ihmm.Model(ihmm.NoisyLevels(1, spread=5.0), duration=Geometric(minimum=2)),
}


def apply(model, y, states, seed=1):
    n_states, rng = states.max() + 1, np.random.default_rng(seed)
    omega = None if model.duration is None else model.duration.sample_prior(rng, n_states)
    update = StateUpdate(Trajectory(states), np.full(n_states + 1, 1 / (n_states + 1)), durations=omega)
    return twins.MergeTwins().apply(rng, model.observe(y), model, update, HYPER)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_twins_are_merged_and_other_states_are_not(model):
    truth, doubled, y = two_levels(4.0, model.memory)
    merged, info = apply(model, y, doubled)
    assert info.n_merged == 1
    np.testing.assert_array_equal(merged.states, truth)
    assert len(merged.beta) == 3
    assert model.duration is None or len(merged.durations[0]) == 2
    again, info = apply(model, y, truth)
    assert info.n_merged == 0
    np.testing.assert_array_equal(again.states, truth)


def test_two_states_that_emit_the_same_become_one():
    _, doubled, y = two_levels(0.0)
    merged, info = apply(MODELS["shared noise"], y, doubled)
    assert info.n_merged == 2
    assert not merged.states.any()


def test_states_with_conjugate_emissions_are_left_to_greedy_merges():
    _, doubled, y = two_levels(4.0)
    assert apply(ihmm.Model(ihmm.Normal()), y, doubled)[1].n_merged == 0


def test_it_ends_with_tuning():
    move = ihmm.MergeTwins(sweeps=30)
    assert [sweep for sweep in range(200) if move.acts(sweep, tune=100)] == [10, 15, 20, 25]
    assert not any(move.acts(sweep, tune=0) for sweep in range(200))


@pytest.mark.parametrize(
    ("settings", "message"), [({"sweeps": -1}, "sweeps must be"), ({"tries": 0}, "tries .* must be")]
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        ihmm.MergeTwins(**settings)
