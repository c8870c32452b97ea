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

The ratio is known up to every step of the union. Once it is beyond hope or doubt an attempt ends and leaves the path as
it is: the particles decide that, not the state that the path is in, so that the law is the same. A few attempts go on,
for splits that begin badly or are overdue.
"""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.direct import change_statistics, log_predictive
from ihmm.kernels.draws import FLOOR, draw_index, uniform

LEAST, MOST = -1.0, 6.0  # log(β_a/β_b) of a split
CANDIDATES = 20  # steps, of which the one most like j tends to be i
HOPELESS, CERTAIN = -6.0, 50.0  # log ratios beyond which an attempt usually ends
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
    state = int(uniform(stream) * n_states)
    steps = np.flatnonzero(states == state)
    j = steps[int(uniform(stream) * len(steps))]
    alike = np.zeros(size)
    change_statistics(family, alike, values, j, 1.0)
    candidates, weight = np.empty(CANDIDATES, np.int64), np.empty(CANDIDATES)
    for m in range(CANDIDATES):
        candidates[m] = int(uniform(stream) * len(states))
        weight[m] = log_predictive(family, prior, alike, values, candidates[m])
    return candidates[draw_index(stream, np.exp(weight - weight.max()))], j


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
    union = steps_of_union(states, begins, a, b, j)
    n_before = n_states - apart
    ratio = math.log(gamma * (MOST - LEAST) * n_before / (n_before + 1))
    ratio, weight, choices = choose(
        stream, family, prior, size, values, begins, states, beta, concentration, stickiness, n_states, n_particles,
        share, apart, a, b, i, j, union, ratio, low, high,
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
def steps_of_union(states, begins, a, b, j):
    """The steps in a and b, from where the path enters them before step j, and those earlier at the end: j says most
    about b."""
    steps = np.flatnonzero((states == a) | (states == b))
    first = np.searchsorted(steps, j)
    while first > 0 and steps[first - 1] == steps[first] - 1 and not begins[steps[first]]:
        first -= 1
    return np.concatenate((steps[first:], steps[:first]))


@jit
def choose(
    stream, family, prior, size, values, begins, states, beta, concentration, stickiness, n_states, n_particles, share,
    apart, a, b, i, j, union, ratio, low, high,
):  # fmt: skip
    """SMC over the choices between a and b; if the path is split (`apart`), its own are those of the first particle.
    The last particle is the one state: all that it has is on side 0.

    Returns the log ratio of two states to one, up to where the pass ended, the particles' weights, and their choices.
    """
    alpha, kappa = concentration * (1.0 - stickiness), concentration * stickiness
    one = n_particles
    urns = np.zeros((one + 1, 2, 2 * n_states + 4))
    statistics = np.zeros((one + 1, 2, size))
    ratio += give_first(family, prior, values, statistics, i, j)
    choices = np.zeros((one + 1, len(union)), np.bool_)
    sides = np.zeros(one + 1, np.int64)  # where the step before went
    joined = np.zeros(one + 1)  # how many went to b
    weight, chance = np.full(one, 1.0 / one), np.empty(2)
    for q in range(len(union)):
        t = union[q]
        inside = q > 0 and union[q - 1] == t - 1 and not begins[t]
        row = 0 if begins[t] else states[t - 1] + 1
        mass = concentration if begins[t] else alpha
        following = -1 if begins[t + 1] or states[t + 1] == a or states[t + 1] == b else states[t + 1]
        leaving = alpha * beta[following] if following >= 0 else 0.0
        given = t == i or t == j  # where the observation is

        log_one = 0.0 if given else log_predictive(family, prior, statistics[one, 0], values, t)
        row_one = a + 1 if inside else row
        arriving = mass * (share[0] + share[1]) + (kappa if inside else 0.0)
        ratio -= math.log(transition(urns, one, 0, 0, row_one, inside, following, arriving, leaving, concentration))
        count(urns, one, 0, 0, row_one, inside, following)
        if not given:
            change_statistics(family, statistics[one, 0], values, t, 1.0)

        total = 0.0
        for p in range(one):
            before = sides[p]
            if inside:
                row = b + 1 if before == 1 else a + 1
            for side in range(2):
                arriving = mass * share[side] + (kappa if inside and before == side else 0.0)
                chance[side] = transition(
                    urns, p, before, side, row, inside, following, arriving, leaving, concentration
                )
                if not given:
                    log_f = log_predictive(family, prior, statistics[p, side], values, t)
                    chance[side] *= math.exp(min(log_f - log_one, 700.0))
            if given:
                chance[1 if t == i else 0] = 0.0
            chance[1] *= max(joined[p], 1.0) / (joined[p] + 1.0)  # 1/n_b
            both = chance[0] + chance[1]
            weight[p] *= both
            total += weight[p]
            side = 0 if uniform(stream) * both < chance[0] else 1
            if apart and p == 0:
                side = 0 if states[t] == a else 1
            count(urns, p, before, side, row, inside, following)
            if not given:
                change_statistics(family, statistics[p, side], values, t, 1.0)
            sides[p], choices[p, q] = side, side == 1
            joined[p] += side

        ratio += math.log(max(total, FLOOR) * (q + 1) / max(q, 1))
        if not low <= ratio <= high:
            break
        squares = 0.0
        for p in range(one):
            weight[p] /= total
            squares += weight[p] * weight[p]
        if one * squares > 2.0 and q + 1 < len(union):
            source = resample(stream, weight, apart)
            urns, statistics, choices = urns[source], statistics[source], choices[source]
            sides, joined = sides[source], joined[source]
            weight[:] = 1.0 / one
    return ratio, weight, choices


@jit
def give_first(family, prior, values, statistics, i, j):
    """Give i's observation to a and j's to b, in all particles; returns what that adds to the log ratio."""
    one = len(statistics) - 1
    surprise = log_predictive(family, prior, statistics[0, 1], values, j)
    for p in range(one + 1):
        change_statistics(family, statistics[p, 0], values, i, 1.0)
    surprise -= log_predictive(family, prior, statistics[one, 0], values, j)
    for p in range(one + 1):
        change_statistics(family, statistics[p, 0 if p == one else 1], values, j, 1.0)
    return surprise


@jit
def transition(urns, p, before, side, row, inside, following, arriving, leaving, concentration):
    """Urn weight of the transition from `row` to a side and, if it leaves the union, of that to the `following` state.

    The urns of a side hold how often it was left, then arrivals by row, the initial one first, then departures by
    state. Where a row is not in the union, how often it is left is the same for all.
    """
    value = urns[p, side, 1 + row] + arriving
    if inside:
        value /= urns[p, before, 0] + concentration
    if following >= 0:
        n_left = urns[p, side, 0] + (1.0 if inside and before == side else 0.0)
        value *= (urns[p, side, urns.shape[2] // 2 + 1 + following] + leaving) / (n_left + concentration)
    return value


@jit
def count(urns, p, before, side, row, inside, following):
    """Put these transitions into the urns."""
    if inside:
        urns[p, before, 0] += 1.0
    urns[p, side, 1 + row] += 1.0
    if following >= 0:
        urns[p, side, urns.shape[2] // 2 + 1 + following] += 1.0
        urns[p, side, 0] += 1.0


@jit
def resample(stream, weight, apart):
    """Particles drawn by their weights; the first stays if it is the path, and so does the one state."""
    source = np.empty(len(weight) + 1, np.int64)
    for p in range(len(weight)):
        source[p] = draw_index(stream, weight)
    if apart:
        source[0] = 0
    source[-1] = len(weight)
    return source
