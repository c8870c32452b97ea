"""Symbols 0, 1, …, with Dirichlet probabilities.

prior: sum of the parameters of the Dirichlet distribution, then the parameter of each symbol
statistics: number of observations, then how often each symbol was observed
"""

import math

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.counts import log_rise
from ihmm.kernels.families.sums import combine

__all__ = ["change_statistics", "combine", "log_evidence", "log_predictive"]


@inlined
def change_statistics(statistic, y, sign):
    statistic[1 + int(y)] += sign


@inlined
def log_predictive(prior, statistic, y):
    s = 1 + int(y)
    return math.log((prior[s] + statistic[s]) / (prior[0] + statistic[0]))


@jit
def log_evidence(prior, statistic):
    value = -log_rise(prior[0], statistic[0])
    for i in range(1, len(statistic)):
        value += log_rise(prior[i], statistic[i])
    return value
