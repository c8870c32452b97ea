"""Rows of counts given their totals, with probabilities ~ Dirichlet(concentration).

A row is complete, or missing altogether.

prior: one row, the concentration of every column
statistics: number of rows, then the sum of each column
"""

import math

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import log_rise
from ihmm.kernels.families.sums import combine

__all__ = ["change_statistics", "combine", "log_evidence", "log_predictive"]


@jit
def change_statistics(statistic, y, sign):
    for d in range(len(y)):
        statistic[1 + d] += sign * y[d]


@jit
def log_predictive(prior, statistic, y):
    value, total, mass = 0.0, 0.0, 0.0
    for d in range(len(y)):
        weight = prior[0, d] + statistic[1 + d]
        mass += weight
        total += y[d]
        if y[d] > 0.0:
            value += log_rise(weight, y[d]) - math.lgamma(y[d] + 1.0)
    return value + math.lgamma(total + 1.0) - log_rise(mass, total)


@jit
def log_evidence(prior, statistic):
    value, total, mass = 0.0, 0.0, 0.0
    for d in range(prior.shape[1]):
        mass += prior[0, d]
        total += statistic[1 + d]
        value += log_rise(prior[0, d], statistic[1 + d])
    return value - log_rise(mass, total)
