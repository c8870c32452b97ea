"""Several chains side by side: the same probabilities as one chain at a time."""

from typing import NamedTuple

import numpy as np
import pytest

from ihmm.kernels import forward_backward as one
from ihmm.predictions import side_by_side as lanes

pytestmark = pytest.mark.bounds

N_STEPS = 40
STARTS = np.isin(np.arange(N_STEPS), [0, 7, 8, 30])
BLOCKS = pytest.mark.parametrize("block_steps", [64, 13, 1])


class Chain(NamedTuple):
    initial: np.ndarray
    rows: np.ndarray
    label: np.ndarray


def chains_and_densities(sizes=(3, 1, 5, 2)):
    rng = np.random.default_rng(3)
    chains = [
        Chain(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k), rng.integers(-1, 2, k)) for k in sizes
    ]
    return chains, [rng.normal(-900, 30, size=(k, N_STEPS)) for k in sizes]


def alone(chain, log_density, causal):
    """Filtered or smoothed probabilities of one chain, and log p(y_t | y_1 … y_{t−1})."""
    sequence = np.where(STARTS, np.cumsum(STARTS) - 1, -1)
    top = log_density.max(axis=0)
    probabilities, log_predictive = np.empty((N_STEPS, len(chain.initial))), np.empty(N_STEPS)
    density = np.ascontiguousarray(np.exp(log_density - top).T)
    one.filter_forward(density, sequence, chain.initial, chain.rows, probabilities, log_predictive)
    if not causal:
        one.smooth(probabilities, sequence, chain.rows)
    return probabilities, log_predictive + top


def together():
    chains, tables = chains_and_densities()
    initial, rows, label = np.zeros((5, 4)), np.zeros((5, 5, 4)), np.full((5, 4), -1)
    log_density = np.full((N_STEPS, 5, 4), -np.inf)
    for lane, (chain, table) in enumerate(zip(chains, tables, strict=True)):
        own = slice(len(table))
        initial[own, lane], rows[own, own, lane], label[own, lane] = chain
        log_density[:, own, lane] = table.T
    chains = lanes.without_durations(initial, rows)
    return lanes.Lanes(chains, label, lambda steps: log_density[steps].copy(), STARTS)


@BLOCKS
def test_likelihoods_are_those_of_one_chain_at_a_time(monkeypatch, block_steps):
    monkeypatch.setattr(lanes, "BLOCK_CELLS", 0)
    monkeypatch.setattr(lanes, "MIN_BLOCK", block_steps)
    found = lanes.log_predictive(together())
    for lane, case in enumerate(zip(*chains_and_densities(), strict=True)):
        np.testing.assert_allclose(found[:, lane], alone(*case, causal=True)[1], rtol=1e-13)


@BLOCKS
@pytest.mark.parametrize("causal", [True, False])
def test_probabilities_of_labels_are_sums_over_chains_and_states(monkeypatch, causal, block_steps):
    monkeypatch.setattr(lanes, "BLOCK_CELLS", 0)
    monkeypatch.setattr(lanes, "MIN_BLOCK", block_steps)
    expected = np.zeros((N_STEPS, 3))
    for case in zip(*chains_and_densities(), strict=True):
        probabilities, _ = alone(*case, causal=causal)
        for k, label in enumerate(case[0].label):
            expected[:, label] += probabilities[:, k]
    found = np.zeros((N_STEPS, 3))
    (lanes.add_filtered if causal else lanes.add_smoothed)(together(), found)
    np.testing.assert_allclose(found, expected, atol=1e-13)


@BLOCKS
def test_each_step_given_all_others_is_the_likelihood_with_it_over_that_without_it(monkeypatch, block_steps):
    monkeypatch.setattr(lanes, "BLOCK_CELLS", 0)
    monkeypatch.setattr(lanes, "MIN_BLOCK", block_steps)
    found = lanes.log_leave_one_out(together())
    for lane, (chain, table) in enumerate(zip(*chains_and_densities(), strict=True)):
        whole = alone(chain, table, causal=True)[1].sum()
        for t in range(N_STEPS):
            without = table.copy()
            without[:, t] = 0.0
            np.testing.assert_allclose(found[t, lane], whole - alone(chain, without, causal=True)[1].sum(), rtol=1e-11)
