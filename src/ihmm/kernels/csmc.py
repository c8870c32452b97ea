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

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import copy_stream, seed_stream, uniform
from ihmm.kernels.particles import GROW, NOTHING, mix_rows, open_rows, reach_out, search, weigh_tail


@jit
def forward(t, stop, n_particles, sticks, density, system, reference, sequence, key, stream):
    """Run the particles from step t on. Returns (stop, NOTHING), or (t, k): step t needs the density of
    tail state k, or more room (k = GROW). Supply it and call again: the step is replayed with the same numbers."""
    # Arrays are unpacked here: handing the bundles to a function costs more than most steps do
    size, rows, row_of, known = sticks.size, sticks.rows, sticks.row_of, sticks.known
    row_tail, row_reach = sticks.tail, sticks.reach
    n_explicit = size[2]
    first, state, row, number, mass = system
    offset, explicit, column_of, log_tail = density
    share, reach = np.empty(n_explicit), np.empty(n_explicit)
    slot = np.full(len(sticks.beta), -1)
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
                    if not reach_out(sticks, r, u):
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
            needed = open_rows(sticks, state, row, begin, end)
        if in_tail and needed == NOTHING:
            needed = weigh_tail(n_explicit, column_of, log_tail, t - offset, state, mass, begin, end)
        if needed != NOTHING:
            copy_stream(before, stream)
            return t, needed
        first[t + 1] = end
        t += 1
    return t, NOTHING
