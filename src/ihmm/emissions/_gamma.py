"""Gamma variables: log density, and expectations."""

from collections.abc import Callable
from math import lgamma

import numpy as np
from scipy.special import gammaincinv

from ihmm._random import FLOOR
from ihmm._typing import FloatArray

NODES = 100
LOWER_TAIL = 1e-24  # probability left out at the lower end
BLOCK = 4096  # observations per block


def log_gamma_density(x: FloatArray, shape: float, rate: float) -> FloatArray:
    return np.asarray(shape * np.log(rate) - lgamma(shape) + (shape - 1) * np.log(x) - rate * x)


def log_density_of_log(log_x: FloatArray, shape: float, rate: float) -> FloatArray:
    """Log density of the logarithm of a Gamma variable, up to a constant."""
    return np.asarray(shape * log_x - rate * np.exp(log_x))


def gamma_nodes(shape: float, rate: float) -> tuple[FloatArray, FloatArray]:
    """Points x_i and logarithms of weights w_i with E[h(X)] ≈ Σ w_i h(x_i), X ~ Gamma(shape, rate).

    The trapezoidal rule in log x, where the integrand is smooth and vanishes at both ends.
    """
    low, high = np.log(np.maximum(gammaincinv(shape, [LOWER_TAIL, 1 - 1e-15]), FLOOR))
    log_x = np.linspace(low, high, NODES)
    log_weight = shape * log_x - np.exp(log_x)
    return np.exp(log_x) / rate, log_weight - np.logaddexp.reduce(log_weight)


def expectation(log_values: Callable[[FloatArray], FloatArray], log_weight: FloatArray, y: FloatArray) -> FloatArray:
    """log Σ_i w_i h_i(y_t), shape (T,), where `log_values` gives log h_i(y_t), shape (nodes, T)."""
    blocks = [log_values(y[i : i + BLOCK]) + log_weight[:, None] for i in range(0, len(y), BLOCK)]
    return np.concatenate([np.logaddexp.reduce(block, axis=0) for block in blocks])
