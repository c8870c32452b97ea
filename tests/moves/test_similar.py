"""States that are alike but not the same: moves leave them apart, as the posterior does."""

import pytest
from similar import PRIORS, difference, run, similar_states

import ihmm
from ihmm.chain import MOVES

pytestmark = [pytest.mark.law, pytest.mark.slow]

RECORDING = similar_states()
LEVEL = 1e-4
CHAINS, TUNE, SWEEPS = 3, 500, 2000


class Always(ihmm.GreedySplitMerge):
    """A double that is wrong: greedy in the sweeps that are kept, too."""

    def acts(self, sweep, tune):
        return True


def follow(prior, moves, chains=CHAINS, tune=TUNE, sweeps=SWEEPS):
    model = ihmm.Model(ihmm.NormalMean(noise=RECORDING.noise, scale=2.0), PRIORS[prior])
    return run(model, RECORDING, moves, RECORDING.states, chains, tune, sweeps)


@pytest.fixture(scope="module")
def plain():
    return follow("default", ()).kept


def test_the_posterior_is_that_of_long_runs_without_moves(plain):
    z, p = difference(follow("default", MOVES).kept, plain)
    assert p > LEVEL, f"off by {z:.1f} standard errors"


def test_a_move_that_merges_them_in_the_kept_sweeps_is_found_out(plain):
    z, p = difference(follow("default", (Always(),), tune=1, sweeps=500).kept, plain)
    assert p < LEVEL, f"off by {z:.1f} standard errors only"


def test_where_births_are_rare_tuning_leaves_them_apart():
    """The first greedy sweeps merge them; hardly anything but exact splits parts them again."""
    assert (follow("few states", MOVES, sweeps=50).tuned >= 3).all()


def test_where_births_are_rare_greedy_moves_must_take_care():
    along_the_path, with_care = (
        follow("few states", [ihmm.GreedySplitMerge(careful=careful)], tune=50, sweeps=50).tuned
        for careful in (False, True)
    )
    assert (along_the_path < 3).all()
    assert (with_care >= 3).all()
