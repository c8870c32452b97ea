"""Rows of independent normal columns, each μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate).

Single values of a row may be missing.

prior, by rows: mean, strength, shape, rate of every column
statistics: number of rows; then for each column the number of values, their mean, their sum of squared deviations
"""

import math

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import log_half_step


@jit
def change_statistics(statistic, y, sign):
    for d in range(len(y)):
        i = 1 + 3 * d
        if math.isnan(y[d]):
            continue
        n, gap = statistic[i] + sign, y[d] - statistic[i + 1]
        if n < 0.5:
            statistic[i], statistic[i + 1], statistic[i + 2] = 0.0, 0.0, 0.0
        else:
            statistic[i] = n
            statistic[i + 1] += sign * gap / n
            statistic[i + 2] = max(statistic[i + 2] + sign * gap * (y[d] - statistic[i + 1]), 0.0)


@jit
def log_predictive(prior, statistic, y):
    """A Student t in each column."""
    value, constant, last = 0.0, 0.0, -1.0
    for d in range(len(y)):
        if math.isnan(y[d]):
            continue
        n, mean = statistic[1 + 3 * d], statistic[2 + 3 * d]
        strength, shape = prior[1, d] + n, prior[2, d] + 0.5 * n
        if n != last:  # most columns have as many values as the previous one, and all have the same prior shape
            constant, last = log_half_step(shape), n
        center = (prior[1, d] * prior[0, d] + n * mean) / strength
        scale = 2.0 * posterior_rate(prior, statistic, d) * (1.0 + 1.0 / strength)
        value += constant - 0.5 * math.log(math.pi * scale)
        value -= (shape + 0.5) * math.log1p((y[d] - center) ** 2 / scale)
    return value


@jit
def combine(prior, first, second, combined):
    for i in range(1, len(combined), 3):
        n = first[i] + second[i]
        gap, share = second[i + 1] - first[i + 1], second[i] / max(n, 1.0)
        combined[i + 2] = first[i + 2] + second[i + 2] + gap * gap * first[i] * share
        combined[i + 1] = first[i + 1] + gap * share
        combined[i] = n


@jit
def log_evidence(prior, statistic):
    value = 0.0
    for d in range(prior.shape[1]):
        n = statistic[1 + 3 * d]
        shape = prior[2, d] + 0.5 * n
        value += math.lgamma(shape) - math.lgamma(prior[2, d]) + 0.5 * math.log(prior[1, d] / (prior[1, d] + n))
        value += prior[2, d] * math.log(prior[3, d]) - shape * math.log(posterior_rate(prior, statistic, d))
    return value


@jit
def posterior_rate(prior, statistic, d):
    """Rate of the inverse-gamma posterior of σ² in column d."""
    n, gap = statistic[1 + 3 * d], statistic[2 + 3 * d] - prior[0, d]
    return prior[3, d] + 0.5 * (statistic[3 + 3 * d] + prior[1, d] * n / (prior[1, d] + n) * gap * gap)
