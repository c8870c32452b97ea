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
from ihmm.kernels.counts import count_transitions, log_rise
from ihmm.kernels.direct import (
    CATEGORICAL,
    COLUMN,
    FAMILY,
    LAST_COLUMN,
    LAST_STATISTIC,
    NORMAL,
    NORMAL_MEAN,
    OF_ROWS,
    POISSON,
    PREPARED,
    STATISTIC,
    change_statistics,
    gather_statistics,
    log_predictive,
)
from ihmm.kernels.draws import FLOOR, uniform

SCANS = 3  # through a state's steps before a split is judged
STRETCH = 20  # steps, and two more for each number of the past, that a split of dynamics begins with
HOPELESS = 1000.0  # what the emissions may lose by a merge, beyond one a step, before likeness of rows cannot help


@jit
def merge_best_first(
    family, prior, values, offsets, states, statistics, counts, beta, gamma, concentration, stickiness, careful
):
    """Merge the pair that gains most, again and again, until no merge gains anything.

    States, statistics, counts (initial row first) and β are merged in place; the state that goes leaves nothing behind.
    A gain is computed again when one of the two states has changed, and before it is acted on.
    """
    n_states = len(statistics)
    alive = np.ones(n_states, np.bool_)
    gains = np.empty((n_states, n_states))
    fresh = np.zeros((n_states, n_states), np.bool_)
    while True:
        best, first, second = 0.0, -1, -1
        for a in range(n_states):
            for b in range(a + 1, n_states):
                if alive[a] and alive[b]:
                    if not fresh[a, b]:
                        gains[a, b] = judge_merge(
                            family, prior, values, offsets, states, statistics, counts, beta, gamma, concentration,
                            stickiness, alive, careful, a, b,
                        )  # fmt: skip
                        fresh[a, b] = True
                    if gains[a, b] > best:
                        best, first, second = gains[a, b], a, b
        if first < 0:
            return
        gain = judge_merge(
            family, prior, values, offsets, states, statistics, counts, beta, gamma, concentration, stickiness, alive,
            careful, first, second,
        )  # fmt: skip
        gains[first, second] = gain
        if gain < best and gain < 0.5 * best:  # others were merged since: look again which is best
            continue
        combine(family, prior, statistics[first], statistics[second], statistics[first])
        beta[first] += beta[second]
        for k in range(n_states):
            counts[first + 1, k] += counts[second + 1, k]
            counts[second + 1, k] = 0
        for j in range(n_states + 1):
            counts[j, first] += counts[j, second]
            counts[j, second] = 0
        for t in range(len(states)):
            if states[t] == second:
                states[t] = first
        alive[second] = False
        for k in range(n_states):
            fresh[min(first, k), max(first, k)] = False


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
        n_states += keep_split(
            family, prior, size, values, offsets, states, beta, gamma, concentration, stickiness, k, new
        )
    return n_states


@jit
def keep_split(family, prior, size, values, offsets, states, beta, gamma, concentration, stickiness, k, new):
    """Whether it gains that some of state k's steps were given to state `new`; if not, they are given back."""
    statistics = np.zeros((new + 1, size))
    gather_statistics(family, statistics, values, states)
    whole, mine, others = beta[k], statistics[k, 0], statistics[new, 0]
    if mine > 0.0 and others > 0.0:
        counts = count_transitions(states, offsets, new + 1)
        beta[k], beta[new] = whole * mine / (mine + others), whole * others / (mine + others)
        alive = np.ones(new + 1, np.bool_)
        if merge_gain(family, prior, statistics, counts, beta, gamma, concentration, stickiness, alive, k, new) < 0.0:
            return True
    beta[k], beta[new] = whole, 0.0
    for t in range(len(states)):
        if states[t] == new:
            states[t] = k
    return False


@jit
def split_in_two(stream, family, prior, size, values, states, k, new):
    """Give some of state k's steps to state `new`. Two of them at random begin, the others join in turn the one that
    predicts them better; then all are looked through again. False if one of the two is left without a step.

    Dynamics are split in another way half of the time: which is better depends on how long states last.
    """
    if prior.ndim == 2 and rows.n_given(family, prior) > 0 and uniform(stream) < 0.5:
        return split_dynamics(stream, family, prior, size, values, states, k, new)
    steps = np.flatnonzero(states == k)
    first, second = steps[int(uniform(stream) * len(steps))], steps[int(uniform(stream) * len(steps))]
    judge = np.zeros((2, size))
    change_statistics(family, judge[0], values, first, 1.0)
    change_statistics(family, judge[1], values, second, 1.0)
    for scan in range(SCANS):
        sides = np.zeros((2, size))
        side = 0
        for t in steps:
            gain = log_predictive(family, prior, judge[1], values, t) - log_predictive(
                family, prior, judge[0], values, t
            )
            if gain != 0.0:  # a step without a value goes with the one before
                side = 1 if gain > 0.0 else 0
            states[t] = new if side == 1 else k
            change_statistics(family, sides[side], values, t, 1.0)
            if scan == 0 and t != first and t != second:
                change_statistics(family, judge[side], values, t, 1.0)
        judge = sides
    return both_observed(judge, states, steps, k)


@jit
def split_dynamics(stream, family, prior, size, values, states, k, new):
    """`split_in_two` for states that are told apart by how values follow each other, of which a single step says
    little: two stretches of steps begin, and all take the best path between the two, on which a change costs log n."""
    steps = np.flatnonzero(states == k)
    length = min(len(steps), STRETCH + 2 * rows.n_given(family, prior))
    judge = np.zeros((2, size))
    for side in range(2):
        first = int(uniform(stream) * (len(steps) - length + 1))
        for i in range(first, first + length):
            change_statistics(family, judge[side], values, steps[i], 1.0)
    came_from = np.empty((len(steps), 2), np.int64)
    for _ in range(SCANS):
        score = np.zeros(2)
        for i, t in enumerate(steps):
            cost = math.log(len(steps)) if i > 0 and steps[i - 1] == t - 1 else 0.0
            stay_0, stay_1 = score[0] >= score[1] - cost, score[1] >= score[0] - cost
            came_from[i, 0], came_from[i, 1] = 0 if stay_0 else 1, 1 if stay_1 else 0
            before_0 = score[0] if stay_0 else score[1] - cost
            before_1 = score[1] if stay_1 else score[0] - cost
            score[0] = before_0 + log_predictive(family, prior, judge[0], values, t)
            score[1] = before_1 + log_predictive(family, prior, judge[1], values, t)
        side = 1 if score[1] > score[0] else 0
        judge = np.zeros((2, size))
        for i in range(len(steps) - 1, -1, -1):
            states[steps[i]] = new if side == 1 else k
            change_statistics(family, judge[side], values, steps[i], 1.0)
            side = came_from[i, side]
    return both_observed(judge, states, steps, k)


@jit
def both_observed(sides, states, steps, k):
    """Whether both sides of a split have an observation; if not, its steps are given back to state k."""
    if sides[0, 0] > 0.0 and sides[1, 0] > 0.0:
        return True
    for t in steps:
        states[t] = k
    return False


@jit
def judge_merge(
    family, prior, values, offsets, states, statistics, counts, beta, gamma, concentration, stickiness, alive, careful,
    a, b,
):  # fmt: skip
    """What taking state b for state a adds to the logarithm of the joint probability.

    Along one path two states that overlap always seem one too many: the path's choices between them cost
    probability. If `careful`, those are summed over, p(s, y) / p(choices | y), so that only a merge pays that pays
    whatever the path.
    """
    gain = merge_gain(family, prior, statistics, counts, beta, gamma, concentration, stickiness, alive, a, b)
    if careful and gain > 0.0:
        gain += log_choices(
            family, prior, values, offsets, states, statistics, counts, beta, concentration, stickiness, a, b
        )
    return gain


@jit
def log_choices(family, prior, values, offsets, states, statistics, counts, beta, concentration, stickiness, a, b):
    """log probability of the path's own choices between states a and b, all other steps as they are.

    Transitions and densities are those expected given the path, and the choices are filtered forwards and judged
    backwards, one stretch of steps spent in the two at a time.
    """
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    leave_a, leave_b = counts[a + 1].sum() + concentration, counts[b + 1].sum() + concentration
    stay_a = (counts[a + 1, a] + alpha * beta[a] + kappa) / leave_a
    stay_b = (counts[b + 1, b] + alpha * beta[b] + kappa) / leave_b
    cross_a = (counts[a + 1, b] + alpha * beta[b]) / leave_a
    cross_b = (counts[b + 1, a] + alpha * beta[a]) / leave_b
    share = np.empty(len(states))  # filtered probability of a, among the two
    total = 0.0
    for i in range(len(offsets) - 1):
        begin = -1
        for t in range(offsets[i], offsets[i + 1]):
            if states[t] != a and states[t] != b:
                continue
            if t > offsets[i] and (states[t - 1] == a or states[t - 1] == b):
                in_a = share[t - 1] * stay_a + (1.0 - share[t - 1]) * cross_b
                in_b = share[t - 1] * cross_a + (1.0 - share[t - 1]) * stay_b
            else:
                begin = t
                row = states[t - 1] + 1 if t > offsets[i] else 0
                mass = alpha if t > offsets[i] else concentration
                in_a, in_b = counts[row, a] + mass * beta[a], counts[row, b] + mass * beta[b]
            odds = log_predictive(family, prior, statistics[b], values, t)
            odds -= log_predictive(family, prior, statistics[a], values, t)
            share[t] = in_a / (in_a + in_b * math.exp(min(odds, 700.0)))
            if t + 1 < offsets[i + 1] and (states[t + 1] == a or states[t + 1] == b):
                continue
            # the stretch ends: judge its choices, last one first
            weight_a = weight_b = 1.0
            if t + 1 < offsets[i + 1]:
                weight_a = (counts[a + 1, states[t + 1]] + alpha * beta[states[t + 1]]) / leave_a
                weight_b = (counts[b + 1, states[t + 1]] + alpha * beta[states[t + 1]]) / leave_b
            for step in range(t, begin - 1, -1):
                in_a, in_b = share[step] * weight_a, (1.0 - share[step]) * weight_b
                total += math.log(max((in_a if states[step] == a else in_b) / (in_a + in_b), FLOOR))
                weight_a, weight_b = (stay_a, cross_b) if states[step] == a else (cross_a, stay_b)
    return total


@jit
def merge_gain(family, prior, statistics, counts, beta, gamma, concentration, stickiness, alive, a, b):
    """What taking state b for state a adds to the logarithm of the joint probability, along the path."""
    together = np.empty(statistics.shape[1])
    combine(family, prior, statistics[a], statistics[b], together)
    gain = log_evidence(family, prior, together)
    gain -= log_evidence(family, prior, statistics[a]) + log_evidence(family, prior, statistics[b])
    gain += math.log(beta[a]) + math.log(beta[b]) - 2.0 * math.log(beta[a] + beta[b]) - math.log(gamma)
    if gain > -HOPELESS - statistics[a, 0] - statistics[b, 0]:  # a choice between the two costs log 2 a step
        gain += row_gain(counts, beta, concentration, stickiness, alive, a, b)
    return gain


@jit
def row_gain(counts, beta, concentration, stickiness, alive, a, b):
    """Change of Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) when state b is taken for state a; states merged before
    are passed over."""
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    merged = beta[a] + beta[b]
    gain = 0.0
    # Every other row sees one column instead of two
    for j in range(len(alive) + 1):
        if j != a + 1 and j != b + 1 and (j == 0 or alive[j - 1]):
            mass = concentration if j == 0 else alpha
            gain += log_rise(mass * merged, counts[j, a] + counts[j, b])
            gain -= log_rise(mass * beta[a], counts[j, a]) + log_rise(mass * beta[b], counts[j, b])
    # Two rows become one
    row_a, row_b = counts[a + 1], counts[b + 1]
    leave_a, leave_b = row_a.sum(), row_b.sum()
    gain += (
        log_rise(concentration, leave_a) + log_rise(concentration, leave_b) - log_rise(concentration, leave_a + leave_b)
    )
    for k in range(len(alive)):
        if alive[k]:
            gain -= log_rise(alpha * beta[k] + (kappa if k == a else 0.0), row_a[k])
            gain -= log_rise(alpha * beta[k] + (kappa if k == b else 0.0), row_b[k])
            if k != a and k != b:
                gain += log_rise(alpha * beta[k], row_a[k] + row_b[k])
    return gain + log_rise(alpha * merged + kappa, row_a[a] + row_a[b] + row_b[a] + row_b[b])


@jit
def combine(family, prior, first, second, together):
    """The statistics of two states' observations taken together; `together` may be one of the two."""
    if prior.ndim == 3:
        combine_parts(family, prior, first, second, together)
    elif prior.ndim == 2:
        rows.combine(family, prior, first, second, together)
    else:
        combine_numbers(family, first, second, together)


@jit
def combine_numbers(family, first, second, together):
    if family == NORMAL:  # number, mean, sum of squared deviations
        number = first[0] + second[0]
        gap, share = second[1] - first[1], second[0] / max(number, 1.0)
        together[2] = first[2] + second[2] + gap * gap * first[0] * share
        together[1] = first[1] + gap * share
        together[0], together[PREPARED] = number, 0.0
    elif family == NORMAL_MEAN:
        together[0], together[1], together[PREPARED] = first[0] + second[0], first[1] + second[1], 0.0
    else:
        for i in range(len(together)):
            together[i] = first[i] + second[i]


@jit
def log_evidence(family, prior, statistic):
    """log ∫ Π f(y_t|φ) H(dφ) of a state's observations, up to terms that merging leaves alone."""
    if prior.ndim == 3:
        return log_evidence_of_parts(family, prior, statistic)
    if prior.ndim == 2:
        return rows.log_evidence(family, prior, statistic)
    return log_evidence_of_numbers(family, prior, statistic)


@jit
def log_evidence_of_numbers(family, prior, statistic):
    n = statistic[0]
    if family == CATEGORICAL:  # prior: concentration, number of symbols
        value = -log_rise(prior[0] * prior[1], n)
        for v in range(1, len(statistic)):
            value += log_rise(prior[0], statistic[v])
        return value
    if family == NORMAL_MEAN:  # prior: noise², mean, scale²
        total = statistic[1] - n * prior[1]
        precision = 1.0 / prior[2] + n / prior[0]
        return 0.5 * (total * total / (prior[0] * prior[0] * precision) - math.log(prior[2] * precision))
    if family == POISSON:  # prior: shape, rate
        shape = prior[0] + statistic[1]
        return log_rise(prior[0], statistic[1]) + prior[0] * math.log(prior[1]) - shape * math.log(prior[1] + n)
    # NORMAL, prior: mean, strength, shape, rate
    strength, shape = prior[1] + n, prior[2] + 0.5 * n
    rate = prior[3] + 0.5 * statistic[2] + 0.5 * prior[1] * n / strength * (statistic[1] - prior[0]) ** 2
    value = math.lgamma(shape) - math.lgamma(prior[2]) + prior[2] * math.log(prior[3]) - shape * math.log(rate)
    return value + 0.5 * math.log(prior[1] / strength)


@jit
def combine_parts(table, prior, first, second, together):
    for p in range(len(table)):
        part, begin, end = table[p], table[p, STATISTIC], table[p, LAST_STATISTIC]
        if part[OF_ROWS]:
            own = prior[p, :, : part[LAST_COLUMN] - part[COLUMN]]
            rows.combine(part[FAMILY], own, first[begin:end], second[begin:end], together[begin:end])
        else:
            combine_numbers(part[FAMILY], first[begin:end], second[begin:end], together[begin:end])
    together[0] = first[0] + second[0]


@jit
def log_evidence_of_parts(table, prior, statistic):
    total = 0.0
    for p in range(len(table)):
        part, own = table[p], statistic[table[p, STATISTIC] : table[p, LAST_STATISTIC]]
        if part[OF_ROWS]:
            total += rows.log_evidence(part[FAMILY], prior[p, :, : part[LAST_COLUMN] - part[COLUMN]], own)
        else:
            total += log_evidence_of_numbers(part[FAMILY], prior[p, 0], own)
    return total
