"""Conditional SMC of the hidden semi-Markov model: merged particles (state, age, previous state), thinned.

Age 1 is the first step of a segment, and h_j(a) = P(d = a | d ≥ a) is the hazard of the duration law. The candidates of
step t are the particles of step t−1 that stay, one step older, and new segments, into which all that leave are merged:

    (j, a + 1)    mass (1 − h_j(a)) f(y_t | φ_j)
    (k, 1)        Σ_j leaving_j π_jk / (1 − π_jj) f(y_t | φ_k)      leaving_j = Σ_a mass_(j, a) h_j(a),  k ∈ V, k ≠ j
    tail          Σ_j leaving_j r_j / (1 − π_jj) g_t                r_j: mass of row j outside V, without j itself

They are thinned as in `kernels.systematic`, whose argument does not depend on how candidates are merged. If the noise
has memory p, the density depends on the previous state up to age p, so up to there particles are merged only if that is
the same, too.

Candidates keep the order of their parents on the line, new ones follow by state, and draws from the tail are sorted:
the order must not depend on which of them is the reference.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, inlined, jit
from ihmm.kernels.draws import FLOOR, copy_stream, seed_stream, uniform
from ihmm.kernels.memory import log_density_after_change
from ihmm.kernels.particles import GROW, NOTHING
from ihmm.kernels.segment_particles import draw_from_tail, open_exits, sort_tail, weigh_tail
from ihmm.kernels.systematic import TINY, through_reference

FAINT = 1e-200  # sums of relative weights below are too inaccurate
OLDER = -3  # OLDER − k: the hazards of state k are needed for greater ages


class Scratch(NamedTuple):
    """Room for one step: M particles that stay or leave, and their candidates."""

    parent_of: np.ndarray  # (M,): of survivors, one for each parent at most
    new_age: np.ndarray  # (M,)
    new_previous: np.ndarray  # (M,)
    leaving_state: np.ndarray  # (M,)
    leaving_row: np.ndarray  # (M,)
    leaving: np.ndarray  # (M,)
    slot: np.ndarray  # (states,): −1
    arriving: np.ndarray  # of candidates, before their densities
    weight: np.ndarray  # of candidates
    log_density: np.ndarray  # of candidates
    kept: np.ndarray  # (M,)
    before: np.ndarray  # (4,): the stream at the beginning of the step


@jit
def forward(t, stop, n_particles, sticks, exits, hazards, density, after, system, reference, sequence, key, stream):
    """Run the particles from step t on. Returns (stop, NOTHING), or (t, k): step t needs the density of tail state k,
    hazards at greater ages of a state (OLDER − k), or more room (GROW). Supply it and call again: the step is replayed
    with the same numbers."""
    most = n_particles + 2
    # New segments: a group for each previous state that is remembered, else one
    n_candidates = most + (most if len(after.factor) else 1) * sticks.size[2]
    scratch = Scratch(
        np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, np.int64),
        np.empty(most, np.int64), np.empty(most), np.full(len(sticks.beta), -1), np.empty(n_candidates),
        np.empty(n_candidates), np.empty(n_candidates), np.empty(most, np.int64), np.empty(4, np.uint64),
    )  # fmt: skip
    return run(
        t, stop, n_particles, sticks, exits, hazards, density, after, system, reference, sequence, key, stream, scratch
    )


@in_place
def run(
    t, stop, n_particles, sticks, exits, hazards, density, after, system, reference, sequence, key, stream, scratch
):
    """What `forward` does, with room for one step in `scratch`."""
    while t < stop:
        if sequence[t] >= 0:
            seed_stream(stream, key, sequence[t])
        copy_stream(stream, scratch.before)
        u = uniform(stream)
        if sequence[t] >= 0 or not goes_on_alone(
            t, u, n_particles, sticks, exits, hazards, density, len(after.factor), system, reference
        ):
            needed = step(
                t, u, n_particles, sticks, exits, hazards, density, after, system, reference, sequence[t] >= 0, stream,
                scratch,
            )  # fmt: skip
            if needed != NOTHING:
                copy_stream(scratch.before, stream)
                return t, needed
        t += 1
    return t, NOTHING


@inlined
def goes_on_alone(t, u, n_particles, sticks, exits, hazards, density, memory, system, reference):
    """The usual case: the reference is the only particle and goes on, and all others together do not reach the first
    point of the grid. Stores the particle if so."""
    first, state, row, age, previous, mass = system
    begin, chosen, n_explicit = first[t], reference.state[t], sticks.size[2]
    if memory > 0 or chosen != reference.state[t - 1] or chosen >= n_explicit or first[t - 1] != begin - 1:
        return False
    a, r, b = age[begin - 1], row[begin - 1], t - density.begin
    if a > hazards.known[chosen]:
        return False
    rows, explicit = sticks.rows, density.explicit
    h = hazards.hazard[chosen, a - 1] if a < reference.oldest[t - 1] else hazards.first[chosen, a - 1]
    stays, leaves = max(1.0 - h, FLOOR) * explicit[b, chosen], 0.0
    if h > 0.0:
        leaves = exits.tail[r] * explicit[b, n_explicit] if n_explicit < sticks.n_total else 0.0
        for k in range(chosen):
            leaves += rows[r, k] * explicit[b, k]
        for k in range(chosen + 1, n_explicit):
            leaves += rows[r, k] * explicit[b, k]
        leaves *= h / exits.total[r]
    if leaves < u * (stays + leaves) / n_particles and stays > FAINT:
        state[begin], row[begin], age[begin], previous[begin] = chosen, r, min(a + 1, hazards.cap), -1
        mass[begin] = 1.0
        first[t + 1] = begin + 1
        return True
    return False


@inlined
def step(t, u, n_particles, sticks, exits, hazards, density, after, system, reference, is_start, stream, scratch):
    """One step: the candidates, their weights, those that are kept, and the hits in the tail. Returns what it needs."""
    first, state, row, age, previous, mass = system
    begin, b, memory = first[t], t - density.begin, len(after.factor)
    n_explicit, has_tail = sticks.size[2], sticks.size[2] < sticks.n_total
    is_remembered = memory > 0 and not is_start  # the state that is left

    # The candidates
    if is_start:
        needed, n_stay, n_leave, own, only_explicit = NOTHING, 0, 1, -1, memory == 0
        scratch.leaving_state[0], scratch.leaving_row[0], scratch.leaving[0] = -1, 0, 1.0
    else:
        needed, n_stay, n_leave, own, only_explicit = stay_or_leave(
            t, exits, hazards, density.column_of, n_explicit, memory, system, reference, scratch
        )
        if needed != NOTHING:
            return needed
    n_groups = n_leave if is_remembered else min(n_leave, 1)
    n_candidates = n_stay + n_groups * n_explicit
    entered, tail = enter(t, sticks, exits, n_stay, n_leave, is_remembered, is_start, reference, scratch)
    own = max(own, entered)  # candidate of the reference, −1: the tail

    # Their weights. Densities are relative to the largest of all states, so that no exponentials are needed; or to the
    # largest that matters, if all that is possible is far less likely than what is not
    total, tail_weight = 0.0, 0.0
    if only_explicit:
        total = weigh(density.explicit[b], state, n_stay, n_groups, scratch)
        tail_weight = tail * density.explicit[b, n_explicit] if has_tail else 0.0
    if total + tail_weight < FAINT:
        total, tail_weight = weigh_faint(
            b, density, after, state, n_explicit, n_stay, n_groups, is_remembered, tail if has_tail else 0.0, scratch
        )
    everything = total + tail_weight
    spacing = everything / n_particles

    # Those that are kept, with masses in units of the spacing
    n_kept, point, line = thin(u, scratch.weight[:n_candidates], own, tail_weight, everything, spacing, scratch.kept)
    end = begin
    for i in range(n_kept):
        c = scratch.kept[i]
        if c < n_stay:
            p = scratch.parent_of[c]
            state[end], row[end] = state[p], row[p]
            age[end], previous[end] = scratch.new_age[c], scratch.new_previous[c]
        else:
            q, k = (c - n_stay) // n_explicit, (c - n_stay) % n_explicit
            state[end], row[end], age[end] = k, sticks.row_of[k], 1
            previous[end] = scratch.leaving_state[q] if is_remembered else -1
        mass[end] = max(scratch.weight[c] / spacing, 1.0) if everything > TINY else 1.0
        end += 1

    # Hits in the tail. The reference is one of them if it is there
    first_tail = end
    if own < 0:
        chosen = reference.state[t]
        state[end], row[end], age[end] = chosen, sticks.row_of[chosen], 1
        previous[end], mass[end] = reference.previous[t], 1.0
        end += 1
        point += spacing
    while point < line + tail_weight:
        point += spacing
        end = hit_tail(sticks, exits, system, stream, scratch, n_leave, tail, is_remembered, first_tail, end)
        if end < 0:
            return GROW
    if end - first_tail > 1:
        sort_tail(system, first_tail, end)

    is_open = first_tail == end
    for p in range(begin, first_tail):
        is_open &= row[p] >= 0 and exits.total[row[p]] >= 0.0
    if not is_open:
        needed = open_exits(sticks, exits, state, row, begin, end)
    if first_tail < end and needed == NOTHING:
        needed = weigh_tail(density, after, b, is_remembered, system, begin, first_tail, end)
    if needed == NOTHING:
        first[t + 1] = end
    return needed


@inlined
def stay_or_leave(t, exits, hazards, column_of, n_explicit, memory, system, reference, scratch):
    """Who stays, as candidates, and who leaves, by state.

    Returns what is needed, the numbers of candidates and of states that are left, the candidate of the reference (−1 if
    it does not stay), and whether the densities of all candidates are known to be explicit.
    """
    first, state, row, age, previous, mass = system
    cap, hazard, first_hazard, known_ages = hazards
    parent_of, new_age, new_previous, leaving_state, leaving_row, leaving, slot, arriving = scratch[:8]
    stayer = reference.state[t] if reference.state[t] == reference.state[t - 1] else -1
    n_stay, n_leave, own, only_explicit = 0, 0, -1, memory == 0
    needed = NOTHING
    for p in range(first[t - 1], first[t]):
        j, a = state[p], age[p]
        if a > known_ages[j]:
            needed = OLDER - j
            break
        if column_of[j] < 0:
            needed = j
            break
        h = hazard[j, a - 1] if a < reference.oldest[t - 1] else first_hazard[j, a - 1]
        older = min(a + 1, cap)
        remembered = previous[p] if older <= memory else -1
        c = n_stay
        if older == cap or older == memory + 1:  # another particle may have become the same
            for q in range(n_stay):
                if state[parent_of[q]] == j and new_age[q] == older and new_previous[q] == remembered:
                    c = q
        if c == n_stay:
            parent_of[c], new_age[c], new_previous[c], arriving[c] = p, older, remembered, 0.0
            only_explicit &= j < n_explicit
            n_stay += 1
            if j == stayer and older == reference.age[t] and remembered == reference.previous[t]:
                own = c
        arriving[c] += mass[p] * max(1.0 - h, FLOOR)
        if h > 0.0:
            if slot[j] < 0:
                slot[j] = n_leave
                leaving_state[n_leave], leaving_row[n_leave], leaving[n_leave] = j, row[p], 0.0
                n_leave += 1
            leaving[slot[j]] += mass[p] * h / exits.total[row[p]]
    for q in range(n_leave):
        slot[leaving_state[q]] = -1
    return needed, n_stay, n_leave, own, only_explicit


@inlined
def enter(t, sticks, exits, n_stay, n_leave, is_remembered, is_start, reference, scratch):
    """New segments in V, before their densities: one group of candidates, or one for each state that is left if it is
    remembered. Returns the candidate of the reference, −1 if it is not among them, and the mass of the tail."""
    rows, n_explicit, arriving = sticks.rows, sticks.size[2], scratch.arriving
    chosen = reference.state[t]
    enters = chosen < n_explicit and (is_start or chosen != reference.state[t - 1])
    own, tail = -1, 0.0
    for q in range(n_leave):
        r, m = scratch.leaving_row[q], scratch.leaving[q]
        low = n_stay + (q * n_explicit if is_remembered else 0)
        itself = scratch.leaving_state[q]
        inside = 0 <= itself < n_explicit
        own_weight = 0.0
        if is_remembered or q == 0:
            for k in range(n_explicit):
                arriving[low + k] = m * rows[r, k]
        else:
            own_weight = arriving[low + itself] if inside else 0.0
            for k in range(n_explicit):
                arriving[low + k] += m * rows[r, k]
        if inside:  # no state follows itself
            arriving[low + itself] = own_weight
        tail += m * exits.tail[r]
        if enters and (not is_remembered or itself == reference.previous[t]):
            own = low + chosen
    return own, tail


@inlined
def weigh(explicit, state, n_stay, n_groups, scratch):
    """The weights of the candidates, all of which are in V; returns their sum."""
    arriving, weight, total = scratch.arriving, scratch.weight, 0.0
    n_explicit = len(explicit) - 1
    for c in range(n_stay):
        weight[c] = arriving[c] * explicit[state[scratch.parent_of[c]]]
        total += weight[c]
    for k in range(n_groups * n_explicit):
        weight[n_stay + k] = arriving[n_stay + k] * explicit[k]
        total += weight[n_stay + k]
    return total


@in_place
def weigh_faint(b, density, after, state, n_explicit, n_stay, n_groups, is_remembered, tail, scratch):
    """The weights of the candidates from logarithms of densities; returns their sum, and the weight of the tail."""
    _, _, column_of, log_ratio, log_marginal = density
    arriving, weight, log_density, memory = scratch.arriving, scratch.weight, scratch.log_density, len(after.factor)
    shift = log_marginal[b] if tail > 0.0 else -math.inf
    for c in range(n_stay + n_groups * n_explicit):
        if arriving[c] <= 0.0:
            continue
        if c >= n_stay:
            k, itself = (c - n_stay) % n_explicit, scratch.leaving_state[(c - n_stay) // n_explicit]
            age = 1 if is_remembered else memory + 1
        else:
            k, itself, age = state[scratch.parent_of[c]], scratch.new_previous[c], scratch.new_age[c]
        if age <= memory and itself >= 0:
            log_density[c] = log_density_after_change(after, b, age, k, itself)
        else:
            log_density[c] = log_ratio[column_of[k], b] + log_marginal[b]
        shift = max(shift, log_density[c])
    shift = shift if shift > -math.inf else 0.0
    total = 0.0
    for c in range(n_stay + n_groups * n_explicit):
        weight[c] = arriving[c] * math.exp(log_density[c] - shift) if arriving[c] > 0.0 else 0.0
        total += weight[c]
    return total, tail * math.exp(log_marginal[b] - shift) if tail > 0.0 else 0.0


@inlined
def thin(u, weight, own, tail_weight, everything, spacing, kept):
    """The candidates that are kept, in order. If everything underflows the reference alone is left.

    Returns their number, the first point of the grid beyond V, and the length of the line up to there.
    """
    own_weight = weight[own] if own >= 0 else 0.0
    if everything - own_weight < u * spacing or (everything <= TINY and own >= 0):  # the reference alone is kept
        kept[0] = own
        return 1, math.inf, 0.0
    if everything <= TINY:
        return 0, math.inf, 0.0
    is_sure = own_weight >= spacing
    point = u * spacing
    if not is_sure:
        point = through_reference(u, weight, own if own >= 0 else len(weight), tail_weight, spacing)
    must_hit = -1 if is_sure else own  # whatever rounding says
    n_kept, line = 0, 0.0
    for c in range(len(weight)):
        if weight[c] >= spacing:
            kept[n_kept] = c
            n_kept += 1
            continue
        line += weight[c]
        if line > point or c == must_hit:
            point += spacing
            kept[n_kept] = c
            n_kept += 1
    return n_kept, point, line


@in_place
def hit_tail(sticks, exits, system, stream, scratch, n_leave, tail, is_remembered, first_tail, end):
    """One hit in the tail: choose who leaves, by the mass of its tail, and walk that. Returns where the particles of
    the step end, or GROW."""
    _, state, row, age, previous, mass = system
    leaving, leaving_row, leaving_state = scratch.leaving, scratch.leaving_row, scratch.leaving_state
    u, q = uniform(stream) * tail, 0
    while q < n_leave - 1 and u >= leaving[q] * exits.tail[leaving_row[q]]:
        u -= leaving[q] * exits.tail[leaving_row[q]]
        q += 1
    k = draw_from_tail(sticks, exits, leaving_row[q], leaving_state[q], uniform(stream))
    if k < 0:
        return GROW
    remembered = leaving_state[q] if is_remembered else -1
    place = first_tail
    while place < end and (state[place] != k or previous[place] != remembered):
        place += 1
    if place == end:
        state[end], row[end], age[end], previous[end], mass[end] = k, sticks.row_of[k], 1, remembered, 0.0
        end += 1
    mass[place] += 1.0
    return end
