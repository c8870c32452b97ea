"""Greedy splits and merges of states, with π and φ integrated out.

The gain of a merge is the change of

    log p(s, β, y) = K log γ − Σ log β_k + (γ−1) log β_rest + Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + Σ_k log p(y_k)

minus log β_k of the merged state: two weights become one, and splitting it again by v ~ U(0, 1) has Jacobian β_k. The
gain of a split is that of the merge that undoes it, with the other sign.

`compiled` is the `CompiledFamily` of the emission, `concentrations` is (γ, c, ρ).
"""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import count_transitions, log_rise, row_total, steps_in
from ihmm.kernels.draws import FLOOR, uniform
from ihmm.kernels.families import change_statistics, combine, gather_statistics, log_evidence, log_predictive
from ihmm.kernels.families.dispatch import n_given

SCANS = 3  # passes over a state's steps before a split is evaluated
MIN_SEGMENT = 20  # steps in each of the two segments that start a split of dynamics; two more for each covariate
MAX_EMISSION_LOSS = 1000.0  # beyond it, and one per step, the transitions cannot make up for what the emissions lose


@jit
def merge_best_first(compiled, concentrations, offsets, states, statistics, counts, beta, careful):
    """Merge the pair with the largest gain until no merge has a positive gain.

    States, statistics, counts (initial row first) and β are merged in place. A gain is recomputed when one of its two
    states has changed, and before its merge is made.
    """
    family, prior, _, _ = compiled
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
                        gains[a, b] = evaluate_merge(
                            compiled, concentrations, offsets, states, statistics, counts, beta, alive, careful, a, b
                        )
                        fresh[a, b] = True
                    if gains[a, b] > best:
                        best, first, second = gains[a, b], a, b
        if first < 0:
            return
        gain = evaluate_merge(
            compiled, concentrations, offsets, states, statistics, counts, beta, alive, careful, first, second
        )
        gains[first, second] = gain
        if gain < best and gain < 0.5 * best:  # changed by other merges: find the best pair again
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
def try_splits(stream, compiled, concentrations, offsets, states, beta, n_states):
    """Try to split each of the `n_states` states in two once, and keep the splits with a positive gain.

    `states` and `beta` change in place; the length of `beta` limits the number of states. Returns the new number of
    states.
    """
    family, prior, values, size = compiled
    for k in range(n_states):
        new = n_states
        if new == len(beta) or not split_in_two(stream, family, prior, values, size, states, k, new):
            continue
        n_states += keep_split(compiled, concentrations, offsets, states, beta, k, new)
    return n_states


@jit
def keep_split(compiled, concentrations, offsets, states, beta, k, new):
    """Whether moving some of state k's steps to state `new` has a positive gain; if not, they are moved back."""
    family, _, values, size = compiled
    statistics = np.zeros((new + 1, size))
    gather_statistics(family, statistics, values, states)
    whole, stayed, moved = beta[k], statistics[k, 0], statistics[new, 0]
    if stayed > 0.0 and moved > 0.0:
        counts = count_transitions(states, offsets, new + 1)
        beta[k], beta[new] = whole * stayed / (stayed + moved), whole * moved / (stayed + moved)
        alive = np.ones(new + 1, np.bool_)
        if merge_gain(compiled, concentrations, statistics, counts, beta, alive, k, new) < 0.0:
            return True
    beta[k], beta[new] = whole, 0.0
    for t in range(len(states)):
        if states[t] == new:
            states[t] = k
    return False


@jit
def split_in_two(stream, family, prior, values, size, states, k, new):
    """Move some of state k's steps to state `new`. False if one of the two would have no observation.

    Two random steps start the two sides, and the others join the side that predicts them better, one after the other;
    then all steps choose again, given the two sides. Families with covariates are split by `split_dynamics` half of
    the time: which of the two works better depends on how long states last.
    """
    # The compiler knows the dimensions of arguments only, not of the fields of a bundle
    if prior.ndim == 2 and n_given(family, prior) > 0 and uniform(stream) < 0.5:
        return split_dynamics(stream, family, prior, values, size, states, k, new)
    steps = steps_in(states, k)
    first, second = steps[int(uniform(stream) * len(steps))], steps[int(uniform(stream) * len(steps))]
    sides = np.zeros((2, size))
    change_statistics(family, sides[0], values, first, 1.0)
    change_statistics(family, sides[1], values, second, 1.0)
    for scan in range(SCANS):
        new_sides = np.zeros((2, size))
        side = 0
        for t in steps:
            gain = log_predictive(family, prior, sides[1], values, t) - log_predictive(
                family, prior, sides[0], values, t
            )
            if gain != 0.0:  # a missing observation takes the side of the step before
                side = 1 if gain > 0.0 else 0
            states[t] = new if side == 1 else k
            change_statistics(family, new_sides[side], values, t, 1.0)
            if scan == 0 and t != first and t != second:
                change_statistics(family, sides[side], values, t, 1.0)
        sides = new_sides
    return both_observed(sides, states, steps, k)


@jit
def split_dynamics(stream, family, prior, values, size, states, k, new):
    """`split_in_two` for dynamics, about which a single step carries little information.

    Two random segments start the two sides. Then the steps take the best sequence of sides (Viterbi), in which each
    switch costs log n.
    """
    steps = steps_in(states, k)
    length = min(len(steps), MIN_SEGMENT + 2 * n_given(family, prior))
    sides = np.zeros((2, size))
    for side in range(2):
        first = int(uniform(stream) * (len(steps) - length + 1))
        for i in range(first, first + length):
            change_statistics(family, sides[side], values, steps[i], 1.0)
    came_from = np.empty((len(steps), 2), np.int64)
    for _ in range(SCANS):
        score = np.zeros(2)
        for i, t in enumerate(steps):
            cost = math.log(len(steps)) if i > 0 and steps[i - 1] == t - 1 else 0.0
            stay_0, stay_1 = score[0] >= score[1] - cost, score[1] >= score[0] - cost
            came_from[i, 0], came_from[i, 1] = 0 if stay_0 else 1, 1 if stay_1 else 0
            before_0 = score[0] if stay_0 else score[1] - cost
            before_1 = score[1] if stay_1 else score[0] - cost
            score[0] = before_0 + log_predictive(family, prior, sides[0], values, t)
            score[1] = before_1 + log_predictive(family, prior, sides[1], values, t)
        side = 1 if score[1] > score[0] else 0
        sides = np.zeros((2, size))
        for i in range(len(steps) - 1, -1, -1):
            states[steps[i]] = new if side == 1 else k
            change_statistics(family, sides[side], values, steps[i], 1.0)
            side = came_from[i, side]
    return both_observed(sides, states, steps, k)


@jit
def both_observed(sides, states, steps, k):
    """Whether both sides of a split have an observation; if not, all steps are moved back to state k."""
    if sides[0, 0] > 0.0 and sides[1, 0] > 0.0:
        return True
    for t in steps:
        states[t] = k
    return False


@jit
def evaluate_merge(compiled, concentrations, offsets, states, statistics, counts, beta, alive, careful, a, b):
    """Gain of merging state b into state a.

    Given one state sequence, merging two states that overlap nearly always has a positive gain, because the choices
    between them cost probability. If `careful`, the choices are summed over, p(s, y) / p(choices | y), so that a merge
    must pay whatever the choices are.
    """
    gain = merge_gain(compiled, concentrations, statistics, counts, beta, alive, a, b)
    if careful and gain > 0.0:
        gain += log_choices(compiled, concentrations, offsets, states, statistics, counts, beta, a, b)
    return gain


@jit
def log_choices(compiled, concentrations, offsets, states, statistics, counts, beta, a, b):
    """Log-probability of the choices between states a and b in the state sequence, all other steps given.

    Transition probabilities and densities are posterior means given the state sequence. Each run of steps spent in the
    two states is filtered forwards and evaluated backwards.
    """
    family, prior, values, _ = compiled
    _, concentration, stickiness = concentrations
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    leave_a, leave_b = row_total(counts[a + 1]) + concentration, row_total(counts[b + 1]) + concentration
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
            # the run ends: evaluate its choices, last one first
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
def merge_gain(compiled, concentrations, statistics, counts, beta, alive, a, b):
    """Gain of merging state b into state a, given the state sequence."""
    family, prior, _, _ = compiled
    gamma, concentration, stickiness = concentrations
    combined = np.empty(statistics.shape[1])
    combine(family, prior, statistics[a], statistics[b], combined)
    gain = log_evidence(family, prior, combined)
    gain -= log_evidence(family, prior, statistics[a]) + log_evidence(family, prior, statistics[b])
    gain += math.log(beta[a]) + math.log(beta[b]) - 2.0 * math.log(beta[a] + beta[b]) - math.log(gamma)
    if gain > -MAX_EMISSION_LOSS - statistics[a, 0] - statistics[b, 0]:  # a choice between the two costs log 2 per step
        gain += row_gain(counts, beta, concentration, stickiness, alive, a, b)
    return gain


@jit
def row_gain(counts, beta, concentration, stickiness, alive, a, b):
    """Change of Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) when state b is merged into state a. `alive` marks the states
    that have not been merged into another."""
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    merged = beta[a] + beta[b]
    gain = 0.0
    # Every other row has one column instead of two
    for j in range(len(alive) + 1):
        if j != a + 1 and j != b + 1 and (j == 0 or alive[j - 1]):
            mass = concentration if j == 0 else alpha
            gain += log_rise(mass * merged, counts[j, a] + counts[j, b])
            gain -= log_rise(mass * beta[a], counts[j, a]) + log_rise(mass * beta[b], counts[j, b])
    # Two rows become one
    row_a, row_b = counts[a + 1], counts[b + 1]
    leave_a, leave_b = row_total(row_a), row_total(row_b)
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
