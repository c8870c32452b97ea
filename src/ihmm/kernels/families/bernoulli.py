"""Rows of independent columns of zeros and ones, each 1 with probability ~ Beta(a, b).

Single values of a row may be missing.

prior, by rows: a, b of every column
statistics: number of rows; then for each column the number of values and the number of ones
"""

import math

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import log_rise
from ihmm.kernels.families.sums import combine

__all__ = ["change_statistics", "combine", "log_evidence", "log_predictive"]


@jit
def change_statistics(statistic, y, sign):
    for d in range(len(y)):
        if not math.isnan(y[d]):
            statistic[1 + 2 * d] += sign
            statistic[2 + 2 * d] += sign * y[d]


@jit
def log_predictive(prior, statistic, y):
    value = 0.0
    for d in range(len(y)):
        if not math.isnan(y[d]):
            a, b, n, ones = prior[0, d], prior[1, d], statistic[1 + 2 * d], statistic[2 + 2 * d]
            value += math.log((a + ones if y[d] > 0.5 else b + n - ones) / (a + b + n))
    return value


@jit
def log_evidence(prior, statistic):
    value = 0.0
    for d in range(prior.shape[1]):
        n, ones = statistic[1 + 2 * d], statistic[2 + 2 * d]
        value += log_rise(prior[0, d], ones) + log_rise(prior[1, d], n - ones) - log_rise(prior[0, d] + prior[1, d], n)
    return value
