"""One update of levels and the noise that the states share, all columns together."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions import _correlated, _noise


class NoisePrior(NamedTuple):
    """The prior of levels around 0 and of the noise; D entries or one for all columns."""

    spread: FloatArray  # (D,): of the levels
    shape: float
    rate: FloatArray  # (D,)
    own_scales: bool
    coefficient_spread: float
    dof: FloatArray  # the grid; infinite if tails are normal
    regression_spread: FloatArray | None  # (D (D − 1) / 2,); None if columns are independent


class Noise(NamedTuple):
    """Levels, and the parameters of the noise once each."""

    level: FloatArray  # (K, D)
    scale: FloatArray  # (K, D)
    coefficients: FloatArray  # (D, p)
    dof: float
    regression: FloatArray  # (D (D − 1) / 2,)


def update(rng: np.random.Generator, prior: NoisePrior, values: FloatArray, path: IntArray, noise: Noise) -> Noise:
    """Gibbs steps: ν, then the λ_t given it, then levels, regression, coefficients and scales given those.

    `values`, (n, p + 1, D), and `path`, (n, p + 1), have each step and those before it.
    """
    (n_states, n_columns), correlated = noise.level.shape, prior.regression_spread is not None
    level, scale, a, dof, regression = noise
    level, scale, a, regression = level.copy(), scale.copy(), a.copy(), regression.copy()
    own, own_level = values, level  # in coordinates whose noise is independent
    if correlated:
        matrix = _correlated.matrices(regression[None], n_columns)[0]
        own, own_level = _correlated.coordinates(values, matrix), level @ matrix.T
    columns = [_noise.Steps.known(own[:, :, d], path) for d in range(n_columns)]
    weights: Iterable[FloatArray] = (np.ones(len(steps.path)) for steps in columns)
    if np.isfinite(prior.dof[0]):
        distance = [
            np.square(_noise.innovations(steps.residuals(own_level[:, d]), a[d]) / scale[steps.path[:, 0], d])
            for d, steps in enumerate(columns)
        ]
        dof = _noise.draw_dof(rng, np.concatenate(distance), prior.dof)
        weights = (_noise.draw_weights(rng, square, dof) for square in distance)
    if correlated:
        weights = list(weights)
        precisions = [
            weight / np.square(scale[steps.path[:, 0], d])
            for d, (steps, weight) in enumerate(zip(columns, weights, strict=True))
        ]
        level = _correlated.draw_levels(rng, columns, precisions, a, matrix, prior.spread, n_states)
    for d, (steps, weight) in enumerate(zip(columns, weights, strict=True)):
        now = steps.path[:, 0]
        precision = weight / np.square(scale[now, d])
        if prior.regression_spread is None:
            level[:, d] = _noise.draw_levels(rng, steps, precision, a[d], prior.spread[d], n_states)
            residual = steps.residuals(level[:, d])
        else:
            known = ~np.isnan(own[:, :, d]).any(axis=1)
            together = values[known, :, : d + 1] - level[steps.path, : d + 1]
            row = slice(d * (d - 1) // 2, d * (d + 1) // 2)
            spread = prior.regression_spread[row]
            regression[row] = _correlated.draw_regression(rng, together, precision, a[d], spread)
            residual = together[:, :, d] - together[:, :, :d] @ regression[row]
        if a.shape[1]:
            a[d] = _noise.draw_coefficients(rng, residual, precision, prior.coefficient_spread, a[d])
        square = weight * np.square(_noise.innovations(residual, a[d]))
        scale[:, d] = _noise.draw_scales(rng, square, now, n_states, prior.shape, prior.rate[d], prior.own_scales)
    return Noise(level, scale, a, dof, regression)
