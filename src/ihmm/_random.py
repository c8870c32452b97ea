"""Draws that stay right when concentrations are tiny, the normal case in a hierarchical Dirichlet process.

A Gamma(a) draw with a ≪ 1e-3 underflows to zero and Beta(tiny, tiny) becomes 0/0; its logarithm does not:
log G(a) = log G(a+1) + log(U)/a. Probabilities are kept at or above FLOOR, so that no logarithm is ever infinite.
"""

import numpy as np

from ihmm._typing import FloatArray

FLOOR = 1e-300


def log_gamma(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Logarithms of Gamma(shape, 1) draws."""
    return np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape


def dirichlet(rng: np.random.Generator, concentration: FloatArray) -> FloatArray:
    """One Dirichlet draw for each row (last axis) of positive `concentration`."""
    log_weights = log_gamma(rng, np.maximum(concentration, FLOOR))
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.maximum(weights, FLOOR))
