"""Exact splits and merges of states, with π and φ integrated out.

Two steps i and j are picked. In one state, they ask whether it should be two, a with i and b with j; in two states, a
and b, whether these should be one. Either way the rest of the path is given, and the steps of a and b together, the
union, are one state or are each in a or in b. SMC runs through the union and makes these choices; its estimate Z of the
sum over all of them stands against the probability of the one state,

    Z / p(one state),   and a split is accepted with probability min(1, Z/p), a merge with min(1, p/Z).

If the path is split, its own choices are among the particles. This leaves p(s, β | y, γ, c, ρ) invariant for any number
of particles (Bouchard-Côté, Doucet and Roth 2017, for mixtures). By the chain rule along the union, transitions are
those of urns and densities are predictive. What remains of

    log p(s, β, y) = K log γ − Σ log β_k + (γ−1) log β_rest + Σ_j log DirMult(n_j | c((1−ρ)β + ρδ_j)) + Σ_k log p(y_k)

is γ β_k²/(β_a β_b), the Jacobian of splitting β_k included; a split draws log(β_a/β_b) uniformly from [LEAST, MOST],
which leaves γ (MOST − LEAST). And j is a random step of a random state: that has probability 1/(K n) if there is one
state, with n steps, and 1/((K+1) n_b) if there are two.

Every few steps the ratio is known up to there. Once it is beyond hope or doubt an attempt ends and leaves the path as
it is: the particles decide that, not the state that the path is in, so that the law is the same. A few attempts go on,
for splits that begin badly or are overdue.
"""

import math

import numpy as np

from ihmm.kernels._jit import inlined, jit
from ihmm.kernels.direct import change_statistics, log_predictive, prepare
from ihmm.kernels.draws import FLOOR, draw_index, uniform

LEAST, MOST = -1.0, 6.0  # log(β_a/β_b) of a split
CANDIDATES = 20  # steps, of which the one most like j tends to be i
HOPELESS, CERTAIN = -4.0, 50.0  # log ratios beyond which an attempt usually ends
LOOK = 4  # steps between two looks at the weights
THOROUGH, FAR_BELOW = 0.1, -30.0  # share of attempts that go on whatever is gained, and until so much is lost


@jit
def split_and_merge(
    stream, family, prior, size, values, offsets, states, beta, gamma, concentration, stickiness, n_states,
    n_particles, attempts,
):  # fmt: skip
    """Try so many splits and merges, in place; `beta` has room for as many new states. Returns the number of states
    then, of splits and of merges."""
    begins = np.zeros(len(states) + 1, np.bool_)
    begins[offsets] = True
    n_split, n_merged = 0, 0
    for _ in range(attempts):
        i, j = pick(stream, family, prior, size, values, states, n_states)
        change = 0
        if i != j:
            change = split_or_merge(
                stream, family, prior, size, values, begins, states, beta, gamma, concentration, stickiness, n_states,
                n_particles, i, j,
            )  # fmt: skip
        n_states += change
        n_split += change > 0
        n_merged += change < 0
    return n_states, n_split, n_merged


@jit
def pick(stream, family, prior, size, values, states, n_states):
    """Two steps: j at random from a random state, i at random from all, more likely one that is like j."""
    j = random_step(stream, states, int(uniform(stream) * n_states))
    alike = np.zeros(size)
    change_statistics(family, alike, values, j, 1.0)
    candidates, weight = np.empty(CANDIDATES, np.int64), np.empty(CANDIDATES)
    for m in range(CANDIDATES):
        candidates[m] = int(uniform(stream) * len(states))
        weight[m] = log_predictive(family, prior, alike, values, candidates[m])
    return candidates[draw_index(stream, np.exp(weight - weight.max()))], j


@jit
def random_step(stream, states, k):
    """A step of state k."""
    number = 0
    for t in range(len(states)):
        number += states[t] == k
    before, t = int(uniform(stream) * number), 0
    while states[t] != k or before > 0:
        before -= states[t] == k
        t += 1
    return t


@jit
def split_or_merge(
    stream, family, prior, size, values, begins, states, beta, gamma, concentration, stickiness, n_states, n_particles,
    i, j,
):  # fmt: skip
    """Split the state of steps i and j, or merge theirs, in place: 1, −1, or 0 if the number of states is as it was."""
    a, b = states[i], states[j]
    apart = a != b
    if apart:
        whole = beta[a] + beta[b]
        balance = math.log(beta[a] / beta[b])
        if not LEAST <= balance <= MOST:
            return 0
    else:
        b, whole = n_states, beta[a]
        balance = LEAST + (MOST - LEAST) * uniform(stream)
    share = np.array([whole / (1.0 + math.exp(-balance)), whole / (1.0 + math.exp(balance))])

    low, high = (FAR_BELOW, math.inf) if uniform(stream) < THOROUGH else (HOPELESS, CERTAIN)
    n_before = n_states - apart
    ratio = math.log(gamma * (MOST - LEAST) * n_before / (n_before + 1))
    ratio, weight, choices, union = choose(
        stream, family, prior, size, values, begins, states, beta, concentration, stickiness, n_states, n_particles,
        share, apart, a, b, i, j, ratio, low, high,
    )  # fmt: skip
    if not low <= ratio <= high:
        return 0

    odds = -ratio if apart else ratio
    accepted = math.log(1.0 - uniform(stream)) < odds
    if apart and accepted:
        states[union] = a
        beta[a] = whole
        for k in range(b, n_states - 1):
            beta[k] = beta[k + 1]
        states[states > b] -= 1
        return -1
    if apart or accepted:
        chosen = choices[draw_index(stream, weight)]
        for q in range(len(union)):
            states[union[q]] = b if chosen[q] else a
        beta[a], beta[b] = share
    return 1 if accepted else 0


@jit
def entrance(states, begins, a, b, j):
    """The step at which the path enters states a and b, before step j or with it."""
    t = j
    while not begins[t] and (states[t - 1] == a or states[t - 1] == b):
        t -= 1
    return t


@jit
def choose(
    stream, family, prior, size, values, begins, states, beta, concentration, stickiness, n_states, n_particles, share,
    apart, a, b, i, j, ratio, low, high,
):  # fmt: skip
    """SMC over the choices between a and b; if the path is split (`apart`), its own are those of the first particle.
    It begins where the path enters a and b before step j, which says most about b, and goes round the series.

    Particle p has urns and statistics 2p for a and 2p + 1 for b; the last are those of the one state. An urn holds how
    often a side was left, then arrivals by row, the initial one first, then departures by state.

    Returns the log ratio of two states to one, up to where the pass ended, the particles' weights and choices, and the
    steps these are about.
    """
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    one = 2 * n_particles
    urns = np.zeros((one + 1, 2 * n_states + 4))
    statistics = np.zeros((one + 1, size))
    ratio += give_first(family, prior, values, statistics, i, j)
    union, choices = np.empty(len(states), np.int64), np.empty((n_particles, len(states)), np.bool_)
    sides = np.zeros(n_particles, np.int64)  # where the step before went
    joined = np.zeros(n_particles)  # how many went to b
    weight = np.full(n_particles, 1.0 / n_particles)
    # what weights are to be multiplied by, since they were last looked at: transitions, and logarithms of densities
    factor, log_factor = np.ones(n_particles), np.zeros(n_particles)
    factor_one, log_factor_one = 1.0, 0.0
    first, n = entrance(states, begins, a, b, j), 0
    for round_from_first in range(len(states)):
        t = (first + round_from_first) % len(states)
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
        given = t == i or t == j  # where the observation is

        if inside:
            row = a + 1
            factor_one /= urns[one, 0] + concentration
        factor_one *= urns[one, 1 + row] + into_a + into_b + kappa * inside
        if leaves:
            factor_one *= (urns[one, departure] + leaving) / (urns[one, 0] + inside + concentration)
        count(urns, one, one, row, inside, leaves, departure)
        if not given:
            log_factor_one += log_predictive(family, prior, statistics[one], values, t)
            change_statistics(family, statistics[one], values, t, 1.0)
            prepare(family, prior, statistics[one], values)

        # Which side a step takes cannot be foreseen, so that little here should branch on it
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
            if given:
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
            if apart and p == 0:
                side = 0 if states[t] == a else 1
            count(urns, in_a + side, in_a + before, row, inside, leaves, departure)
            if not given:
                change_statistics(family, statistics[in_a + side], values, t, 1.0)
                prepare(family, prior, statistics[in_a + side], values)
            sides[p], choices[p, n] = side, side == 1
            joined[p] += side

        union[n] = t
        n += 1
        if n % LOOK == 0:
            ratio += reweight(weight, factor, log_factor) - math.log(max(factor_one, FLOOR)) - log_factor_one
            factor_one, log_factor_one = 1.0, 0.0
            if not low <= ratio + math.log(n) <= high:
                break
            resample(stream, weight, apart, urns, statistics, choices[:, :n], sides, joined)
    ratio += reweight(weight, factor, log_factor) - math.log(max(factor_one, FLOOR)) - log_factor_one
    return ratio + math.log(n), weight, choices[:, :n], union[:n]


@jit
def give_first(family, prior, values, statistics, i, j):
    """Give i's observation to a and j's to b, in all particles; returns what that adds to the log ratio."""
    one = len(statistics) - 1
    surprise = log_predictive(family, prior, statistics[1], values, j)
    for side in range(0, one + 1, 2):
        change_statistics(family, statistics[side], values, i, 1.0)
    surprise -= log_predictive(family, prior, statistics[one], values, j)
    for side in range(1, one, 2):
        change_statistics(family, statistics[side], values, j, 1.0)
    change_statistics(family, statistics[one], values, j, 1.0)
    return surprise


@inlined
def count(urns, side, before, row, inside, leaves, departure):
    """Put the transition into a step, and that out of it if it leaves the union, into the urns."""
    urns[before, 0] += inside
    urns[side, 1 + row] += 1.0
    if leaves:
        urns[side, departure] += 1.0
        urns[side, 0] += 1.0


@jit
def reweight(weight, factor, log_factor):
    """Multiply the weights by what has gathered, in place; returns the log of their sum, which is 1 again then."""
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
    return top + math.log(total)


@jit
def resample(stream, weight, apart, urns, statistics, choices, sides, joined):
    """If their weights are uneven, draw the particles by them, in place; the first stays if it is the path."""
    n_particles, squares = len(weight), 0.0
    for p in range(n_particles):
        squares += weight[p] * weight[p]
    if n_particles * squares <= 2.0:
        return
    source, source_sides = np.empty(n_particles, np.int64), np.arange(len(urns))
    for p in range(n_particles):
        source[p] = 0 if apart and p == 0 else draw_index(stream, weight)
        source_sides[2 * p], source_sides[2 * p + 1] = 2 * source[p], 2 * source[p] + 1
    urns[:], statistics[:] = urns[source_sides], statistics[source_sides]
    choices[:], sides[:], joined[:] = choices[source], sides[source], joined[source]
    weight[:] = 1.0 / n_particles
