"""Splitting and merging states, with π and φ integrated out.

The measure of a merge is the change of

    log p(s, β, y) = K log γ − Σ log β_k + (γ−1) log β_rest + Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + Σ_k log p(y_k)

less log β_k of the merged state: two weights become one, and splitting it again by v ~ U(0, 1) has Jacobian β_k. That
of a split is the same with the other sign.
"""

import math

import numpy as np

from ihmm.kernels import rows
from ihmm.kernels._jit import jit
from ihmm.kernels.counts import count_transitions
from ihmm.kernels.direct import (
    CATEGORICAL,
    NORMAL,
    NORMAL_MEAN,
    POISSON,
    change_statistics,
    gather_statistics,
    log_predictive,
)
from ihmm.kernels.draws import uniform

SCANS = 3  # through a state's steps before a split is judged
HOPELESS = -1000.0  # gain of β and the emissions that no likeness of rows makes up for


@jit
def merge_best_first(family, prior, statistics, counts, beta, gamma, concentration, stickiness):
    """Merge the pair that gains most, again and again, until no merge gains anything.

    Statistics, counts (initial row first) and β are merged in place; returns for each state the one it has become.
    """
    n_states = len(statistics)
    becomes = np.arange(n_states)
    while True:
        best, first, second = 0.0, -1, -1
        for a in range(n_states):
            for b in range(a + 1, n_states):
                if becomes[a] == a and becomes[b] == b:
                    gain = merge_gain(
                        family, prior, statistics, counts, beta, gamma, concentration, stickiness, becomes, a, b
                    )
                    if gain > best:
                        best, first, second = gain, a, b
        if first < 0:
            return becomes
        combine(family, prior, statistics[first], statistics[second], statistics[first])
        beta[first] += beta[second]
        for k in range(n_states):
            counts[first + 1, k] += counts[second + 1, k]
            counts[second + 1, k] = 0
        for j in range(n_states + 1):
            counts[j, first] += counts[j, second]
            counts[j, second] = 0
        for k in range(n_states):
            if becomes[k] == second:
                becomes[k] = first


@jit
def try_splits(stream, family, prior, size, values, offsets, states, beta, gamma, concentration, stickiness, n_states):
    """Try once for each of the `n_states` states to split it in two, and keep the splits that gain.

    `states` and `beta` change in place; `beta` has as many entries as there is room for states. `size` is that of a
    state's statistics. Returns how many states there are then.
    """
    for k in range(n_states):
        new = n_states
        if new == len(beta) or not split_in_two(stream, family, prior, size, values, states, k, new):
            continue
        statistics = np.zeros((new + 1, size))
        gather_statistics(family, statistics, values, states)
        counts = count_transitions(states, offsets, new + 1)
        whole, share = beta[k], statistics[new, 0] / (statistics[k, 0] + statistics[new, 0])
        beta[k], beta[new] = whole * (1.0 - share), whole * share
        becomes = np.arange(new + 1)
        lost = merge_gain(family, prior, statistics, counts, beta, gamma, concentration, stickiness, becomes, k, new)
        if lost < 0.0:
            n_states += 1
        else:
            beta[k], beta[new] = whole, 0.0
            for t in range(len(states)):
                if states[t] == new:
                    states[t] = k
    return n_states


@jit
def split_in_two(stream, family, prior, size, values, states, k, new):
    """Give some of state k's steps to state `new`. Two of them at random begin, the others join in turn the one that
    predicts them better; then all are looked through again. False if one of the two is left without a step."""
    steps = steps_of(states, k)
    first, second = steps[int(uniform(stream) * len(steps))], steps[int(uniform(stream) * len(steps))]
    judge = np.zeros((2, size))
    change_statistics(family, judge[0], values, first, 1.0)
    change_statistics(family, judge[1], values, second, 1.0)
    for scan in range(SCANS):
        sides = np.zeros((2, size))
        for t in steps:
            stay = log_predictive(family, prior, judge[0], values, t)
            side = 1 if log_predictive(family, prior, judge[1], values, t) > stay else 0
            states[t] = new if side == 1 else k
            change_statistics(family, sides[side], values, t, 1.0)
            if scan == 0 and t != first and t != second:
                change_statistics(family, judge[side], values, t, 1.0)
        judge = sides
    if judge[0, 0] > 0.0 and judge[1, 0] > 0.0:
        return True
    for t in steps:
        states[t] = k
    return False


@jit
def steps_of(states, k):
    """The steps spent in state k."""
    steps = np.empty(len(states), np.int64)
    n = 0
    for t in range(len(states)):
        if states[t] == k:
            steps[n] = t
            n += 1
    return steps[:n]


@jit
def merge_gain(family, prior, statistics, counts, beta, gamma, concentration, stickiness, becomes, a, b):
    """What taking state b for state a adds to the logarithm of the joint probability."""
    together = np.empty(statistics.shape[1])
    combine(family, prior, statistics[a], statistics[b], together)
    gain = log_evidence(family, prior, together)
    gain -= log_evidence(family, prior, statistics[a]) + log_evidence(family, prior, statistics[b])
    gain += math.log(beta[a]) + math.log(beta[b]) - 2.0 * math.log(beta[a] + beta[b]) - math.log(gamma)
    if gain > HOPELESS:
        gain += row_gain(counts, beta, concentration, stickiness, becomes, a, b)
    return gain


@jit
def row_gain(counts, beta, concentration, stickiness, becomes, a, b):
    """Change of Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) when state b is taken for state a; states merged before,
    which have become others, are passed over."""
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    merged = beta[a] + beta[b]
    gain = 0.0
    # Every other row sees one column instead of two
    for j in range(len(becomes) + 1):
        if j != a + 1 and j != b + 1 and (j == 0 or becomes[j - 1] == j - 1):
            mass = concentration if j == 0 else alpha
            gain += rising(mass * merged, counts[j, a] + counts[j, b])
            gain -= rising(mass * beta[a], counts[j, a]) + rising(mass * beta[b], counts[j, b])
    # Two rows become one
    row_a, row_b = counts[a + 1], counts[b + 1]
    leave_a, leave_b = row_a.sum(), row_b.sum()
    gain += rising(concentration, leave_a) + rising(concentration, leave_b) - rising(concentration, leave_a + leave_b)
    for k in range(len(becomes)):
        if becomes[k] == k:
            gain -= rising(alpha * beta[k] + (kappa if k == a else 0.0), row_a[k])
            gain -= rising(alpha * beta[k] + (kappa if k == b else 0.0), row_b[k])
            if k != a and k != b:
                gain += rising(alpha * beta[k], row_a[k] + row_b[k])
    return gain + rising(alpha * merged + kappa, row_a[a] + row_a[b] + row_b[a] + row_b[b])


@jit
def rising(x, n):
    """log x(x+1)…(x+n−1)."""
    return math.lgamma(x + n) - math.lgamma(x) if n > 0 else 0.0


@jit
def combine(family, prior, first, second, together):
    """The statistics of two states' observations taken together; `together` may be one of the two."""
    if prior.ndim == 2:
        rows.combine(family, prior, first, second, together)
    elif family == NORMAL:  # number, mean, sum of squared deviations
        number = first[0] + second[0]
        gap, share = second[1] - first[1], second[0] / max(number, 1.0)
        together[2] = first[2] + second[2] + gap * gap * first[0] * share
        together[1] = first[1] + gap * share
        together[0] = number
    else:
        for i in range(len(together)):
            together[i] = first[i] + second[i]


@jit
def log_evidence(family, prior, statistic):
    """log ∫ Π f(y_t|φ) H(dφ) of a state's observations, up to terms that merging leaves alone."""
    if prior.ndim == 2:
        return rows.log_evidence(family, prior, statistic)
    return log_evidence_of_numbers(family, prior, statistic)


@jit
def log_evidence_of_numbers(family, prior, statistic):
    n = statistic[0]
    if family == CATEGORICAL:  # prior: concentration, number of symbols
        value = -rising(prior[0] * prior[1], n)
        for v in range(1, len(statistic)):
            value += rising(prior[0], statistic[v])
        return value
    if family == NORMAL_MEAN:  # prior: noise², mean, scale²
        total = statistic[1] - n * prior[1]
        precision = 1.0 / prior[2] + n / prior[0]
        return 0.5 * (total * total / (prior[0] * prior[0] * precision) - math.log(prior[2] * precision))
    if family == POISSON:  # prior: shape, rate
        shape = prior[0] + statistic[1]
        return rising(prior[0], statistic[1]) + prior[0] * math.log(prior[1]) - shape * math.log(prior[1] + n)
    # NORMAL, prior: mean, strength, shape, rate
    strength, shape = prior[1] + n, prior[2] + 0.5 * n
    rate = prior[3] + 0.5 * statistic[2] + 0.5 * prior[1] * n / strength * (statistic[1] - prior[0]) ** 2
    value = math.lgamma(shape) - math.lgamma(prior[2]) + prior[2] * math.log(prior[3]) - shape * math.log(rate)
    return value + 0.5 * math.log(prior[1] / strength)
