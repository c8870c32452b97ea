"""Conditional SMC of the hidden semi-Markov model: merged particles (state, age, previous state), thinned.

Age 1 is the first step of a segment, and h_j(a) = P(d = a | d ≥ a) is the hazard of the duration law. The candidates of
step t are the particles of step t−1 that stay, one step older, and new segments, into which all that leave are merged:

    (j, a + 1)    mass (1 − h_j(a)) f(y_t | φ_j)
    (k, 1)        Σ_j leaving_j π_jk / (1 − π_jj) f(y_t | φ_k)      leaving_j = Σ_a mass_(j, a) h_j(a),  k ∈ V, k ≠ j
    tail          Σ_j leaving_j r_j / (1 − π_jj) g_t                r_j: mass of row j outside V, without j itself

They are thinned as in `kernels.systematic`, whose argument does not depend on how candidates are merged. Ages from
`cap` on have the same hazard and are not told apart. The first segment of a sequence may have hazards of its own: up to
`cap`, it is as old as the sequence and every other segment is younger. If the noise has memory p, the density depends
on the previous state up to age p, so up to there particles are merged only if that is the same, too.

Candidates keep the order of their parents on the line, new ones follow by state, and draws from the tail are sorted:
the order must not depend on which of them is the reference.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, jit
from ihmm.kernels.draws import FLOOR, copy_stream, draw_index, seed_stream, uniform
from ihmm.kernels.memory import log_density_after_change
from ihmm.kernels.particles import GROW, NOTHING, reach_out, search
from ihmm.kernels.sticks import extend_row, open_row
from ihmm.kernels.systematic import TINY, through_reference

FAINT = 1e-200  # sums of relative weights below are too inaccurate
OLDER = -3  # OLDER − k: the hazards of state k are needed for greater ages


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
    rows, row_of = sticks.rows, sticks.row_of
    n_explicit, memory = sticks.size[2], len(after.factor)
    first, state, row, age, previous, mass = system
    offset, explicit, column_of, log_ratio, log_marginal = density
    cap, hazard, first_hazard, known_ages = hazards
    exit_total, exit_tail = exits
    parent_of, new_age, new_previous, leaving_state, leaving_row, leaving = scratch[:6]
    slot, arriving, weight, log_density, kept, before = scratch[6:]
    has_tail = n_explicit < sticks.n_total
    while t < stop:
        if sequence[t] >= 0:
            seed_stream(stream, key, sequence[t])
        begin, b = first[t], t - offset
        copy_stream(stream, before)
        u = uniform(stream)
        needed = NOTHING
        chosen, chosen_age, chosen_previous = reference.state[t], reference.age[t], reference.previous[t]
        is_survivor = sequence[t] < 0 and chosen == reference.state[t - 1]
        own = -1  # candidate of the reference, −1: the tail

        # The usual case: the reference is alone and goes on, and all others do not reach the first point of the grid
        if is_survivor and memory == 0 and chosen < n_explicit and first[t - 1] == begin - 1:
            a, r = age[begin - 1], row[begin - 1]
            if a <= known_ages[chosen]:
                h = hazard[chosen, a - 1] if a < reference.oldest[t - 1] else first_hazard[chosen, a - 1]
                stays, leaves = max(1.0 - h, FLOOR) * explicit[b, chosen], 0.0
                if h > 0.0:
                    leaves = exit_tail[r] * explicit[b, n_explicit] if has_tail else 0.0
                    for k in range(chosen):
                        leaves += rows[r, k] * explicit[b, k]
                    for k in range(chosen + 1, n_explicit):
                        leaves += rows[r, k] * explicit[b, k]
                    leaves *= h / exit_total[r]
                if leaves < u * (stays + leaves) / n_particles and stays > FAINT:
                    state[begin], row[begin], age[begin], previous[begin] = chosen, r, min(a + 1, cap), -1
                    mass[begin] = 1.0
                    first[t + 1] = begin + 1
                    t += 1
                    continue

        # Who stays and who leaves
        n_stay, n_leave, only_explicit = 0, 0, memory == 0
        if sequence[t] >= 0:
            n_leave, leaving_state[0], leaving_row[0], leaving[0] = 1, -1, 0, 1.0
        else:
            for p in range(first[t - 1], begin):
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
                if older == cap or older == memory + 1:
                    for q in range(n_stay):
                        if state[parent_of[q]] == j and new_age[q] == older and new_previous[q] == remembered:
                            c = q
                if c == n_stay:
                    parent_of[c], new_age[c], new_previous[c], arriving[c] = p, older, remembered, 0.0
                    only_explicit &= j < n_explicit
                    n_stay += 1
                    if is_survivor and j == chosen and older == chosen_age and remembered == chosen_previous:
                        own = c
                arriving[c] += mass[p] * max(1.0 - h, FLOOR)
                if h > 0.0:
                    if slot[j] < 0:
                        slot[j] = n_leave
                        leaving_state[n_leave], leaving_row[n_leave], leaving[n_leave] = j, row[p], 0.0
                        n_leave += 1
                    leaving[slot[j]] += mass[p] * h / exit_total[row[p]]
            for q in range(n_leave):
                slot[leaving_state[q]] = -1
        if needed != NOTHING:
            copy_stream(before, stream)
            return t, needed

        # New segments in V, before their densities
        is_remembered = memory > 0 and sequence[t] < 0
        n_groups, tail = (n_leave if is_remembered else min(n_leave, 1)), 0.0
        n_candidates = n_stay + n_groups * n_explicit
        for q in range(n_leave):
            r, m = leaving_row[q], leaving[q]
            low = n_stay + (q * n_explicit if is_remembered else 0)
            itself = leaving_state[q]
            inside = 0 <= itself < n_explicit
            own_weight = 0.0
            if is_remembered or q == 0:
                for k in range(n_explicit):
                    arriving[low + k] = m * rows[r, k]
            else:
                own_weight = arriving[low + itself] if inside else 0.0
                for k in range(n_explicit):
                    arriving[low + k] += m * rows[r, k]
            if inside:
                arriving[low + itself] = own_weight
            tail += m * exit_tail[r]
            if chosen < n_explicit and not is_survivor and (not is_remembered or itself == chosen_previous):
                own = low + chosen

        # The densities, relative to the largest of all states: no exponentials are needed
        total, tail_weight = 0.0, 0.0
        if only_explicit:
            for c in range(n_stay):
                weight[c] = arriving[c] * explicit[b, state[parent_of[c]]]
                total += weight[c]
            for k in range(n_groups * n_explicit):
                weight[n_stay + k] = arriving[n_stay + k] * explicit[b, k]
                total += weight[n_stay + k]
            tail_weight = tail * explicit[b, n_explicit] if has_tail else 0.0

        # Or relative to the largest that matters, if all that is possible is far less likely than what is not
        if total + tail_weight < FAINT:
            shift = log_marginal[b] if has_tail and tail > 0.0 else -math.inf
            for c in range(n_candidates):
                if arriving[c] <= 0.0:
                    continue
                if c >= n_stay:
                    k, itself = (c - n_stay) % n_explicit, leaving_state[(c - n_stay) // n_explicit]
                    entered = 1 if is_remembered else memory + 1
                else:
                    k, itself, entered = state[parent_of[c]], new_previous[c], new_age[c]
                if entered <= memory and itself >= 0:
                    log_density[c] = log_density_after_change(after, b, entered, k, itself)
                else:
                    log_density[c] = log_ratio[column_of[k], b] + log_marginal[b]
                shift = max(shift, log_density[c])
            shift = shift if shift > -math.inf else 0.0
            total = 0.0
            for c in range(n_candidates):
                weight[c] = arriving[c] * math.exp(log_density[c] - shift) if arriving[c] > 0.0 else 0.0
                total += weight[c]
            tail_weight = tail * math.exp(log_marginal[b] - shift) if has_tail and tail > 0.0 else 0.0
        everything = total + tail_weight
        spacing = everything / n_particles

        # Thin the candidates; if everything underflows, the reference alone is left
        n_kept, point, line = 0, math.inf, 0.0
        own_weight = weight[own] if own >= 0 else 0.0
        if everything - own_weight < u * spacing:  # the reference alone is kept
            kept[0], n_kept = own, 1
        elif everything > TINY:
            is_sure = own_weight >= spacing
            point = u * spacing
            if not is_sure:
                place = own if own >= 0 else n_candidates
                point = through_reference(u, weight[:n_candidates], place, tail_weight, spacing)
            must_hit = -1 if is_sure else own  # whatever rounding says
            for c in range(n_candidates):
                is_small = weight[c] < spacing
                if not is_small:
                    kept[n_kept] = c
                    n_kept += 1
                    continue
                line += weight[c]
                if line > point or c == must_hit:
                    point += spacing
                    kept[n_kept] = c
                    n_kept += 1
        elif own >= 0:
            kept[0], n_kept = own, 1

        end = begin
        for i in range(n_kept):
            c = kept[i]
            if c < n_stay:
                p = parent_of[c]
                state[end], row[end], age[end], previous[end] = state[p], row[p], new_age[c], new_previous[c]
            else:
                q, k = (c - n_stay) // n_explicit, (c - n_stay) % n_explicit
                state[end], row[end], age[end] = k, row_of[k], 1
                previous[end] = leaving_state[q] if is_remembered else -1
            mass[end] = max(weight[c] / spacing, 1.0) if everything > TINY else 1.0
            end += 1

        # Hits in the tail: choose who leaves, by the mass of its tail, and walk that. The reference is one of them
        first_tail = end
        if own < 0:
            state[end], row[end], age[end] = chosen, row_of[chosen], 1
            previous[end], mass[end] = chosen_previous, 1.0
            end += 1
            point += spacing
        while point < line + tail_weight and needed == NOTHING:
            point += spacing
            u = uniform(stream) * tail
            q = 0
            while q < n_leave - 1 and u >= leaving[q] * exits.tail[leaving_row[q]]:
                u -= leaving[q] * exits.tail[leaving_row[q]]
                q += 1
            k = draw_from_tail(sticks, exits, leaving_row[q], leaving_state[q], uniform(stream))
            if k < 0:
                needed = GROW
                break
            remembered = leaving_state[q] if is_remembered else -1
            place = first_tail
            while place < end and (state[place] != k or previous[place] != remembered):
                place += 1
            if place == end:
                state[end], row[end], age[end], previous[end], mass[end] = k, row_of[k], 1, remembered, 0.0
                end += 1
            mass[place] += 1.0
        if end - first_tail > 1:
            sort_tail(system, first_tail, end)

        is_open = first_tail == end
        for p in range(begin, first_tail):
            is_open &= row[p] >= 0 and exit_total[row[p]] >= 0.0
        if not is_open and needed == NOTHING:
            needed = open_exits(sticks, exits, state, row, begin, end)
        if first_tail < end and needed == NOTHING:
            needed = weigh_tail(density, after, b, is_remembered, system, begin, first_tail, end)
        if needed != NOTHING:
            copy_stream(before, stream)
            return t, needed
        first[t + 1] = end
        t += 1
    return t, NOTHING


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
    """Draw the new path, last step first. The parent of a particle stayed, or left for it."""
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
