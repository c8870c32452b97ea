"""Positive values whose noise is a factor rather than a sum: their logarithms have levels."""

from dataclasses import replace

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.pilot._fit import Series, part_of
from ihmm.pilot._pilot import Pilot, pilot
from ihmm.pilot._reasons import logarithms

SPREAD = (0.05, 0.95)  # quantiles of the values that differ by
FACTOR = 2.0  # this factor at least: logarithms of a narrower range are nearly proportional to the values
CLEARLY, CLEARLY_PER_VALUE = 10.0, 0.005  # nats by which the logarithms have to explain the recording better


def pilot_of_logarithms(values: FloatArray, offsets: IntArray, plain: Pilot) -> Pilot | None:
    """The pilot fit to the logarithms, if it explains `values`, (T, D), clearly better than a `plain` one, with noise
    that differs no more between states."""
    if plain.number_given or not np.isfinite(plain.criterion) or not _spread_by_a_factor(values):
        return None
    logs = np.log(values)
    found = pilot(logs, offsets)
    if found.baseline is not None or not np.isfinite(found.criterion) or _unevenness(found) > _unevenness(plain):
        return None
    # the density of y is that of log y over y
    part = part_of(Series(logs, np.asarray(offsets, np.int64)))
    counted = part.y[part.counted]
    criterion = found.criterion - float(counted.sum())
    gain = criterion - plain.criterion
    per_value = gain / max(counted.size, 1)
    if gain < CLEARLY or per_value < CLEARLY_PER_VALUE:
        return None
    return replace(found, criterion=criterion, reasons=(logarithms(per_value), *found.reasons))


def _unevenness(found: Pilot) -> float:
    """How much the noise differs between states: if it is a factor, it differs less in the logarithms."""
    return float(np.max(found.noise.max(axis=0) / np.maximum(found.noise.min(axis=0), 1e-300)))


def _spread_by_a_factor(values: FloatArray) -> bool:
    """Whether all values are positive, and those of some column spread over more than a factor of two."""
    if not np.nanmin(values) > 0:
        return False
    low, high = np.nanquantile(values, SPREAD, axis=0)
    return bool(np.any(high > FACTOR * low))
