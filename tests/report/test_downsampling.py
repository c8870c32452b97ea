"""Downsampling keeps short events and extreme values."""

import numpy as np

from ihmm.report import _downsampling

RNG = np.random.default_rng(5)


def test_all_observed_values_of_a_short_series_are_kept():
    values = np.array([1.0, np.nan, 3.0, 2.0])
    size, kept = _downsampling.downsample(values, np.array([0, 0, 1, 0]), most=4)
    assert size == 1
    np.testing.assert_array_equal(kept.step, [0, 2, 3])
    np.testing.assert_array_equal(kept.value, [1, 3, 2])
    np.testing.assert_array_equal(kept.state, [0, 1, 0])


def test_single_step_events_in_a_million_steps_are_kept():
    n = 1_000_000
    values, states = RNG.standard_normal(n), (np.arange(n) // 1000) % 2
    values[123_456], values[654_321] = 20, -20  # extreme values
    states[777_777] = 2  # an ordinary value of a rare state
    size, kept = _downsampling.downsample(values, states, most=50_000)
    assert len(kept.step) <= 50_000
    assert size > 1
    assert {123_456, 654_321, 777_777} <= set(kept.step.tolist())
    np.testing.assert_allclose(kept.value, values[kept.step], rtol=1e-6)
    np.testing.assert_array_equal(kept.state, states[kept.step])


def test_every_block_keeps_the_minimum_and_the_maximum_of_every_state():
    values, states = RNG.standard_normal(1000).round(1), RNG.integers(0, 3, 1000)
    values[RNG.random(1000) < 0.1] = np.nan
    steps = _downsampling.extremes(values, states, 30)
    assert np.all(np.diff(steps) > 0)
    for begin in range(0, 1000, 30):
        for k in range(3):
            here = values[begin : begin + 30][states[begin : begin + 30] == k]
            mine = steps[(steps >= begin) & (steps < begin + 30)]
            mine = values[mine[states[mine] == k]]
            assert mine.min() == np.nanmin(here)
            assert mine.max() == np.nanmax(here)


def test_every_block_keeps_every_symbol_of_every_state():
    values, states = RNG.integers(0, 5, 1000).astype(float), RNG.integers(0, 2, 1000)
    steps = _downsampling.extremes(values, states, 100, symbols=5)
    for begin in range(0, 1000, 100):
        here, mine = np.arange(begin, begin + 100), steps[(steps >= begin) & (steps < begin + 100)]
        assert {*zip(values[here], states[here], strict=True)} == {*zip(values[mine], states[mine], strict=True)}


def test_values_are_rounded_to_32_bits_only_if_the_error_is_invisible():
    _, kept = _downsampling.downsample(np.array([0.1, 0.2, 0.3]), np.zeros(3, int), most=10)
    assert kept.value.dtype == np.float32
    for values in (1e9 + np.array([0.1, 0.2, 0.3]), np.array([0.0, 1.0, 1e60])):
        _, kept = _downsampling.downsample(values, np.zeros(3, int), most=10)
        np.testing.assert_array_equal(kept.value, values)


def test_probabilities_are_averaged_over_blocks():
    size, means = _downsampling.block_means(np.array([[0.0], [1.0], [1.0], [1.0], [0.5]]), most=3)
    assert size == 2
    np.testing.assert_allclose(means, [[0.5], [1.0], [0.5]])


def test_gaps_are_found_unless_they_are_too_short():
    missing = np.zeros(40, bool)
    missing[[0, 1, 2, 10, 30, 31, 39]] = True
    assert _downsampling.gaps(missing, 1).tolist() == [[0, 3], [10, 11], [30, 32], [39, 40]]
    assert _downsampling.gaps(missing, 2).tolist() == [[0, 3], [30, 32]]
    assert _downsampling.gaps(np.zeros(3, bool), 1).tolist() == []
