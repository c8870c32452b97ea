"""Densities of noise with memory in the first steps after a change of state.

Noise of order p, e_t = a_1 e_{t−1} + … + a_p e_{t−p} + η_t, remembers the level of the state before for p steps. With
z_t = y_t − Σ_l a_l y_{t−l}, A = Σ_l a_l and B_a = Σ_{l ≥ a} a_l, the mean of z_t at age a of state k, entered from j,
is

    (1 − A) μ_k                          if a > p: settled
    (1 − A) μ_k + B_a (μ_k − μ_j)        if a ≤ p
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place

HALF_LOG_2PI = 0.5 * math.log(2.0 * math.pi)


class AfterChange(NamedTuple):
    """What the densities of steps at ages up to p need to know."""

    value: np.ndarray  # (T, D): z_t; NaN where it is not known
    offset: np.ndarray  # (T,): added to the log density, for values that are functions of what was observed
    mean: np.ndarray  # (K, D): (1 − A) μ_k
    level: np.ndarray  # (K, D): μ_k
    factor: np.ndarray  # (p, D): B_a in row a − 1
    scale: np.ndarray  # (K, D): σ
    dof: float  # ν of Student t noise, infinite if it is Gaussian


@in_place
def log_density_after_change(after, t, age, k, j):
    """log f of step t in state k at the given age, 1 to p, entered from state j."""
    value, offset, mean, level, factor, scale, dof = after
    total = offset[t]
    for d in range(value.shape[1]):
        if math.isnan(value[t, d]):
            continue
        residual = value[t, d] - mean[k, d] - factor[age - 1, d] * (level[k, d] - level[j, d])
        square = (residual / scale[k, d]) ** 2
        if math.isinf(dof):
            total -= 0.5 * square + HALF_LOG_2PI
        else:
            total += math.lgamma(0.5 * (dof + 1.0)) - math.lgamma(0.5 * dof) - 0.5 * math.log(math.pi * dof)
            total -= 0.5 * (dof + 1.0) * math.log1p(square / dof)
        total -= math.log(scale[k, d])
    return total
