"""Steps 2, 3 and 5 of the sweep (T15 §3): tables, overrides, c, ρ, γ, then β, then π, in that order.

The hyperparameters' conditionals integrate π out, so π is drawn after them. Counts and rows have the initial row first.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import count_tables
from ihmm.kernels.draws import FLOOR, log_beta, log_gamma, uniform
from ihmm.kernels.sticks import ENDLESS

SMALLEST, LARGEST = 1e-12, 1e12  # where a free c or γ is kept, so that what is divided by it stays finite


class HyperPriors(NamedTuple):
    """Gamma(shape, rate) of γ and c, Beta(a, b) of ρ. A first parameter of 0 marks a quantity that is fixed."""

    n_total: int  # states there are: ENDLESS in the infinite model
    gamma_shape: float
    gamma_rate: float
    concentration_shape: float
    concentration_rate: float
    stickiness_a: float
    stickiness_b: float


@jit
def resample_transitions(stream, priors, counts, beta, gamma, concentration, stickiness):
    """New γ, c, ρ, β and rows given the transition counts, the old β and hyperparameters.

    Of a finite model's L states only those visited are here, as in the infinite one; the last entry of β and of every
    row is the mass of the others together.
    """
    measure = base_measure(beta, concentration, stickiness)
    tables = draw_tables(stream, counts, measure)
    overrides = remove_overrides(stream, tables, beta, stickiness)
    served = column_sums(tables)  # m̄_·k, the initial row included
    n_free = served.sum()
    if priors.concentration_shape > 0.0:
        concentration = draw_concentration(stream, priors, counts, n_free + overrides, concentration)
    if priors.stickiness_a > 0.0:
        stickiness = draw_stickiness(stream, priors, n_free - tables[0].sum(), overrides)
    if priors.gamma_shape > 0.0:
        gamma = draw_gamma(stream, priors, served, gamma)
    beta = draw_beta(stream, priors.n_total, served, gamma)
    rows = draw_rows(stream, counts, base_measure(beta, concentration, stickiness))
    return gamma, concentration, stickiness, beta, rows


@jit
def base_measure(beta, concentration, stickiness):
    """c((1−ρ)β + ρδ_j) for every row, shape (K + 1, K + 1); that of the initial row is c β."""
    n_states = len(beta) - 1
    measure = np.empty((n_states + 1, n_states + 1))
    for j in range(n_states + 1):
        mass = concentration if j == 0 else concentration * (1.0 - stickiness)
        for k in range(n_states + 1):
            measure[j, k] = mass * beta[k]
        if j > 0:
            measure[j, j - 1] += concentration * stickiness
    return measure


@jit
def draw_tables(stream, counts, measure):
    """m_jk: tables of n_jk customers in a restaurant of concentration measure_jk."""
    tables = np.zeros(counts.shape, np.int64)
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            if counts[j, k] > 0:
                tables[j, k] = count_tables(stream, counts[j, k], measure[j, k])
    return tables


@jit
def remove_overrides(stream, tables, beta, stickiness):
    """m̄ in place of m: w_j ~ Binomial(m_jj, ρ / (ρ + β_j(1−ρ))) tables were the self bias's. Returns Σ w."""
    overrides = 0
    if stickiness > 0.0:
        for j in range(tables.shape[1]):
            probability = stickiness / (stickiness + beta[j] * (1.0 - stickiness))
            for _ in range(tables[j + 1, j]):
                if uniform(stream) < probability:
                    tables[j + 1, j] -= 1
                    overrides += 1
    return overrides


@jit
def column_sums(tables):
    total = np.zeros(tables.shape[1], np.int64)
    for j in range(tables.shape[0]):
        for k in range(tables.shape[1]):
            total[k] += tables[j, k]
    return total


@jit
def draw_concentration(stream, priors, counts, n_tables, concentration):
    """c ~ Gamma(a + m_·· − Σq, b − Σ log r), with r_j ~ Beta(c + 1, n_j·) and q_j ~ Bernoulli(n_j·/(n_j· + c))
    for every row with customers."""
    shape, rate = priors.concentration_shape + n_tables, priors.concentration_rate
    for j in range(counts.shape[0]):
        customers = counts[j].sum()
        if customers > 0:
            rate -= log_beta(stream, concentration + 1.0, float(customers))
            if uniform(stream) * (customers + concentration) < customers:
                shape -= 1.0
    return bounded_gamma(stream, shape, rate)


@jit
def draw_stickiness(stream, priors, free, overrides):
    """ρ ~ Beta(a + Σw, b + Σm̄). The initial row's tables never had the choice: they do not count."""
    return min(math.exp(log_beta(stream, priors.stickiness_a + overrides, priors.stickiness_b + free)), 1.0 - 1e-12)


@jit
def draw_gamma(stream, priors, served, gamma):
    """Escobar and West: η ~ Beta(γ + 1, M), then a mixture of Gamma(a + K, ·) and Gamma(a + K − 1, ·).

    Every visited state was first entered through β, so all K columns have a table left.
    """
    n_tables = served.sum()
    shape = priors.gamma_shape + len(served)
    rate = priors.gamma_rate - log_beta(stream, gamma + 1.0, float(n_tables))
    if priors.n_total < ENDLESS:
        # each state's tables are customers of a restaurant of concentration γ/L: one more layer of the same kind
        for k in range(len(served)):
            shape += count_tables(stream, served[k], gamma / priors.n_total) - 1
        if uniform(stream) * (n_tables + gamma) < n_tables:
            shape -= 1.0
    elif uniform(stream) * (shape - 1.0 + n_tables * rate) >= shape - 1.0:
        shape -= 1.0
    return bounded_gamma(stream, shape, rate)


@jit
def draw_beta(stream, n_total, served, gamma):
    """β ~ Dir(m̄_·1, …, m̄_·K, γ); of L states Dir(m̄_·k + γ/L, …), those not visited taken together."""
    n_states = len(served)
    beta = np.empty(n_states + 1)
    if gamma == math.inf:  # equal weights: nothing to draw
        beta[:n_states] = 1.0 / n_total
        beta[n_states] = max(1.0 - n_states / n_total, FLOOR)
        return beta
    each = 0.0 if n_total == ENDLESS else gamma / n_total
    for k in range(n_states):
        beta[k] = served[k] + each
    beta[n_states] = gamma - n_states * each
    draw_dirichlet(stream, beta)
    return beta


@jit
def draw_rows(stream, counts, measure):
    """π_j ~ Dir(n_j + c((1−ρ)β + ρδ_j)), in place of the base measure."""
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            measure[j, k] += counts[j, k]
        draw_dirichlet(stream, measure[j])
    return measure


@jit
def draw_dirichlet(stream, weights):
    """Replace concentrations by a Dirichlet draw, through logarithms and never zero."""
    top = -math.inf
    for k in range(len(weights)):
        weights[k] = log_gamma(stream, max(weights[k], FLOOR))
        top = max(top, weights[k])
    total = 0.0
    for k in range(len(weights)):
        weights[k] = math.exp(weights[k] - top)
        total += weights[k]
    for k in range(len(weights)):
        weights[k] = max(weights[k] / total, FLOOR)


@jit
def bounded_gamma(stream, shape, rate):
    return min(max(math.exp(log_gamma(stream, shape)) / rate, SMALLEST), LARGEST)
