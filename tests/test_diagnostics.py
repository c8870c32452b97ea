"""The verdict on chains: each kind of trouble is named, and health is recognised."""

import sys

import numpy as np
import pytest

import ihmm
from ihmm import diagnostics

CHAINS, DRAWS, STEPS = 4, 400, 30


def verdict(seed=0, *, labels=None, **traces):
    """A check of healthy chains, but for what is given."""
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


def test_healthy_chains_are_fine():
    result = verdict()
    assert result
    assert str(result).startswith("Nothing speaks against using these draws.")
    assert "✗" not in str(result)
    assert set(result.table()) == {"rhat", "ess_bulk", "ess_tail"}
    assert result.rhat["log_joint"] < 1.01


def test_constant_quantities_are_explained_and_leave_no_nan():
    result = verdict(n_states=np.full((CHAINS, DRAWS), 4))
    assert result
    assert "n_states (4)" in str(result)
    assert "stickiness (0)" in str(result)
    assert "n_states" not in result.rhat
    assert np.isfinite(result.table().to_numpy()).all()


def test_chains_that_stand_still_apart_do_not_agree():
    result = verdict(n_states=np.repeat([[4], [4], [5], [7]], DRAWS, axis=1))
    assert not result
    assert result.rhat["n_states"] == np.inf
    assert "They sit at 4, 4, 5, 7 states" in str(result)


def test_a_chain_elsewhere_is_found():
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
    assert "Chain 3 puts the steps into other states than the rest: it is 75% away" in str(result)


@pytest.mark.parametrize(("slope", "word"), [(0.1, "rising"), (-0.1, "falling")])
def test_chains_that_still_drift_are_told_to_tune_longer(slope, word):
    rng = np.random.default_rng(2)
    drift = slope * np.arange(DRAWS) + rng.normal(0, 3, (CHAINS, DRAWS))
    result = verdict(log_joint=drift - 100)
    assert not result
    assert f"log_joint is still {word}" in str(result)
    assert "Raise tune" in str(result)
    assert not result.stable
    assert str(result).startswith("These draws should not be relied on yet.")


def test_slow_chains_are_told_how_many_draws_they_need():
    rng = np.random.default_rng(3)
    walk = np.zeros((CHAINS, DRAWS))
    for t in range(1, DRAWS):
        walk[:, t] = 0.95 * walk[:, t - 1] + rng.normal(size=CHAINS)
    result = verdict(log_joint=walk)
    assert not result
    assert "too few draws: log_joint is worth" in str(result)
    assert "times as many" in str(result)
    assert result.stable
    assert str(result).startswith("Which states there are and where they change can be relied on")


def test_one_chain_is_not_enough():
    result = verdict(**{name: np.random.default_rng(4).normal(size=(1, DRAWS)) for name in diagnostics.QUANTITIES})
    assert not result
    assert "There is one chain" in str(result)
    assert "The halves of the chain agree" in str(result)


def test_few_draws_are_not_judged():
    result = verdict(**{name: np.random.default_rng(4).normal(size=(2, 20)) for name in diagnostics.QUANTITIES})
    assert not result
    assert "20 draws a chain are too few to judge anything" in str(result)


def test_a_posterior_checks_itself():
    y = np.repeat([0.0, 5.0, 0.0, 5.0], 50) + np.random.default_rng(0).normal(0, 0.5, 200)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=0.1, concentration=1.0, stickiness=0.9))
    posterior = ihmm.sample(model, y, draws=3000, tune=100, chains=4, seed=1, progress=False)
    result = posterior.check()
    assert result, result
    assert "They put the steps into the same states" in str(result)
    assert {"n_states", "log_joint", "changes"} <= set(result.rhat)


def test_without_arviz_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arviz_stats.base", None)
    with pytest.raises(ImportError, match=r"ihmm\[arviz\]"):
        verdict()
