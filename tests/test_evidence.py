"""What a verdict rests on: quantities of the levels, and which of their variations are too small to matter."""

from types import SimpleNamespace

import numpy as np
import pytest

import ihmm
from ihmm.diagnostics.check import check
from ihmm.diagnostics.evidence import SETTLED_MEAN, SETTLED_PART, SETTLED_RATE, SETTLED_SHARE, collect
from ihmm.diagnostics.remedies import RunFacts
from ihmm.summaries.grouping import brief_states

STEPS, VISIT, GAP = 400, 20, 6.0


def evidence_of(y, model):
    posterior = ihmm.sample(model, y, draws=60, tune=60, chains=2, init="auto", seed=1, progress=False)
    run = RunFacts(60)
    return collect(model, posterior.data, posterior.draws, posterior.states, posterior.traces, posterior.levels(), run)


@pytest.fixture(scope="module")
def two_levels():
    states = np.arange(STEPS) // VISIT % 2
    y = GAP * states + np.random.default_rng(0).normal(size=STEPS)
    return evidence_of(y, ihmm.model.model_for(y[:, None], "normal"))


def test_the_means_shares_and_changes_of_the_levels_are_used(two_levels):
    names = {"changes of level", "share of level 0", "share of level 1", "mean of level 0", "mean of level 1"}
    assert set(two_levels.quantities) == names
    assert two_levels.quantities["mean of level 1"].shape == (2, 60)
    assert two_levels.n_steps == STEPS
    assert two_levels.n_states_by_draw.shape == two_levels.n_levels_by_draw.shape
    assert np.median(two_levels.n_states_by_draw) == 2
    assert not two_levels.number_given


def test_a_mean_is_settled_if_known_to_a_part_of_its_distance_from_the_next(two_levels):
    assert two_levels.tolerances["mean of level 0"] == pytest.approx(SETTLED_MEAN * GAP, rel=0.05)
    y = np.random.default_rng(1).normal(size=STEPS)
    single = evidence_of(y, ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(1)))
    assert single.tolerances["mean of level 0"] == pytest.approx(SETTLED_MEAN * y.std())
    assert single.number_given


def test_changes_are_settled_if_they_vary_less_than_their_count_would(two_levels):
    number = STEPS / VISIT - 1
    assert two_levels.tolerances["changes of level"] == pytest.approx(SETTLED_RATE * number**0.5, rel=0.05)


def test_shares_are_settled_if_known_to_a_small_part(two_levels):
    assert two_levels.tolerances["share of level 0"] == SETTLED_SHARE
    y = 8.0 * (np.arange(STEPS) >= STEPS - 10) + np.random.default_rng(0).normal(size=STEPS)
    rare = evidence_of(y, ihmm.model.model_for(y[:, None], "normal"))
    assert rare.tolerances["share of level 1"] == pytest.approx(SETTLED_PART * 10 / STEPS, rel=0.05)


def test_kinetic_states_are_counted_in_every_draw_not_only_where_the_summary_has_them(two_levels):
    """Chains that differ in the number of kinetic states of a level say so, even if most draws have one."""
    differing = two_levels.n_states_by_draw.copy()
    differing[1] += 1
    found = check(two_levels._replace(n_states_by_draw=differing))
    assert not found.kinetics_agree
    assert "do not agree on the kinetic states: they have" in str(found)
    assert check(two_levels).kinetics_agree


def test_states_of_a_few_steps_are_no_kinetic_states():
    states = np.zeros(STEPS, int)
    states[100:200] = 1  # lasts
    states[300:302] = 2  # does not
    draw = SimpleNamespace(states=states, n_states=3)
    assert brief_states(draw, np.array([0, STEPS])).tolist() == [False, False, True]
