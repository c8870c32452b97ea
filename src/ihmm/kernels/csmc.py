"""Conditional SMC with ancestor sampling on the infinite state space (T15 §3.1–3.3, made exact).

The look-ahead form: at step t the N−1 free particles are drawn from

    P(s_t = k) ∝ Σ_i w_i π(k | s^i_{t−1}) f(y_t | φ_k)      k ∈ V, scored explicitly
    P(tail)    ∝ Σ_i w_i r(s^i_{t−1}) g_t                    then k in the tail with probability π_jk / r_j

and keep as weight what the proposal left out: 1 in V, f(y_t|φ_k)/g_t in the tail. Two facts make this cheap.
Particles in the same state are exchangeable, so a step is stored as pairs (state, how many). And the parent of a particle in
state k is i with probability ∝ w_i π(k | s^i_{t−1}), the reference particle (ancestor sampling) and the others alike, so
parents need to be drawn only for the one path that is traced back.

The prior proposal is the case V = ∅, g = 1.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import seed_stream, uniform
from ihmm.kernels.sticks import break_stick, open_row

GROW, NOTHING = -1, -2  # what a step may need: room in θ's arrays, or nothing more
LINEAR_SEARCH = 48


class Cloud(NamedTuple):
    """The particles of every step as pairs: those of step t stand at first[t] … first[t+1] − 1."""

    first: np.ndarray  # (T + 1,)
    state: np.ndarray  # (T·N,)
    count: np.ndarray  # (T·N,)
    weight: np.ndarray  # (T·N,): written and read only for states in the tail


class Density(NamedTuple):
    """Densities of a block of steps, on a scale of their own at each step."""

    begin: int  # first step of the block
    explicit: np.ndarray  # (|V|, B): f(y_t | φ_k)
    marginal: np.ndarray  # (B,): g_t
    column_of: np.ndarray  # (capacity,): where a tail state stands in `log_tail`, −1 if not there
    log_tail: np.ndarray  # (n, B): log f(y_t | φ_k) − log g_t


@jit
def forward(t, stop, n_particles, theta, density, cloud, reference, sequence, key, stream):
    """Run the particles from step t on. Returns (stop, NOTHING), or (t, k): step t needs the density of
    tail state k, or more room (k = GROW). Supply it and call again: the step is replayed with the same numbers."""
    n_explicit = theta.size[2]
    row, mass = np.empty(n_particles, np.int64), np.empty(n_particles)
    mixture, reach = np.empty(n_explicit), np.empty(n_explicit)
    slot = np.full(len(theta.beta), -1)
    before = np.empty(4, np.uint64)
    n_parents = 0
    if t < stop and sequence[t] < 0:
        n_parents = gather_parents(theta, cloud, t - 1, row, mass)
    while t < stop:
        if sequence[t] >= 0:  # a sequence begins: one parent, the initial row
            seed_stream(stream, key, sequence[t])
            row[0], mass[0], n_parents = 0, 1.0, 1
        before[:] = stream

        # Propose: one cumulative row serves all particles
        b = t - density.begin
        tail = mix_rows(theta, row, mass, n_parents, mixture)
        total = 0.0
        for k in range(n_explicit):
            total += mixture[k] * density.explicit[k, b]
            reach[k] = total
        everything = total + tail * density.marginal[b]

        n_pairs, begin = 0, cloud.first[t]
        needed = NOTHING
        for i in range(n_particles):
            if i == n_particles - 1:
                k = reference[t]
            else:
                u = uniform(stream) * everything
                if u < total:
                    k = search(reach, 0, n_explicit, u)
                else:
                    k = draw_tail(stream, theta, row, mass, n_parents, tail)
                    if k == GROW:
                        needed = GROW
                        break
            if slot[k] < 0:
                slot[k] = begin + n_pairs
                cloud.state[begin + n_pairs], cloud.count[begin + n_pairs] = k, 0
                n_pairs += 1
            cloud.count[slot[k]] += 1
        for p in range(begin, begin + n_pairs):
            slot[cloud.state[p]] = -1

        # Weigh: only the tail has anything to correct
        if needed == NOTHING:
            needed = weigh(theta, density, cloud, b, begin, begin + n_pairs)
        if needed != NOTHING:
            stream[:] = before
            return t, needed
        cloud.first[t + 1] = begin + n_pairs
        n_parents = gather_parents(theta, cloud, t, row, mass)
        t += 1
    return t, NOTHING


@jit
def mix_rows(theta, row, mass, n_parents, mixture):
    """Σ_i w_i π(k | s^i) for k in V, and Σ_i w_i r(s^i)."""
    n_explicit = len(mixture)
    tail = 0.0
    for d in range(n_parents):
        weight, source = mass[d], theta.rows[row[d]]
        tail += weight * theta.tail[row[d]]
        if d == 0:
            for k in range(n_explicit):
                mixture[k] = weight * source[k]
        else:
            for k in range(n_explicit):
                mixture[k] += weight * source[k]
    return tail


@jit
def draw_tail(stream, theta, row, mass, n_parents, tail):
    """Choose a parent by the mass of its tail, walk that tail, and break sticks until the draw lands."""
    u = uniform(stream) * tail
    d = 0
    while d < n_parents - 1 and u >= mass[d] * theta.tail[row[d]]:
        u -= mass[d] * theta.tail[row[d]]
        d += 1
    r = row[d]
    u = uniform(stream) * theta.tail[r]
    n_states = theta.size[0]
    while n_states == theta.size[2] or u >= theta.reach[r, n_states - 1]:
        if n_states > theta.size[2] and theta.rest[r] < 1e-15 * theta.tail[r]:
            break  # nothing is left of the row but rounding
        if n_states == len(theta.beta):
            return GROW
        break_stick(theta)
        n_states += 1
    return search(theta.reach[r], theta.size[2], n_states, u)


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
def weigh(theta, density, cloud, b, begin, end):
    """Give the pairs of one step their weights, and a row to every state. Returns what is missing."""
    n_explicit = theta.size[2]
    top, in_tail = -math.inf, False
    for p in range(begin, end):
        k = cloud.state[p]
        if theta.row_of[k] < 0:
            if theta.size[1] == len(theta.rest):
                return GROW
            open_row(theta, k)
        if k < n_explicit:
            cloud.weight[p] = 1.0
            top = max(top, 0.0)
        elif density.column_of[k] < 0:
            return k
        else:
            in_tail = True
            cloud.weight[p] = density.log_tail[density.column_of[k], b]
            top = max(top, cloud.weight[p])
    if in_tail:
        for p in range(begin, end):
            log_weight = 0.0 if cloud.state[p] < n_explicit else cloud.weight[p]
            cloud.weight[p] = math.exp(log_weight - top)
    return NOTHING


@jit
def gather_parents(theta, cloud, t, row, mass):
    """Rows and total weights of the particles of step t."""
    begin, end = cloud.first[t], cloud.first[t + 1]
    for p in range(begin, end):
        row[p - begin] = theta.row_of[cloud.state[p]]
        mass[p - begin] = cloud.count[p] * cloud.weight[p]
    return end - begin


@jit
def trace_back(theta, cloud, reference, sequence, key, ancestor_sampling, path):
    """Draw the new path, last step first: P(parent = i) ∝ w_i π(s_t | s^i_{t−1})."""
    stream = np.empty(4, np.uint64)
    last = len(path) - 1
    for end in range(last, -1, -1):
        if sequence[end] < 0:
            continue
        seed_stream(stream, key, sequence[end])
        child, on_reference = -1, False
        for t in range(last, end - 1, -1):
            if on_reference:
                child = reference[t]
            else:
                p = draw_pair(stream, theta, cloud, t, child)
                child = cloud.state[p]
                if not ancestor_sampling and child == reference[t]:
                    on_reference = uniform(stream) * cloud.count[p] < 1.0
            path[t] = child
        last = end - 1


@jit
def draw_pair(stream, theta, cloud, t, child):
    """A pair of step t by weight, times the probability of going on to `child` (−1: nothing follows)."""
    begin, end = cloud.first[t], cloud.first[t + 1]
    if end - begin == 1:
        return begin
    total = 0.0
    for p in range(begin, end):
        step = 1.0 if child < 0 else theta.rows[theta.row_of[cloud.state[p]], child]
        total += cloud.count[p] * cloud.weight[p] * step
    u = uniform(stream) * total
    for p in range(begin, end - 1):
        step = 1.0 if child < 0 else theta.rows[theta.row_of[cloud.state[p]], child]
        u -= cloud.count[p] * cloud.weight[p] * step
        if u < 0.0:
            return p
    return end - 1
