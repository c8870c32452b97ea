"""Forward filtering, backward sampling, smoothing and Viterbi on a finite state set, O(T·K²) (T15 §2.1, appendix).

All functions take one or several concatenated sequences; `sequence[t] ≥ 0` marks the first step of one. `density` is
f(y_t | φ_k), shape (T, K), up to a factor for each step.
"""

import math

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import draw_index, seed_stream

MIN_LOG_DENSITY = -700.0  # relative log-densities below count as zero
MIN_MASS = 1e-300  # messages below count as zero
MIN_TOTAL_MASS = 1e-200  # smaller sums of messages are too inaccurate


@jit
def filter_forward(density, sequence, initial, rows, filtered, log_predictive):
    """filtered[t, k] = p(s_t = k | y_1 … y_t) and log_predictive[t] = log p(y_t | y_1 … y_{t−1}), up to the logarithms
    of the factors."""
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
    """A trajectory drawn from p(s | y), last step first: P(s_t = j | s_{t+1}) ∝ p(s_t = j | y_1 … y_t) π(s_{t+1} | j).

    `columns` is the transposed transition matrix. Each sequence has its own random stream.
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
    """Replace the filtered probabilities by the smoothed ones, p(s_t = k | all y)."""
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
    """Simulate a trajectory that leaves `state`, given cumulative sums of the transition rows."""
    last = cumulative.shape[1] - 1
    for t in range(len(path)):
        u = uniforms[t] * cumulative[state, last]
        following = 0
        while following < last and cumulative[state, following] <= u:
            following += 1
        path[t] = state = following


@jit
def most_probable_path(log_density, sequence, log_initial, log_rows, path):
    """Viterbi: the trajectory that maximises p(s, y). Returns its log-probability. `log_density` is (T, K)."""
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


# Beam sampling (Van Gael et al. 2008): the forward filter over the transitions that the slices allow,
# {(j, k) : π_jk > u_t}. Given the slices, all of them have the same weight. There are three versions. Each stores the
# messages (filtered probabilities, up to a factor for each step) of the states reached; those of step t are at
# first[t] … first[t+1] − 1.


@jit
def filter_beam(log_density, sequence, falling, order, slices, first, state, mass):
    """The version for few allowed transitions: each row is read only as far as the slice allows.

    Row j of `falling` has the transition probabilities from state j in descending order, `order` the states they lead
    to; the initial row is last. Returns False if the slices only allow states whose probability underflows.
    """
    n_steps, n_states = log_density.shape
    message = np.zeros(n_states)  # zero: not reached
    reached, score = np.empty(n_states + 1, np.int64), np.empty(n_states)
    first[0] = 0
    scale = 1.0
    for t in range(n_steps):
        begin, n_reached = first[t], 0
        parent, last = (-1, 0) if sequence[t] >= 0 else (first[t - 1], begin)
        while parent < last:
            j, weight = (n_states, 1.0) if parent < 0 else (state[parent], mass[parent] * scale)
            i = 0
            while i < n_states and falling[j, i] > slices[t]:
                k = order[j, i]
                reached[n_reached] = k
                n_reached += message[k] == 0.0
                message[k] += weight
                i += 1
            parent += 1
        if n_reached == 0:
            return False

        top = -math.inf
        for i in range(n_reached):
            score[i] = log_density[t, reached[i]]
            top = max(top, score[i])
        total, end = 0.0, begin
        for i in range(n_reached):
            k = reached[i]
            if score[i] - top > MIN_LOG_DENSITY:
                state[end], mass[end] = k, message[k] * math.exp(score[i] - top)
                total += mass[end]
                end += mass[end] > MIN_MASS
            message[k] = 0.0
        if total < MIN_TOTAL_MASS:
            return False
        scale = 1.0 / total
        first[t + 1] = end
    return True


@jit
def filter_wide_beam(density, sequence, rows, slices, first, state, mass):
    """The version for many allowed transitions: it visits all of them, in vectorised loops. The initial row is last.

    Returns False if at some step the states reached have too little of the likelihood.
    """
    n_steps, n_states = density.shape
    message = np.empty(n_states)
    begin = end = first[0] = 0
    scale = 1.0
    for t in range(n_steps):
        # Σ_j m_j over the parents j with π_jk > u_t, for every state k: the first parent, then two at a time
        limit = slices[t]
        j, weight = (n_states, 1.0) if sequence[t] >= 0 else (state[begin], mass[begin] * scale)
        for k in range(n_states):
            message[k] = weight if rows[j, k] > limit else 0.0
        p = end if sequence[t] >= 0 else begin + 1
        while p + 1 < end:
            i, j = state[p], state[p + 1]
            left, right = mass[p] * scale, mass[p + 1] * scale
            for k in range(n_states):
                message[k] += (left if rows[i, k] > limit else 0.0) + (right if rows[j, k] > limit else 0.0)
            p += 2
        if p < end:
            j, weight = state[p], mass[p] * scale
            for k in range(n_states):
                message[k] += weight if rows[j, k] > limit else 0.0

        total, begin = 0.0, end
        for k in range(n_states):
            state[end], mass[end] = k, message[k] * density[t, k]
            total += mass[end]
            end += mass[end] > MIN_MASS
        if total < MIN_TOTAL_MASS:
            return False
        scale = 1.0 / total
        first[t + 1] = end
    return True


@jit
def filter_faint_beam(log_density, sequence, falling, order, slices, first, state, log_mass):
    """The version for allowed states of very low probability: `filter_beam` in logarithms."""
    n_steps, n_states = log_density.shape
    message = np.full(n_states, -math.inf)
    first[0] = 0
    for t in range(n_steps):
        begin = end = first[t]
        parent, last = (-1, 0) if sequence[t] >= 0 else (first[t - 1], begin)
        while parent < last:
            j, weight = (n_states, 0.0) if parent < 0 else (state[parent], log_mass[parent])
            i = 0
            while i < n_states and falling[j, i] > slices[t]:
                k = order[j, i]
                if message[k] == -math.inf:
                    state[end] = k
                    end += 1
                message[k] = log_sum(message[k], weight)
                i += 1
            parent += 1
        top = -math.inf
        for p in range(begin, end):
            k = state[p]
            log_mass[p] = log_density[t, k] + message[k]
            top = max(top, log_mass[p])
            message[k] = -math.inf
        for p in range(begin, end):
            log_mass[p] -= top
        first[t + 1] = end


@jit
def log_sum(a, b):
    """log(eᵃ + eᵇ) for b > −∞."""
    return max(a, b) + math.log1p(math.exp(-abs(a - b)))


@jit
def sample_beam(first, state, mass, in_logarithms, sequence, rows, slices, key, path):
    """A trajectory drawn backwards: P(s_t = j | s_{t+1} = k) ∝ p(s_t = j | y_1 … y_t, u) where π_jk > u_{t+1}."""
    stream = np.empty(4, np.uint64)
    weight = np.empty(rows.shape[1])
    nothing = -math.inf if in_logarithms else 0.0
    end = len(path)
    for begin in range(end - 1, -1, -1):
        if sequence[begin] < 0:
            continue
        seed_stream(stream, key, sequence[begin])
        for t in range(end - 1, begin - 1, -1):
            low, high = first[t], first[t + 1]
            for p in range(low, high):
                allowed = t == end - 1 or rows[state[p], path[t + 1]] > slices[t + 1]
                weight[p - low] = mass[p] if allowed else nothing
            if in_logarithms:
                top = -math.inf
                for i in range(high - low):
                    top = max(top, weight[i])
                for i in range(high - low):
                    weight[i] = math.exp(weight[i] - top)
            path[t] = state[low + draw_index(stream, weight[: high - low])]
        end = begin
