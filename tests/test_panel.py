"""The panel of realistic recordings."""

import numpy as np
import pytest

from ihmm.datasets import PANEL, patch_clamp


@pytest.mark.parametrize("variant", PANEL, ids=lambda variant: f"{variant.kind}, {variant.name}")
def test_every_recording_has_its_truth(variant):
    recording = variant.recording()
    assert [len(part) for part in recording.series] == [len(part) for part in recording.levels]
    assert all(np.isfinite(part).all() for part in recording.series)
    shares = np.bincount(np.concatenate(recording.levels)) / sum(map(len, recording.levels))
    assert len(shares) == recording.n_levels
    assert shares.min() > 0.02


def test_a_recording_is_determined_by_its_seed():
    first, again, other = (PANEL[0].recording(seed).series[0] for seed in (0, 0, 1))
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, other)


def test_a_third_of_the_variants_of_each_kind_is_set_aside():
    for kind in {variant.kind for variant in PANEL}:
        aside = [variant.aside for variant in PANEL if variant.kind == kind]
        assert 0.3 <= np.mean(aside) <= 0.4, kind


def test_both_closed_states_are_one_level_with_the_same_current():
    recording = patch_clamp(noise=0.0, hum=0.0, flicker=0.0)
    closed = recording.series[0][recording.levels[0] == 0]
    assert recording.n_levels == 2
    assert np.median(np.abs(closed)) < 0.01
