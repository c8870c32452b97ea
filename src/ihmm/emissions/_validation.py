"""Checks that several families share."""

from typing import Any

import numpy as np

from ihmm._typing import Array, FloatArray, Phi
from ihmm.emissions._parameters import fields, take

LARGEST = 1e150  # its square is still a finite number


def real_values(y: Array, family: str) -> FloatArray:
    """One sequence of real numbers, (T,)."""
    if y.ndim != 1:
        raise ValueError(f"{family} takes one number per time step, shape (T,); got {y.shape[1]} columns")
    values = y.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{family} expects finite values, got {bad.size} that are not (first at t = {bad[0]}); "
            "drop them, or use NaN for missing values"
        )
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise ValueError(f"{family} expects values within ±{LARGEST:g}, got {largest:g}; rescale the series")
    return values


def real_rows(y: Array, size: int, family: str) -> FloatArray:
    """One sequence of rows of `size` real numbers, of which some may be NaN: (T, size)."""
    if y.shape[1:] != (size,) and not (size == 1 and y.ndim == 1):
        got = "one number per time step" if y.ndim == 1 else f"{y.shape[1]} columns"
        raise ValueError(f"{family} with n_features = {size} takes rows of that length, shape (T, {size}); got {got}")
    values = y.astype(np.float64).reshape(-1, size)
    bad = np.flatnonzero(np.isinf(values).any(axis=1))
    if bad.size:
        raise ValueError(
            f"{family} expects finite values, got {bad.size} rows with infinite ones (first at t = {bad[0]}); "
            "drop them, or use NaN for missing values"
        )
    largest = float(np.nanmax(np.abs(values)))
    if largest > LARGEST:
        raise ValueError(f"{family} expects values within ±{LARGEST:g}, got {largest:g}; rescale the series")
    return values


def checked_density(emission: object, values: Any, y: Array, phi: Phi, first: int, n_states: int | None) -> FloatArray:
    """Log densities, (T, K), or (T,) if `n_states` is None, in which NaN and +inf would freeze the trajectory.

    One maximum over the table, which takes little of the time that the densities take. `first` is the number of the
    first time step.
    """
    table: FloatArray = np.asarray(values, np.float64)
    name = f"{type(emission).__name__}.log_density"
    shape = (len(y),) if n_states is None else (len(y), n_states)
    if table.shape != shape:
        raise ValueError(f"{name} must return log densities of shape {shape}, got {table.shape}")
    if table.max(initial=-np.inf) < np.inf:
        return table
    t, *state = (int(i) for i in np.argwhere(~(table < np.inf))[0])
    parameters = fields(take(phi, np.array(state)) if state else phi)
    shown = ", ".join(f"{name} = {np.array2string(values, threshold=20)}" for name, values in parameters.items())
    raise ValueError(
        f"{name} returned {table[t, state[0]] if state else table[t]} at time step {first + t}, where y = {y[t]}, "
        f"for the parameters {shown}; it must return finite numbers, or -inf where the density is 0"
    )


def checked_marginal(emission: object, values: FloatArray, y: Array) -> FloatArray:
    """Log marginal densities, (T,), all finite."""
    name = f"{type(emission).__name__}.log_marginal"
    if values.shape != (len(y),):
        raise ValueError(f"{name} must return one number per time step, shape {(len(y),)}, got {values.shape}")
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        t = bad[0]
        raise ValueError(f"{name} must return finite numbers, got {values[t]} at time step {t}, where y = {y[t]}")
    return values


def plain(name: str, value: Any, shapes: list[tuple[int, ...]]) -> Any:
    """A setting as a number or nested tuples of numbers, which can be compared, hashed and saved."""
    try:
        array = np.asarray(value, np.float64)
    except (TypeError, ValueError, OverflowError):
        array = np.array(np.nan)
    if isinstance(value, (bool, str)) or array.shape not in shapes or not np.isfinite(array).all():
        expected = " or ".join("a finite number" if shape == () else f"numbers of shape {shape}" for shape in shapes)
        raise ValueError(f"{name} must be {expected}, got {value!r}")
    return _tuples(array.tolist())


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def is_covariance(matrix: FloatArray) -> bool:
    """Whether a matrix is symmetric and positive definite."""
    if not (np.diag(matrix) > 0).all() or not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0):
        return False
    try:
        np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        return False
    return True
