"""Random variates that are accurate for tiny concentrations, which are common in a hierarchical Dirichlet process.

A Gamma(a) variate with a ≪ 1e-3 underflows to zero, and a Dirichlet variate becomes 0/0. Its logarithm does not
underflow: log G(a) = log G(a+1) + log(U)/a. Probabilities are at least FLOOR, so that their logarithms are finite.
"""

import numpy as np

from ihmm._typing import FloatArray

FLOOR = 1e-300


def log_gamma(rng: np.random.Generator, shape: FloatArray) -> FloatArray:
    """Logarithms of Gamma(shape, 1) variates."""
    return np.log(rng.standard_gamma(shape + 1.0)) + np.log1p(-rng.random(shape.shape)) / shape


def dirichlet(rng: np.random.Generator, concentration: FloatArray) -> FloatArray:
    """One Dirichlet variate for each row (last axis) of `concentration`, which must be positive."""
    log_weights = log_gamma(rng, np.maximum(concentration, FLOOR))
    weights = np.exp(log_weights - log_weights.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.asarray(np.maximum(weights, FLOOR))
