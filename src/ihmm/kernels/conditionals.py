"""Steps 2, 3 and 5 of the sweep (T15 §3): c and ρ, tables, overrides, γ, then β, then π, in that order.

The conditionals of the hyperparameters integrate π out, so π is drawn after them. Those of c and ρ integrate the tables
out as well: given the tables, c hardly moves if rows are similar. Counts and rows have the initial row first.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, jit
from ihmm.kernels.counts import count_tables, log_rise, row_total
from ihmm.kernels.draws import FLOOR, MAX_RATE, draw_poisson, log_beta, log_gamma, normal, uniform
from ihmm.kernels.sticks import ENDLESS

MIN_GAMMA, MAX_GAMMA = 1e-12, 1e12  # bounds of a free γ, so that ratios with it stay finite
MAX_ABS = 27.6  # bound of |log c| and |logit ρ|, for the same reason
MAX_LOGIT = 690.0  # bound of |logit β_k|: weights are above FLOOR


class Concentrations(NamedTuple):
    """Concentration parameters of the hierarchical Dirichlet process."""

    gamma: float  # γ, of β
    concentration: float  # c = α + κ, of the rows
    stickiness: float  # ρ = κ/(α + κ)


class HyperPriors(NamedTuple):
    """Gamma(shape, rate) of γ and c, Beta(a, b) of ρ. A first parameter of 0 marks a fixed quantity."""

    n_total: int  # number of states; ENDLESS in the infinite model
    gamma_shape: float
    gamma_rate: float
    concentration_shape: float
    concentration_rate: float
    stickiness_a: float
    stickiness_b: float


@jit
def resample_transitions(stream, priors, counts, beta, gamma, concentration, stickiness, no_self=False):
    """New γ, c, ρ, β and rows given the transition counts, the old β and hyperparameters.

    Only the visited states are represented, in a finite model too; the last entry of β and of every row is the total
    mass of the others. With `no_self`, for segments that no state follows itself in, rows are π_jk / (1 − π_jj), and
    neither the counts nor the rows have self-transitions.
    """
    concentration, stickiness = draw_masses(stream, priors, counts, beta, concentration, stickiness, no_self)
    if no_self and gamma < math.inf:
        beta = rescale_beta(stream, priors, counts, beta, gamma, concentration)
    tables = draw_tables(stream, counts, base_measure(beta, concentration, stickiness))
    remove_overrides(stream, tables, beta, stickiness)
    served = column_sums(tables)  # m̄_·k, the initial row included
    if no_self:
        add_self_tables(stream, served, counts, beta, concentration)
    if priors.gamma_shape > 0.0:
        gamma = draw_gamma(stream, priors, served, gamma)
    beta = draw_beta(stream, priors.n_total, served, gamma)
    measure = base_measure(beta, concentration, stickiness)
    if no_self:
        for k in range(len(beta) - 1):
            measure[k + 1, k] = FLOOR
    return gamma, concentration, stickiness, beta, draw_rows(stream, counts, measure)


@jit
def base_measure(beta, concentration, stickiness):
    """c((1−ρ)β + ρδ_j) for every row j, shape (K + 1, K + 1); c β for the initial row."""
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
    """m_jk: number of tables of n_jk customers in a restaurant with concentration measure_jk."""
    tables = np.zeros(counts.shape, np.int64)
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            if counts[j, k] > 0:
                tables[j, k] = count_tables(stream, counts[j, k], measure[j, k])
    return tables


@in_place
def add_self_tables(stream, served, counts, beta, concentration):
    """Tables of the self-transitions that were wanted before each departure, and not made.

    n departures from j have probability ∝ Γ(A)/Γ(A+n), A = c(1−β_j), not a power of β_j. With r ~ Beta(A, n) it
    is r^A = r^c e^{λβ_j}, λ = −c log r, and with m ~ Poisson(λβ_j) it becomes one: m more tables of state j. m has the
    law of the tables of n geometric numbers of self-transitions, P(g) = π_jj^g (1 − π_jj), summed over these and π_jj.
    λ is about 1/(1 − β_j), which has no bound: a large number of tables is not an integer, but a normal variate.
    """
    for j in range(len(served)):
        departures = row_total(counts[j + 1])
        if departures > 0:
            log_r = log_beta(stream, concentration * mass_of_others(beta, j), float(departures))
            rate = min(-concentration * beta[j] * log_r, 1.0 / FLOOR)
            served[j] += draw_poisson(stream, rate) if rate < MAX_RATE else rate + math.sqrt(rate) * normal(stream)


@in_place
def mass_of_others(beta, j):
    """1 − β_j as a sum of small positive terms."""
    total = FLOOR
    for k in range(len(beta)):
        if k != j:
            total += beta[k]
    return total


@in_place
def remove_overrides(stream, tables, beta, stickiness):
    """m̄ in place of m: w_j ~ Binomial(m_jj, ρ / (ρ + β_j(1−ρ))) of the tables are due to the self-transition bias."""
    if stickiness > 0.0:
        for j in range(tables.shape[1]):
            probability = stickiness / (stickiness + beta[j] * (1.0 - stickiness))
            for _ in range(tables[j + 1, j]):
                if uniform(stream) < probability:
                    tables[j + 1, j] -= 1


@jit
def column_sums(tables):
    total = np.zeros(tables.shape[1])
    for j in range(tables.shape[0]):
        for k in range(tables.shape[1]):
            total[k] += tables[j, k]
    return total


@jit
def draw_masses(stream, priors, counts, beta, concentration, stickiness, no_self=False):
    """c and ρ given the counts and β, by slice sampling of log c, then of logit ρ; fixed quantities are unchanged."""
    point = np.empty(2)
    point[0], point[1] = math.log(concentration), math.log(max(stickiness, FLOOR)) - math.log1p(-stickiness)
    if priors.concentration_shape > 0.0:
        slice_along(stream, priors, counts, beta, point, 0, no_self)
        concentration = math.exp(point[0])
    if priors.stickiness_a > 0.0:
        slice_along(stream, priors, counts, beta, point, 1, no_self)
        stickiness = logistic(point[1])
    return concentration, stickiness


@in_place
def slice_along(stream, priors, counts, beta, point, axis, no_self):
    """Slice sampling of one coordinate, in place: stepping out by 1, then shrinkage (Neal 2003)."""
    start = min(max(point[axis], -MAX_ABS), MAX_ABS)
    point[axis] = start
    level = log_masses(priors, counts, beta, point, no_self) + math.log(1.0 - uniform(stream))
    low = start - uniform(stream)
    high = low + 1.0
    point[axis] = low
    while low > -MAX_ABS and log_masses(priors, counts, beta, point, no_self) > level:
        low -= 1.0
        point[axis] = low
    point[axis] = high
    while high < MAX_ABS and log_masses(priors, counts, beta, point, no_self) > level:
        high += 1.0
        point[axis] = high
    low, high = max(low, -MAX_ABS), min(high, MAX_ABS)
    while True:
        point[axis] = low + uniform(stream) * (high - low)
        if log_masses(priors, counts, beta, point, no_self) > level or high - low < 1e-12:
            return
        if point[axis] < start:
            low = point[axis]
        else:
            high = point[axis]


@in_place
def log_masses(priors, counts, beta, point, no_self=False):
    """log p(log c, logit ρ, s | β) up to a constant: priors and one Dirichlet-multinomial per row."""
    concentration, stickiness = math.exp(point[0]), logistic(point[1])
    value = priors.concentration_shape * point[0] - priors.concentration_rate * concentration
    if priors.stickiness_a > 0.0:
        value -= priors.stickiness_a * math.log1p(math.exp(-point[1]))
        value -= priors.stickiness_b * math.log1p(math.exp(point[1]))
    for j in range(counts.shape[0]):
        customers = 0
        mass = concentration if j == 0 else concentration * (1.0 - stickiness)
        for k in range(counts.shape[1]):
            if counts[j, k] > 0:
                own = concentration * stickiness if k == j - 1 else 0.0
                value += log_rise(max(mass * beta[k] + own, FLOOR), counts[j, k])
                customers += counts[j, k]
        if customers > 0:
            others = mass_of_others(beta, j - 1) if no_self and j > 0 else 1.0
            value -= log_rise(concentration * others, customers)
    return value


@jit
def rescale_beta(stream, priors, counts, beta, gamma, concentration):
    """β with the weight of a random state j drawn anew, the others in proportion, given the counts and c.

    Given the tables that `add_self_tables` draws, log(1 − β_j) changes by about 1 in a sweep, but under a small γ its
    range is hundreds. Here tables are integrated out: x = logit(1 − β_j) has density (1−β_j)^(γ−g) β_j^g p(s | β),
    where g is γ/L with L states and 0 with infinitely many. Slice sampling by shrinkage from the whole range.
    """
    each = 0.0 if priors.n_total == ENDLESS else gamma / priors.n_total
    j = int(uniform(stream) * (len(beta) - 1))
    point = np.empty(2)
    point[0], point[1] = math.log(concentration), math.log(FLOOR)
    low, high = -MAX_LOGIT, MAX_LOGIT
    start = min(max(math.log(mass_of_others(beta, j)) - math.log(beta[j]), low), high)
    x, level = start, -math.inf
    while True:
        log_others, log_own = -math.log1p(math.exp(-x)), -math.log1p(math.exp(x))
        new = with_weight(beta, j, math.exp(log_own), math.exp(log_others))
        value = log_masses(priors, counts, new, point, True) + (gamma - each) * log_others + each * log_own
        if level == -math.inf:
            level = value + math.log(1.0 - uniform(stream))
        elif value > level or high - low < 1e-12:
            return new
        elif x < start:
            low = x
        else:
            high = x
        x = low + uniform(stream) * (high - low)


@jit
def with_weight(beta, j, own, others):
    """β with this weight of state j, and this total of the others."""
    scale = others / mass_of_others(beta, j)
    new = np.empty(len(beta))
    for k in range(len(beta)):
        new[k] = max(own if k == j else beta[k] * scale, FLOOR)
    return new


@in_place
def logistic(x):
    return 1.0 / (1.0 + math.exp(-x))


@in_place
def draw_gamma(stream, priors, served, gamma):
    """Escobar and West: η ~ Beta(γ + 1, M), then a mixture of Gamma(a + K, ·) and Gamma(a + K − 1, ·).

    Every visited state was first entered through β, so all K columns have a table.
    """
    n_tables = 0.0
    for k in range(len(served)):
        n_tables += served[k]
    shape = priors.gamma_shape + len(served)
    rate = priors.gamma_rate - log_beta(stream, gamma + 1.0, n_tables)
    if priors.n_total < ENDLESS:
        # the tables of a state are customers of a restaurant with concentration γ/L: one more level of the hierarchy
        for k in range(len(served)):
            shape += count_tables(stream, int(min(served[k], MAX_RATE)), gamma / priors.n_total) - 1
            if served[k] > MAX_RATE:  # later customers open a table so seldom that tables are a Poisson process
                shape += draw_poisson(stream, gamma / priors.n_total * math.log(served[k] / MAX_RATE))
        if uniform(stream) * (n_tables + gamma) < n_tables:
            shape -= 1.0
    elif uniform(stream) * (shape - 1.0 + n_tables * rate) >= shape - 1.0:
        shape -= 1.0
    return bounded_gamma(stream, shape, rate)


@jit
def draw_beta(stream, n_total, served, gamma):
    """β ~ Dir(m̄_·1, …, m̄_·K, γ); for L states Dir(m̄_·k + γ/L, …), with the states not visited combined."""
    n_states = len(served)
    beta = np.empty(n_states + 1)
    if gamma == math.inf:  # equal weights
        for k in range(n_states):
            beta[k] = 1.0 / n_total
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
    """π_j ~ Dir(n_j + c((1−ρ)β + ρδ_j)); overwrites the base measure."""
    for j in range(counts.shape[0]):
        for k in range(counts.shape[1]):
            measure[j, k] += counts[j, k]
        draw_dirichlet(stream, measure[j])
    return measure


@in_place
def draw_dirichlet(stream, weights):
    """Replace concentrations by a Dirichlet draw, computed in logarithms; no entry is zero."""
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


@in_place
def bounded_gamma(stream, shape, rate):
    return min(max(math.exp(log_gamma(stream, shape)) / rate, MIN_GAMMA), MAX_GAMMA)
