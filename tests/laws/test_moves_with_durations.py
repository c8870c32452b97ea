"""Splits and merges of states with durations leave the posterior as it is, for every duration law.

Particle Gibbs acts in one sweep of ten only, so that the move has to get the law right by itself.
"""

import numpy as np
import pytest

import ihmm
from ihmm.moves import split_merge
from ihmm.testing import geweke, partition_test
from laws.test_durations import HIDDEN, LAWS, SERIES
from laws.test_moves import Seldom
from reference.cases import ALARM, EMISSIONS, PRIORS, split

pytestmark = pytest.mark.law

# law, prior, lengths, whether the first segment may have begun before the data, n_particles
CASES = {
    "geometric": ("geometric", "plain", [6], False, 2),
    "geometric, minimum": ("geometric-2", "free", [4, 2], False, 5),
    "geometric, left-censored": ("geometric-3", "plain", [6], True, 2),
    "negative binomial": ("negative-binomial-2", "plain", [6], False, 2),
    "Poisson": ("poisson", "free", [4, 2], False, 2),
    "Poisson, left-censored": ("poisson-2", "plain", [4, 2], True, 5),
}


def run(law, prior, lengths, left_censored, n_particles, sweeps=3000):
    y = np.array(SERIES)
    if len(lengths) > 1:
        y[1] = np.nan
    model = ihmm.Model(EMISSIONS["normal-mean"][0], PRIORS[prior], LAWS[law], left_censored)
    moves = [ihmm.SplitMerge(4, n_particles)]
    return partition_test(model, split(y, lengths), Seldom(2), moves=moves, sweeps=sweeps, seed=3)


@pytest.mark.parametrize("case", CASES)
def test_visits_every_partition_as_often_as_the_exact_posterior_says(case):
    result = run(*CASES[case])
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(
    ("family", "law", "left_censored"),
    [("normal", "negative-binomial", False), ("categorical", "geometric", False), ("poisson", "poisson-2", True)],
)
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(family, law, left_censored):
    model = ihmm.Model(EMISSIONS[family][0], PRIORS["free"], LAWS[law], left_censored)
    moves = [ihmm.SplitMerge(4, 2)]
    result = geweke(model, [4, 2], Seldom(2), moves=moves, sweeps=3000, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


class TestTheLawTestsCanFail:
    def test_hazards_of_the_age_after_are_caught(self, monkeypatch):
        def late(model, omega, longest):
            found = hazards_of_pair(model, omega, 2 * longest)
            return type(found)(*(np.ascontiguousarray(field[:, 1:]) for field in found))

        hazards_of_pair = split_merge.hazards_of_pair
        monkeypatch.setattr(split_merge, "hazards_of_pair", late)
        result = run(*CASES["Poisson"])
        assert result.p_value < 1e-6, result

    def test_first_segments_with_the_hazards_of_whole_ones_are_caught(self, monkeypatch):
        monkeypatch.setattr(split_merge, "residual_hazards", lambda law, hazard, omega: hazard)
        result = run(*CASES["Poisson, left-censored"])
        assert result.p_value < 1e-6, result

    def test_rows_that_return_to_their_own_state_are_caught(self, monkeypatch):
        def returning(*arguments):
            """As if the mass of an urn were c instead of c (1 − β_j), about."""
            *others, beta, n_states, n_particles, i, j, laws = arguments
            larger = beta.copy()
            larger[-1] = 1.0
            change = split_or_merge(*others, larger, n_states, n_particles, i, j, laws)
            beta[:-1] = larger[:-1]
            return change

        split_or_merge = split_merge.split_or_merge_segments
        monkeypatch.setattr(split_merge, "split_or_merge_segments", returning)
        result = run(*CASES["geometric"])
        assert result.p_value < 1e-6, result
