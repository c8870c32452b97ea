"""Direct-assignment Gibbs (Teh et al. 2006; sticky: Fox et al.): one s_t at a time, π and φ integrated out.

A conjugate family is known here by its number, its prior parameters and the sufficient statistics of each state: what
the observations given to a state so far say about the next one. Families of one number a step are here and have a
prior and values of one dimension; those of several have two, and are in `rows`. As the compiler knows dimensions, it
leaves out of each what is for the other.

The first of a state's statistics is the number of its steps. NORMAL_MEAN has their sum next, NORMAL their mean and sum
of squared deviations; then both have, from PREPARED on, whether what follows is made of these, and center, inverse
squared scale and constant of the predictive density, made when they are first asked for.

A product of families, with three dimensions, is known by a table in place of a number, a row a part: its family,
whether that is one of rows, and where its columns and its statistics begin and end. Values are (T, D, 1); the prior of
part p is prior[p, 0], or prior[p] of a family of rows.
"""

import math

import numpy as np

from ihmm.kernels import rows
from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.counts import log_half_step, log_rise
from ihmm.kernels.draws import FLOOR, draw_index, split
from ihmm.kernels.sticks import ENDLESS

NORMAL_MEAN, NORMAL, CATEGORICAL, POISSON = 0, 1, 2, 3
PREPARED, CENTER, SCALE, CONSTANT = 3, 4, 5, 6  # where these stand among the statistics of NORMAL_MEAN and NORMAL
FAMILY, OF_ROWS, COLUMN, LAST_COLUMN, STATISTIC, LAST_STATISTIC = 0, 1, 2, 3, 4, 5  # in the table of a product


@jit
def reassign(
    t, stream, family, prior, values, sequence, states, counts, visits, statistics, beta, gamma, mass, n_total
):
    """Draw s_t for t, t + 1, … in turn, in place. Returns the first step for which there was no room for a new state,
    or the number of steps. The last entry of β is the mass of the states not visited; `mass` is (c, α, κ)."""
    concentration, alpha, kappa = mass
    capacity = len(visits)
    weight = np.empty(capacity + 1)
    nothing = np.zeros(statistics.shape[1])  # the statistics of a new state
    while t < len(states):
        fresh = 0
        while fresh < capacity and visits[fresh] > 0:
            fresh += 1
        if fresh == capacity:
            return t

        # Take s_t out: its two transitions, its observation, and its state if nobody else is there
        state = states[t]
        previous = states[t - 1] if sequence[t] < 0 else -1
        following = states[t + 1] if t + 1 < len(states) and sequence[t + 1] < 0 else -1
        counts[previous + 1, state] -= 1
        if following >= 0:
            counts[state + 1, following] -= 1
        visits[state] -= 1
        change_statistics(family, statistics[state], values, t, -1.0)
        if visits[state] == 0:
            beta[capacity] += beta[state]
            beta[state] = 0.0

        # P(s_t = k) ∝ p(k | s_{t−1}) p(s_{t+1} | k) p(y_t | other observations of k)
        top = -math.inf
        n_visited = 0
        into = concentration if previous < 0 else alpha
        for k in range(capacity):
            weight[k] = -math.inf
            if visits[k] > 0:
                n_visited += 1
                arrive = counts[previous + 1, k] + into * beta[k] + (kappa if k == previous else 0.0)
                leave = 1.0
                if following >= 0:
                    stays = 1.0 if k == previous else 0.0
                    leave = counts[k + 1, following] + alpha * beta[following]
                    leave += kappa + stays if k == following else 0.0
                    leave /= counts[k + 1].sum() + concentration + stays
                weight[k] = math.log(max(arrive * leave, FLOOR))
                weight[k] += log_predictive(family, prior, statistics[k], values, t)
                top = max(top, weight[k])
        weight[capacity] = -math.inf
        if n_visited < n_total:
            leave = 1.0 if following < 0 else alpha * beta[following] / concentration
            weight[capacity] = math.log(max(into * beta[capacity] * leave, FLOOR))
            weight[capacity] += log_predictive(family, prior, nothing, values, t)
            top = max(top, weight[capacity])
        for k in range(capacity + 1):
            weight[k] = math.exp(weight[k] - top)
        state = draw_index(stream, weight)

        # A new state takes its share of β's leftover, and the slot of one that is empty
        if state == capacity:
            state = 0
            while visits[state] > 0:
                state += 1
            part, remainder = draw_share(stream, gamma, n_total, n_visited)
            beta[state] = max(beta[capacity] * part, FLOOR)
            beta[capacity] = max(beta[capacity] * remainder, FLOOR)
        states[t] = state
        counts[previous + 1, state] += 1
        if following >= 0:
            counts[state + 1, following] += 1
        visits[state] += 1
        change_statistics(family, statistics[state], values, t, 1.0)
        t += 1
    return t


@jit
def draw_share(stream, gamma, n_total, n_visited):
    """The share of the leftover that a state picked from it has: Beta(1, γ), or its like among finitely many."""
    if n_total == ENDLESS:
        return split(stream, 1.0, gamma)
    others = n_total - n_visited - 1
    if others == 0:
        return 1.0, FLOOR
    if gamma == math.inf:
        return 1.0 / (others + 1), 1.0 - 1.0 / (others + 1)
    return split(stream, 1.0 + gamma / n_total, others * gamma / n_total)


@jit
def gather_statistics(family, statistics, values, states):
    """Give every state its observations."""
    for t in range(len(states)):
        change_statistics(family, statistics[states[t]], values, t, 1.0)


@inlined
def change_statistics(family, statistic, values, t, sign):
    """Give the observation of step t to a state (sign 1) or take it away (sign −1). The first entry is the number of
    them; those that are missing, NaN, do not count."""
    if values.ndim == 3:
        change_parts(family, statistic, values, t, sign)
    elif values.ndim == 2:
        rows.change_statistics(family, statistic, values, t, sign)
    else:
        change_number(family, statistic, values[t], sign)


@inlined
def change_number(family, statistic, y, sign):
    if math.isnan(y):
        return
    statistic[0] += sign
    if family == CATEGORICAL:
        statistic[1 + int(y)] += sign
    elif statistic[0] < 0.5:  # no observation is left, and no rounding either
        for i in range(1, len(statistic)):
            statistic[i] = 0.0
    elif family == NORMAL:
        n, mean = statistic[0], statistic[1]
        statistic[1] += sign * (y - mean) / n
        statistic[2] = max(statistic[2] + sign * (y - mean) * (y - statistic[1]), 0.0)
        statistic[PREPARED] = 0.0
    elif family == NORMAL_MEAN:
        statistic[1] += sign * y
        statistic[PREPARED] = 0.0
    else:  # POISSON
        statistic[1] += sign * y


@inlined
def log_predictive(family, prior, statistic, values, t):
    """log p(y_t | the observations of a state)."""
    if values.ndim == 3:
        return log_predictive_of_parts(family, prior, statistic, values, t)
    if values.ndim == 2:
        return rows.log_predictive(family, prior, statistic, values, t)
    return log_predictive_of_number(family, prior, statistic, values[t])


@inlined
def log_predictive_of_number(family, prior, statistic, y):
    if math.isnan(y):
        return 0.0
    n = statistic[0]
    if family == CATEGORICAL:  # prior: concentration, number of symbols
        return math.log((prior[0] + statistic[1 + int(y)]) / (prior[0] * prior[1] + n))
    if family == POISSON:  # prior: shape, rate
        return log_negative_binomial(prior[0] + statistic[1], prior[1] + n, y)
    if statistic[PREPARED] < 0.5:
        prepare_normal(family, prior, statistic)
    square = (y - statistic[CENTER]) ** 2 * statistic[SCALE]
    if family == NORMAL_MEAN:
        return statistic[CONSTANT] - square
    return statistic[CONSTANT] - (prior[2] + 0.5 * n + 0.5) * math.log1p(square)


@inlined
def prepare(family, prior, statistic, values):
    """Do what `log_predictive` would otherwise do when it is first asked."""
    if values.ndim == 1 and family in (NORMAL_MEAN, NORMAL):
        prepare_normal(family, prior, statistic)


@inlined
def prepare_normal(family, prior, statistic):
    """Center, inverse squared scale and constant of a state's predictive density."""
    n = statistic[0]
    if family == NORMAL_MEAN:  # prior: noise², mean, scale²
        share = 1.0 / (prior[0] + n * prior[2])
        variance = prior[0] + prior[0] * prior[2] * share
        statistic[CENTER] = (prior[0] * prior[1] + prior[2] * statistic[1]) * share
        statistic[SCALE] = 0.5 / variance
        statistic[CONSTANT] = -0.5 * math.log(2.0 * math.pi * variance)
    else:  # NORMAL, prior: mean, strength, shape, rate
        share, shape = 1.0 / (prior[1] + n), prior[2] + 0.5 * n
        scale = 2.0 * prior[3] + statistic[2] + prior[1] * n * share * (statistic[1] - prior[0]) ** 2
        scale *= 1.0 + share
        statistic[CENTER] = (prior[1] * prior[0] + n * statistic[1]) * share
        statistic[SCALE] = 1.0 / scale
        statistic[CONSTANT] = log_half_step(shape) - 0.5 * math.log(math.pi * scale)
    statistic[PREPARED] = 1.0


@jit
def log_negative_binomial(shape, rate, y):
    """log of the probability of a count whose mean is Gamma(shape, rate)."""
    return log_rise(shape, y) - math.lgamma(y + 1.0) - shape * math.log1p(1.0 / rate) - y * math.log1p(rate)


@jit
def change_parts(table, statistic, values, t, sign):
    if rows.missing(values[:, :, 0], t):
        return
    statistic[0] += sign
    for p in range(len(table)):
        part, column = table[p], table[p, COLUMN]
        own = statistic[part[STATISTIC] : part[LAST_STATISTIC]]
        if part[OF_ROWS]:
            rows.change_statistics(part[FAMILY], own, values[:, column : part[LAST_COLUMN], 0], t, sign)
        else:
            change_number(part[FAMILY], own, values[t, column, 0], sign)


@jit
def log_predictive_of_parts(table, prior, statistic, values, t):
    total = 0.0
    for p in range(len(table)):
        part, column = table[p], table[p, COLUMN]
        own = statistic[part[STATISTIC] : part[LAST_STATISTIC]]
        if part[OF_ROWS]:
            known = values[:, column : part[LAST_COLUMN], 0]
            total += rows.log_predictive(part[FAMILY], prior[p, :, : known.shape[1]], own, known, t)
        else:
            total += log_predictive_of_number(part[FAMILY], prior[p, 0], own, values[t, column, 0])
    return total
