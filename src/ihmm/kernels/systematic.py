"""Conditional SMC with merged particles and systematic thinning: one uniform a step.

A step is a set of pairs (state, mass). The pairs of step t−1 give the candidates of step t,

    W_k    = Σ_i mass_i π(k | s_i) f(y_t | φ_k)      k ∈ V, scored explicitly
    W_tail = Σ_i mass_i r(s_i) g_t                    all other states together

Let S be their sum. A state with W_k ≥ S/N is kept with mass W_k. The other states and the tail, whatever its size, are
laid end to end on a line, and a grid of spacing S/N with a uniform offset is put on it. A state that is hit is kept
with mass S/N. Each hit in the tail is one draw k ~ Σ_i mass_i π(k | s_i) from the tail, with mass S/N · f(y_t|φ_k)/g_t.
At most N pairs remain, usually far fewer, and the expected mass of every state is its weight.

The reference k* must be kept. If its weight is below S/N, a point is drawn uniformly from its interval, or from the
tail's if k* is in the tail (k* is then the draw of that point), and the grid runs through this point. This is the law
of the grid given that it keeps k*. Nothing else may depend on the reference, neither the spacing nor the order of the
line.

The prior proposal is the case V = ∅, g = 1.
"""

import math

import numpy as np

from ihmm.kernels._jit import in_place, inlined, jit
from ihmm.kernels.draws import copy_stream, seed_stream, uniform
from ihmm.kernels.particles import GROW, NOTHING, mix_rows, open_rows, reach_out, search, weigh_tail

TINY = 1e-304  # weights below this have underflowed


@jit
def forward(t, stop, n_particles, sticks, density, system, reference, sequence, key, stream):
    """Run the particles from step t on. Returns (stop, NOTHING), or (t, k): step t needs the density of
    tail state k, or more room (k = GROW). Supply it and call again: the step is replayed with the same numbers."""
    # Arrays are unpacked here: handing the bundles to a function costs more than most steps do
    size, rows, row_of, known = sticks.size, sticks.rows, sticks.row_of, sticks.known
    row_tail, row_reach = sticks.tail, sticks.reach
    n_explicit = size[2]
    first, state, row, _, mass = system
    offset, explicit, column_of, log_tail = density
    weight = np.empty(n_explicit)
    slot = np.full(len(sticks.beta), -1)
    before = np.empty(4, np.uint64)
    share = 1.0 / n_particles
    while t < stop:
        if sequence[t] >= 0:
            seed_stream(stream, key, sequence[t])
        begin = first[t]
        parents = 0 if sequence[t] >= 0 else first[t - 1]
        last_parent = 0 if sequence[t] >= 0 else begin - 1
        copy_stream(stream, before)
        u = uniform(stream)

        # Candidates; the mass of a single parent is only a scale
        if parents == last_parent:
            tail = row_tail[row[parents]]
            total = multiply(rows[row[parents]], explicit[t - offset], weight)
        else:
            tail = mix_rows(rows, row_tail, row, mass, parents, last_parent, weight)
            total = multiply(weight, explicit[t - offset], weight)
        tail_weight = tail * explicit[t - offset, n_explicit]
        everything = total + tail_weight
        spacing = everything * share

        # The usual case: all others together do not reach the first point of the grid, and the reference alone is kept.
        # Its state is known beforehand, so the processor can begin the next step before this one is decided.
        chosen = reference[t]
        own = weight[chosen] if chosen < n_explicit else 0.0
        if everything - own < u * spacing:
            state[begin], row[begin], mass[begin] = chosen, row_of[chosen], 1.0
            first[t + 1] = begin + 1
            t += 1
            continue

        # Thin V, with masses in units of the spacing
        end, point, line, lacks_row = begin, math.inf, 0.0, False
        if spacing > TINY:
            is_sure = own >= spacing
            point = u * spacing if is_sure else through_reference(u, weight, chosen, tail_weight, spacing)
            must_hit = -1 if is_sure else chosen  # whatever rounding says
            for k in range(n_explicit):
                is_small = weight[k] < spacing
                state[end] = k
                end += not is_small
                line += weight[k] if is_small else 0.0
                if line > point or k == must_hit:
                    point += spacing
                    end += 1
            scale = 1.0 / spacing
            for p in range(begin, end):
                k = state[p]
                row[p], mass[p] = row_of[k], max(weight[k] * scale, 1.0)
                lacks_row |= row[p] < 0

        # One of the hits in the tail is the reference if that is there; it is all that is left if weights underflow
        first_tail = end
        if chosen >= n_explicit or end == begin:
            state[end], row[end], mass[end] = chosen, row_of[chosen], 1.0
            slot[chosen] = end
            end += 1
            point += spacing

        # The tail: choose a parent by the mass of its tail, and walk that
        needed = NOTHING
        while point < line + tail_weight:
            point += spacing
            u = uniform(stream) * tail
            p = parents
            while p < last_parent and u >= mass[p] * row_tail[row[p]]:
                u -= mass[p] * row_tail[row[p]]
                p += 1
            r = row[p]
            u = uniform(stream) * row_tail[r]
            if (known[r] == n_explicit or u >= row_reach[r, known[r] - 1]) and not reach_out(sticks, r, u):
                needed = GROW
                break
            k = search(row_reach[r], n_explicit, known[r], u)
            if slot[k] < 0:
                slot[k] = end
                state[end], row[end], mass[end] = k, row_of[k], 0.0
                lacks_row |= row[end] < 0
                end += 1
            mass[slot[k]] += 1.0

        for p in range(first_tail, end):
            slot[state[p]] = -1
        if lacks_row and needed == NOTHING:
            needed = open_rows(sticks, state, row, begin, end)
        if first_tail < end and needed == NOTHING:
            needed = weigh_tail(n_explicit, column_of, log_tail, t - offset, state, mass, begin, end)
        if needed != NOTHING:
            copy_stream(before, stream)
            return t, needed
        first[t + 1] = end
        t += 1
    return t, NOTHING


@inlined
def multiply(left, right, product):
    """Multiply entry by entry, and return the sum of the products.

    Four partial sums are faster than one, in which every addition waits for the one before.
    """
    whole = len(product) // 4 * 4
    s0, s1, s2, s3 = 0.0, 0.0, 0.0, 0.0
    for i in range(len(product) // 4):
        k = 4 * i
        product[k] = left[k] * right[k]
        product[k + 1] = left[k + 1] * right[k + 1]
        product[k + 2] = left[k + 2] * right[k + 2]
        product[k + 3] = left[k + 3] * right[k + 3]
        s0 += product[k]
        s1 += product[k + 1]
        s2 += product[k + 2]
        s3 += product[k + 3]
    for k in range(whole, len(product)):
        product[k] = left[k] * right[k]
        s0 += product[k]
    return (s0 + s1) + (s2 + s3)


@in_place
def through_reference(u, weight, reference, tail_weight, spacing):
    """The first point of a grid that runs through the reference's interval, at the fraction u of its length."""
    n_explicit = len(weight)
    point = u * (weight[reference] if reference < n_explicit else tail_weight)
    for k in range(min(reference, n_explicit)):
        point += weight[k] if weight[k] < spacing else 0.0
    return point - math.floor(point / spacing) * spacing
