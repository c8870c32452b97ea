"""What looks wrong about the data, or about a prior for such data: sentences for a warning."""

import numpy as np

from ihmm._typing import Array, FloatArray
from ihmm.data import Data
from ihmm.emissions._protocol import has_past
from ihmm.model import Model

SHORTEST = 20  # values, below which nothing is said
MIN_DISTINCT = 20  # different values that a sensor has at least, to be told from a series of levels
SATURATED = 0.005  # least share of the values at the limit of a saturated sensor
PRIOR_DRAWS, PRIOR_SIZE = 300, 20  # parameters drawn from the prior, and values for each
TOO_WIDE, TOO_NARROW = 20.0, 100.0  # scale of the prior relative to that of the data, and the other way round


def concerns(model: Model, data: Data) -> list[str]:
    """Sentences about values that seem to mark missing ones, a saturated sensor, or a prior of another scale."""
    found = []
    values = data.values.reshape(len(data.y), -1)
    for c in range(values.shape[1]):
        column = values[:, c].astype(np.float64)
        column = column[np.isfinite(column)]
        if len(column) >= SHORTEST:
            name = "" if values.shape[1] == 1 else f" of column {data.columns[c] if data.columns else c}"
            sentences = (_marked(column, name), _saturated(column, name))
            found += [sentence for sentence in sentences if sentence is not None]
    mismatch = _prior_mismatch(model, data) if not found else None
    return [*found, mismatch] if mismatch is not None else found


def _marked(values: FloatArray, name: str) -> str | None:
    """An extreme value that is written as programs mark missing values, −9999 or 1e30, and far from all others."""
    for marker in (values.min(), values.max()):
        others = values[values != marker]
        if len(others) < 2 or not _is_marker(abs(float(marker))):
            continue
        low, high = float(others.min()), float(others.max())
        if min(abs(marker - low), abs(marker - high)) > max(high - low, abs(low), abs(high)):
            n = len(values) - len(others)
            number = f"{marker:.6g}".replace("-", "−")
            return (
                f"{n} value{'s' * (n > 1)}{name} {'are' if n > 1 else 'is'} {number}, far from all others, "
                f"{low:.3g} to {high:.3g}: if it marks missing values, make them NaN (--na {marker:.6g})"
            )
    return None


def _is_marker(size: float) -> bool:
    """99, 999, 9999 …, with or without decimals of 9, the largest integers of 16 and 32 bits, or 1e30 and more."""
    digits = f"{size:.10g}".replace(".", "")
    return (size >= 99 and set(digits) == {"9"}) or size in (32767, 32768, 2147483647, 2147483648) or size >= 1e30


def _saturated(values: FloatArray, name: str) -> str | None:
    """The largest or smallest value occurs far more often than its neighbours. Zeros are no limit of a sensor."""
    distinct, counts = np.unique(values, return_counts=True)
    if len(distinct) < MIN_DISTINCT:
        return None
    for edge, neighbours, which in ((-1, counts[-6:-1], "largest"), (0, counts[1:6], "smallest")):
        n = int(counts[edge])
        if distinct[edge] != 0 and n >= max(10, SATURATED * len(values)) and n >= 10 * neighbours.max():
            return (
                f"{n} values{name} equal the {which} one, {distinct[edge]:.6g}: if the sensor was saturated, its true "
                "values are unknown, and these may appear as a separate state"
            )
    return None


def _prior_mismatch(model: Model, data: Data) -> str | None:
    """Whether the prior expects values of another size: noise wider than all the data, or values elsewhere."""
    if data.y.dtype.kind != "f" or has_past(model.emission) or model.is_mixture or len(data.y) < SHORTEST:
        return None
    rng = np.random.default_rng(0)
    phi = model.emission.sample_prior(rng, PRIOR_DRAWS)
    states = np.repeat(np.arange(PRIOR_DRAWS), PRIOR_SIZE)
    expected = np.asarray(model.emission.sample_observations(rng, states, phi), np.float64)
    expected = expected.reshape(PRIOR_DRAWS, PRIOR_SIZE, -1)
    values = data.values.reshape(len(data.y), -1)
    for c in range(values.shape[1]):
        observed = values[np.isfinite(values[:, c]), c]
        if len(observed) < SHORTEST or np.ptp(observed) == 0 or not np.isfinite(expected[..., c]).all():
            continue
        found = _compare(observed, expected[..., c])
        if found is not None:
            name = "" if values.shape[1] == 1 else f" of column {data.columns[c] if data.columns else c}"
            return (
                f"the prior of {type(model.emission).__name__} does not fit the scale of the data{name}: {found}; "
                'rescale the data, or let ihmm.InfiniteHMM(emission="normal") choose a prior'
            )
    return None


def _compare(observed: Array, expected: FloatArray) -> str | None:
    within = observed[np.abs(observed - np.median(observed)) <= 10 * np.ptp(np.quantile(observed, (0.05, 0.95)))]
    spread, noise = float(within.std() or observed.std()), float(np.median(expected.std(axis=1)))  # without outliers
    low, high = (float(x) for x in np.quantile(expected, (0.01, 0.99)))
    if noise > TOO_WIDE * spread:
        return f"it expects values to vary by about {noise:.2g} within a state, but all together vary by {spread:.2g}"
    middle = float(np.median(observed))
    outside = max(low - middle, middle - high, 0.0)
    if spread > TOO_NARROW * (high - low) or outside > TOO_WIDE * (high - low) + spread:
        return f"it expects values from {low:.2g} to {high:.2g}, but they are about {middle:.2g} ± {spread:.2g}"
    return None
