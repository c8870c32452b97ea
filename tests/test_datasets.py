"""The ion channels and the text match their descriptions."""

import hashlib
import sys

import numpy as np
import pytest

import ihmm
from ihmm.datasets import ALICE, SYMBOLS, alamethicin, alice, prepare_current


def test_an_ion_channel_moves_between_neighbouring_levels():
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


def test_an_alamethicin_channel_is_preprocessed_as_in_the_paper():
    recording = alamethicin()
    assert recording.y.shape == recording.states.shape == (2000,)
    assert recording.y.mean() == pytest.approx(0, abs=1e-9)
    assert recording.y.std() == pytest.approx(1)
    assert np.all(np.diff(recording.means) > 4 * recording.noise)
    np.testing.assert_allclose(recording.transition.sum(axis=1), 1)
    np.testing.assert_array_equal(recording.y, alamethicin().y)


def test_the_transitions_of_an_alamethicin_channel():
    recording = alamethicin(length=20_000, seed=4)
    counts = np.zeros((4, 4))
    np.add.at(counts, (recording.states[:-1], recording.states[1:]), 1)
    np.testing.assert_allclose(counts / counts.sum(axis=1, keepdims=True), recording.transition, atol=0.01)


def test_a_current_is_subsampled_truncated_logged_and_standardised():
    rng = np.random.default_rng(0)
    current = np.exp(rng.standard_normal(1000))
    logs = np.log(current[:500:5])
    np.testing.assert_allclose(prepare_current(current, every=5, length=100), (logs - logs.mean()) / logs.std())


@pytest.mark.parametrize(
    ("current", "message"),
    [
        ([1.0, -2.0, 3.0], r"positive currents, got -2.0 at 1 \(1 such values\)"),
        ([1.0, 2.0], "leaves 2 of 3"),
        ([[1.0, 2.0, 3.0]], "one series"),
    ],
)
def test_an_invalid_current_is_refused(current, message):
    with pytest.raises(ValueError, match=message):
        prepare_current(current, every=1, length=3)


def test_alice_has_1000_training_and_4000_test_characters():
    pytest.importorskip("arpabo")
    text = alice()
    assert (len(text.train), len(text.test)) == (1000, 4000)
    plain = "".join(SYMBOLS[i] for i in np.concatenate(text))
    assert plain.startswith("alice was beginning to get very tired of sitting by her sister")
    assert hashlib.sha256(plain.encode()).hexdigest() == ALICE


@pytest.mark.parametrize(
    ("text", "message"),
    [("It was the best of times", "Alice was beginning"), ("Alice was beginning to", "SHA-256 0341")],
)
def test_another_text_is_refused(tmp_path, text, message):
    (tmp_path / "text.txt").write_text(text)
    with pytest.raises(ValueError, match=message):
        alice(tmp_path / "text.txt")


def test_without_arpabo_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "arpabo", None)
    with pytest.raises(ImportError, match=r"ihmm\[paper\]"):
        alice()
