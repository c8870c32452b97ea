"""Conditional SMC with ancestor sampling on the infinite state space (T15 §3.1–3.3, made exact).

The look-ahead form: at step t the N−1 free particles are drawn from

    P(s_t = k) ∝ Σ_i w_i π(k | s^i_{t−1}) f(y_t | φ_k)      k ∈ V, scored explicitly
    P(tail)    ∝ Σ_i w_i r(s^i_{t−1}) g_t                    then k in the tail with probability π_jk / r_j

and keep as weight what the proposal left out: 1 in V, f(y_t|φ_k)/g_t in the tail. Two facts make this cheap.
Particles in the same state are exchangeable, so a step is stored as pairs (state, how many). And the parent of a
particle in state k is i with probability ∝ w_i π(k | s^i_{t−1}), for the reference particle (ancestor sampling) as for
the others, so parents need to be drawn only for the one path that is traced back.

The prior proposal is the case V = ∅, g = 1.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import copy_stream, draw_index, seed_stream, uniform
from ihmm.kernels.sticks import extend_row, open_row

GROW, NOTHING = -1, -2  # what a step may need: room in θ's arrays, or nothing more
LINEAR_SEARCH = 48


class Cloud(NamedTuple):
    """The particles of every step as pairs; those of step t stand at first[t] … first[t+1] − 1.

    Pair 0 belongs to no step: it is the initial row, the parent of every sequence's first step.
    """

    first: np.ndarray  # (T + 1,)
    state: np.ndarray  # (1 + T·N,)
    row: np.ndarray  # (1 + T·N,): the state's row in θ
    number: np.ndarray  # (1 + T·N,): how many particles
    mass: np.ndarray  # (1 + T·N,): their weight taken together


class Density(NamedTuple):
    """Densities of a block of steps, on a scale of their own at each step."""

    begin: int  # first step of the block
    explicit: np.ndarray  # (B, |V| + 1): f(y_t | φ_k), and g_t at the end
    column_of: np.ndarray  # (capacity,): where a tail state stands in `log_tail`, −1 if not there
    log_tail: np.ndarray  # (n, B): log f(y_t | φ_k) − log g_t


@jit
def forward(t, stop, n_particles, theta, density, cloud, reference, sequence, key, stream):
    """Run the particles from step t on. Returns (stop, NOTHING), or (t, k): step t needs the density of
    tail state k, or more room (k = GROW). Supply it and call again: the step is replayed with the same numbers."""
    # Arrays are unpacked here: handing the bundles to a function costs more than most steps do
    size, rows, row_of, known = theta.size, theta.rows, theta.row_of, theta.known
    row_tail, row_reach = theta.tail, theta.reach
    n_explicit = size[2]
    first, state, row, number, mass = cloud
    offset, explicit, column_of, log_tail = density
    share, reach = np.empty(n_explicit), np.empty(n_explicit)
    slot = np.full(len(theta.beta), -1)
    before = np.empty(4, np.uint64)
    while t < stop:
        if sequence[t] >= 0:
            seed_stream(stream, key, sequence[t])
        begin = first[t]
        parents = 0 if sequence[t] >= 0 else first[t - 1]
        last_parent = 0 if sequence[t] >= 0 else begin - 1
        copy_stream(stream, before)

        # Propose: one distribution over V and the tail serves all particles, since their parents are mixed into it
        tail = mix_rows(rows, row_tail, row, mass, parents, last_parent, share)
        total = 0.0
        for k in range(n_explicit):
            total += share[k] * explicit[t - offset, k]
            reach[k] = total
        everything = total + tail * explicit[t - offset, n_explicit]

        # The reference first; its state often has most of the mass, so it is tried before the others are searched
        k = reference[t]
        state[begin], number[begin] = k, 1
        slot[k] = begin
        end = begin + 1
        low = reach[k - 1] if 0 < k < n_explicit else 0.0
        high = reach[k] if k < n_explicit else 0.0
        needed = NOTHING
        for _ in range(n_particles - 1):
            u = uniform(stream) * everything
            if low <= u < high:
                number[begin] += 1
                continue
            if u < total:
                k = search(reach, 0, n_explicit, u)
            else:
                # In the tail: choose a parent by the mass of its tail, and walk that
                u = uniform(stream) * tail
                p = parents
                while p < last_parent and u >= mass[p] * row_tail[row[p]]:
                    u -= mass[p] * row_tail[row[p]]
                    p += 1
                u = uniform(stream) * row_tail[row[p]]
                r = row[p]
                n_known = known[r]
                if n_known == n_explicit or u >= row_reach[r, n_known - 1]:
                    if not reach_out(theta, r, u):
                        needed = GROW
                        break
                    n_known = known[r]
                k = search(row_reach[r], n_explicit, n_known, u)
            if slot[k] < 0:
                slot[k] = end
                state[end], number[end] = k, 0
                end += 1
            number[slot[k]] += 1

        # Weigh: only the tail has anything to correct
        in_tail = lacks_row = False
        for p in range(begin, end):
            k = state[p]
            slot[k] = -1
            row[p], mass[p] = row_of[k], number[p]
            in_tail |= k >= n_explicit
            lacks_row |= row[p] < 0
        if lacks_row and needed == NOTHING:
            needed = open_rows(theta, state, row, begin, end)
        if in_tail and needed == NOTHING:
            needed = weigh_tail(n_explicit, column_of, log_tail, t - offset, state, number, mass, begin, end)
        if needed != NOTHING:
            copy_stream(before, stream)
            return t, needed
        first[t + 1] = end
        t += 1
    return t, NOTHING


@jit
def mix_rows(rows, row_tail, row, mass, begin, last, mixture):
    """Σ_i w_i π(k | s^i) for k in V; returns Σ_i w_i r(s^i)."""
    tail = mass[begin] * row_tail[row[begin]]
    for k in range(len(mixture)):
        mixture[k] = mass[begin] * rows[row[begin], k]
    for p in range(begin + 1, last + 1):
        tail += mass[p] * row_tail[row[p]]
        for k in range(len(mixture)):
            mixture[k] += mass[p] * rows[row[p], k]
    return tail


@jit
def reach_out(theta, r, u):
    """Break row r until it reaches beyond u, or has nothing left but rounding. False: θ's arrays are full."""
    n_explicit = theta.size[2]
    while theta.known[r] == n_explicit or u >= theta.reach[r, theta.known[r] - 1]:
        k = theta.known[r]
        if k == theta.n_total or (k > n_explicit and theta.rest[r] < 1e-15 * theta.tail[r]):
            break
        if not extend_row(theta, r, k + 1, math.inf):
            return False
    return True


@jit
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


@jit
def open_rows(theta, state, row, begin, end):
    """Open the rows that the pairs of a step lack."""
    for p in range(begin, end):
        if theta.row_of[state[p]] < 0:
            if theta.size[1] == len(theta.rest):
                return GROW
            open_row(theta, state[p])
        row[p] = theta.row_of[state[p]]
    return NOTHING


@jit
def weigh_tail(n_explicit, column_of, log_tail, b, state, number, mass, begin, end):
    """Correct the weights of a step with particles in the tail."""
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
        mass[p] = number[p] * math.exp(log_weight - top)
    return NOTHING


@jit
def trace_back(theta, cloud, reference, following, sequence, key, ancestor_sampling, path):
    """Draw the new path, last step first: P(parent = i) ∝ w_i π(s_t | s^i_{t−1}).

    `following` is the state of the step after the last, if that is given, or −1.
    """
    stream = np.empty(4, np.uint64)
    end = len(path)
    if following >= 0:
        for p in range(cloud.first[end - 1], cloud.first[end]):
            extend_row(theta, cloud.row[p], following + 1, math.inf)
            cloud.mass[p] *= theta.rows[cloud.row[p], following]
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        p = draw_index(stream, cloud.mass[cloud.first[end - 1] : cloud.first[end]]) + cloud.first[end - 1]
        trace_sequence(stream, theta, cloud, reference, ancestor_sampling, p, begin, end, path)
        end = begin


@jit
def trace_sequence(stream, theta, cloud, reference, ancestor_sampling, p, begin, end, path):
    """Follow parents from pair p of the last step to the first. Without ancestor sampling the reference particle,
    one of those in its state, keeps its own past."""
    weight = np.empty(cloud.number[0])
    state = cloud.state[p]
    path[end - 1] = state
    on_reference = not ancestor_sampling and is_reference(stream, cloud, p, reference[end - 1])
    for t in range(end - 2, begin - 1, -1):
        if on_reference:
            path[t] = reference[t]
            continue
        low, high = cloud.first[t], cloud.first[t + 1]
        p = low
        if high - low > 1:
            for q in range(low, high):
                if theta.known[cloud.row[q]] <= state:
                    extend_row(theta, cloud.row[q], state + 1, math.inf)
                weight[q - low] = cloud.mass[q] * theta.rows[cloud.row[q], state]
            p += draw_index(stream, weight[: high - low])
        state = cloud.state[p]
        path[t] = state
        on_reference = not ancestor_sampling and is_reference(stream, cloud, p, reference[t])


@jit
def is_reference(stream, cloud, p, reference_state):
    """Whether a particle of pair p is the reference: one of the `number` in its state."""
    return cloud.state[p] == reference_state and uniform(stream) * cloud.number[p] < 1.0
