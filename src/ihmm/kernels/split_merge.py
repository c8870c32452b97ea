"""Exact splits and merges of states, with π and φ integrated out.

An attempt picks two steps, the anchors i and j. If they are in one state, it proposes to split it into a, with i, and
b, with j; if they are in two states, a and b, it proposes to merge these. In both cases the rest of the trajectory is
given. The steps of a and b together, the union, are either one state or each on one of two sides, a and b. SMC runs
through the union and chooses sides. Its estimate Z of the sum over all choices is compared with the probability of the
one state,

    Z / p(one state),   and a split is accepted with probability min(1, Z/p), a merge with min(1, p/Z).

If the states are two, their own choices are one of the particles. This leaves p(s, β | y, γ, c, ρ) invariant for any
number of particles (Bouchard-Côté, Doucet and Roth 2017, for mixtures). By the chain rule along the union, transitions
have the probabilities of Pólya urns, which count the transitions so far, and observations have predictive densities.
What remains of

    log p(s, β, y) = K log γ − Σ log β_k + (γ−1) log β_rest + Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + Σ_k log p(y_k)

is γ β_k²/(β_a β_b), including the Jacobian of splitting β_k. A split draws the log odds log(β_a/β_b) uniformly from
[MIN_LOG_ODDS, MAX_LOG_ODDS], which leaves γ (MAX_LOG_ODDS − MIN_LOG_ODDS). And j is a random step of a random state:
that has probability 1/(K n) if there is one state, with n steps, and 1/((K+1) n_b) if there are two.

The ratio up to the current step is evaluated every few steps. Once it is very low or very high, the attempt stops and
leaves the trajectory unchanged. This depends on the particles but not on whether the states are one or two now, so
the move stays exact. A few attempts continue much longer, for splits that begin badly or are long overdue.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.counts import mark
from ihmm.kernels.draws import FLOOR, draw_index, uniform
from ihmm.kernels.families import change_statistics, log_predictive, prepare

MIN_LOG_ODDS, MAX_LOG_ODDS = -1.0, 6.0  # log(β_a/β_b) of a split
N_CANDIDATES = 20  # for i; those similar to j are preferred
STOP_BELOW, STOP_ABOVE = -4.0, 50.0  # log ratios at which most attempts stop
P_PATIENT, PATIENT_STOP_BELOW = 0.1, -30.0  # share of attempts that stop only at this log ratio, and never above
REWEIGHT_EVERY = 4  # steps


class Attempt(NamedTuple):
    """What an attempt to split or to merge is about."""

    is_merge: bool  # a and b are two states now
    a: int
    b: int
    i: int  # step that stays in a
    j: int  # step that stays in b
    share: np.ndarray  # (2,): β_a and β_b of the two states


@jit
def split_and_merge(stream, compiled, concentrations, offsets, states, beta, n_states, n_particles, attempts):
    """Attempt splits and merges, in place; `beta` has room for as many new states as there are attempts. Returns the
    new number of states and the numbers of splits and merges.

    `compiled` is the `CompiledFamily` of the emission, `concentrations` is (γ, c, ρ).
    """
    begins = mark(offsets, len(states) + 1)
    n_split, n_merged = 0, 0
    for _ in range(attempts):
        i, j = pick_anchors(stream, compiled, states, n_states)
        change = 0
        if i != j:
            change = split_or_merge(stream, compiled, concentrations, begins, states, beta, n_states, n_particles, i, j)
        n_states += change
        n_split += change > 0
        n_merged += change < 0
    return n_states, n_split, n_merged


@jit
def pick_anchors(stream, compiled, states, n_states):
    """Steps i and j: j is uniform on a random state, i is drawn from random candidates by their density given y_j."""
    family, prior, values, size = compiled
    j = random_step(stream, states, int(uniform(stream) * n_states))
    statistic = np.zeros(size)
    change_statistics(family, statistic, values, j, 1.0)
    candidates, weight = np.empty(N_CANDIDATES, np.int64), np.empty(N_CANDIDATES)
    for m in range(N_CANDIDATES):
        candidates[m] = int(uniform(stream) * len(states))
        weight[m] = log_predictive(family, prior, statistic, values, candidates[m])
    top = -math.inf
    for m in range(N_CANDIDATES):
        top = max(top, weight[m])
    for m in range(N_CANDIDATES):
        weight[m] = math.exp(weight[m] - top)
    return candidates[draw_index(stream, weight)], j


@jit
def random_step(stream, states, k):
    """A uniformly random step of state k."""
    number = 0
    for t in range(len(states)):
        number += states[t] == k
    before, t = int(uniform(stream) * number), 0
    while states[t] != k or before > 0:
        before -= states[t] == k
        t += 1
    return t


@jit
def split_or_merge(stream, compiled, concentrations, begins, states, beta, n_states, n_particles, i, j):
    """Split the state of steps i and j, or merge their states, in place. Returns the change of the number of states."""
    attempt, ratio, limits = begin_attempt(stream, concentrations.gamma, states, beta, n_states, i, j)
    if attempt.is_merge and ratio == -math.inf:
        return 0
    ratio, weight, choices, union = choose_sides(
        stream, compiled, concentrations, begins, states, beta, n_states, n_particles, attempt, ratio, limits
    )
    return conclude(stream, attempt, ratio, limits, weight, choices, union, states, beta, n_states)


@jit
def begin_attempt(stream, gamma, states, beta, n_states, i, j):
    """What to attempt, the log ratio before any step of the union, and the limits at which the attempt stops.

    The log ratio is −∞ if no split leads to these two states.
    """
    a, b = states[i], states[j]
    is_merge = a != b
    share = np.empty(2)
    if is_merge:
        whole = beta[a] + beta[b]
        log_odds = math.log(beta[a] / beta[b])
        if not MIN_LOG_ODDS <= log_odds <= MAX_LOG_ODDS:
            return Attempt(is_merge, a, b, i, j, share), -math.inf, (0.0, 0.0)
    else:
        b, whole = n_states, beta[a]
        log_odds = MIN_LOG_ODDS + (MAX_LOG_ODDS - MIN_LOG_ODDS) * uniform(stream)
    share[0], share[1] = whole / (1.0 + math.exp(-log_odds)), whole / (1.0 + math.exp(log_odds))
    limits = (PATIENT_STOP_BELOW, math.inf) if uniform(stream) < P_PATIENT else (STOP_BELOW, STOP_ABOVE)
    n_before = n_states - is_merge
    ratio = math.log(gamma * (MAX_LOG_ODDS - MIN_LOG_ODDS) * n_before / (n_before + 1))
    return Attempt(is_merge, a, b, i, j, share), ratio, limits


@jit
def conclude(stream, attempt, ratio, limits, weight, choices, union, states, beta, n_states):
    """Accept or refuse the attempt, in place, unless it has stopped. Returns the change of the number of states."""
    if not limits[0] <= ratio <= limits[1]:
        return 0
    is_merge, a, b, _, _, share = attempt
    accepted = math.log(1.0 - uniform(stream)) < (-ratio if is_merge else ratio)
    if is_merge and accepted:
        for q in range(len(union)):
            states[union[q]] = a
        beta[a] += beta[b]
        for k in range(b, n_states - 1):
            beta[k] = beta[k + 1]
        for t in range(len(states)):
            states[t] -= states[t] > b
        return -1
    if is_merge or accepted:
        chosen = choices[draw_index(stream, weight)]
        for q in range(len(union)):
            states[union[q]] = b if chosen[q] else a
        beta[a], beta[b] = share[0], share[1]
    return 1 if accepted else 0


@jit
def choose_sides(stream, compiled, concentrations, begins, states, beta, n_states, n_particles, attempt, ratio, limits):
    """SMC over the choices between a and b. In a merge, the current choices are those of the first particle.

    The pass begins at the first step of the visit to a and b that contains j, which is the most informative about b,
    and wraps around at the end of the series.

    Particle p has urns and statistics 2p for a and 2p + 1 for b; the last ones are those of the one state. An urn holds
    how often its side was left, then arrivals by row, the initial one first, then departures by state.

    Returns the log ratio of two states to one, up to where the pass stopped, the particles' weights and choices, and
    the steps of the union in the order of the choices.
    """
    family, prior, values, size = compiled
    _, concentration, stickiness = concentrations
    is_merge, a, b, i, j, share = attempt
    low, high = limits
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    one = 2 * n_particles
    urns = np.zeros((one + 1, 2 * n_states + 4))
    statistics = np.zeros((one + 1, size))
    ratio += assign_anchors(family, prior, values, statistics, i, j)
    union, choices = np.empty(len(states), np.int64), np.empty((n_particles, len(states)), np.bool_)
    sides = np.zeros(n_particles, np.int64)  # of the previous step
    joined = np.zeros(n_particles)  # number of steps in b
    weight = np.empty(n_particles)
    # pending factors of the weights: transition probabilities, and logarithms of densities
    factor, log_factor = np.empty(n_particles), np.zeros(n_particles)
    for p in range(n_particles):
        weight[p], factor[p] = 1.0 / n_particles, 1.0
    factor_one, log_factor_one = 1.0, 0.0
    first, n = visit_start(states, begins, a, b, j), 0
    for offset in range(len(states)):
        t = first + offset
        t -= len(states) if t >= len(states) else 0  # much faster than %
        if states[t] != a and states[t] != b:
            continue
        inside = 0.0 if begins[t] or (states[t - 1] != a and states[t - 1] != b) else 1.0
        row = 0 if begins[t] else states[t - 1] + 1
        mass = concentration if begins[t] else alpha
        into_a, into_b = mass * share[0], mass * share[1]
        following = -1 if begins[t + 1] else states[t + 1]
        leaves = following >= 0 and following != a and following != b
        leaving = alpha * beta[following] if leaves else 0.0
        departure = n_states + 3 + following
        is_anchor = t == i or t == j  # its observation is assigned already

        if inside:
            row = a + 1
            factor_one /= urns[one, 0] + concentration
        factor_one *= urns[one, 1 + row] + into_a + into_b + kappa * inside
        if leaves:
            factor_one *= (urns[one, departure] + leaving) / (urns[one, 0] + inside + concentration)
        count_transitions_of_step(urns, one, one, row, inside, leaves, departure)
        if not is_anchor:
            log_factor_one += log_predictive(family, prior, statistics[one], values, t)
            change_statistics(family, statistics[one], values, t, 1.0)
            prepare(family, prior, statistics[one])

        # Sides are unpredictable: branches on them are slow, so there are few
        for p in range(n_particles):
            before, in_a, in_b = sides[p], 2 * p, 2 * p + 1
            was_b = inside * before
            was_a = inside - was_b
            if inside:
                row = a + 1 + before * (b - a)
                factor[p] /= urns[in_a + before, 0] + concentration
            to_a = urns[in_a, 1 + row] + into_a + kappa * was_a
            to_b = urns[in_b, 1 + row] + into_b + kappa * was_b
            if leaves:
                to_a *= (urns[in_a, departure] + leaving) / (urns[in_a, 0] + was_a + concentration)
                to_b *= (urns[in_b, departure] + leaving) / (urns[in_b, 0] + was_b + concentration)
            if is_anchor:
                to_a, to_b = (to_a, 0.0) if t == i else (0.0, to_b)
            else:
                log_a = log_predictive(family, prior, statistics[in_a], values, t)
                log_b = log_predictive(family, prior, statistics[in_b], values, t)
                less = math.exp(-abs(log_a - log_b))
                to_a *= less if log_a < log_b else 1.0
                to_b *= 1.0 if log_a < log_b else less
                log_factor[p] += max(log_a, log_b)
            to_b *= max(joined[p], 1.0) / (joined[p] + 1.0)  # 1/n_b
            factor[p] *= to_a + to_b
            side = 0 if uniform(stream) * (to_a + to_b) < to_a else 1
            if is_merge and p == 0:
                side = 0 if states[t] == a else 1
            count_transitions_of_step(urns, in_a + side, in_a + before, row, inside, leaves, departure)
            if not is_anchor:
                change_statistics(family, statistics[in_a + side], values, t, 1.0)
                prepare(family, prior, statistics[in_a + side])
            sides[p], choices[p, n] = side, side == 1
            joined[p] += side

        union[n] = t
        n += 1
        if n % REWEIGHT_EVERY == 0:
            ratio += reweight(weight, factor, log_factor, factor_one, log_factor_one)
            factor_one, log_factor_one = 1.0, 0.0
            if not low <= ratio + math.log(n) <= high:
                break
            resample(stream, weight, is_merge, urns, statistics, choices[:, :n], sides, joined)
    ratio += reweight(weight, factor, log_factor, factor_one, log_factor_one)
    return ratio + math.log(n), weight, choices[:, :n], union[:n]


@jit
def assign_anchors(family, prior, values, statistics, i, j):
    """Assign the observation of i to a and that of j to b in all particles; returns the term of the log ratio."""
    one = len(statistics) - 1
    log_ratio = log_predictive(family, prior, statistics[1], values, j)
    for side in range(0, one + 1, 2):
        change_statistics(family, statistics[side], values, i, 1.0)
    log_ratio -= log_predictive(family, prior, statistics[one], values, j)
    for side in range(1, one, 2):
        change_statistics(family, statistics[side], values, j, 1.0)
    change_statistics(family, statistics[one], values, j, 1.0)
    return log_ratio


@jit
def visit_start(states, begins, a, b, j):
    """The first step of the run of steps in a or b that contains step j."""
    t = j
    while not begins[t] and (states[t - 1] == a or states[t - 1] == b):
        t -= 1
    return t


@inlined
def count_transitions_of_step(urns, side, before, row, inside, leaves, departure):
    """Add the transition into a step, and the one out of it if it leaves the union, to the urns."""
    urns[before, 0] += inside
    urns[side, 1 + row] += 1.0
    if leaves:
        urns[side, departure] += 1.0
        urns[side, 0] += 1.0


@jit
def reweight(weight, factor, log_factor, factor_one, log_factor_one):
    """Multiply the weights by the pending factors and normalise them, in place.

    Returns the logarithm of their sum, relative to the factors of the one state.
    """
    top, total = log_factor[0], 0.0
    for p in range(1, len(weight)):
        top = max(top, log_factor[p])
    for p in range(len(weight)):
        weight[p] *= factor[p] * math.exp(log_factor[p] - top)
        total += weight[p]
        factor[p], log_factor[p] = 1.0, 0.0
    total = max(total, FLOOR)
    for p in range(len(weight)):
        weight[p] /= total
    return top + math.log(total) - math.log(max(factor_one, FLOOR)) - log_factor_one


@jit
def resample(stream, weight, keep_first, urns, statistics, choices, sides, joined):
    """Resample the particles, in place, if the effective sample size is below half their number."""
    n_particles, squares = len(weight), 0.0
    for p in range(n_particles):
        squares += weight[p] * weight[p]
    if n_particles * squares <= 2.0:
        return
    source = np.empty(n_particles, np.int64)
    for p in range(n_particles):
        source[p] = 0 if keep_first and p == 0 else draw_index(stream, weight)
    old_urns, old_statistics, old_choices = urns.copy(), statistics.copy(), choices.copy()
    old_sides, old_joined = sides.copy(), joined.copy()
    for p in range(n_particles):
        weight[p] = 1.0 / n_particles
        sides[p], joined[p] = old_sides[source[p]], old_joined[source[p]]
        for t in range(choices.shape[1]):
            choices[p, t] = old_choices[source[p], t]
        for side in range(2):
            old, new = 2 * source[p] + side, 2 * p + side
            for k in range(urns.shape[1]):
                urns[new, k] = old_urns[old, k]
            for k in range(statistics.shape[1]):
                statistics[new, k] = old_statistics[old, k]
