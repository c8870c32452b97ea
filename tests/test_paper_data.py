"""The paper's synthetic data (T15 §4.1): every chain finds the states, and the path as well as one can."""

import numpy as np
import pytest
from convergence import Setting, accuracy, decode, run

import ihmm


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize(("data", "init"), [("four_state", 10), ("ten_state", 3), ("ten_state", 30)])
def test_every_chain_reaches_the_true_number_of_states_and_recovers_the_path(data, init, seed):
    recording = getattr(ihmm.datasets, data)()
    chain = run(recording, init, seed, Setting((), tune=0, sweeps=6000))
    assert np.any(chain.sizes == len(recording.means))
    assert accuracy(recording, chain.late) > accuracy(recording, [decode(recording)]) - 0.01


def test_four_states_are_as_the_paper_describes_them():
    recording = ihmm.datasets.four_state(length=200_000)
    stays = np.mean(recording.states[1:] == recording.states[:-1])
    assert stays == pytest.approx(0.75, abs=0.005)
    np.testing.assert_array_equal(recording.means, [-2.0, -0.5, 1.0, 4.0])
    np.testing.assert_allclose(recording.transition.sum(axis=1), 1)
    residual = recording.y - recording.means[recording.states]
    assert residual.std() == pytest.approx(0.5, abs=0.005)


def test_ten_states_are_two_apart():
    recording = ihmm.datasets.ten_state()
    np.testing.assert_array_equal(np.diff(recording.means), np.full(9, 2.0))
    assert len(recording.y) == 4000
    assert set(recording.states) == set(range(10))
