"""A step for parameters whose posterior has no name."""

from collections.abc import Callable

import numpy as np

from ihmm._typing import FloatArray

WIDEST = 100  # widths that an interval may have


def slice_step(
    rng: np.random.Generator,
    log_density: Callable[[FloatArray], FloatArray],
    x: FloatArray,
    width: float | FloatArray = 1.0,
) -> FloatArray:
    """One step of slice sampling (Neal 2003) for one number in each of K states, all of them at once.

    It leaves the law with density ∝ exp(log_density) invariant, whatever the `width`; one near the spread of that law
    is quickest. For a parameter that is positive, step in its logarithm and add that to the log density.

    Parameters
    ----------
    log_density
        Takes one value for each state, (K,), and returns the logarithm of each one's density, up to a constant.
    x
        Where the states are, (K,).
    width
        Of the interval that is tried first, the same for all states or one for each.
    """
    level = log_density(x) - rng.standard_exponential(len(x))
    if not np.isfinite(level).all():
        raise ValueError(f"slice_step must start where the log density is finite, got {level} at x = {x}")
    left = x - width * rng.random(len(x))
    right = left + width
    # Widen until both ends are outside the slice {x : log_density(x) > level}, by so many widths in all at most
    more_left = rng.integers(WIDEST, size=len(x))
    more_right = WIDEST - 1 - more_left
    while (widen := (log_density(left) > level) & (more_left > 0)).any():
        left, more_left = left - width * widen, more_left - widen
    while (widen := (log_density(right) > level) & (more_right > 0)).any():
        right, more_right = right + width * widen, more_right - widen
    # Draw from between them; what is outside the slice becomes the end on its side
    while True:
        drawn = left + (right - left) * rng.random(len(x))
        outside = ~(log_density(drawn) > level) & (drawn != x)
        if not outside.any():
            return drawn
        left, right = np.where(outside & (drawn < x), drawn, left), np.where(outside & (drawn > x), drawn, right)
        left, right = np.where(outside, left, drawn), np.where(outside, right, drawn)  # the others have arrived
