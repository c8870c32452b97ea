"""Helpers for families of counts."""

import numpy as np
from scipy.special import gammaln

from ihmm._typing import Array, FloatArray

LARGEST_COUNT = 2**53  # largest count up to which floating-point numbers are exact
LOG_FACTORIALS = gammaln(np.arange(10_000) + 1.0)


def log_factorial(n: Array) -> FloatArray:
    """log n! of every count, which may be a floating-point number; small ones come from a table."""
    small = n.max(initial=0) < len(LOG_FACTORIALS)
    return np.asarray(LOG_FACTORIALS.take(n.astype(np.int64, copy=False)) if small else gammaln(n + 1.0))
