"""Does a sample follow a law? Every verdict falls at the same level: a false alarm is one in ten million."""

import numpy as np
from scipy import stats

LEVEL = 1e-7
LEAST_EXPECTED = 20.0  # cells rarer than this are pooled: the chi-square law holds that far into its tail only if full


def assert_follows(sample, cdf):
    """Kolmogorov and Smirnov: the sample comes from the continuous law with this distribution function."""
    p = stats.kstest(np.asarray(sample), cdf).pvalue
    assert p > LEVEL, f"{len(sample)} draws do not follow the law: p = {p:.1e}, mean {np.mean(sample):.6g}"


def assert_frequencies(counts, probabilities):
    """Pearson's chi-square: outcome i was seen counts[i] times, and has probability probabilities[i]."""
    counts, probabilities = np.asarray(counts, float), np.asarray(probabilities, float)
    np.testing.assert_allclose(probabilities.sum(), 1, atol=1e-9)
    assert not counts[probabilities == 0].any(), "an outcome of probability zero was seen"
    expected = probabilities / probabilities.sum() * counts.sum()
    counts, expected = pool(counts, expected)
    if len(counts) > 1:
        statistic = ((counts - expected) ** 2 / expected).sum()
        p = stats.chi2.sf(statistic, len(counts) - 1)
        assert p > LEVEL, f"p = {p:.1e}: seen {counts.tolist()}, expected {expected.round(1).tolist()}"


def pool(counts, expected):
    """Throw outcomes that are expected too seldom into one, and that one into the next if it is still too rare."""
    rank = np.argsort(expected)
    counts, expected = counts[rank], expected[rank]
    rare = int(np.searchsorted(np.cumsum(expected), LEAST_EXPECTED)) + 1
    rare = max(rare, int(np.searchsorted(expected, LEAST_EXPECTED)))
    return (
        np.append(counts[:rare].sum(), counts[rare:]),
        np.append(expected[:rare].sum(), expected[rare:]),
    )


def assert_same_frequencies(first, second):
    """Two tables of counts over the same outcomes come from one law."""
    first, second = np.asarray(first, float), np.asarray(second, float)
    rare = first + second < 2 * LEAST_EXPECTED
    table = np.array(
        [np.append(first[~rare], first[rare].sum()), np.append(second[~rare], second[rare].sum())],
    )
    p = stats.chi2_contingency(table[:, table.sum(axis=0) > 0]).pvalue
    assert p > LEVEL, f"p = {p:.1e}: {first.tolist()} and {second.tolist()}"


def assert_mean(sample, mean):
    """The average is within Monte Carlo error of the mean."""
    sample = np.asarray(sample, float)
    error = sample.std(ddof=1) / np.sqrt(len(sample))
    z = (sample.mean() - mean) / error
    assert abs(z) < stats.norm.isf(LEVEL / 2), f"average {sample.mean():.6g}, mean {mean:.6g}: z = {z:.1f}"


def count_outcomes(outcomes, possible):
    """How often each of the possible outcomes, all of one length, stands among the rows of `outcomes`."""
    seen, counts = np.unique(np.asarray(outcomes), axis=0, return_counts=True)
    index = {tuple(outcome): i for i, outcome in enumerate(possible)}
    out = np.zeros(len(index))
    for outcome, count in zip(seen.tolist(), counts, strict=True):
        out[index[tuple(outcome)]] = count
    return out
