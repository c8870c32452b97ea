"""The verdict: every kind of problem is found and named, and chains without problems are called reliable."""

import re
import shlex
import sys

import numpy as np
import pytest

import ihmm
from ihmm.diagnostics import agreement
from ihmm.diagnostics import check as diagnostics
from ihmm.diagnostics.check import Criticism, Evidence
from ihmm.diagnostics.remedies import RunFacts, Slow, remedy

CHAINS, DRAWS, STEPS = 4, 400, 60


def healthy_path(rng, n_levels=3, wrong=0.02):
    """(draws, T): levels of a few draws that differ at few steps, in a random numbering."""
    truth = np.arange(STEPS) // 5 % n_levels
    paths = np.tile(truth, (agreement.MAX_PATHS, 1))
    paths[rng.random(paths.shape) < wrong] = 0
    return np.stack([rng.permutation(n_levels)[path] for path in paths])


def verdict(
    seed=0,
    *,
    paths=None,
    numbers=None,
    likelihood=None,
    criticisms=(),
    run=None,
    tolerances=None,
    n_steps=STEPS,
    n_states=None,
    number_given=False,
    **quantities,
):
    """The verdict on chains that have converged, except for what is given."""
    rng = np.random.default_rng(seed)
    used = {
        "changes of level": rng.normal(20, 2, (CHAINS, DRAWS)),
        "share of level 0": rng.normal(0.4, 0.01, (CHAINS, DRAWS)),
        "mean of level 0": rng.normal(1, 0.1, (CHAINS, DRAWS)),
    } | quantities
    n_chains = len(next(reversed(used.values())))
    used = {name: x[:n_chains, : next(reversed(used.values())).shape[1]] for name, x in used.items()}
    numbers = np.where(rng.random((n_chains, 100)) < 0.95, 3, 4) if numbers is None else numbers
    likelihood = rng.normal(-500, 2, (n_chains, 24)) if likelihood is None else likelihood
    paths = [healthy_path(rng) for _ in range(n_chains)] if paths is None else paths
    details = {
        "n_states": rng.integers(3, 6, used["changes of level"].shape),
        "gamma": rng.gamma(2, 1, used["changes of level"].shape),
    }
    found = agreement.compare(paths, numbers, likelihood.mean(axis=1))
    run = run or RunFacts(DRAWS, 500, "auto")
    n_states = rng.integers(3, 6, numbers.shape) if n_states is None else n_states
    evidence = Evidence(
        3, numbers, n_states, used, likelihood, found, details, criticisms, run, tolerances or {}, n_steps
    )
    return diagnostics.check(evidence._replace(number_given=number_given))


def test_converged_chains_are_reliable():
    results = [verdict(seed) for seed in range(10)]
    assert all(results)
    assert str(results[0]).startswith("Reliable: all chains find the same 3 levels.")
    assert "✗" not in str(results[0])
    assert results[0].remedy is None
    assert set(results[0].table()) == {"rhat", "ess_bulk", "ess_tail"}
    assert results[0].rhat["mean of level 0"] < 1.02


def test_a_share_of_steps_that_rounds_to_zero_is_not_printed():
    text = str(verdict(paths=[np.tile(np.arange(STEPS) // 5 % 3, (agreement.MAX_PATHS, 1))] * CHAINS))
    assert "The chains find the same levels at all steps." in text
    assert "0.0%" not in text


def test_chains_at_one_and_three_levels_never_agree():
    rng = np.random.default_rng(0)
    single = np.zeros((agreement.MAX_PATHS, STEPS), int)
    numbers = np.repeat([[3], [3], [3], [1]], 100, axis=1)
    likelihood = rng.normal([[-500], [-500], [-500], [-640]], 2, (CHAINS, 24))
    result = verdict(paths=[healthy_path(rng) for _ in range(3)] + [single], numbers=numbers, likelihood=likelihood)
    assert not result
    assert not result.stable
    assert "3 chains have 3 levels, 1 has 1; log p(y | θ) is 140 higher with 3 (chains 0, 1, 2)" in str(result)
    assert result.agreement.distance[0, 3] > 0.6
    assert [mode.chains for mode in result.agreement.modes] == [(0, 1, 2), (3,)]


def test_a_small_level_that_one_chain_lacks_is_another_mode():
    """Less than 2% of the steps, but never found by one chain."""
    rng = np.random.default_rng(0)
    numbers = np.repeat([[3], [3], [3], [2]], 100, axis=1)
    assert not verdict(numbers=numbers, paths=[healthy_path(rng, wrong=0) for _ in range(4)])


def test_levels_that_differ_in_place_but_not_in_number_are_different_modes():
    rng = np.random.default_rng(0)
    other = np.tile(np.arange(STEPS) // 20, (agreement.MAX_PATHS, 1))
    result = verdict(paths=[healthy_path(rng) for _ in range(3)] + [other])
    assert not result
    assert "3 chains have 3 levels, 1 has 3 others" in str(result)
    assert result.verdict == "Not reliable: the chains have not converged."


def test_uncertain_segmentations_agree_if_they_are_equally_uncertain_in_all_chains():
    rng = np.random.default_rng(0)
    assert verdict(paths=[healthy_path(rng, wrong=0.4) for _ in range(4)])


def test_extra_levels_that_come_and_go_do_not_matter():
    """In slow episodes of one chain: R-hat is high, but every chain usually has 3 levels."""
    numbers = np.full((CHAINS, 100), 3)
    numbers[1, 20:50] = 4
    result = verdict(numbers=numbers)
    assert result.rhat["number of levels"] > 1.01
    assert result


def test_an_open_number_of_levels_is_said_to_be_open():
    rng = np.random.default_rng(1)
    result = verdict(numbers=rng.choice([3, 4], (CHAINS, 400), p=[0.4, 0.6]))
    assert not result
    assert "leave the number of levels open" in result.verdict


def test_a_quantity_that_differs_between_the_chains_is_named():
    rng = np.random.default_rng(1)
    mean = rng.normal([[1], [1], [1], [1.3]], 0.1, (CHAINS, DRAWS))
    result = verdict(**{"mean of level 0": mean})
    assert not result
    assert "The chains do not agree: R-hat is above 1.01 for mean of level 0 (" in str(result)


def test_chains_that_are_constant_at_different_values_do_not_agree():
    result = verdict(**{"changes of level": np.repeat([[4.0], [4.0], [5.0], [7.0]], DRAWS, axis=1)})
    assert not result
    assert result.rhat["changes of level"] == np.inf


def test_differences_too_small_to_matter_are_settled():
    """Chains that are frozen a single step apart find the same levels."""
    share = np.repeat([[0.4], [0.4], [0.401], [0.4]], DRAWS, axis=1)
    evidence = {"share of level 0": share}
    assert not verdict(**evidence)
    settled = verdict(**evidence, tolerances={"share of level 0": 0.002})
    assert settled
    assert "✓ The chains differ by too little to matter in share of level 0 (R-hat" in str(settled)


def test_a_rare_episode_does_not_unsettle_a_quantity():
    """For a few draws of one chain a level consists of other steps; a chain that stays there is another matter."""
    mean = np.random.default_rng(3).normal(1, 0.01, (CHAINS, DRAWS))
    for length, settled in ((40, True), (DRAWS, False)):
        mean[2, :length] = 3.0
        assert bool(verdict(**{"mean of level 0": mean}, tolerances={"mean of level 0": 0.1})) is settled


def test_a_chain_that_explains_the_data_worse_is_found():
    likelihood = np.random.default_rng(1).normal([[-500], [-500], [-500], [-530]], 2, (CHAINS, 24))
    result = verdict(likelihood=likelihood)
    assert not result
    assert re.search(r"the same levels, but log p\(y \| θ\) is \d+ higher in chain \d than in chain 3", str(result))


def test_a_gain_that_is_small_for_so_many_steps_does_not_matter():
    """States that come and go within a level change log p(y | θ) by some nats."""
    rng = np.random.default_rng(1)
    apart = rng.normal([[-5000], [-5000], [-5000], [-5040]], 2, (CHAINS, 24))
    rising = 2 * np.arange(24) + rng.normal(-5000, 2, (CHAINS, 24))
    for likelihood in (apart, rising):
        assert not verdict(likelihood=likelihood, n_steps=500)
        assert verdict(likelihood=likelihood, n_steps=5000)


def test_a_number_of_levels_that_was_given_is_said_to_be():
    assert verdict(number_given=True).verdict.startswith("Reliable if there are 3 levels, which was taken as given")


def test_kinetic_states_that_differ_between_the_chains_are_said_to():
    rng = np.random.default_rng(1)
    same = verdict(n_states=rng.integers(3, 6, (CHAINS, DRAWS)))
    assert same.verdict == "Reliable: all chains find the same 3 levels."
    differing = rng.integers([[3], [3], [5], [7]], [[6], [6], [8], [10]], (CHAINS, DRAWS))
    result = verdict(n_states=differing)
    assert result
    assert result.verdict == "Reliable: all chains find the same 3 levels, but not the same kinetic states within them."
    assert "do not agree on the kinetic states: they have 4.0 to 8.0 states on average" in str(result)


@pytest.mark.parametrize(("slope", "word"), [(1, "rising"), (-1, "falling")])
def test_drifting_chains_need_more_tuning(slope, word):
    rng = np.random.default_rng(2)
    result = verdict(likelihood=slope * np.arange(24) + rng.normal(-500, 2, (CHAINS, 24)))
    assert not result
    assert f"log p(y | θ) is still {word}" in str(result)
    assert "tune=2000" in str(result)
    assert not result.stable


def walk(rng, memory, draws=DRAWS):
    x = rng.normal(size=(CHAINS, draws))
    for t in range(1, draws):
        x[:, t] = memory * x[:, t - 1] + np.sqrt(1 - memory**2) * x[:, t]
    return x


def test_autocorrelated_chains_need_more_draws():
    result = verdict(**{"changes of level": walk(np.random.default_rng(3), 0.98)})
    assert not result
    assert result.stable
    assert "draws=" in str(result.remedy)
    assert str(result).startswith("Not there yet")


@pytest.mark.law
def test_noise_of_rhat_alone_does_not_alarm():
    """Chains of moderate autocorrelation have R-hat above 1.01 every other time, without any disagreement."""
    results = [verdict(seed, **{"changes of level": walk(np.random.default_rng(seed), 0.7)}) for seed in range(40)]
    assert sum(result.rhat["changes of level"] > 1.01 for result in results) >= 10
    assert sum(not result for result in results) <= 2


@pytest.mark.law
def test_no_set_of_shifted_chains_is_called_reliable():
    for seed in range(40):
        rng = np.random.default_rng(seed)
        shift = np.array([[0.0], [0.0], [0.0], [1.0]])
        assert not verdict(seed, **{"changes of level": walk(rng, 0.7) + shift})


def test_a_gross_misfit_is_never_reliable():
    misfit = Criticism("Residuals within states have lag-1 autocorrelation 0.93", True, 'emission="levels", order=1')
    result = verdict(criticisms=[misfit])
    assert not result
    assert result.contradicted
    assert result.converged
    assert "do not trust the number of levels" in result.verdict
    assert "emission='levels', order=1" in str(result)
    assert "ihmm fit --config runs/x/settings.toml --emission levels --order 1" in result.text("runs/x")


def test_levels_that_overlap_are_no_fault_of_the_model():
    overlap = Criticism("Levels overlap: of the 3, 2 are left", False, unsettled="levels overlap: …")
    result = verdict(criticisms=[overlap])
    assert not result.reliable
    assert not result.contradicted
    assert result.verdict.startswith("The chains agree, but levels overlap: …")


def test_a_small_misfit_is_mentioned():
    result = verdict(criticisms=[Criticism("3% of the variance is an oscillation", False)])
    assert result
    assert "✗ 3% of the variance" in str(result)


def test_one_chain_is_not_enough():
    rng = np.random.default_rng(4)
    result = verdict(**{"mean of level 0": rng.normal(size=(1, DRAWS))})
    assert not result
    assert "There is only one chain" in str(result)
    assert result.verdict == "Not reliable yet: a single chain cannot be compared with others."
    assert "chains=4" in str(result)


def test_too_few_draws_are_not_diagnosed():
    result = verdict(**{"mean of level 0": np.random.default_rng(4).normal(size=(2, 20))})
    assert not result
    assert "20 draws per chain are too few to diagnose" in str(result)
    assert result.verdict == "Not reliable yet: there are too few draws."


def advice(draws, tune, init="auto", order=0, **problems):
    return remedy(RunFacts(draws, tune, init, noise_order=order), **problems)


def test_advice_is_never_in_force_already():
    assert advice(500, 300, stuck=True).settings == {"tune": 2000}
    assert advice(500, 300, 10, stuck=True).settings == {"init": "auto", "tune": 2000}
    assert advice(4000, 300, 10, stuck=True).settings == {"init": "auto"}
    assert advice(500, 300, drifting=True).settings == {"tune": 2000}
    assert advice(4000, 300, drifting=True).settings == {"tune": 4500}
    assert advice(1000, 500) is None


def test_longer_runs_are_not_advised_where_they_do_not_help():
    """Chains that kept their modes for as many draws would keep them while they are tuned."""
    for stuck in (advice(4000, 300, stuck=True), advice(1000, 20_000, stuck=True)):
        assert not stuck.settings
        assert stuck.draws is None
        assert "separate modes of the posterior" in stuck.text()
        assert stuck.text() == stuck.text("runs/x")
    drifting = advice(4000, 20_000, drifting=True)
    assert not drifting.settings
    assert "Try a simpler model" in drifting.text()


def test_more_draws_are_advised_if_they_suffice():
    more = advice(1000, 500, slow=Slow("share of level 0", 2.4))
    assert more.text() == "Next: fit again with draws=2500"
    assert more.text("runs/x") == "Next: ihmm resume runs/x --draws 2500"
    assert advice(500, 300, slow=Slow("share of level 0", 50)).draws == 4000
    assert advice(4000, 300, slow=Slow("share of level 0", 3)).draws == 12_000


def test_what_mixes_too_slowly_is_said_to():
    share = advice(4000, 300, slow=Slow("share of level 0", 8)).text()
    assert "for share of level 0, about 32,000 draws per chain would be needed" in share
    assert "quote share of level 0 with the differences between them" in share
    assert "far more draws" in advice(4000, 300, slow=Slow("share of level 0", 80)).text()
    assert "coarser resolution" in advice(4000, 300, slow=Slow("number of levels", 8)).text()
    mean = Slow("mean of level 1", 8)
    assert "The noise remembers earlier steps" in advice(4000, 300, order=2, slow=mean).text()
    assert "noise" not in advice(4000, 300, slow=mean).text()


def test_only_what_is_wrong_first_is_answered():
    """Draws of chains that are stuck are of no use, and a single chain may need no tuning."""
    both = advice(500, 300, stuck=True, slow=Slow("mean of level 0", 8))
    assert both.text() == "Next: fit again with tune=2000"
    alone = verdict(**{"mean of level 0": np.random.default_rng(4).normal(size=(1, DRAWS))})
    assert alone.remedy.settings == {"chains": 4}


def test_a_command_to_type_is_quoted_for_the_shell():
    again = remedy(RunFacts(500), settings=['duration="negative binomial"']).text("my runs/x")
    assert shlex.split(again)[1:-2] == [
        *("ihmm", "fit", "--config", "my runs/x/settings.toml", "--duration", "negative binomial")
    ]


@pytest.mark.slow
def test_check_of_a_posterior():
    rng = np.random.default_rng(0)
    y = np.repeat([0.0, 5.0, 0.0, 5.0], 50) + rng.normal(0, 0.5, 200)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=0.1, concentration=1.0, stickiness=0.9))
    posterior = ihmm.sample(model, y, draws=500, tune=100, chains=4, seed=1, progress=False)
    result = posterior.check()
    assert result, result
    assert re.search("The chains find the same levels at (practically )?all steps", str(result))
    assert {"mean of level 1", "log_joint"} <= set(result.rhat)
    assert result.log_likelihood.shape[0] == 4
    assert result is posterior.check()

    short = ihmm.sample(model, y, draws=60, tune=0, moves=(), init=15, chains=4, seed=1, progress=False)
    assert not short.check()


def test_the_verdict_needs_no_other_package(monkeypatch):
    for name in ("arviz_stats", "arviz_stats.base", "xarray", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    assert verdict()
