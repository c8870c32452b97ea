"""A substitute for emissions that are not conjugate, used by greedy splits and merges.

φ is one of M given values with equal prior probability, and a state takes the one with the highest likelihood.

values: log f(y_t | φ_m), shape (T, M)
prior: not used
statistics: number of observations, then Σ_t log f(y_t | φ_m) for every m
"""

import math

from ihmm.kernels._jit import jit
from ihmm.kernels.families.sums import combine

__all__ = ["change_statistics", "combine", "log_evidence", "log_predictive"]


@jit
def change_statistics(statistic, y, sign):
    for m in range(len(y)):
        statistic[1 + m] += sign * y[m]


@jit
def log_predictive(prior, statistic, y):
    return y[statistic[1:].argmax()]


@jit
def log_evidence(prior, statistic):
    return statistic[1:].max() - math.log(len(statistic) - 1.0)
