"""Helpers for families of counts."""

import numpy as np
from scipy.special import gammaln

from ihmm._typing import Array, FloatArray, IntArray

LARGEST_COUNT = 2**53  # largest count up to which floating-point numbers are exact
LOG_FACTORIALS = gammaln(np.arange(10_000) + 1.0)


def log_factorial(n: Array) -> FloatArray:
    """log n! of every count, which may be a floating-point number; small ones come from a table."""
    small = n.max(initial=0) < len(LOG_FACTORIALS)
    return np.asarray(LOG_FACTORIALS.take(n.astype(np.int64, copy=False)) if small else gammaln(n + 1.0))


def log_dirichlet_multinomial(concentrations: FloatArray, counts: Array) -> FloatArray:
    """log ∫ Π_d p_d^n_d Dirichlet(dp | concentrations) for every row of counts n, (…, D)."""
    mass = concentrations.sum()
    each = gammaln(concentrations + counts) - gammaln(concentrations)
    return np.asarray(each.sum(axis=-1) + gammaln(mass) - gammaln(mass + counts.sum(axis=-1)))


def whole_counts(y: Array, family: str) -> IntArray:
    """One count per time step, as integers; ValueError if `y` is anything else."""
    if y.ndim != 1:
        raise ValueError(f"{family} takes one count per time step, shape (T,); got {y.shape[1]} columns")
    with np.errstate(invalid="ignore"):
        wrong = np.flatnonzero(~((y >= 0) & (y <= LARGEST_COUNT) & (y == np.floor(y))))
    if wrong.size:
        raise ValueError(
            f"{family} expects non-negative whole numbers, got {y[wrong[0]]} at t = {wrong[0]} "
            f"({wrong.size} such values); for real numbers use Normal"
        )
    return y.astype(np.int64)
