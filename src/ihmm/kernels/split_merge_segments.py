"""Exact splits and merges of states that have durations, with π and φ integrated out and the duration laws given.

As in `kernels.split_merge`: SMC chooses between a and b at every step of the union, and the estimate Z of the sum over
all choices is compared with the probability of the one state. The factors of a step are different. A run of age x goes
on with probability 1 − h(x), or ends and is followed by another state. Divided by 1 − π_jj, the row of j without j
itself is Dirichlet with the parameters c β_k, k ≠ j, so that transitions have the probabilities of an urn with the mass
c (1 − β_j). The last run of a sequence is cut off.

The one state has the duration law of a. That of b is drawn from its prior in a split and forgotten in a merge, so that
neither its prior nor its proposal is left in the ratio.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.counts import mark
from ihmm.kernels.draws import FLOOR, uniform
from ihmm.kernels.families import change_statistics, log_predictive, prepare
from ihmm.kernels.split_merge import (
    REWEIGHT_EVERY,
    assign_anchors,
    begin_attempt,
    conclude,
    resample,
    reweight,
    visit_start,
)


class PairHazards(NamedTuple):
    """The duration laws of a and b; the one state has that of a. The hazard is the same from the last age on."""

    hazard: np.ndarray  # (2, ages): P(d = x | d ≥ x) in column x − 1
    first: np.ndarray  # (2, ages): the same for the first segment of a sequence


@jit
def longest_visit(states, offsets, a, b):
    """The greatest number of steps in a row that are all in a or b."""
    begins, longest, number = mark(offsets, len(states) + 1), 0, 0
    for t in range(len(states)):
        number = 0 if begins[t] or (states[t] != a and states[t] != b) else number
        number += states[t] == a or states[t] == b
        longest = max(longest, number)
    return longest


@jit
def split_or_merge_segments(
    stream, compiled, concentrations, offsets, states, beta, n_states, n_particles, i, j, hazards
):
    """Split the state of steps i and j, or merge their states, in place. Returns the change of the number of states.

    `beta` has room for a new state, and ends with the mass of all others.
    """
    begins = mark(offsets, len(states) + 1)
    attempt, ratio, limits = begin_attempt(stream, concentrations.gamma, states, beta, n_states, i, j)
    if attempt.is_merge and ratio == -math.inf:
        return 0
    ratio, weight, choices, union = choose_runs(
        stream, compiled, concentrations, begins, states, beta, n_states, n_particles, attempt, hazards, ratio, limits
    )
    return conclude(stream, attempt, ratio, limits, weight, choices, union, states, beta, n_states)


@jit
def choose_runs(
    stream, compiled, concentrations, begins, states, beta, n_states, n_particles, attempt, hazards, ratio, limits
):
    """As `split_merge.choose_sides`, whose particles, urns and statistics it has.

    `sides` has twice the age of the run, plus 1 if it is one of b.
    """
    family, prior, values, size = compiled
    concentration = concentrations.concentration
    is_merge, a, b, i, j, share = attempt
    low, high = limits
    n_ages = hazards.hazard.shape[1]
    others = beta[len(beta) - 1]
    for k in range(n_states):
        others += beta[k] if k != a and k != b else 0.0
    mass_one = concentration * others
    mass = np.empty(2)  # of the urns of a and b
    mass[0], mass[1] = concentration * (others + share[1]), concentration * (others + share[0])
    one = 2 * n_particles
    urns = np.zeros((one + 1, 2 * n_states + 4))
    statistics = np.zeros((one + 1, size))
    ratio += assign_anchors(family, prior, values, statistics, i, j)
    union, choices = np.empty(len(states), np.int64), np.empty((n_particles, len(states)), np.bool_)
    sides = np.zeros(n_particles, np.int64)
    joined = np.zeros(n_particles)  # number of steps in b
    weight, factor, log_factor = np.empty(n_particles), np.empty(n_particles), np.zeros(n_particles)
    for p in range(n_particles):
        weight[p], factor[p] = 1.0 / n_particles, 1.0
    factor_one, log_factor_one = 1.0, 0.0
    since_start, age_one, n = 0, 0, 0  # steps since the sequence began, if the visit did; age of the one state's run
    reach = np.empty(2)  # probabilities of a and b as the next state
    first = visit_start(states, begins, a, b, j)
    for offset in range(len(states)):
        t = first + offset
        t -= len(states) if t >= len(states) else 0
        if states[t] != a and states[t] != b:
            continue
        inside = not begins[t] and (states[t - 1] == a or states[t - 1] == b)
        following = -1 if begins[t + 1] else states[t + 1]
        leaves = following >= 0 and following != a and following != b
        leaving = concentration * beta[following] if leaves else 0.0
        departure = n_states + 3 + following
        row = 0 if begins[t] else states[t - 1] + 1  # from which the union is entered
        is_anchor = t == i or t == j  # its observation is assigned already

        # One state: its run goes on, or begins
        if inside:
            factor_one *= max(1.0 - hazard_at(hazards, 0, age_one, since_start, n_ages), FLOOR)
            age_one += 1
            since_start += since_start > 0
        else:
            factor_one *= urns[one, 1 + row] + concentration * (share[0] + share[1])
            urns[one, 1 + row] += 1.0
            age_one, since_start = 1, 1 if begins[t] else 0
        if leaves:
            h = hazard_at(hazards, 0, age_one, since_start, n_ages)
            factor_one *= max(h, FLOOR) * (urns[one, departure] + leaving) / (urns[one, 0] + mass_one)
            urns[one, departure] += 1.0
            urns[one, 0] += 1.0
        if not is_anchor:
            log_factor_one += log_predictive(family, prior, statistics[one], values, t)
            change_statistics(family, statistics[one], values, t, 1.0)
            prepare(family, prior, statistics[one])

        for p in range(n_particles):
            before, age = sides[p] & 1, sides[p] >> 1
            for side in range(2):
                if not inside:
                    reach[side] = urns[2 * p + side, 1 + row] + concentration * share[side]
                else:
                    h = hazard_at(hazards, before, age, since_start - 1, n_ages)
                    if side == before:
                        reach[side] = max(1.0 - h, FLOOR)
                    else:
                        arrivals = urns[2 * p + side, 1 + (b if before else a) + 1] + concentration * share[side]
                        reach[side] = h * arrivals / (urns[2 * p + before, 0] + mass[before])
                if leaves:
                    x = age + 1 if inside and side == before else 1
                    h = hazard_at(hazards, side, x, since_start, n_ages)
                    departures = urns[2 * p + side, departure] + leaving
                    reach[side] *= h * departures / (urns[2 * p + side, 0] + mass[side])
            if is_anchor:
                reach[1 if t == i else 0] = 0.0
            else:
                log_a = log_predictive(family, prior, statistics[2 * p], values, t)
                log_b = log_predictive(family, prior, statistics[2 * p + 1], values, t)
                less = math.exp(-abs(log_a - log_b))
                reach[0] *= less if log_a < log_b else 1.0
                reach[1] *= 1.0 if log_a < log_b else less
                log_factor[p] += max(log_a, log_b)
            reach[1] *= max(joined[p], 1.0) / (joined[p] + 1.0)  # 1/n_b
            factor[p] *= reach[0] + reach[1]
            side = 0 if uniform(stream) * (reach[0] + reach[1]) < reach[0] else 1
            if is_merge and p == 0:
                side = 0 if states[t] == a else 1

            own = 2 * p + side
            if not inside:
                urns[own, 1 + row] += 1.0
            elif side != before:
                urns[own, 1 + (b if before else a) + 1] += 1.0
                urns[2 * p + before, 0] += 1.0
            if leaves:
                urns[own, departure] += 1.0
                urns[own, 0] += 1.0
            if not is_anchor:
                change_statistics(family, statistics[own], values, t, 1.0)
                prepare(family, prior, statistics[own])
            sides[p] = 2 * (age + 1 if inside and side == before else 1) + side
            choices[p, n] = side == 1
            joined[p] += side

        union[n] = t
        n += 1
        if n % REWEIGHT_EVERY == 0:
            ratio += reweight(weight, factor, log_factor, factor_one, log_factor_one)
            factor_one, log_factor_one = 1.0, 0.0
            if not low <= ratio + math.log(n) <= high or not is_possible(weight):
                break
            resample(stream, weight, is_merge, urns, statistics, choices[:, :n], sides, joined)
    ratio += reweight(weight, factor, log_factor, factor_one, log_factor_one)
    if not is_possible(weight):
        ratio = -math.inf
    return ratio + math.log(n), weight, choices[:, :n], union[:n]


@jit
def is_possible(weight):
    """Whether a particle is left that a minimum duration does not forbid."""
    largest = 0.0
    for p in range(len(weight)):
        largest = max(largest, weight[p])
    return largest > 0.0


@jit
def hazard_at(hazards, side, age, since_start, n_ages):
    """The hazard of a run of this age; it is the first of its sequence if it is as old as that."""
    return (hazards.first if age == since_start else hazards.hazard)[side, min(age, n_ages) - 1]
