"""Exact inference in a finite hidden semi-Markov model, as a chain over nodes: a state, its age, and what else counts.

A node is held with probability `stay`, which leads to the node `older`, or else left, with probability `leave`. Who
leaves state j enters state k with probability rows[j, k], at the node entry[j, k]. A step costs O(nodes + states²).
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import draw_index, seed_stream, uniform


class SegmentChain(NamedTuple):
    state: np.ndarray  # (nodes,)
    column: np.ndarray  # (nodes,): column of the table of log densities
    older: np.ndarray  # (nodes,): node after one more step in the state
    stay: np.ndarray  # (nodes,): probability of that
    leave: np.ndarray  # (nodes,): 1 − stay, which may be too small for the difference
    entry: np.ndarray  # (L, L): first node of state k after state j
    start: np.ndarray  # (L,): first node of a sequence
    initial: np.ndarray  # (L,)
    rows: np.ndarray  # (L, L): who follows whom


@jit
def advance(chain, mass, leaving, out):
    """One step: the mass of every node in `out`."""
    state, _, older, stay, leave, entry, _, _, rows = chain
    out[:] = 0.0
    leaving[:] = 0.0
    for i in range(len(mass)):
        if mass[i] > 0.0:
            out[older[i]] += mass[i] * stay[i]
            leaving[state[i]] += mass[i] * leave[i]
    for j in range(len(leaving)):
        if leaving[j] > 0.0:
            for k in range(len(leaving)):
                out[entry[j, k]] += leaving[j] * rows[j, k]


@jit
def weigh(chain, log_density, mass):
    """Multiply by the densities of a step, relative to the largest that matters; returns that and the total."""
    top, total = -math.inf, 0.0
    for i in range(len(mass)):
        if mass[i] > 0.0:
            top = max(top, log_density[chain.column[i]])
    for i in range(len(mass)):
        if mass[i] > 0.0:
            mass[i] *= math.exp(log_density[chain.column[i]] - top)
            total += mass[i]
    for i in range(len(mass)):
        mass[i] /= total
    return top, total


@jit
def filter_step(chain, log_density, is_start, before, leaving, mass):
    """p(node_t | y_1 … y_t) in `mass`; returns log p(y_t | y_1 … y_{t−1}) and the logarithm of the largest density."""
    if is_start:
        mass[:] = 0.0
        for k in range(len(chain.initial)):
            mass[chain.start[k]] += chain.initial[k]
    else:
        advance(chain, before, leaving, mass)
    top, total = weigh(chain, log_density, mass)
    return top + math.log(total), top


@jit
def filter_segments(chain, log_density, sequence, by_state, log_predictive, ends):
    """p(s_t = k | y_1 … y_t), (T, L); log p(y_t | …), (T,); and the nodes at the end of every sequence, (n, nodes)."""
    n_nodes = len(chain.state)
    mass, before, leaving = np.empty(n_nodes), np.empty(n_nodes), np.empty(len(chain.initial))
    number = -1
    for t in range(len(sequence)):
        is_start = sequence[t] >= 0
        number += is_start
        mass, before = before, mass
        log_predictive[t], _ = filter_step(chain, log_density[t], is_start, before, leaving, mass)
        by_state[t] = 0.0
        for i in range(n_nodes):
            by_state[t, chain.state[i]] += mass[i]
        if t + 1 == len(sequence) or sequence[t + 1] >= 0:
            copy(mass, ends[number])


@jit
def smooth_segments(chain, log_density, sequence, by_state):
    """p(s_t = k | y), (T, L). Only every √T-th filtered distribution is stored; the others are computed again."""
    n_steps, n_nodes = len(sequence), len(chain.state)
    size = int(math.sqrt(n_steps)) + 1
    stored = np.empty((n_steps // size + 1, n_nodes))
    block, top = np.empty((size, n_nodes)), np.empty(n_steps)
    mass, before, leaving = np.empty(n_nodes), np.empty(n_nodes), np.empty(len(chain.initial))
    for t in range(n_steps):
        mass, before = before, mass
        _, top[t] = filter_step(chain, log_density[t], sequence[t] >= 0, before, leaving, mass)
        if t % size == 0:
            copy(mass, stored[t // size])
    after, now = np.empty(n_nodes), np.empty(n_nodes)
    for b in range((n_steps - 1) // size, -1, -1):
        begin, end = b * size, min((b + 1) * size, n_steps)
        copy(stored[b], block[0])
        for t in range(begin + 1, end):
            filter_step(chain, log_density[t], sequence[t] >= 0, block[t - 1 - begin], leaving, block[t - begin])
        for t in range(end - 1, begin - 1, -1):
            if t + 1 == n_steps or sequence[t + 1] >= 0:
                now[:] = 1.0
            else:
                go_back(chain, log_density[t + 1], top[t + 1], after, leaving, now)
            total = 0.0
            by_state[t] = 0.0
            for i in range(n_nodes):
                probability = block[t - begin, i] * now[i]
                by_state[t, chain.state[i]] += probability
                total += probability
            for k in range(by_state.shape[1]):
                by_state[t, k] /= total
            for i in range(n_nodes):
                now[i] /= total
            after, now = now, after


@jit
def copy(values, out):
    for i in range(len(out)):
        out[i] = values[i]


@jit
def go_back(chain, log_density, top, after, enter, out):
    """What the step after says about the nodes of a step, up to a factor."""
    state, column, older, stay, leave, entry, _, _, rows = chain
    n_states = len(enter)
    for j in range(n_states):
        enter[j] = 0.0
        for k in range(n_states):
            if rows[j, k] > 0.0:
                i = entry[j, k]
                enter[j] += rows[j, k] * math.exp(min(log_density[column[i]] - top, 0.0)) * after[i]
    for i in range(len(out)):
        n = older[i]
        held = math.exp(min(log_density[column[n]] - top, 0.0)) * after[n] if stay[i] > 0.0 else 0.0
        out[i] = stay[i] * held + leave[i] * enter[state[i]]


@jit
def decode_segments(chain, log_density, sequence, path):
    """The states of the most probable sequence of nodes, in `path`; returns its log probability, joint with the data.

    Sources are stored only for nodes that have several.
    """
    state, column, older, stay, leave, entry, start, initial, rows = chain
    n_steps, n_nodes, n_states = len(sequence), len(state), len(initial)
    source, n_choices = np.full(n_nodes, -1), np.zeros(n_nodes, np.int64)
    for i in range(n_nodes):
        source[older[i]] = i
        n_choices[older[i]] += 1
    for j in range(n_states):
        for k in range(n_states):
            n_choices[entry[j, k]] += 2
    place, n_places = np.full(n_nodes, -1), 0
    for i in range(n_nodes):
        if n_choices[i] > 1:
            place[i], n_places = n_places, n_places + 1
    came_from = np.empty((n_steps, n_places), np.int32)
    best, before = np.empty(n_nodes), np.empty(n_nodes)
    leaver, best_leaver = np.empty(n_states, np.int64), np.empty(n_states)
    last = np.empty(n_steps, np.int64)  # best node, where a sequence ends
    total = 0.0
    for t in range(n_steps):
        best, before = before, best
        best[:] = -math.inf
        if sequence[t] >= 0:
            for k in range(n_states):
                best[start[k]] = max(best[start[k]], math.log(initial[k]) if initial[k] > 0.0 else -math.inf)
        else:
            best_leaver[:] = -math.inf
            for i in range(n_nodes):
                if before[i] == -math.inf:
                    continue
                if stay[i] > 0.0 and before[i] + math.log(stay[i]) > best[older[i]]:
                    best[older[i]] = before[i] + math.log(stay[i])
                    if place[older[i]] >= 0:
                        came_from[t, place[older[i]]] = i
                if leave[i] > 0.0 and before[i] + math.log(leave[i]) > best_leaver[state[i]]:
                    best_leaver[state[i]], leaver[state[i]] = before[i] + math.log(leave[i]), i
            for j in range(n_states):
                if best_leaver[j] > -math.inf:
                    for k in range(n_states):
                        if rows[j, k] > 0.0 and best_leaver[j] + math.log(rows[j, k]) > best[entry[j, k]]:
                            best[entry[j, k]] = best_leaver[j] + math.log(rows[j, k])
                            came_from[t, place[entry[j, k]]] = leaver[j]
        for i in range(n_nodes):
            best[i] += log_density[t, column[i]]
        last[t] = np.argmax(best)
        if t + 1 == n_steps or sequence[t + 1] >= 0:
            total += best[last[t]]
    node = 0
    for t in range(n_steps - 1, -1, -1):
        if t + 1 == n_steps or sequence[t + 1] >= 0:
            node = last[t]
        path[t] = state[node]
        node = came_from[t, place[node]] if place[node] >= 0 else source[node]
    return total


@jit
def walk_segments(chain, mass, key, path):
    """Simulate the state of a step whose nodes have these probabilities, and those of the steps after it."""
    stream = np.empty(4, np.uint64)
    seed_stream(stream, key, 0)
    node = draw_index(stream, mass)
    path[0] = chain.state[node]
    for t in range(1, len(path)):
        if uniform(stream) < chain.stay[node]:
            node = chain.older[node]
        else:
            j = chain.state[node]
            node = chain.entry[j, draw_index(stream, chain.rows[j])]
        path[t] = chain.state[node]
