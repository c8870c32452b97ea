"""R-hat and effective sample sizes are those of ArviZ."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from ihmm.diagnostics import convergence


def chains(memory, kind, n_chains, n_draws):
    rng = np.random.default_rng([n_chains, n_draws])
    x = rng.normal(size=(n_chains, n_draws))
    for t in range(1, n_draws):
        x[:, t] = memory * x[:, t - 1] + np.sqrt(1 - memory**2) * x[:, t]
    if kind == "whole numbers":
        return np.round(x)
    if kind == "mostly zero":
        return (x > 1.2).astype(float)
    return x + rng.normal(size=(n_chains, 1)) if kind == "apart" else x


@pytest.mark.parametrize("memory", [0.0, 0.9, -0.5, -0.95, 0.999])
@pytest.mark.parametrize("kind", ["normal", "whole numbers", "mostly zero", "apart"])
@pytest.mark.parametrize(("n_chains", "n_draws"), [(4, 500), (2, 51), (3, 8)])
def test_diagnostics_are_those_of_arviz(memory, kind, n_chains, n_draws):
    x = chains(memory, kind, n_chains, n_draws)
    axes = {"chain_axis": 0, "draw_axis": 1}
    assert convergence.ess_bulk(x) == pytest.approx(array_stats.ess(x, **axes))
    assert convergence.ess_tail(x) == pytest.approx(array_stats.ess(x, **axes, method="tail", prob=(0.05, 0.95)))
    assert convergence.ess_mean(x) == pytest.approx(array_stats.ess(x, **axes, method="mean"))
    assert convergence.ess_mean(x[:1]) == pytest.approx(array_stats.ess(x[:1], **axes, method="mean"))
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = float(array_stats.rhat(x, **axes))
    assert convergence.rhat(x) == pytest.approx(expected, nan_ok=True)


def test_halves_of_one_chain_are_compared():
    """ArviZ has no R-hat of a single chain."""
    x = np.random.default_rng(0).normal(size=(1, 200))
    assert convergence.rhat(x) < 1.05
    assert convergence.rhat(x + 3 * (np.arange(200) >= 100)) > 1.5


def test_constant_chains_have_as_many_draws_as_there_are():
    assert convergence.ess_mean(np.ones((2, 30))) == 60
