"""Twins of `ihmm.kernels.forward_backward`: sums over all K^T paths of one sequence, written out."""

import itertools

import numpy as np


def path_weights(density, initial, rows):
    """p(s, y) for every path: density is f(y_t | φ_k), shape (T, K)."""
    n_steps, n_states = density.shape
    weights = {}
    for path in itertools.product(range(n_states), repeat=n_steps):
        weight = initial[path[0]] * density[0, path[0]]
        for t in range(1, n_steps):
            weight *= rows[path[t - 1]][path[t]] * density[t, path[t]]
        weights[path] = weight
    return weights


def sliced_weights(density, initial, rows, slices):
    """p(s | y, u) up to a constant: f along the path if every step has π > u_t, else zero."""
    weights = {}
    for path in path_weights(density, initial, rows):
        steps = [initial[path[0]], *(rows[j][k] for j, k in itertools.pairwise(path))]
        allowed = all(step > u for step, u in zip(steps, slices, strict=True))
        weights[path] = float(allowed) * np.prod([density[t, state] for t, state in enumerate(path)])
    return weights


def evidence(density, initial, rows):
    """p(y)."""
    return sum(path_weights(density, initial, rows).values())


def filtered(density, initial, rows):
    """p(s_t = k | y_1 … y_t): the end of every path over the first t steps."""
    out = np.zeros(density.shape)
    for t in range(len(density)):
        for path, weight in path_weights(density[: t + 1], initial, rows).items():
            out[t, path[-1]] += weight
    return out / out.sum(axis=1, keepdims=True)


def smoothed(density, initial, rows):
    """p(s_t = k | all y)."""
    out = np.zeros(density.shape)
    for path, weight in path_weights(density, initial, rows).items():
        for t, state in enumerate(path):
            out[t, state] += weight
    return out / out.sum(axis=1, keepdims=True)
