"""Normal observations with known noise, μ ~ N(mean, scale²).

prior: noise², mean, scale²
statistics: number of observations, their sum, unused; then whether the following are up to date, and the centre, half
the inverse variance and the log constant of the predictive density
"""

import math

from ihmm.kernels._jit import inlined, jit

PREPARED, CENTER, SCALE, CONSTANT = 3, 4, 5, 6  # positions in the statistics


@inlined
def change_statistics(statistic, y, sign):
    statistic[1] += sign * y
    statistic[PREPARED] = 0.0


@inlined
def log_predictive(prior, statistic, y):
    if statistic[PREPARED] < 0.5:
        prepare(prior, statistic)
    square = (y - statistic[CENTER]) ** 2 * statistic[SCALE]
    return statistic[CONSTANT] - square


@inlined
def prepare(prior, statistic):
    share = 1.0 / (prior[0] + statistic[0] * prior[2])
    variance = prior[0] + prior[0] * prior[2] * share
    statistic[CENTER] = (prior[0] * prior[1] + prior[2] * statistic[1]) * share
    statistic[SCALE] = 0.5 / variance
    statistic[CONSTANT] = -0.5 * math.log(2.0 * math.pi * variance)
    statistic[PREPARED] = 1.0


@jit
def combine(prior, first, second, combined):
    combined[1], combined[PREPARED] = first[1] + second[1], 0.0


@jit
def log_evidence(prior, statistic):
    n = statistic[0]
    total = statistic[1] - n * prior[1]
    precision = 1.0 / prior[2] + n / prior[0]
    return 0.5 * (total * total / (prior[0] * prior[0] * precision) - math.log(prior[2] * precision))
