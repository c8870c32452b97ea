"""Gibbs updates of the steps of two states, given φ.

Given are two states a and b, the steps of both together (the union) and the rest of the trajectory. First the rows of a
and b are drawn, and how every other row splits its visits to the union between the two; then the steps of the union
choose between a and b, by forward filtering and backward sampling over two states. Both are Gibbs steps. An update that
would leave a state without steps is rejected: the set of pairs must not depend on what is drawn.
"""

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.conditionals import base_measure, draw_dirichlet
from ihmm.kernels.counts import count_transitions, mark
from ihmm.kernels.draws import FLOOR, draw_index, split, uniform

TRIES = 2  # per scan, to find a step at which two states overlap


@jit
def resample_pairs(stream, density, offsets, states, beta, concentration, stickiness, scans):
    """Update up to `scans` pairs of states, in place. `density` may have an arbitrary scale at each step.

    A pair is two states drawn by their densities at a random step, so few pairs are updated if states hardly overlap.
    """
    n_states = density.shape[1]
    begins = mark(offsets, len(states) + 1)
    measure = base_measure(beta, concentration, stickiness)
    counts = count_transitions(states, offsets, n_states)
    steps, chances = np.empty(len(states), np.int64), np.empty(len(states))
    takes_b = np.empty(len(states), np.bool_)
    done = 0
    for _ in range(TRIES * scans):
        t = int(uniform(stream) * len(states))
        a, b = draw_index(stream, density[t]), draw_index(stream, density[t])
        if a == b:
            continue
        if done == scans:
            break
        done += 1
        enter, leave = draw_rows_of_pair(stream, counts, measure, a, b)
        n = filter_pair(density, begins, states, enter, leave, a, b, steps, chances)
        n_b = sample_back(stream, begins, leave, a, b, n, steps, chances, takes_b)
        if 0 < n_b < n:
            for q in range(n):
                state = b if takes_b[q] else a
                if states[steps[q]] != state:
                    count_step(counts, begins, states, steps[q], -1)
                    states[steps[q]] = state
                    count_step(counts, begins, states, steps[q], 1)


@jit
def draw_rows_of_pair(stream, counts, measure, a, b):
    """Draw how every row, the initial one first, splits its visits between a and b, and the rows of a and b."""
    n_states = counts.shape[1]
    enter, leave = np.empty((n_states + 1, 2)), np.empty((2, n_states + 1))
    for j in range(n_states + 1):
        enter[j, 0], enter[j, 1] = split(stream, counts[j, a] + measure[j, a], counts[j, b] + measure[j, b])
    for side in range(2):
        row = b + 1 if side == 1 else a + 1
        for k in range(n_states):
            leave[side, k] = measure[row, k] + counts[row, k]
        leave[side, n_states] = measure[row, n_states]
        draw_dirichlet(stream, leave[side])
    return enter, leave


@jit
def filter_pair(density, begins, states, enter, leave, a, b, steps, chances):
    """Fill in the steps of the union, in order, and the probability of a at each, given the past and, where the union
    is left, the next state. Returns the number of steps."""
    n, to_a = 0, 0.0
    for t in range(len(states)):
        if states[t] != a and states[t] != b:
            continue
        if begins[t] or (states[t - 1] != a and states[t - 1] != b):
            row = 0 if begins[t] else states[t - 1] + 1
            in_a, in_b = enter[row, 0], enter[row, 1]
        else:
            in_a = to_a * leave[0, a] + (1.0 - to_a) * leave[1, a]
            in_b = to_a * leave[0, b] + (1.0 - to_a) * leave[1, b]
        in_a *= density[t, a]
        in_b *= density[t, b]
        if not begins[t + 1] and states[t + 1] != a and states[t + 1] != b:
            in_a *= leave[0, states[t + 1]]
            in_b *= leave[1, states[t + 1]]
        to_a = in_a / max(in_a + in_b, FLOOR)
        steps[n], chances[n] = t, to_a
        n += 1
    return n


@jit
def sample_back(stream, begins, leave, a, b, n, steps, chances, takes_b):
    """Draw the choices at the steps of the union, last one first; returns the number of steps in b."""
    n_b = 0
    for q in range(n - 1, -1, -1):
        in_a, in_b = chances[q], 1.0 - chances[q]
        if q + 1 < n and steps[q + 1] == steps[q] + 1 and not begins[steps[q + 1]]:
            following = b if takes_b[q + 1] else a
            in_a *= leave[0, following]
            in_b *= leave[1, following]
        takes_b[q] = uniform(stream) * (in_a + in_b) >= in_a
        n_b += takes_b[q]
    return n_b


@jit
def count_step(counts, begins, states, t, sign):
    """Add the transitions into step t and out of it to the counts (sign 1) or remove them (sign −1)."""
    counts[0 if begins[t] else states[t - 1] + 1, states[t]] += sign
    if not begins[t + 1]:
        counts[states[t] + 1, states[t + 1]] += sign
