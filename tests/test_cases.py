"""The combinations that the law tests try."""

import itertools

from reference.cases import EMISSIONS, LAYOUTS, PRIORS, covering, trials

FACTORS = (["a", "b", "c"], [*PRIORS], [*LAYOUTS], ["v", "w", "x", "y"])


def test_any_two_levels_of_two_factors_meet_in_some_combination():
    chosen = covering(*FACTORS)
    for i, j in itertools.combinations(range(len(FACTORS)), 2):
        assert {(row[i], row[j]) for row in chosen} == {*itertools.product(FACTORS[i], FACTORS[j])}


def test_there_are_no_more_combinations_than_two_factors_need():
    assert len(covering(*FACTORS)) == 4 * 4


def test_every_family_meets_every_sampler():
    samplers = {"v": 1, "w": 2, "x": 3}
    met = {(repr(trial.values[0]), trial.values[-1]) for trial in trials(PRIORS, LAYOUTS, samplers)}
    assert met == {(repr(family), number) for family, _ in EMISSIONS.values() for number in samplers.values()}
