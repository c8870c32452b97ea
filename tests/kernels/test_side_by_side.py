"""Several chains side by side: the same probabilities as one chain at a time."""

import numpy as np
import pytest

from ihmm import side_by_side as lanes
from ihmm.kernels import forward_backward as one

pytestmark = pytest.mark.bounds

N_STEPS = 40
STARTS = np.isin(np.arange(N_STEPS), [0, 7, 8, 30])


def chains_and_densities(sizes=(3, 1, 5, 2)):
    rng = np.random.default_rng(3)
    chains = [
        lanes.Chain(rng.dirichlet(np.ones(k)), rng.dirichlet(np.ones(k), size=k), rng.integers(-1, 2, k)) for k in sizes
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
    return lanes.side_by_side(chains, lambda lane, steps: tables[lane][:, steps], STARTS)


@pytest.mark.parametrize("block_cells", [lanes.BLOCK_CELLS, 64 * 20])
def test_likelihoods_are_those_of_one_chain_at_a_time(monkeypatch, block_cells):
    monkeypatch.setattr(lanes, "BLOCK_CELLS", block_cells)
    found = lanes.log_predictive(together())
    for lane, case in enumerate(zip(*chains_and_densities(), strict=True)):
        np.testing.assert_allclose(found[lane], alone(*case, causal=True)[1], rtol=1e-13)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("room", [N_STEPS * 20, 13 * 20, 20], ids=["room for all", "for some", "for one step"])
def test_probabilities_of_labels_are_sums_over_chains_and_states(causal, room):
    expected = np.zeros((N_STEPS, 3))
    for case in zip(*chains_and_densities(), strict=True):
        probabilities, _ = alone(*case, causal=causal)
        for k, label in enumerate(case[0].label):
            expected[:, label] += probabilities[:, k]
    found = np.zeros((N_STEPS, 3))
    if causal:
        lanes.add_filtered(together(), found)
    else:
        lanes.add_smoothed(together(), found, np.empty(room))
    np.testing.assert_allclose(found, expected, atol=1e-13)
