"""Filter and smoother of several small hidden Markov models at once, one in each lane.

One filter is a chain of short dependent steps, so that the processor mostly waits. Here each step is done for all
lanes together, in vector instructions: the lane is the last axis of every array.
"""

import numpy as np

from ihmm.kernels._jit import jit


@jit
def relate_lanes(table, least, target, scale):
    """Log-densities (lane, K, T) as (T, K, lane): relative to the largest of each step, and at least `least`.

    `scale` receives the largest, (T, lane). The table may have room for more steps.
    """
    n_steps, n_states, n_lanes = target.shape
    for d in range(n_lanes):
        for t in range(n_steps):
            top = table[d, 0, t]
            for k in range(1, n_states):
                top = max(top, table[d, k, t])
            scale[t, d] = top
            for k in range(n_states):
                target[t, k, d] = max(table[d, k, t] - top, least)


@jit
def filter_lanes(density, starts, initial, rows, current, filtered, total):
    """p(s_t = k | y_1 … y_t) in `filtered` (T, K, lane), and p(y_t | y_1 … y_{t−1}) in `total`, up to the factors of
    the densities.

    `starts` marks the first steps of sequences. `current` (K, lane) has the filtered probabilities of the step before
    the first, and in the end those of the last.
    """
    n_steps, n_states, n_lanes = density.shape
    predicted, scale = np.empty((n_states, n_lanes)), np.empty(n_lanes)
    for t in range(n_steps):
        if starts[t]:
            for k in range(n_states):
                for d in range(n_lanes):
                    predicted[k, d] = initial[k, d]
        else:
            predict_lanes(current, rows, predicted)
        for d in range(n_lanes):
            scale[d] = 0.0
        for k in range(n_states):
            for d in range(n_lanes):
                predicted[k, d] *= density[t, k, d]
                scale[d] += predicted[k, d]
        for d in range(n_lanes):
            total[t, d] = scale[d]
            scale[d] = 1.0 / scale[d]
        for k in range(n_states):
            for d in range(n_lanes):
                current[k, d] = predicted[k, d] * scale[d]
                filtered[t, k, d] = current[k, d]


@jit
def predict_lanes(current, rows, predicted):
    """Σ_j current_j π_jk for every state k and lane."""
    n_states, n_lanes = current.shape
    for k in range(n_states):
        for d in range(n_lanes):
            predicted[k, d] = current[0, d] * rows[0, k, d]
    for j in range(1, n_states):
        for k in range(n_states):
            for d in range(n_lanes):
                predicted[k, d] += current[j, d] * rows[j, k, d]


@jit
def add_smoothed_lanes(filtered, continues, rows, label, current, total):
    """Add the smoothed probabilities of the states, p(s_t = k | all y), to those of their labels, `total` (T, labels).

    `continues[t]` says whether step t + 1 belongs to the same sequence. `label` is (K, lane), with −1 for the last
    label. `current` (K, lane) has the smoothed probabilities of the step after the last, and in the end those of the
    first.
    """
    n_steps, n_states, n_lanes = filtered.shape
    ratio, future = np.empty((n_states, n_lanes)), np.empty(n_lanes)
    for t in range(n_steps - 1, -1, -1):
        if continues[t]:
            predict_lanes(filtered[t], rows, ratio)
            for k in range(n_states):
                for d in range(n_lanes):
                    ratio[k, d] = current[k, d] / ratio[k, d] if ratio[k, d] > 0.0 else 0.0
            for j in range(n_states):
                for d in range(n_lanes):
                    future[d] = rows[j, 0, d] * ratio[0, d]
                for k in range(1, n_states):
                    for d in range(n_lanes):
                        future[d] += rows[j, k, d] * ratio[k, d]
                for d in range(n_lanes):
                    current[j, d] = filtered[t, j, d] * future[d]
        else:
            for k in range(n_states):
                for d in range(n_lanes):
                    current[k, d] = filtered[t, k, d]
        add_to_labels(current, label, total[t])


@jit
def add_filtered_lanes(filtered, label, total):
    """Add the filtered probabilities of the states, (T, K, lane), to those of their labels, `total` (T, labels)."""
    for t in range(len(filtered)):
        add_to_labels(filtered[t], label, total[t])


@jit
def add_to_labels(probabilities, label, total):
    """Add the probabilities of the states, (K, lane), to those of their labels."""
    n_states, n_lanes = label.shape
    for d in range(n_lanes):  # neighbours in memory often have the same label: one addition would wait for the other
        for k in range(n_states):
            total[label[k, d]] += probabilities[k, d]
