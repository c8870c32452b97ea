"""Rows that are normal with a full covariance, μ | Σ ~ N(m, Σ/κ), Σ ~ InverseWishart(ν, S).

A row is complete, or missing altogether. The first G columns x may be covariates; the family is then the regression of
the other columns on them. With

    S = [ V    VBᵀ      ]      the other columns are N(μ + A (x − m_x), Σ), μ | Σ ~ N(m_y, Σ/κ),
        [ BV   S_y+BVBᵀ ]      A | Σ matrix-normal with mean B and column precision V, Σ ~ InverseWishart(ν, S_y)

and the Cholesky factor of the posterior scale matrix S_n, of the same form, has those of V_n and S_y,n on its diagonal.

prior, by rows: κ, ν, G, log |S_y| and log |V| (each repeated D times); m; the squared diagonal of the Cholesky factor
of S; S
statistics: number of rows; whether the Cholesky factor at the end is up to date, and log |S_y,n| from it; the mean of
the rows; their scatter matrix; the Cholesky factor of S_n, computed on first use. Only the lower triangles are used.
"""

import math

import numpy as np

from ihmm.kernels._jit import inlined, jit

FACTORED, LOG_DET, MEAN = 1, 2, 3  # positions in the statistics
STRENGTH, DOF, GIVEN, LOG_SCALE, LOG_GIVEN, CENTER, PIVOT, SCALE = range(8)  # rows of the prior


@jit
def change_statistics(statistic, y, sign):
    size, n = len(y), statistic[0]
    for i in range(size):
        gap = (sign - 1.0 / n) * (y[i] - statistic[MEAN + i])
        row = MEAN + size + i * size
        for j in range(i + 1):
            statistic[row + j] += gap * (y[j] - statistic[MEAN + j])
    for i in range(size):
        statistic[MEAN + i] += sign * (y[i] - statistic[MEAN + i]) / n
    statistic[FACTORED] = 0.0


@jit
def log_predictive(prior, statistic, y):
    """A multivariate Student t, given the covariates."""
    factorise(prior, statistic)
    size, given, n = len(y), n_given(prior), statistic[0]
    strength, dof = prior[STRENGTH, 0] + n, prior[DOF, 0] + n
    # L⁻¹(y_t − m_n), by forward substitution; covariates far from their mean widen the density
    spread, distance, z = 1.0 + 1.0 / strength, 0.0, np.empty(size)
    for i in range(size):
        row = MEAN + size + size * size + i * size
        value = y[i] - (prior[STRENGTH, 0] * prior[CENTER, i] + n * statistic[MEAN + i]) / strength
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
def combine(prior, first, second, combined):
    size = prior.shape[1]
    n, share = first[0], second[0] / max(first[0] + second[0], 1.0)
    for i in range(size):
        gap = n * share * (second[MEAN + i] - first[MEAN + i])
        row = MEAN + size + i * size
        for j in range(i + 1):
            combined[row + j] = first[row + j] + second[row + j] + gap * (second[MEAN + j] - first[MEAN + j])
    for i in range(size):
        combined[MEAN + i] = first[MEAN + i] + share * (second[MEAN + i] - first[MEAN + i])
    combined[FACTORED] = 0.0


@jit
def log_evidence(prior, statistic):
    factorise(prior, statistic)
    size, given, n = prior.shape[1], n_given(prior), statistic[0]
    strength, dof = prior[STRENGTH, 0], prior[DOF, 0]
    log_given = prior[LOG_GIVEN, 0] + math.log(strength / (strength + n))
    for i in range(given):
        log_given -= 2.0 * math.log(statistic[MEAN + size + size * size + i * size + i])
    value = dof * prior[LOG_SCALE, 0] - (dof + n) * statistic[LOG_DET] + (size - given) * log_given
    value *= 0.5
    for i in range(size - given):
        value += math.lgamma(0.5 * (dof + n - i)) - math.lgamma(0.5 * (dof - i))
    return value


@inlined
def n_given(prior):
    """G, the number of covariates."""
    return int(prior[GIVEN, 0])


@jit
def factorise(prior, statistic):
    """Cholesky factor of S_n = S + scatter + κn/(κ+n) (ȳ − m)(ȳ − m)ᵀ, unless it is up to date.

    What is added to S is positive semi-definite, so no pivot is smaller than that of S except by rounding.
    """
    if statistic[FACTORED] > 0.5:
        return
    size, given, n = prior.shape[1], n_given(prior), statistic[0]
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
