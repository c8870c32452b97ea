"""Log-densities in one pass. NumPy would make one pass per operation, and threads would wait for the GIL between
them."""

import math

import numpy as np

from ihmm.kernels._jit import in_place, jit


@in_place
def log_normal(y, mean, factor, constant, out):
    """factor_k (y_t − mean_k)² − constant_k for every state and step, shape (K, T)."""
    for k in range(len(mean)):
        for t in range(len(y)):
            residual = y[t] - mean[k]
            out[k, t] = residual * residual * factor[k] - constant[k]


@in_place
def log_normal_at(y, states, mean, factor, constant, out):
    """The same for the state of each step, shape (T,)."""
    for t in range(len(y)):
        k = states[t]
        residual = y[t] - mean[k]
        out[t] = residual * residual * factor[k] - constant[k]


@jit
def add_log_noise(lags, mean, coefficients, scale, constant, dof, out):
    """Add log densities of the innovations y_t − Σ_l a_kl y_{t−l} − mean_k, normal or Student t, to `out`, (K, T).

    `lags` is (order + 1, T): y_t, y_{t−1}, …; steps at which one of them is NaN are left out. `constant` is the
    logarithm of the density at its peak, for a scale of 1.
    """
    n_steps = lags.shape[1]
    is_normal, innovation = math.isinf(dof[0]), np.empty(n_steps)
    for k in range(len(mean)):
        sharp, peak, power = 1.0 / scale[k], constant[k] - math.log(scale[k]), -0.5 * (dof[k] + 1.0)
        for t in range(n_steps):
            innovation[t] = lags[0, t] - mean[k]
        for lag in range(1, len(lags)):
            factor = coefficients[k, lag - 1]
            for t in range(n_steps):
                innovation[t] -= factor * lags[lag, t]
        if is_normal:
            for t in range(n_steps):
                distance = innovation[t] * sharp
                value = peak - 0.5 * distance * distance
                out[k, t] += value if value == value else 0.0
        else:
            for t in range(n_steps):
                distance = innovation[t] * sharp
                value = peak + power * math.log1p(distance * distance / dof[k])
                out[k, t] += value if value == value else 0.0
