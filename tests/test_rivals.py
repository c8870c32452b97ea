"""A single level is doubted where several explain the data as well, and nowhere else."""

from types import SimpleNamespace

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import lognorm, norm

import ihmm
from ihmm.diagnostics.doubts import check_length, check_rival
from ihmm.diagnostics.rivals import CLOSE, UNDECIDED, log_jacobian, rival_of_counts, rival_of_levels, rival_of_one_level
from ihmm.pilot._fit import Series, Structure

SINGLE = SimpleNamespace(n_levels=1)


def remembering(rng, steps, memory):
    e = rng.normal(size=steps)
    for t in range(1, steps):
        e[t] += memory * e[t - 1]
    return e


def levels_one_deviation_apart(seed):
    rng = np.random.default_rng(seed)
    states = np.repeat(rng.permutation(np.repeat([0, 1, 2], 4)), 17)
    return states + rng.standard_normal(len(states))


def rival(y, ends=None):
    return rival_of_one_level(np.reshape(y, (len(y), -1)), np.array([0, len(y)]) if ends is None else ends)


@pytest.mark.parametrize("memory", [0.0, 0.6, 0.9, 0.98])
def test_noise_around_one_level_has_no_rival(memory):
    assert [rival(remembering(np.random.default_rng(seed), 800, memory)) for seed in range(5)] == [None] * 5


def test_levels_that_overlap_are_a_rival_of_noise_with_a_memory():
    found = [rival(levels_one_deviation_apart(seed)) for seed in range(5)]
    assert all(one is not None and one.n_levels in (2, 3) and one.gain > 0 for one in found)


def test_a_single_change_in_noise_with_a_memory_is_a_rival():
    """As body temperatures at rest and in activity."""
    rng = np.random.default_rng(0)
    y = 0.6 * (np.arange(100) >= 38) + 0.12 * remembering(rng, 100, 0.75)
    assert rival(y).n_levels == 2
    y[[3, 40, 41]] = np.nan
    assert rival(y, np.array([0, 60, 100])).n_levels == 2


def test_several_levels_that_are_hardly_worse_than_one_are_a_rival():
    rng = np.random.default_rng(23)
    found = rival(0.6 * (np.arange(100) >= 38) + 0.12 * remembering(rng, 100, 0.9))
    assert found.n_levels == 2
    assert -UNDECIDED < found.gain < 0


def test_a_slow_trend_around_one_level_has_no_rival():
    y = np.sin(np.linspace(0, 3, 800)) + np.random.default_rng(0).normal(size=800)
    assert rival(y) is None


def test_a_few_values_settle_nothing():
    (few,) = check_length(ihmm.Model(ihmm.Normal()), np.append(np.zeros(3), np.full(50, np.nan))[:, None])
    assert few.unsettled == "3 values are too few to settle the number of levels"
    assert not few.gross
    assert not list(check_length(ihmm.Model(ihmm.Normal()), np.zeros((30, 1))))
    assert not list(check_length(ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(2)), np.zeros((3, 1))))


def test_too_little_or_nothing_to_compare_has_no_rival():
    assert rival(np.zeros(100)) is None
    assert rival(np.arange(20.0)) is None


def test_only_a_single_level_that_was_inferred_from_measurements_is_doubted():
    y = levels_one_deviation_apart(0)
    values, ends = y[:, None], np.array([0, len(y)])
    model = ihmm.Model(ihmm.NoisyLevels(2, filtered=True))
    (found,) = check_rival(model, values, ends, SINGLE)
    readings = "as a single level in noise with a memory of 2 steps, or as 3 levels"
    assert found.unsettled == f"the data can be read either way: {readings}"
    assert found.setting == 'emission="levels", order=0'
    assert not found.gross
    (found,) = check_rival(ihmm.Model(ihmm.NoisyLevels()), values, ends, SINGLE)
    assert found.unsettled == "the data can be read either way: as a single level, or as 3 that are close together"
    assert not found.setting  # which is in force already
    given = ihmm.Model(ihmm.NoisyLevels(2, filtered=True), ihmm.FinitePrior(1))
    assert not list(check_rival(given, values, ends, SINGLE))
    assert not list(check_rival(ihmm.Model(ihmm.Poisson()), values, ends, SINGLE))


def one_instead_of(path, y):
    return rival_of_levels(y[:, None], np.array([0, len(y)]), path)


@pytest.mark.parametrize("memory", [0.0, 0.6])
def test_levels_that_are_there_have_no_rival(memory):
    path = np.arange(600) // 40 % 2
    for seed in range(5):
        assert one_instead_of(path, 3.0 * path + remembering(np.random.default_rng(seed), 600, memory)) is None


def test_a_wandering_series_cut_into_levels_has_one_level_as_a_rival():
    """Noise with a long memory above and below its mean, and a slow trend."""
    y = remembering(np.random.default_rng(0), 600, 0.95)
    found = one_instead_of((y > 0).astype(int), y)
    assert (found.n_levels, found.trend) == (1, False)
    y = 0.01 * np.arange(600) + np.random.default_rng(1).normal(size=600)
    assert one_instead_of((np.arange(600) >= 300).astype(int), y).trend


def test_levels_in_a_trend_are_doubted():
    y = 0.01 * np.arange(600) + np.random.default_rng(1).normal(size=600)
    levels = SimpleNamespace(n_levels=2, segmentation=(np.arange(600) >= 300).astype(int))
    (found,) = check_rival(ihmm.Model(ihmm.Normal()), y[:, None], np.array([0, 600]), levels)
    assert found.unsettled.startswith("the data are explained better by a single level that follows a slow trend in")
    assert not found.gross
    given = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(2))
    assert not list(check_rival(given, y[:, None], np.array([0, 600]), levels))


def test_one_level_of_two_cut_in_half_has_two_levels_as_a_rival():
    rng, two = np.random.default_rng(0), np.arange(600) // 40 % 2
    y = 5.0 * two + rng.normal(size=600)
    assert one_instead_of(two, y) is None
    found = one_instead_of(two + (y > 5), y)
    assert (found.n_levels, found.order, found.log) == (2, 0, False)


def test_three_levels_that_are_there_have_no_rival():
    path = np.random.default_rng(0).permutation(np.repeat([0, 1, 2], 5)).repeat(40)
    assert one_instead_of(path, 20 + 4.0 * path + remembering(np.random.default_rng(1), 600, 0.3)) is None


def test_skewed_values_have_one_level_of_their_logarithms_as_a_rival():
    """As of wind speeds: high values spread more widely than low ones."""
    y = np.exp(0.7 * remembering(np.random.default_rng(0), 600, 0.3))
    found = one_instead_of((y > 1).astype(int), y)
    assert (found.n_levels, found.log) == (1, True)
    assert found.gain > CLOSE
    levels = SimpleNamespace(n_levels=2, segmentation=(y > 1).astype(int))
    (criticism,) = check_rival(ihmm.Model(ihmm.Normal()), y[:, None], np.array([0, 600]), levels)
    assert criticism.unsettled.startswith("the data are explained better by a single level in")
    assert criticism.unsettled.endswith("on a logarithmic scale")
    assert "fit the logarithms" in criticism.text


def test_likelihoods_of_logarithms_are_densities_of_the_values():
    y = np.random.default_rng(0).lognormal(2, 0.5, 200)[:, None]
    y[[5, 90]] = np.nan
    series = Series((y - np.nanmean(y)) / np.nanstd(y), np.array([0, 200]))
    used = ~np.isnan(series.unpredicted(np.zeros((0, 1))))
    logs = (np.log(y) - np.nanmean(np.log(y))) / np.nanstd(np.log(y))
    exact = lognorm.logpdf(y[used], np.nanstd(np.log(y)), scale=np.exp(np.nanmean(np.log(y)))) + np.log(np.nanstd(y))
    assert norm.logpdf(logs[used]).sum() + log_jacobian(y, series) == pytest.approx(exact.sum())


def test_counts_of_one_rate_cut_in_two_are_doubted():
    y, ends = np.random.default_rng(0).poisson(4, 300), np.array([0, 300])
    levels = SimpleNamespace(n_levels=2, segmentation=(y > 4).astype(int))
    (found,) = check_rival(ihmm.Model(ihmm.Poisson()), y[:, None], ends, levels)
    assert found.unsettled == "the data can be read either way: as 2 levels, or as a single level of Poisson counts"


def test_rates_that_differ_have_no_rival():
    path = np.arange(300) // 50 % 2
    y = np.random.default_rng(0).poisson(2 + 5 * path)
    assert rival_of_counts(y[:, None], np.array([0, 300]), path) is None


def test_very_long_recordings_are_not_compared():
    y = remembering(np.random.default_rng(0), 12_000, 0.95)
    assert one_instead_of((y > 0).astype(int), y) is None


def test_levels_and_a_single_one_are_compared_in_noise_of_the_same_memory():
    """Otherwise a longer memory counts for the single level alone."""
    rng, path, memory = np.random.default_rng(3), np.arange(1000) // 50 % 2, np.array([1.2, -0.6, 0.3, -0.1])
    y = lfilter([1.0], [1.0, *-memory], (1 - memory.sum()) * 3.0 * path + 0.5 * rng.normal(size=1000))
    assert one_instead_of(path, y).gain > CLOSE
    assert rival_of_levels(y[:, None], np.array([0, 1000]), path, Structure(4, sharp=False)) is None
    model = ihmm.Model(ihmm.NoisyLevels(4, filtered=True))
    levels = SimpleNamespace(n_levels=2, segmentation=path)
    assert not list(check_rival(model, y[:, None], np.array([0, 1000]), levels))
