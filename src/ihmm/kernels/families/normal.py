"""Normal observations, μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate).

prior: mean, strength, shape, rate
statistics: number of observations, their mean, their sum of squared deviations; then whether the following are up to
date, and the centre, inverse squared scale and log constant of the predictive density, a Student t
"""

import math

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.counts import log_half_step

PREPARED, CENTER, SCALE, CONSTANT = 3, 4, 5, 6  # positions in the statistics


@inlined
def change_statistics(statistic, y, sign):
    n, mean = statistic[0], statistic[1]
    statistic[1] += sign * (y - mean) / n
    statistic[2] = max(statistic[2] + sign * (y - mean) * (y - statistic[1]), 0.0)
    statistic[PREPARED] = 0.0


@inlined
def log_predictive(prior, statistic, y):
    if statistic[PREPARED] < 0.5:
        prepare(prior, statistic)
    square = (y - statistic[CENTER]) ** 2 * statistic[SCALE]
    return statistic[CONSTANT] - (prior[2] + 0.5 * statistic[0] + 0.5) * math.log1p(square)


@inlined
def prepare(prior, statistic):
    n = statistic[0]
    share, shape = 1.0 / (prior[1] + n), prior[2] + 0.5 * n
    scale = 2.0 * prior[3] + statistic[2] + prior[1] * n * share * (statistic[1] - prior[0]) ** 2
    scale *= 1.0 + share
    statistic[CENTER] = (prior[1] * prior[0] + n * statistic[1]) * share
    statistic[SCALE] = 1.0 / scale
    statistic[CONSTANT] = log_half_step(shape) - 0.5 * math.log(math.pi * scale)
    statistic[PREPARED] = 1.0


@jit
def combine(prior, first, second, combined):
    n = first[0] + second[0]
    gap, share = second[1] - first[1], second[0] / max(n, 1.0)
    combined[2] = first[2] + second[2] + gap * gap * first[0] * share
    combined[1] = first[1] + gap * share
    combined[PREPARED] = 0.0


@jit
def log_evidence(prior, statistic):
    n = statistic[0]
    strength, shape = prior[1] + n, prior[2] + 0.5 * n
    rate = prior[3] + 0.5 * statistic[2] + 0.5 * prior[1] * n / strength * (statistic[1] - prior[0]) ** 2
    value = math.lgamma(shape) - math.lgamma(prior[2]) + prior[2] * math.log(prior[3]) - shape * math.log(rate)
    return value + 0.5 * math.log(prior[1] / strength)
