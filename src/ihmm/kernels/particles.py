"""What the two passes of particle Gibbs share: the stored particles, tail states, and the trace back.

A step's particles are stored as pairs (state, mass). The parent of a particle in state k is pair i with probability
∝ mass_i π(k | s_i), for the reference (ancestor sampling) as for the others, so parents are drawn only for the one
trajectory that is traced back.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, inlined, jit
from ihmm.kernels.draws import draw_index, seed_stream, uniform
from ihmm.kernels.sticks import extend_row, open_row

GROW, NOTHING = -1, -2  # what a step may need: room in θ's arrays, or nothing more
LINEAR_SEARCH = 48


class ParticleSystem(NamedTuple):
    """The particles of every step as pairs; those of step t stand at first[t] … first[t+1] − 1.

    Pair 0 belongs to no step: it is the initial row, the parent of every sequence's first step.
    """

    first: np.ndarray  # (T + 1,)
    state: np.ndarray  # (1 + T·M,), M being the most pairs that a step can have
    row: np.ndarray  # (1 + T·M,): the state's row in θ
    number: np.ndarray  # (1 + T·M,): how many particles, if they are counted; M at pair 0
    mass: np.ndarray  # (1 + T·M,): their weight taken together


class Density(NamedTuple):
    """Densities of a block of steps, on a scale of their own at each step."""

    begin: int  # first step of the block
    explicit: np.ndarray  # (B, |V| + 1): f(y_t | φ_k), and g_t at the end
    column_of: np.ndarray  # (capacity,): where a tail state stands in `log_tail`, −1 if not there
    log_tail: np.ndarray  # (n, B): log f(y_t | φ_k) − log g_t


@inlined
def mix_rows(rows, row_tail, row, mass, begin, last, mixture):
    """Σ_i w_i π(k | s^i) for k in V; returns Σ_i w_i r(s^i)."""
    if begin == last:
        r, m = row[begin], mass[begin]
        for k in range(len(mixture)):
            mixture[k] = m * rows[r, k]
        return m * row_tail[r]
    # Two at once to begin with: more are rare
    r, m, other, m_other = row[begin], mass[begin], row[begin + 1], mass[begin + 1]
    tail = m * row_tail[r] + m_other * row_tail[other]
    for k in range(len(mixture)):
        mixture[k] = m * rows[r, k] + m_other * rows[other, k]
    for p in range(begin + 2, last + 1):
        r, m = row[p], mass[p]
        tail += m * row_tail[r]
        for k in range(len(mixture)):
            mixture[k] += m * rows[r, k]
    return tail


@in_place
def reach_out(sticks, r, u):
    """Break row r until it reaches beyond u, or has nothing left but rounding. False: θ's arrays are full."""
    n_explicit = sticks.size[2]
    while sticks.known[r] == n_explicit or u >= sticks.reach[r, sticks.known[r] - 1]:
        k = sticks.known[r]
        if k == sticks.n_total or (k > n_explicit and sticks.rest[r] < 1e-15 * sticks.tail[r]):
            break
        if not extend_row(sticks, r, k + 1, math.inf):
            return False
    return True


@in_place
def search(reach, low, high, u):
    """The first index in [low, high) with reach > u, or the last one."""
    if high - low <= LINEAR_SEARCH:
        k = low
        for j in range(low, high - 1):
            k += reach[j] <= u
        return k
    high -= 1
    while low < high:
        middle = (low + high) // 2
        if reach[middle] <= u:
            low = middle + 1
        else:
            high = middle
    return low


@in_place
def open_rows(sticks, state, row, begin, end):
    """Open the rows that the pairs of a step lack."""
    for p in range(begin, end):
        if sticks.row_of[state[p]] < 0:
            if sticks.size[1] == len(sticks.rest):
                return GROW
            open_row(sticks, state[p])
        row[p] = sticks.row_of[state[p]]
    return NOTHING


@in_place
def weigh_tail(n_explicit, column_of, log_tail, b, state, mass, begin, end):
    """Multiply the masses of tail states by f/g, all on the scale of the largest factor.

    Returns a state whose density is not known, or NOTHING.
    """
    top = -math.inf
    for p in range(begin, end):
        k = state[p]
        if k < n_explicit:
            top = max(top, 0.0)
        elif column_of[k] < 0:
            return k
        else:
            top = max(top, log_tail[column_of[k], b])
    for p in range(begin, end):
        k = state[p]
        log_weight = 0.0 if k < n_explicit else log_tail[column_of[k], b]
        mass[p] *= math.exp(log_weight - top)
    return NOTHING


@jit
def trace_back(sticks, system, reference, following, sequence, key, ancestor_sampling, path):
    """Draw the new path, last step first: P(parent = i) ∝ w_i π(s_t | s^i_{t−1}).

    `following` is the state of the step after the last, if that is given, or −1.
    """
    stream = np.empty(4, np.uint64)
    end = len(path)
    if following >= 0:
        for p in range(system.first[end - 1], system.first[end]):
            extend_row(sticks, system.row[p], following + 1, math.inf)
            system.mass[p] *= sticks.rows[system.row[p], following]
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        p = draw_index(stream, system.mass[system.first[end - 1] : system.first[end]]) + system.first[end - 1]
        trace_sequence(stream, sticks, system, reference, ancestor_sampling, p, begin, end, path)
        end = begin


@jit
def trace_sequence(stream, sticks, system, reference, ancestor_sampling, p, begin, end, path):
    """Follow parents from pair p of the last step to the first. Without ancestor sampling the reference particle,
    one of those in its state, keeps its own past."""
    weight = np.empty(system.number[0])
    state = system.state[p]
    path[end - 1] = state
    on_reference = not ancestor_sampling and is_reference(stream, system, p, reference[end - 1])
    for t in range(end - 2, begin - 1, -1):
        if on_reference:
            path[t] = reference[t]
            continue
        low, high = system.first[t], system.first[t + 1]
        p = low
        if high - low > 1:
            for q in range(low, high):
                if sticks.known[system.row[q]] <= state:
                    extend_row(sticks, system.row[q], state + 1, math.inf)
                weight[q - low] = system.mass[q] * sticks.rows[system.row[q], state]
            p += draw_index(stream, weight[: high - low])
        state = system.state[p]
        path[t] = state
        on_reference = not ancestor_sampling and is_reference(stream, system, p, reference[t])


@in_place
def is_reference(stream, system, p, reference_state):
    """Whether a particle of pair p is the reference: one of the `number` in its state."""
    return system.state[p] == reference_state and uniform(stream) * system.number[p] < 1.0
