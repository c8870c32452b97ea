"""Slice sampling for parameters whose posterior has no standard form."""

from collections.abc import Callable

import numpy as np

from ihmm._typing import FloatArray

MAX_WIDTHS = 100  # maximum length of the interval, in widths


def slice_step(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    width: float | FloatArray = 1.0,
) -> FloatArray:
    """One step of slice sampling (Neal 2003) for one number in each of K states, all at once.

    Leaves the law with density ∝ exp(log_density) invariant for any `width`; a width near the standard deviation of
    that law is fastest. For a positive parameter, sample its logarithm and add that to the log density.

    Parameters
    ----------
    log_density
        Maps one value per state, (K,), to the logarithm of each one's density, up to a constant.
    x
        Current values, (K,).
    width
        Width of the initial interval, one for all states or one for each.
    """
    level = log_density(x) - rng.standard_exponential(len(x))
    if not np.isfinite(level).all():
        raise ValueError(f"slice_step must start where the log density is finite, got {level} at x = {x}")
    left = x - width * rng.random(len(x))
    right = left + width
    # Step out until both ends are outside the slice {x : log_density(x) > level}, by at most MAX_WIDTHS in all
    more_left = rng.integers(MAX_WIDTHS, size=len(x))
    more_right = MAX_WIDTHS - 1 - more_left
    while (widen := (log_density(left) > level) & (more_left > 0)).any():
        left, more_left = left - width * widen, more_left - widen
    while (widen := (log_density(right) > level) & (more_right > 0)).any():
        right, more_right = right + width * widen, more_right - widen
    # Draw from the interval; a draw outside the slice becomes the new end on its side
    while True:
        drawn = left + (right - left) * rng.random(len(x))
        outside = ~(log_density(drawn) > level) & (drawn != x)
        if not outside.any():
            return drawn
        left, right = np.where(outside & (drawn < x), drawn, left), np.where(outside & (drawn > x), drawn, right)
        left, right = np.where(outside, left, drawn), np.where(outside, right, drawn)  # the others are done
