"""Gauss quadrature over the prior of a hyperparameter."""

from functools import lru_cache

import numpy as np
from scipy.special import roots_genlaguerre, roots_jacobi

from ihmm._typing import FloatArray
from ihmm.priors import BetaPrior, GammaPrior

N_NODES = 48


@lru_cache(maxsize=64)
def quadrature(quantity: float | GammaPrior | BetaPrior | None) -> tuple[FloatArray, FloatArray]:
    """Nodes and weights, which sum to one; a fixed hyperparameter has a single node, None is infinite."""
    if quantity is None:
        return np.array([np.inf]), np.ones(1)
    if isinstance(quantity, GammaPrior):
        nodes, weights = roots_genlaguerre(N_NODES, quantity.shape - 1)
        return nodes / quantity.rate, weights / weights.sum()
    if isinstance(quantity, BetaPrior):
        nodes, weights = roots_jacobi(N_NODES, quantity.b - 1, quantity.a - 1)
        return (1 + nodes) / 2, weights / weights.sum()
    return np.array([float(quantity)]), np.ones(1)
