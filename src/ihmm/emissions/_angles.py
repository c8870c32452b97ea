"""Angles among the parameters of an emission, and averages on the circle."""

import numpy as np

from ihmm._typing import Array, FloatArray, Phi


def angle_fields(phi: Phi) -> tuple[str, ...]:
    """Names of the arrays of φ that are angles, as in `fields`; nested parameters are included."""
    if isinstance(phi, np.ndarray):
        return ()
    nested = [name for part in phi for name in angle_fields(part)]
    own = () if "angles" in getattr(phi, "_fields", ()) else getattr(phi, "angles", ())
    return (*own, *nested)


def circular_mean(angles: Array) -> FloatArray:
    """Mean direction over the first axis, within ±π; NaN entries are ignored."""
    return np.asarray(np.angle(np.nanmean(np.exp(1j * angles), axis=0)))


def unwrap(angles: Array) -> FloatArray:
    """The same angles within ±π of their mean direction over the first axis, so that linear means and quantiles of
    them are meaningful."""
    center = circular_mean(angles)
    return np.asarray(center + np.angle(np.exp(1j * (angles - center))))
