"""What the pass over segments works on: particles (state, age, previous state), tail states, and the trace back.

Ages from `cap` on have the same hazard and are not told apart. The first segment of a sequence may have hazards of its
own; no particle needs a flag for it, because it alone is as old as the sequence.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, jit
from ihmm.kernels.draws import FLOOR, draw_index, seed_stream
from ihmm.kernels.memory import log_density_after_change
from ihmm.kernels.particles import GROW, NOTHING, reach_out, search
from ihmm.kernels.sticks import extend_row, open_row


class Segments(NamedTuple):
    """The particles of every step; those of step t stand at first[t] … first[t+1] − 1."""

    first: np.ndarray  # (T + 1,)
    state: np.ndarray  # (T·M,), M being the most particles that a step can have
    row: np.ndarray  # (T·M,): the state's row in θ
    age: np.ndarray  # (T·M,): at most `cap`
    previous: np.ndarray  # (T·M,): the previous state while the noise remembers it, else −1
    mass: np.ndarray  # (T·M,)


class Reference(NamedTuple):
    """The reference path in the same form."""

    state: np.ndarray  # (T,)
    age: np.ndarray  # (T,)
    previous: np.ndarray  # (T,)
    oldest: np.ndarray  # (T,): age of the first segment of the sequence, if it has not ended; ages are at most `cap`


class Hazards(NamedTuple):
    """The duration laws of the states."""

    cap: int  # the hazard is the same at all ages from here on
    hazard: np.ndarray  # (states, ages): P(d = a | d ≥ a) in column a − 1
    first: np.ndarray  # (states, ages): the same for the first segment of a sequence
    known: np.ndarray  # (states,): ages for which it is known


class Exits(NamedTuple):
    """How rows are left, as sums of small positive terms; negative: not measured yet."""

    total: np.ndarray  # (rows,): 1 − π_jj; 1 for the initial row
    tail: np.ndarray  # (rows,): mass outside V, without π_jj


class SegmentDensity(NamedTuple):
    """Densities of a block of steps in settled noise."""

    begin: int  # first step of the block
    explicit: np.ndarray  # (B, |V| + 1): f(y_t | φ_k), and g_t at the end, on a scale of their own at each step
    column_of: np.ndarray  # (capacity,): where a state stands in `log_ratio`, −1 if not there
    log_ratio: np.ndarray  # (n, B): log f(y_t | φ_k) − log g_t
    log_marginal: np.ndarray  # (B,): log g_t


@in_place
def describe_runs(sequence, cap, memory, reference):
    """Age and previous state of every step of the reference path, and the greatest age that is possible there."""
    state, age, previous, oldest = reference
    run, steps = 0, 0
    for t in range(len(state)):
        before = -1
        steps += 1
        if sequence[t] >= 0:
            run = steps = 1
        elif state[t] != state[t - 1]:
            run, before = 1, state[t - 1]
        else:
            run, before = run + 1, previous[t - 1]
        age[t], oldest[t] = min(run, cap), min(steps, cap)
        previous[t] = before if run <= memory else -1


@in_place
def draw_from_tail(sticks, exits, r, itself, u):
    """A tail state k ≠ j with probability ∝ π_jk, j being the state of row r; −1: θ's arrays are full."""
    n_explicit = sticks.size[2]
    u *= exits.tail[r]
    if itself < n_explicit:
        known = sticks.known[r]
        if (known == n_explicit or u >= sticks.reach[r, known - 1]) and not reach_out(sticks, r, u):
            return -1
        return search(sticks.reach[r], n_explicit, sticks.known[r], u)
    # Skip the state itself: its mass may be so much larger than the rest that sums with it are useless
    k, last = n_explicit, -1
    while True:
        if k == sticks.known[r]:
            if last >= 0 and (k == sticks.n_total or sticks.rest[r] < 1e-15 * exits.tail[r]):
                return last
            if not extend_row(sticks, r, k + 1, math.inf):
                return -1
        if k != itself:
            if u < sticks.rows[r, k]:
                return k
            u -= sticks.rows[r, k]
            last = k
        k += 1


@in_place
def sort_tail(system, begin, end):
    """Sort particles of one step and age by state and previous state."""
    _, state, row, _, previous, mass = system
    for p in range(begin + 1, end):
        q = p
        while q > begin and (state[q], previous[q]) < (state[q - 1], previous[q - 1]):
            state[q], state[q - 1] = state[q - 1], state[q]
            row[q], row[q - 1] = row[q - 1], row[q]
            previous[q], previous[q - 1] = previous[q - 1], previous[q]
            mass[q], mass[q - 1] = mass[q - 1], mass[q]
            q -= 1


@in_place
def open_exits(sticks, exits, state, row, begin, end):
    """Open the rows that the particles of a step lack, and measure how they are left."""
    for p in range(begin, end):
        k = state[p]
        if sticks.row_of[k] < 0:
            if sticks.size[1] == len(sticks.rest):
                return GROW
            open_row(sticks, k)
        r = sticks.row_of[k]
        row[p] = r
        if exits.total[r] < 0.0:
            if not extend_row(sticks, r, k + 1, math.inf):
                return GROW
            measure_exit(sticks, exits, r, k)
    return NOTHING


@in_place
def measure_exit(sticks, exits, r, itself):
    """1 − π_jj, and the part of it outside V."""
    n_explicit = sticks.size[2]
    tail, total = sticks.rest[r], 0.0
    for k in range(sticks.known[r]):
        if k != itself:
            if k < n_explicit:
                total += sticks.rows[r, k]
            else:
                tail += sticks.rows[r, k]
    exits.tail[r], exits.total[r] = tail, total + tail


@in_place
def weigh_tail(density, after, b, is_remembered, system, begin, first_tail, end):
    """Multiply the masses of draws from the tail by f/g, all on the scale of the largest factor.

    Returns a state whose density is not known, or NOTHING.
    """
    _, state, _, _, previous, mass = system
    _, _, column_of, log_ratio, log_marginal = density
    for p in range(first_tail, end):
        if column_of[state[p]] < 0:
            return state[p]
    top = 0.0 if first_tail > begin else -math.inf
    for repeat in range(2):
        for p in range(first_tail, end):
            k = state[p]
            if is_remembered:
                log_weight = log_density_after_change(after, b, 1, k, previous[p]) - log_marginal[b]
            else:
                log_weight = log_ratio[column_of[k], b]
            if repeat:
                mass[p] *= math.exp(log_weight - top)
            else:
                top = max(top, log_weight)
    for p in range(begin, first_tail):
        mass[p] *= math.exp(-top)
    return NOTHING


@jit
def trace_back(sticks, exits, hazards, memory, system, oldest, sequence, key, path):
    """Draw the new path, last step first. The parent of a particle stayed, or left for it.

    If ages are not told apart at all, a state that is held and one that is entered are two candidates, but the same
    particle afterwards: their masses add up, and a parent of either kind may be drawn.
    """
    first, state, row, age, previous, mass = system
    cap, hazard, first_hazard, _ = hazards
    stream = np.empty(4, np.uint64)
    end, most = len(path), 0
    for t in range(end):
        most = max(most, first[t + 1] - first[t])
    weight = np.empty(most)
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        p = draw_index(stream, mass[first[end - 1] : first[end]]) + first[end - 1]
        path[end - 1] = state[p]
        for t in range(end - 2, begin - 1, -1):
            k, a, before = state[p], age[p], previous[p]
            low, high = first[t], first[t + 1]
            for q in range(low, high):
                weight[q - low] = 0.0
                h = (hazard if age[q] < oldest[t] else first_hazard)[state[q], age[q] - 1]
                if state[q] == k:
                    if min(age[q] + 1, cap) == a and (a > memory or previous[q] == before):
                        weight[q - low] = mass[q] * max(1.0 - h, FLOOR)
                elif a == 1 and h > 0.0 and (memory == 0 or state[q] == before):
                    if sticks.known[row[q]] <= k:
                        extend_row(sticks, row[q], k + 1, math.inf)
                    weight[q - low] = mass[q] * h * sticks.rows[row[q], k] / exits.total[row[q]]
            p = low
            if high - low > 1:
                p += draw_index(stream, weight[: high - low])
            path[t] = state[p]
        end = begin
