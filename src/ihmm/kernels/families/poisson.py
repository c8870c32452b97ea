"""Counts, with rate ~ Gamma(shape, rate).

prior: shape, rate
statistics: number of observations, their sum
"""

import math

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.counts import log_rise


@inlined
def change_statistics(statistic, y, sign):
    statistic[1] += sign * y


@inlined
def log_predictive(prior, statistic, y):
    return log_negative_binomial(prior[0] + statistic[1], prior[1] + statistic[0], y)


@jit
def combine(prior, first, second, combined):
    combined[1] = first[1] + second[1]


@jit
def log_evidence(prior, statistic):
    shape = prior[0] + statistic[1]
    rise = log_rise(prior[0], statistic[1])
    return rise + prior[0] * math.log(prior[1]) - shape * math.log(prior[1] + statistic[0])


@jit
def log_negative_binomial(shape, rate, y):
    """Log-probability of a count whose mean is Gamma(shape, rate)."""
    return log_rise(shape, y) - math.lgamma(y + 1.0) - shape * math.log1p(1.0 / rate) - y * math.log1p(rate)
