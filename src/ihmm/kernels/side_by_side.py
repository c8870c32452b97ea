"""Filter and smoother of several small hidden Markov or semi-Markov models at once, one in each lane.

One filter is a chain of short dependent steps, so that the processor mostly waits. Here each step is done for all
lanes together, in vector instructions: the lane is the last axis of every array.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, jit

TILE = 8  # steps that are transposed together: a line of the cache


class LaneChains(NamedTuple):
    """The chains of all lanes, as in `kernels.segment_chain`, with the same nodes in each.

    Without durations the nodes are the states; `older`, `stay`, `leave`, `entry` and `is_left` are empty.
    """

    state: np.ndarray  # (nodes,)
    column: np.ndarray  # (nodes,): column of the densities
    older: np.ndarray  # (nodes,)
    stay: np.ndarray  # (nodes, lane)
    leave: np.ndarray  # (nodes, lane)
    entry: np.ndarray  # (L, L)
    start: np.ndarray  # (L,)
    initial: np.ndarray  # (L, lane)
    rows: np.ndarray  # (L, L, lane)
    is_left: np.ndarray  # (nodes,): whether it is left in any lane
    follows: np.ndarray  # (L, L): whether state k follows state j in any lane


class LaneMemory(NamedTuple):
    """As `kernels.memory.AfterChange`, for every lane, and the nodes whose densities depend on the previous state."""

    node: np.ndarray  # (n, 3): state, age, previous state
    n_known: np.ndarray  # (lane,): states with parameters
    value: np.ndarray  # (T, D, lane)
    offset: np.ndarray  # (T,), the same for all lanes
    mean: np.ndarray  # (K, D, lane)
    level: np.ndarray  # (K, D, lane)
    factor: np.ndarray  # (p, D, lane)
    scale: np.ndarray  # (K, D, lane)
    constant: np.ndarray  # (lane,): logarithm of the density at its peak for a scale of 1
    dof: np.ndarray  # (lane,)


@in_place
def transpose(table, target):
    """A table (rows, steps) as (steps, rows); the table may have room for more steps."""
    n_steps, n_rows = target.shape
    for begin in range(0, n_steps, TILE):
        end = min(begin + TILE, n_steps)
        for r in range(n_rows):
            for t in range(begin, end):
                target[t, r] = table[r, t]


@jit
def remember_lanes(memory, begin, n_states, log_density):
    """Log densities (T, columns, lane), from step `begin` on, of the nodes that remember the previous state.

    Their columns follow those of the states. Where there are no parameters of a state, its density is the settled one.
    """
    node, n_known, value, offset, mean, level, factor, scale, constant, dof = memory
    n_steps, n_lanes = len(log_density), len(dof)
    gaussian = math.isinf(dof[0])
    sharp, center, peak = np.empty(n_lanes), np.empty(n_lanes), np.empty(n_lanes)
    for i in range(len(node)):
        k, age, j = node[i]
        for t in range(n_steps):
            for d in range(n_lanes):
                log_density[t, n_states + i, d] = offset[begin + t]
        for column in range(value.shape[1]):
            for d in range(n_lanes):
                sharp[d] = 1.0 / scale[k, column, d]
                change = level[k, column, d] - level[j, column, d]
                center[d] = mean[k, column, d] + factor[age - 1, column, d] * change
                peak[d] = constant[d] + math.log(sharp[d])
            for t in range(n_steps):
                if math.isnan(value[begin + t, column, 0]):
                    continue
                for d in range(n_lanes):
                    residual = (value[begin + t, column, d] - center[d]) * sharp[d]
                    shape = -0.5 * residual * residual
                    if not gaussian:
                        shape = -0.5 * (dof[d] + 1.0) * math.log1p(residual * residual / dof[d])
                    log_density[t, n_states + i, d] += peak[d] + shape
        for d in range(n_lanes):
            if max(j, k) >= n_known[d]:
                for t in range(n_steps):
                    log_density[t, n_states + i, d] = log_density[t, k, d]


@in_place
def relate_lanes(log_density, least, scale):
    """Log densities (T, columns, lane), made relative to the largest of each step, and at least `least`, in place.

    `scale` receives the largest, (T, lane).
    """
    n_steps, n_columns, n_lanes = log_density.shape
    for t in range(n_steps):
        for d in range(n_lanes):
            scale[t, d] = log_density[t, 0, d]
        for c in range(1, n_columns):
            for d in range(n_lanes):
                scale[t, d] = max(scale[t, d], log_density[t, c, d])
        for c in range(n_columns):
            for d in range(n_lanes):
                log_density[t, c, d] = max(log_density[t, c, d] - scale[t, d], least)


@jit
def filter_lanes(chains, density, starts, current, filtered, total):
    """p(node_t = i | y_1 … y_t) p(y_t | y_1 … y_{t−1}) in `filtered` (T, nodes, lane), and p(y_t | y_1 … y_{t−1}) in
    `total`, up to the factors of the densities.

    `starts` marks the first steps of sequences. `current` (nodes, lane) has the filtered probabilities of the step
    before the first, and in the end those of the last. The densities are overwritten.
    """
    column, start, initial = chains.column, chains.start, chains.initial
    n_nodes, n_lanes = current.shape
    leaving, scale = np.empty(initial.shape), np.ones(n_lanes)
    before = current
    for t in range(len(density)):
        now, summed = filtered[t], total[t]
        if starts[t]:
            for i in range(n_nodes):
                for d in range(n_lanes):
                    now[i, d] = 0.0
            for k in range(len(start)):
                i = start[k]
                for d in range(n_lanes):
                    now[i, d] += initial[k, d]
        else:
            advance_lanes(chains, before, leaving, now)
            for c in range(density.shape[1]):
                for d in range(n_lanes):
                    density[t, c, d] *= scale[d]
        for d in range(n_lanes):
            summed[d] = 0.0
        for i in range(n_nodes):
            node, factor = now[i], density[t, column[i]]
            for d in range(n_lanes):
                node[d] *= factor[d]
                summed[d] += node[d]
        for d in range(n_lanes):
            scale[d] = 1.0 / summed[d]
        before = now
    for i in range(n_nodes):
        for d in range(n_lanes):
            current[i, d] = before[i, d] * scale[d]


@in_place
def advance_lanes(chains, current, leaving, predicted):
    """The probabilities of all nodes one step later, up to the factors of the current ones."""
    state, _, older, stay, leave, entry, _, initial, rows, is_left, follows = chains
    n_states, n_lanes = initial.shape
    if len(older) == 0:
        predict_lanes(current, rows, predicted)
        return
    for i in range(len(current)):
        for d in range(n_lanes):
            predicted[i, d] = 0.0
    for j in range(n_states):
        for d in range(n_lanes):
            leaving[j, d] = 0.0
    for i in range(len(current)):
        mass, share, target = current[i], stay[i], predicted[older[i]]
        for d in range(n_lanes):
            target[d] += mass[d] * share[d]
        if is_left[i]:
            share, target = leave[i], leaving[state[i]]
            for d in range(n_lanes):
                target[d] += mass[d] * share[d]
    for j in range(n_states):
        mass = leaving[j]
        for k in range(n_states):
            if follows[j, k]:
                share, target = rows[j, k], predicted[entry[j, k]]
                for d in range(n_lanes):
                    target[d] += mass[d] * share[d]


@in_place
def predict_lanes(current, rows, predicted):
    """Σ_j current_j π_jk for every state k and lane."""
    n_states, n_lanes = current.shape
    for k in range(n_states):
        mass, share, target = current[0], rows[0, k], predicted[k]
        for d in range(n_lanes):
            target[d] = mass[d] * share[d]
        for j in range(1, n_states):
            mass, share = current[j], rows[j, k]
            for d in range(n_lanes):
                target[d] += mass[d] * share[d]


@jit
def add_smoothed_lanes(chains, filtered, scale, continues, label, current, total):
    """Add the smoothed probabilities of the states, p(s_t = k | all y), to those of their labels, `total` (T, labels).

    `filtered` sums to `scale` over the nodes.

    `continues[t]` says whether step t + 1 belongs to the same sequence. `label` is (L, lane), with −1 for the last
    label. `current` (nodes, lane) has the smoothed probabilities of the step after the last, and in the end those of
    the first.
    """
    n_steps, n_nodes, n_lanes = filtered.shape
    ratio, future = np.empty((n_nodes, n_lanes)), np.empty(chains.initial.shape)
    for t in range(n_steps - 1, -1, -1):
        if continues[t]:
            # p(node_t = i | all y) = p(i | y_1 … y_t) Σ_n p(n | i) p(node_{t+1} = n | all y) / p(n | y_1 … y_t)
            advance_lanes(chains, filtered[t], future, ratio)
            for i in range(n_nodes):
                for d in range(n_lanes):
                    ratio[i, d] = current[i, d] / ratio[i, d] if ratio[i, d] > 0.0 else 0.0
            go_back_lanes(chains, filtered[t], ratio, future, current)
        else:
            for i in range(n_nodes):
                for d in range(n_lanes):
                    current[i, d] = filtered[t, i, d] / scale[t, d]
        add_to_labels(chains.state, current, label, future, total[t])


@in_place
def go_back_lanes(chains, filtered, ratio, future, current):
    """Smoothed probabilities of a step, from the ratio of smoothed to predicted ones of the next."""
    state, _, older, stay, leave, entry, _, initial, rows, _, _ = chains
    n_states, n_lanes = initial.shape
    has_ages = len(older) > 0
    for j in range(n_states):
        for d in range(n_lanes):
            future[j, d] = 0.0
        for k in range(n_states):
            i = entry[j, k] if has_ages else k
            for d in range(n_lanes):
                future[j, d] += rows[j, k, d] * ratio[i, d]
    for i in range(len(current)):
        j = state[i]
        if has_ages:
            n = older[i]
            for d in range(n_lanes):
                held = stay[i, d] * ratio[n, d]
                current[i, d] = filtered[i, d] * (held + leave[i, d] * future[j, d])
        else:
            for d in range(n_lanes):
                current[i, d] = filtered[i, d] * future[j, d]


@jit
def predict_each_step(chains, filtered, starts, current, predicted):
    """p(node_t = i | y_1 … y_{t−1}) in `predicted` (T, nodes, lane).

    `filtered` is p(node_t = i | y_1 … y_t), and `current` that of the step before the first.
    """
    leaving = np.empty(chains.initial.shape)
    for t in range(len(filtered)):
        if starts[t]:
            for i in range(predicted.shape[1]):
                for d in range(leaving.shape[1]):
                    predicted[t, i, d] = 0.0
            for k in range(len(chains.start)):
                for d in range(leaving.shape[1]):
                    predicted[t, chains.start[k], d] += chains.initial[k, d]
        else:
            advance_lanes(chains, filtered[t - 1] if t > 0 else current, leaving, predicted[t])


@jit
def leave_one_out_lanes(chains, predicted, density, continues, following, out):
    """log p(y_t | all other y), up to the logarithms of the factors of the densities, in `out` (T, lane).

    `predicted` and `continues` are as above, `density` is (T, columns, lane). `following` (nodes, lane) is
    p(y_u, y_{u+1}, … | node_u) up to a factor, of the step u after the last, and in the end that of the first. Returns
    the smallest probability that a ratio was made of.
    """
    n_steps, n_nodes, n_lanes = predicted.shape
    ones, after, future = np.ones((n_nodes, n_lanes)), np.ones((n_nodes, n_lanes)), np.empty(chains.initial.shape)
    with_y, without_y, top = np.empty(n_lanes), np.empty(n_lanes), np.empty(n_lanes)
    smallest = math.inf
    for t in range(n_steps - 1, -1, -1):
        if continues[t]:
            go_back_lanes(chains, ones, following, future, after)  # p(y_{t+1}, … | node_t)
        else:
            for i in range(n_nodes):
                for d in range(n_lanes):
                    after[i, d] = 1.0
        for d in range(n_lanes):
            with_y[d], without_y[d], top[d] = 0.0, 0.0, 0.0
        for i in range(n_nodes):
            c = chains.column[i]
            for d in range(n_lanes):
                weight = predicted[t, i, d] * after[i, d]
                without_y[d] += weight
                with_y[d] += weight * density[t, c, d]
                following[i, d] = density[t, c, d] * after[i, d]
                top[d] = max(top[d], following[i, d])
        for d in range(n_lanes):
            smallest = min(smallest, with_y[d], without_y[d])
            out[t, d] = math.log(with_y[d] / without_y[d])
            top[d] = 1.0 / top[d]
        for i in range(n_nodes):
            for d in range(n_lanes):
                following[i, d] *= top[d]
    return smallest


@jit
def add_filtered_lanes(state, filtered, scale, label, total):
    """Add the filtered probabilities of the nodes, (T, nodes, lane), to those of their labels, `total` (T, labels).

    They sum to `scale` over the nodes, and are divided by it in place.
    """
    by_state, share = np.empty(label.shape), np.empty(label.shape[1])
    for t in range(len(filtered)):
        for d in range(len(share)):
            share[d] = 1.0 / scale[t, d]
        for i in range(len(state)):
            node = filtered[t, i]
            for d in range(len(share)):
                node[d] *= share[d]
        add_to_labels(state, filtered[t], label, by_state, total[t])


@in_place
def add_to_labels(state, probabilities, label, by_state, total):
    """Add the probabilities of the nodes, (nodes, lane), to those of the labels of their states."""
    n_states, n_lanes = label.shape
    for k in range(n_states):
        for d in range(n_lanes):
            by_state[k, d] = 0.0
    for i in range(len(state)):
        k = state[i]
        for d in range(n_lanes):
            by_state[k, d] += probabilities[i, d]
    for d in range(n_lanes):  # neighbours in memory often have the same label: one addition would wait for the other
        for k in range(n_states):
            total[label[k, d]] += by_state[k, d]
