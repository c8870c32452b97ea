"""Convergence diagnostics: every kind of problem is reported, and chains without problems pass."""

import sys

import numpy as np
import pytest

import ihmm
from ihmm import diagnostics

CHAINS, DRAWS, STEPS = 4, 400, 30


def verdict(seed=0, *, labels=None, **traces):
    """The diagnostics of chains that have converged, except for the traces and labels that are given."""
    rng = np.random.default_rng(seed)
    healthy = {
        "n_states": rng.integers(3, 6, (CHAINS, DRAWS)),
        "log_joint": rng.normal(-100, 3, (CHAINS, DRAWS)),
        "gamma": rng.gamma(2, 1, (CHAINS, DRAWS)),
        "concentration": rng.gamma(2, 1, (CHAINS, DRAWS)),
        "stickiness": np.zeros((CHAINS, DRAWS)),
    }
    traces = healthy | traces
    chains, draws = traces["n_states"].shape
    states = rng.integers(3, size=(chains, draws, STEPS))
    labels = np.full((chains, STEPS, 3), 1 / 3) if labels is None else labels
    return diagnostics.check(traces, states, labels)


def test_converged_chains_have_no_problems():
    result = verdict()
    assert result
    assert str(result).startswith("No problems found.")
    assert "✗" not in str(result)
    assert set(result.table()) == {"rhat", "ess_bulk", "ess_tail"}
    assert result.rhat["log_joint"] < 1.01


def test_constant_quantities_are_listed_and_leave_no_nan():
    result = verdict(n_states=np.full((CHAINS, DRAWS), 4))
    assert result
    assert "n_states (4)" in str(result)
    assert "stickiness (0)" in str(result)
    assert "n_states" not in result.rhat
    assert np.isfinite(result.table().to_numpy()).all()


def test_chains_that_are_constant_at_different_values_do_not_agree():
    result = verdict(n_states=np.repeat([[4], [4], [5], [7]], DRAWS, axis=1))
    assert not result
    assert result.rhat["n_states"] == np.inf
    assert "Their median numbers of states are 4, 4, 5, 7" in str(result)


def test_a_chain_in_another_mode_is_found():
    rng = np.random.default_rng(1)
    log_joint = rng.normal([[-100], [-100], [-100], [-130]], 3, (CHAINS, DRAWS))
    result = verdict(log_joint=log_joint)
    assert not result
    assert "The chains do not agree: R-hat is above 1.01 for log_joint" in str(result)


def test_chains_that_label_steps_differently_are_found():
    labels = np.zeros((CHAINS, STEPS, 2))
    labels[:3, :, 0], labels[3, :, 1] = 1, 1
    result = verdict(labels=labels)
    assert not result
    assert "Chain 3 assigns other states to the steps than the rest (mean distance 75%)" in str(result)


@pytest.mark.parametrize(("slope", "word"), [(0.1, "rising"), (-0.1, "falling")])
def test_drifting_chains_need_more_tuning(slope, word):
    rng = np.random.default_rng(2)
    drift = slope * np.arange(DRAWS) + rng.normal(0, 3, (CHAINS, DRAWS))
    result = verdict(log_joint=drift - 100)
    assert not result
    assert f"log_joint is still {word}" in str(result)
    assert "Increase tune" in str(result)
    assert not result.stable
    assert str(result).startswith("These draws are not reliable yet.")


def test_autocorrelated_chains_need_more_draws():
    rng = np.random.default_rng(3)
    walk = np.zeros((CHAINS, DRAWS))
    for t in range(1, DRAWS):
        walk[:, t] = 0.95 * walk[:, t - 1] + rng.normal(size=CHAINS)
    result = verdict(log_joint=walk)
    assert not result
    assert "Effective sample size of log_joint is" in str(result)
    assert "at least 400 is recommended" in str(result)
    assert "times as many" in str(result)
    assert result.stable
    assert str(result).startswith("The segmentation is reliable")


def test_one_chain_is_not_enough():
    result = verdict(**{name: np.random.default_rng(4).normal(size=(1, DRAWS)) for name in diagnostics.QUANTITIES})
    assert not result
    assert "There is only one chain" in str(result)
    assert "The halves of the chain agree" in str(result)


def test_too_few_draws_are_not_diagnosed():
    result = verdict(**{name: np.random.default_rng(4).normal(size=(2, 20)) for name in diagnostics.QUANTITIES})
    assert not result
    assert "20 draws per chain are too few to diagnose" in str(result)


@pytest.mark.slow
def test_check_of_a_posterior():
    y = np.repeat([0.0, 5.0, 0.0, 5.0], 50) + np.random.default_rng(0).normal(0, 0.5, 200)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=0.1, concentration=1.0, stickiness=0.9))
    posterior = ihmm.sample(model, y, draws=3000, tune=100, chains=4, seed=1, progress=False)
    result = posterior.check()
    assert result, result
    assert "The chains assign the same states to the steps" in str(result)
    assert {"n_states", "log_joint", "changes"} <= set(result.rhat)


def test_without_arviz_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(ImportError, match=r"ihmm\[arviz\]"):
        verdict()
