"""The numbers of the families, and the functions of a family called by its number.

A new family is added here: to the numbers, and to the four functions for numbers or for rows.
"""

import math

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.families import (
    bernoulli,
    categorical,
    choice,
    diagonal_normal,
    full_normal,
    multinomial,
    normal,
    normal_mean,
    poisson,
)

CHOICE = -1
NORMAL_MEAN, NORMAL, CATEGORICAL, POISSON = 0, 1, 2, 3
DIAGONAL_NORMAL, FULL_NORMAL, BERNOULLI, MULTINOMIAL = 4, 5, 6, 7


@inlined
def change_number(family, statistic, y, sign):
    if not math.isnan(y) and count_observation(statistic, sign):
        if family == NORMAL:
            normal.change_statistics(statistic, y, sign)
        elif family == NORMAL_MEAN:
            normal_mean.change_statistics(statistic, y, sign)
        elif family == CATEGORICAL:
            categorical.change_statistics(statistic, y, sign)
        else:
            poisson.change_statistics(statistic, y, sign)


@inlined
def log_predictive_of_number(family, prior, statistic, y):
    if math.isnan(y):
        return 0.0
    if family == NORMAL:
        return normal.log_predictive(prior, statistic, y)
    if family == NORMAL_MEAN:
        return normal_mean.log_predictive(prior, statistic, y)
    if family == CATEGORICAL:
        return categorical.log_predictive(prior, statistic, y)
    return poisson.log_predictive(prior, statistic, y)


@inlined
def prepare_number(family, prior, statistic):
    if family == NORMAL:
        normal.prepare(prior, statistic)
    elif family == NORMAL_MEAN:
        normal_mean.prepare(prior, statistic)


@jit
def combine_numbers(family, prior, first, second, combined):
    if family == NORMAL:
        normal.combine(prior, first, second, combined)
    elif family == NORMAL_MEAN:
        normal_mean.combine(prior, first, second, combined)
    elif family == CATEGORICAL:
        categorical.combine(prior, first, second, combined)
    else:
        poisson.combine(prior, first, second, combined)
    combined[0] = first[0] + second[0]


@jit
def log_evidence_of_numbers(family, prior, statistic):
    if family == NORMAL:
        return normal.log_evidence(prior, statistic)
    if family == NORMAL_MEAN:
        return normal_mean.log_evidence(prior, statistic)
    if family == CATEGORICAL:
        return categorical.log_evidence(prior, statistic)
    return poisson.log_evidence(prior, statistic)


@jit
def change_row(family, statistic, y, sign):
    if not missing(y) and count_observation(statistic, sign):
        if family == DIAGONAL_NORMAL:
            diagonal_normal.change_statistics(statistic, y, sign)
        elif family == FULL_NORMAL:
            full_normal.change_statistics(statistic, y, sign)
        elif family == BERNOULLI:
            bernoulli.change_statistics(statistic, y, sign)
        elif family == MULTINOMIAL:
            multinomial.change_statistics(statistic, y, sign)
        else:
            choice.change_statistics(statistic, y, sign)


@jit
def log_predictive_of_row(family, prior, statistic, y):
    if missing(y):
        return 0.0
    if family == DIAGONAL_NORMAL:
        return diagonal_normal.log_predictive(prior, statistic, y)
    if family == FULL_NORMAL:
        return full_normal.log_predictive(prior, statistic, y)
    if family == BERNOULLI:
        return bernoulli.log_predictive(prior, statistic, y)
    if family == MULTINOMIAL:
        return multinomial.log_predictive(prior, statistic, y)
    return choice.log_predictive(prior, statistic, y)


@jit
def combine_rows(family, prior, first, second, combined):
    if family == DIAGONAL_NORMAL:
        diagonal_normal.combine(prior, first, second, combined)
    elif family == FULL_NORMAL:
        full_normal.combine(prior, first, second, combined)
    elif family == BERNOULLI:
        bernoulli.combine(prior, first, second, combined)
    elif family == MULTINOMIAL:
        multinomial.combine(prior, first, second, combined)
    else:
        choice.combine(prior, first, second, combined)
    combined[0] = first[0] + second[0]


@jit
def log_evidence_of_rows(family, prior, statistic):
    if family == DIAGONAL_NORMAL:
        return diagonal_normal.log_evidence(prior, statistic)
    if family == FULL_NORMAL:
        return full_normal.log_evidence(prior, statistic)
    if family == BERNOULLI:
        return bernoulli.log_evidence(prior, statistic)
    if family == MULTINOMIAL:
        return multinomial.log_evidence(prior, statistic)
    return choice.log_evidence(prior, statistic)


@jit
def n_given(family, prior):
    """How many columns of a family of rows are covariates, such as the past of an autoregression."""
    return full_normal.n_given(prior) if family == FULL_NORMAL else 0


@inlined
def count_observation(statistic, sign):
    """Count an observation that is added or removed; False if none is left, and the statistics are reset."""
    statistic[0] += sign
    if statistic[0] < 0.5:  # what the other entries hold now is rounding error
        for i in range(1, len(statistic)):
            statistic[i] = 0.0
        return False
    return True


@jit
def missing(y):
    """Whether every value of a row is missing."""
    observed = 0
    for d in range(len(y)):
        observed += not math.isnan(y[d])
    return observed == 0
