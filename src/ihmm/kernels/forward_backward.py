"""Forward filtering and what follows from it on a finite state set, O(T·K²) (T15 §2.1, appendix).

Every routine takes one or several sequences laid end to end; `sequence[t] ≥ 0` marks a first step. `density` is
f(y_t | φ_k), shape (T, K), on any scale that is common to the states of a step.
"""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import draw_index, seed_stream


@jit
def filter_forward(density, sequence, initial, rows, filtered, log_predictive):
    """filtered[t, k] = p(s_t = k | y_1 … y_t) and log_predictive[t] = log p(y_t | y_1 … y_{t−1}), up to the logarithms
    of the scales."""
    n_steps, n_states = density.shape
    predicted = np.empty(n_states)
    for t in range(n_steps):
        if sequence[t] >= 0:
            for k in range(n_states):
                predicted[k] = initial[k]
        else:
            for k in range(n_states):
                predicted[k] = filtered[t - 1, 0] * rows[0, k]
            for j in range(1, n_states):
                for k in range(n_states):
                    predicted[k] += filtered[t - 1, j] * rows[j, k]
        total = 0.0
        for k in range(n_states):
            predicted[k] *= density[t, k]
            total += predicted[k]
        for k in range(n_states):
            filtered[t, k] = predicted[k] / total
        log_predictive[t] = math.log(total)


@jit
def sample_backward(filtered, sequence, columns, key, path):
    """One path from p(s | y), last step first: P(s_t = j | s_{t+1}) ∝ p(s_t = j | y_1 … y_t) π(s_{t+1} | j).

    `columns` is the transposed transition matrix. Each sequence has a random stream of its own.
    """
    stream = np.empty(4, np.uint64)
    n_states = filtered.shape[1]
    weight = np.empty(n_states)
    end = len(path)
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        for t in range(end - 1, begin - 1, -1):
            for j in range(n_states):
                weight[j] = filtered[t, j]
            if t < end - 1:
                for j in range(n_states):
                    weight[j] *= columns[path[t + 1], j]
            path[t] = draw_index(stream, weight)
        end = begin


@jit
def smooth(filtered, sequence, rows):
    """p(s_t = k | all y), from the filtered probabilities, in place of them."""
    n_steps, n_states = filtered.shape
    predicted = np.empty(n_states)
    for t in range(n_steps - 2, -1, -1):
        if sequence[t + 1] >= 0:
            continue
        for k in range(n_states):
            predicted[k] = 0.0
        for j in range(n_states):
            for k in range(n_states):
                predicted[k] += filtered[t, j] * rows[j, k]
        for k in range(n_states):
            predicted[k] = filtered[t + 1, k] / predicted[k] if predicted[k] > 0.0 else 0.0
        for j in range(n_states):
            future = 0.0
            for k in range(n_states):
                future += rows[j, k] * predicted[k]
            filtered[t, j] *= future


@jit
def walk(state, cumulative, uniforms, path):
    """A path that leaves `state` and follows the transition rows, given as cumulative sums."""
    last = cumulative.shape[1] - 1
    for t in range(len(path)):
        u = uniforms[t] * cumulative[state, last]
        following = 0
        while following < last and cumulative[state, following] <= u:
            following += 1
        path[t] = state = following


@jit
def most_probable_path(log_density, sequence, log_initial, log_rows, path):
    """Viterbi: the path that maximises p(s, y). Returns its log-probability. `log_density` is (T, K)."""
    n_steps, n_states = log_density.shape
    best = np.empty(n_states)
    score = np.empty(n_states)
    parent = np.empty((n_steps, n_states), np.int32)
    total = 0.0
    begin = 0
    for t in range(n_steps):
        for k in range(n_states):
            if sequence[t] >= 0:
                best[k], parent[t, k] = log_initial[k], 0
            else:
                best[k], parent[t, k] = -math.inf, 0
                for j in range(n_states):
                    if score[j] + log_rows[j, k] > best[k]:
                        best[k], parent[t, k] = score[j] + log_rows[j, k], j
        for k in range(n_states):
            score[k] = best[k] + log_density[t, k]
        if sequence[t] >= 0:
            begin = t
        if t == n_steps - 1 or sequence[t + 1] >= 0:
            state = int(np.argmax(score))
            total += score[state]
            for step in range(t, begin - 1, -1):
                path[step] = state
                state = parent[step, state]
    return total


@jit
def filter_beam(log_density, sequence, falling, order, slices, faintest, first, state, log_mass):
    """The forward filter over the transitions that the slices allow, {(j, k) : π_jk > u_t} (Van Gael et al. 2008).

    Row j of `falling` holds the probabilities of leaving state j in falling order, `order` the states they lead to; the
    initial row comes last. So a row is read only as far as the slice reaches. Given the slices all allowed transitions
    weigh the same. Filtered probabilities are kept for the states that are reached, as logarithms relative to the
    largest and not below `faintest`: those of step t stand at first[t] … first[t+1] − 1 of `state` and `log_mass`.
    Returns how many transitions were allowed, or −1 if the slices leave nothing but states that were too faint.
    """
    n_steps, n_states = log_density.shape
    message = np.full(n_states, -1.0)  # −1: not reached
    faint = np.empty(n_states)  # logarithms of messages too small for numbers
    n_allowed = 0
    first[0] = 0
    for t in range(n_steps):
        begin = end = first[t]
        parent, last = (-1, 0) if sequence[t] >= 0 else (first[t - 1], begin)
        while parent < last:
            j, log_weight = (n_states, 0.0) if parent < 0 else (state[parent], log_mass[parent])
            weight = math.exp(log_weight)
            i = 0
            while i < n_states and falling[j, i] > slices[t]:
                k = order[j, i]
                if message[k] < 0.0:
                    message[k], faint[k] = 0.0, -math.inf
                    state[end] = k
                    end += 1
                message[k] += weight
                if weight == 0.0:
                    faint[k] = log_sum(faint[k], log_weight)
                i += 1
            n_allowed += i
            parent += 1
        top = -math.inf
        for p in range(begin, end):
            k = state[p]
            log_mass[p] = log_density[t, k] + (math.log(message[k]) if message[k] > 0.0 else faint[k])
            message[k] = -1.0
            top = max(top, log_mass[p])
        if begin == end:
            return -1
        kept = begin
        for p in range(begin, end):
            if log_mass[p] - top >= faintest:
                state[kept], log_mass[kept] = state[p], log_mass[p] - top
                kept += 1
        first[t + 1] = kept
    return n_allowed


@jit
def log_sum(a, b):
    """log(eᵃ + eᵇ) for b > −∞."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jit
def sample_beam(first, state, log_mass, sequence, rows, slices, key, path):
    """One path backwards: P(s_t = j | s_{t+1} = k) ∝ p(s_t = j | y_1 … y_t, u) where π_jk > u_{t+1}."""
    stream = np.empty(4, np.uint64)
    weight = np.empty(rows.shape[1])
    end = len(path)
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        for t in range(end - 1, begin - 1, -1):
            low, high = first[t], first[t + 1]
            top = -math.inf
            for p in range(low, high):
                allowed = t == end - 1 or rows[state[p], path[t + 1]] > slices[t + 1]
                weight[p - low] = log_mass[p] if allowed else -math.inf
                top = max(top, weight[p - low])
            for p in range(high - low):
                weight[p] = math.exp(weight[p] - top)
            path[t] = state[low + draw_index(stream, weight[: high - low])]
        end = begin
