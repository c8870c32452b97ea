"""The ion channel is as its description says."""

import numpy as np
import pytest

import ihmm


def test_an_ion_channel_steps_between_neighbouring_levels():
    recording = ihmm.datasets.ion_channel(length=100_000)
    assert np.abs(np.diff(recording.states)).max() == 1
    assert set(recording.states) == set(range(4))
    np.testing.assert_allclose(recording.transition.sum(axis=1), 1)
    counts = np.zeros((4, 4))
    np.add.at(counts, (recording.states[:-1], recording.states[1:]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), recording.transition, atol=0.01)
    residual = recording.y - recording.means[recording.states]
    assert residual.std() == pytest.approx(recording.noise, abs=0.005)


def test_an_ion_channel_is_reproducible():
    np.testing.assert_array_equal(ihmm.datasets.ion_channel(50, seed=3).y, ihmm.datasets.ion_channel(50, seed=3).y)
