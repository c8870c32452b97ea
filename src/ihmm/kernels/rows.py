"""The collapsed families whose observations are rows of D columns; a value that is missing is NaN.

A family is known by its number, its prior and the sufficient statistics of each state, a flat array of which the first
entry is the number of its steps.

DIAGONAL: columns are independent, each μ | σ² ~ N(mean, σ²/strength), σ² ~ InvGamma(shape, rate).
    prior, by rows: mean, strength, shape, rate of every column
    statistics: after the number of steps, number, mean and sum of squared deviations of each column's values

FULL: μ | Σ ~ N(m, Σ/κ), Σ ~ InverseWishart(ν, S). Rows are complete, or missing altogether.
    The first G columns may be given: what is modelled then is the regression of the others on them. With
        S = [ V    VBᵀ      ]      the others are N(μ + A (x − m_x), Σ), μ | Σ ~ N(m_y, Σ/κ),
            [ BV   S_y+BVBᵀ ]      A | Σ matrix-normal about B with precision V, Σ ~ InverseWishart(ν, S_y)
    and Cholesky's factor of the posterior's matrix of this form has those of V_n and of S_y,n on its diagonal.
    prior, by rows: κ, ν, G, log |S_y| and log |V| (each D times); m; the squared diagonal of S's Cholesky factor; S
    statistics: after the number of rows, whether the factor that comes last is theirs, and log |S_y,n| from it; then
    their mean; their scatter matrix; the Cholesky factor of the posterior's scale matrix S_n, made when it is first
    asked for. Of matrices only the lower triangle is used.

BERNOULLI: columns of zeros and ones are independent, each 1 with a probability that is Beta(a, b).
    prior, by rows: a, b of every column
    statistics: after the number of steps, the number of values and of ones in each column

MULTINOMIAL: rows of counts, with probabilities that are Dirichlet. Rows are complete, or missing altogether.
    prior: one row, the concentration of every column
    statistics: after the number of rows, the sum of each column

CHOICE: not an emission but a stand-in for any of them. φ is one of M that are given, each as likely, and a state has
the one that suits its steps best.
    values: log f(y_t | φ_m)
    prior: nothing
    statistics: after the number of steps, their sum of log f(y_t | φ_m) for every m
"""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import log_half_step, log_rise

CHOICE, DIAGONAL, FULL, BERNOULLI, MULTINOMIAL = -1, 4, 5, 6, 7
FACTORED, LOG_DET, MEAN = 1, 2, 3  # where these stand among the statistics of FULL
STRENGTH, DOF, GIVEN, LOG_SCALE, LOG_GIVEN, CENTER, PIVOT, SCALE = range(8)  # rows of FULL's prior


@jit
def change_statistics(family, statistic, values, t, sign):
    """Add the row of step t to a state (sign 1) or take it away (sign −1)."""
    if missing(values, t):
        return
    statistic[0] += sign
    if family == DIAGONAL:
        change_columns(statistic, values, t, sign)
    elif family == BERNOULLI:
        change_ones(statistic, values, t, sign)
    elif family in (MULTINOMIAL, CHOICE):
        for d in range(values.shape[1]):
            statistic[1 + d] += sign * values[t, d]
    elif statistic[0] < 0.5:  # no row is left, and no rounding either
        statistic[1:] = 0.0
    else:
        change_scatter(statistic, values, t, sign)


@jit
def log_predictive(family, prior, statistic, values, t):
    """log p(y_t | the rows of a state)."""
    if missing(values, t):
        return 0.0
    if family == DIAGONAL:
        return log_students(prior, statistic, values, t)
    if family == BERNOULLI:
        return log_bernoullis(prior, statistic, values, t)
    if family == MULTINOMIAL:
        return log_multinomial(prior, statistic, values, t)
    if family == CHOICE:
        return values[t, statistic[1:].argmax()]
    return log_student_of_row(prior, statistic, values, t)


@jit
def combine(family, prior, first, second, together):
    """The statistics of two states' rows taken together; `together` may be one of the two."""
    if family == DIAGONAL:
        combine_columns(first, second, together)
    elif family in (BERNOULLI, MULTINOMIAL, CHOICE):
        for i in range(1, len(together)):
            together[i] = first[i] + second[i]
    else:
        combine_scatter(prior.shape[1], first, second, together)
    together[0] = first[0] + second[0]


@jit
def log_evidence(family, prior, statistic):
    """log ∫ Π f(y_t|φ) H(dφ) of a state's rows, up to terms that merging leaves alone."""
    if family == DIAGONAL:
        return log_evidence_of_columns(prior, statistic)
    if family == BERNOULLI:
        return log_evidence_of_ones(prior, statistic)
    if family == MULTINOMIAL:
        return log_evidence_of_counts(prior, statistic)
    if family == CHOICE:
        return statistic[1:].max() - math.log(len(statistic) - 1.0)
    return log_evidence_of_rows(prior, statistic)


@jit
def n_given(family, prior):
    """How many of the columns are given."""
    return int(prior[GIVEN, 0]) if family == FULL else 0


@jit
def missing(values, t):
    """Whether nothing is known of step t."""
    known = 0
    for d in range(values.shape[1]):
        known += not math.isnan(values[t, d])
    return known == 0


@jit
def change_columns(statistic, values, t, sign):
    for d in range(values.shape[1]):
        y, i = values[t, d], 1 + 3 * d
        if math.isnan(y):
            continue
        n, gap = statistic[i] + sign, y - statistic[i + 1]
        if n < 0.5:
            statistic[i], statistic[i + 1], statistic[i + 2] = 0.0, 0.0, 0.0
        else:
            statistic[i] = n
            statistic[i + 1] += sign * gap / n
            statistic[i + 2] = max(statistic[i + 2] + sign * gap * (y - statistic[i + 1]), 0.0)


@jit
def log_students(prior, statistic, values, t):
    """A Student t in each column."""
    value, constant, last = 0.0, 0.0, -1.0
    for d in range(values.shape[1]):
        if math.isnan(values[t, d]):
            continue
        n, mean = statistic[1 + 3 * d], statistic[2 + 3 * d]
        strength, shape = prior[1, d] + n, prior[2, d] + 0.5 * n
        if n != last:  # most columns have as many values as the one before; shapes are the same
            constant, last = log_half_step(shape), n
        center = (prior[1, d] * prior[0, d] + n * mean) / strength
        scale = 2.0 * rate_of_column(prior, statistic, d) * (1.0 + 1.0 / strength)
        value += constant - 0.5 * math.log(math.pi * scale)
        value -= (shape + 0.5) * math.log1p((values[t, d] - center) ** 2 / scale)
    return value


@jit
def rate_of_column(prior, statistic, d):
    n, gap = statistic[1 + 3 * d], statistic[2 + 3 * d] - prior[0, d]
    return prior[3, d] + 0.5 * (statistic[3 + 3 * d] + prior[1, d] * n / (prior[1, d] + n) * gap * gap)


@jit
def combine_columns(first, second, together):
    for i in range(1, len(together), 3):
        number = first[i] + second[i]
        gap, share = second[i + 1] - first[i + 1], second[i] / max(number, 1.0)
        together[i + 2] = first[i + 2] + second[i + 2] + gap * gap * first[i] * share
        together[i + 1] = first[i + 1] + gap * share
        together[i] = number


@jit
def log_evidence_of_columns(prior, statistic):
    value = 0.0
    for d in range(prior.shape[1]):
        n = statistic[1 + 3 * d]
        shape = prior[2, d] + 0.5 * n
        value += math.lgamma(shape) - math.lgamma(prior[2, d]) + 0.5 * math.log(prior[1, d] / (prior[1, d] + n))
        value += prior[2, d] * math.log(prior[3, d]) - shape * math.log(rate_of_column(prior, statistic, d))
    return value


@jit
def change_scatter(statistic, values, t, sign):
    size, n = values.shape[1], statistic[0]
    for i in range(size):
        gap = (sign - 1.0 / n) * (values[t, i] - statistic[MEAN + i])
        row = MEAN + size + i * size
        for j in range(i + 1):
            statistic[row + j] += gap * (values[t, j] - statistic[MEAN + j])
    for i in range(size):
        statistic[MEAN + i] += sign * (values[t, i] - statistic[MEAN + i]) / n
    statistic[FACTORED] = 0.0


@jit
def log_student_of_row(prior, statistic, values, t):
    """A multivariate Student t; of the columns that are given, only how far out they are counts."""
    factorise(prior, statistic)
    size, given, n = values.shape[1], int(prior[GIVEN, 0]), statistic[0]
    strength, dof = prior[STRENGTH, 0] + n, prior[DOF, 0] + n
    # L⁻¹(y_t − m_n), by forward substitution
    spread, distance, z = 1.0 + 1.0 / strength, 0.0, np.empty(size)
    for i in range(size):
        row = MEAN + size + size * size + i * size
        value = values[t, i] - (prior[STRENGTH, 0] * prior[CENTER, i] + n * statistic[MEAN + i]) / strength
        for j in range(i):
            value -= statistic[row + j] * z[j]
        z[i] = value / statistic[row + i]
        if i < given:
            spread += z[i] * z[i]
        else:
            distance += z[i] * z[i]
    size -= given
    value = math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * (dof + 1.0 - size))
    value -= 0.5 * (statistic[LOG_DET] + size * math.log(math.pi * spread))
    return value - 0.5 * (dof + 1.0) * math.log1p(distance / spread)


@jit
def combine_scatter(size, first, second, together):
    n, share = first[0], second[0] / max(first[0] + second[0], 1.0)
    for i in range(size):
        gap = n * share * (second[MEAN + i] - first[MEAN + i])
        row = MEAN + size + i * size
        for j in range(i + 1):
            together[row + j] = first[row + j] + second[row + j] + gap * (second[MEAN + j] - first[MEAN + j])
    for i in range(size):
        together[MEAN + i] = first[MEAN + i] + share * (second[MEAN + i] - first[MEAN + i])
    together[FACTORED] = 0.0


@jit
def log_evidence_of_rows(prior, statistic):
    factorise(prior, statistic)
    size, given, n = prior.shape[1], int(prior[GIVEN, 0]), statistic[0]
    strength, dof = prior[STRENGTH, 0], prior[DOF, 0]
    log_given = prior[LOG_GIVEN, 0] + math.log(strength / (strength + n))
    for i in range(given):
        log_given -= 2.0 * math.log(statistic[MEAN + size + size * size + i * size + i])
    value = dof * prior[LOG_SCALE, 0] - (dof + n) * statistic[LOG_DET] + (size - given) * log_given
    value *= 0.5
    for i in range(size - given):
        value += math.lgamma(0.5 * (dof + n - i)) - math.lgamma(0.5 * (dof - i))
    return value


@jit
def factorise(prior, statistic):
    """Cholesky's factor of S_n = S + scatter + κn/(κ+n) (ȳ − m)(ȳ − m)ᵀ, unless it is there already.

    What is added to S is nowhere negative, so that no pivot is smaller than S's own: only rounding can make it so.
    """
    if statistic[FACTORED] > 0.5:
        return
    size, given, n = prior.shape[1], int(prior[GIVEN, 0]), statistic[0]
    weight, log_det = prior[STRENGTH, 0] * n / (prior[STRENGTH, 0] + n), 0.0
    scatter, factor = MEAN + size, MEAN + size + size * size
    for i in range(size):
        row = factor + i * size
        gap = weight * (statistic[MEAN + i] - prior[CENTER, i])
        for j in range(i + 1):
            column = factor + j * size
            value = prior[SCALE + i, j] + statistic[scatter + i * size + j]
            value += gap * (statistic[MEAN + j] - prior[CENTER, j])
            for k in range(j):
                value -= statistic[row + k] * statistic[column + k]
            if j < i:
                statistic[row + j] = value / statistic[column + j]
            else:
                value = max(value, prior[PIVOT, i])
                statistic[row + i] = math.sqrt(value)
                if i >= given:
                    log_det += math.log(value)
    statistic[LOG_DET], statistic[FACTORED] = log_det, 1.0


@jit
def change_ones(statistic, values, t, sign):
    for d in range(values.shape[1]):
        if not math.isnan(values[t, d]):
            statistic[1 + 2 * d] += sign
            statistic[2 + 2 * d] += sign * values[t, d]


@jit
def log_bernoullis(prior, statistic, values, t):
    value = 0.0
    for d in range(values.shape[1]):
        if not math.isnan(values[t, d]):
            a, b, n, ones = prior[0, d], prior[1, d], statistic[1 + 2 * d], statistic[2 + 2 * d]
            value += math.log((a + ones if values[t, d] > 0.5 else b + n - ones) / (a + b + n))
    return value


@jit
def log_evidence_of_ones(prior, statistic):
    value = 0.0
    for d in range(prior.shape[1]):
        n, ones = statistic[1 + 2 * d], statistic[2 + 2 * d]
        value += log_rise(prior[0, d], ones) + log_rise(prior[1, d], n - ones) - log_rise(prior[0, d] + prior[1, d], n)
    return value


@jit
def log_multinomial(prior, statistic, values, t):
    value, total, mass = 0.0, 0.0, 0.0
    for d in range(values.shape[1]):
        y, weight = values[t, d], prior[0, d] + statistic[1 + d]
        mass += weight
        total += y
        if y > 0.0:
            value += log_rise(weight, y) - math.lgamma(y + 1.0)
    return value + math.lgamma(total + 1.0) - log_rise(mass, total)


@jit
def log_evidence_of_counts(prior, statistic):
    value, total, mass = 0.0, 0.0, 0.0
    for d in range(prior.shape[1]):
        mass += prior[0, d]
        total += statistic[1 + d]
        value += log_rise(prior[0, d], statistic[1 + d])
    return value - log_rise(mass, total)
