"""Residuals given the states: standard normal and independent if the model is right, whatever the family."""

from collections.abc import Callable
from typing import cast

import numpy as np
from scipy.special import ndtri, stdtr

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions import DPMixture, Emission
from ihmm.emissions._correlated import coordinates, matrices
from ihmm.emissions._parameters import fields
from ihmm.emissions._protocol import provides
from ihmm.model import Draw, Model

SAMPLES = 2000  # of each state, that observations are ranked among where the distribution function is not known


def residuals(rng: np.random.Generator, model: Model, data: Data, draw: Draw) -> FloatArray:
    """(T, columns): each observation as a standard normal variate given its state, NaN where it is not known.

    If the density depends on past values, so does the residual: it is the innovation. Columns of symbols and angles
    have no residuals and are left out.
    """
    parameters, emission = fields(draw.phi), model.emission
    values = np.asarray(data.values, np.float64).reshape(len(data.y), -1)
    if {"mean", "scale"} <= set(parameters) and provides(emission, "with_past"):
        return _noise_with_memory(values, data.offsets, draw.states, parameters, getattr(emission, "filtered", False))
    if {"intercept", "coefficients", "covariance"} <= set(parameters):
        return _autoregression(data, draw.states, parameters)
    if provides(emission, "with_past"):
        return np.empty((len(values), 0))
    columns = [_column(emission, d, values.shape[1]) for d in range(values.shape[1])]
    found = [
        _scores(rng, values[:, d], draw.states, law, select(draw.phi))
        for d, (law, select) in ((d, column) for d, column in enumerate(columns) if column is not None)
    ]
    return np.stack(found, axis=1) if found else np.empty((len(values), 0))


def _column(emission: Emission, d: int, n_columns: int) -> tuple[Emission, Callable[[Phi], Phi]] | None:
    """The law of one column, if its values can be ranked."""
    if n_columns == 1:
        found: tuple[Emission, Callable[[Phi], Phi]] | None = emission, lambda phi: phi
    else:
        found = emission.column(d) if provides(emission, "column") else None
    if found is None:
        return None
    own = found[0].component if isinstance(found[0], DPMixture) else found[0]
    symbols = hasattr(own, "n_symbols") or type(own).__name__ in ("Bernoulli", "Multinomial")
    return None if symbols or getattr(own, "circular", False) else found


def _scores(rng: np.random.Generator, y: FloatArray, states: IntArray, law: Emission, phi: Phi) -> FloatArray:
    """Normal scores of the values of one column."""
    parameters = fields(phi)
    if set(parameters) == {"mean", "variance"} and parameters["mean"].ndim == 1:
        return np.asarray((y - parameters["mean"][states]) / np.sqrt(parameters["variance"][states]))
    out = np.full(len(y), np.nan)
    for k in np.unique(states):
        here = np.flatnonzero((states == k) & np.isfinite(y))
        drawn = np.sort(np.asarray(law.sample_observations(rng, np.full(SAMPLES, k), phi), np.float64).ravel())
        low, high = (np.searchsorted(drawn, y[here], side) for side in ("left", "right"))
        rank = low + (high - low + 1) * rng.random(len(here))  # ties are broken at random
        out[here] = ndtri(rank / (SAMPLES + 1))
    return out


def _noise_with_memory(
    values: FloatArray, offsets: IntArray, states: IntArray, parameters: dict[str, Array], filtered: bool
) -> FloatArray:
    """Innovations of noise around levels: e_t − Σ a_l e_{t−l}, e_t = y_t − μ_{s_t}.

    If levels pass through the filter, too, the values before are compared with the level of this step.
    """
    n_columns = values.shape[1]
    level, scale = (parameters[name].reshape(-1, n_columns) for name in ("mean", "scale"))
    if "regression" in parameters:  # columns are correlated: their own parts are not
        matrix = matrices(parameters["regression"], n_columns)
        values, level = coordinates(values[:, None], matrix[0])[:, 0], (matrix @ level[:, :, None])[:, :, 0]
    mean, scale = level[states], scale[states]
    error = values - mean
    innovation = error.copy()
    if "coefficients" in parameters:
        a = parameters["coefficients"].reshape(len(parameters["mean"]), n_columns, -1)[states]
        age = np.arange(len(values)) - np.repeat(offsets[:-1], np.diff(offsets))
        for lag in range(1, a.shape[2] + 1):
            earlier = values[:-lag] - mean[lag:] if filtered else error[:-lag]
            innovation[lag:] -= a[lag:, :, lag - 1] * earlier
            innovation[age < lag] = np.nan
    z = innovation / scale
    if "dof" in parameters:
        z = ndtri(np.clip(stdtr(parameters["dof"][states][:, None], z), 1e-15, 1 - 1e-15))
    return cast(FloatArray, z)


def _autoregression(data: Data, states: IntArray, parameters: dict[str, Array]) -> FloatArray:
    """Innovations of a state's own dynamics, with their covariance removed."""
    rows, incomplete = cast(tuple[Array, Array], data.with_past)
    n_states = len(parameters["intercept"].reshape(len(parameters["intercept"]), -1))
    intercept = parameters["intercept"].reshape(n_states, -1)
    size = intercept.shape[1]
    coefficients = parameters["coefficients"].reshape(n_states, size, -1)
    covariance = parameters["covariance"].reshape(n_states, size, size)
    z = np.full((len(rows), size), np.nan)
    for k in np.unique(states):
        here = np.flatnonzero((states == k) & ~incomplete)
        past, y = rows[here, :-size], rows[here, -size:]
        error = y - intercept[k] - past @ coefficients[k].T
        z[here] = np.linalg.solve(np.linalg.cholesky(covariance[k]), error.T).T
    return z
