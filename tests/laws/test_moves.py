"""Splits and merges leave the posterior as it is: of every emission that integrates φ out, with every prior. So does
dividing pairs of states anew, of every emission.

Particle Gibbs acts in one sweep of ten only, so that the moves have to get the law right by themselves.
"""

import numpy as np
import pytest

import ihmm
from ihmm.moves import split_merge
from ihmm.samplers import PassInfo, StateUpdate
from ihmm.testing import geweke, partition_test
from laws.test_step_by_step import EMISSIONS as STEP_BY_STEP
from reference.cases import ALARM, COLUMNS, EMISSIONS, LAYOUTS, NORMAL_SERIES, PRIORS, ROW_SERIES, split, trials

pytestmark = pytest.mark.law

AUTOREGRESSIVE = {
    "autoregressive": (ihmm.Autoregressive(1, 1, 0.2, 0.5, 0.3, 2.0, 5.0, 1.5), NORMAL_SERIES),
    "vector-autoregressive": (ihmm.Autoregressive(1, 2, 0.2, 0.5, 0.3, 2.0, 6.0, 1.5), ROW_SERIES),
}
FAMILIES = EMISSIONS | COLUMNS | AUTOREGRESSIVE
MOVES = {"many attempts": ihmm.SplitMerge(10, 2), "one attempt": ihmm.SplitMerge(1, 2), "as usual": ihmm.SplitMerge()}
GAPS = np.array([False, True, False, False, True])
GAPS_AT_AN_END = np.array([False, False, True, False, False])  # so that some values have a past


class Seldom(ihmm.ParticleGibbs):
    """Leaves the path alone nine times of ten."""

    rate = 0.1

    def resample_states(self, rng, data, model, draw):
        if rng.random() < self.rate:
            return super().resample_states(rng, data, model, draw)
        update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi, durations=draw.durations)
        return update, PassInfo(0, 0, 0.0)


@pytest.mark.parametrize(("emission", "series", "prior", "lengths", "move"), trials(PRIORS, LAYOUTS, MOVES, few=1))
def test_visits_every_partition_as_often_as_the_exact_posterior_says(emission, series, prior, lengths, move):
    model = ihmm.Model(emission, prior)
    result = partition_test(model, split(series, lengths), Seldom(2), moves=[move], sweeps=3000, seed=3)
    assert result.p_value > ALARM, result


def test_visits_every_partition_of_a_longer_series():
    """With several ways to return to a state."""
    model = ihmm.Model(EMISSIONS["categorical"][0], PRIORS["sticky"])
    moves = [MOVES["many attempts"]]
    result = partition_test(model, [0, 1, 0, 2, 0, 1, 1, 0], Seldom(2), moves=moves, sweeps=8000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("prior", ["plain", "sticky"])
def test_particles_that_are_resampled_on_the_way_leave_the_joint_law_alone(prior):
    """Symbols, as means of eighty steps would take far more sweeps to forget themselves."""
    model = ihmm.Model(EMISSIONS["categorical"][0], PRIORS[prior])
    result = geweke(model, [80], Seldom(2), moves=[ihmm.SplitMerge(10, 8)], sweeps=4000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("family", FAMILIES)
def test_visits_every_partition_with_gaps_in_the_data(family):
    emission, series = FAMILIES[family]
    y = np.array(series, float)
    y[GAPS_AT_AN_END if family in AUTOREGRESSIVE else GAPS] = np.nan
    model = ihmm.Model(emission, PRIORS["sticky-free"])
    result = partition_test(model, split(y, [3, 2]), Seldom(2), moves=[MOVES["many attempts"]], sweeps=3000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(family):
    model = ihmm.Model(FAMILIES[family][0], PRIORS["sticky-free"])
    result = geweke(model, [3, 2], Seldom(2), moves=[MOVES["many attempts"]], sweeps=3000, seed=7)
    assert result.p_value > ALARM, result


class Sometimes(Seldom):
    """Leaves the path alone every other time: without it pairs would have the same states for ever."""

    rate = 0.5


PAIRS = {"pairs": (ihmm.PairGibbs(10),), "pairs, splits and merges": (ihmm.PairGibbs(5), ihmm.SplitMerge(3, 2))}


@pytest.mark.parametrize(("emission", "series", "prior", "lengths", "moves"), trials(PRIORS, LAYOUTS, PAIRS, few=1))
def test_pairs_that_are_divided_visit_every_partition(emission, series, prior, lengths, moves):
    model = ihmm.Model(emission, prior)
    result = partition_test(model, split(series, lengths), Sometimes(2), moves=moves, sweeps=4000, seed=5)
    assert result.p_value > ALARM, result


def test_pairs_of_a_finite_model_visit_every_partition():
    model = ihmm.Model(EMISSIONS["normal-mean"][0], ihmm.FinitePrior(3))
    result = partition_test(model, NORMAL_SERIES, Sometimes(2), moves=PAIRS["pairs"], sweeps=4000, seed=5)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("family", FAMILIES | STEP_BY_STEP)
def test_pairs_with_every_hyperparameter_free_leave_the_joint_law_alone(family):
    model = ihmm.Model((FAMILIES | STEP_BY_STEP)[family][0], PRIORS["sticky-free"])
    result = geweke(model, [3, 2], Sometimes(2), moves=PAIRS["pairs"], sweeps=4000, seed=7)
    assert result.p_value > ALARM, result


class TestTheLawTestsCanFail:
    model, series = ihmm.Model(EMISSIONS["normal-mean"][0], PRIORS["sticky"]), NORMAL_SERIES

    def run(self, move):
        return partition_test(self.model, self.series, Seldom(2), moves=[move], sweeps=8000, seed=3)

    def test_splits_that_are_too_cheap_are_caught(self, monkeypatch):
        def cheap(stream, compiled, concentrations, *others):
            larger = concentrations._replace(gamma=1.5 * concentrations.gamma)
            return split_and_merge(stream, compiled, larger, *others)

        split_and_merge = split_merge.split_and_merge
        assert self.run(ihmm.SplitMerge(4)).p_value > ALARM
        monkeypatch.setattr(split_merge, "split_and_merge", cheap)
        result = self.run(ihmm.SplitMerge(4))
        assert result.p_value < 1e-6, result

    def test_as_many_attempts_as_there_are_states_are_caught(self):
        """What `SplitMerge.usual_attempts` says of a function of the path."""

        class Eager(ihmm.SplitMerge):
            def apply(self, rng, data, model, path, hyper):
                return ihmm.SplitMerge(3 * len(path.beta) - 5, 2).apply(rng, data, model, path, hyper)

        result = self.run(Eager())
        assert result.p_value < 1e-6, result

    def test_rows_of_pairs_that_do_not_stick_are_caught(self):
        class Loose(ihmm.PairGibbs):
            def apply(self, rng, data, model, path, hyper):
                return super().apply(rng, data, model, path, hyper._replace(stickiness=0.0))

        result = self.run(Loose(10))
        assert result.p_value < 1e-6, result

    def test_greedy_moves_among_draws_are_caught(self):
        result = self.run(ihmm.GreedySplitMerge())
        assert result.p_value < 1e-6, result
