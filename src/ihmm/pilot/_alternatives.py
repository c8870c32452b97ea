"""Explanations of a recording other than levels: hum, trends, and movement predictable from the columns' past."""

import numpy as np

from ihmm._typing import FloatArray
from ihmm.pilot._fit import MAX_ORDER, Series

SHORTEST = 256  # steps of a recording in which lines are looked for
LINES = 4  # per column
STANDS_OUT = 30.0  # power of a line relative to the median of its neighbours
NEIGHBOURS = 25  # on either side
CYCLES = 5  # that a recording has at least


def without_hum(series: Series, steps: FloatArray) -> tuple[Series, list[float]]:
    """The series without spectral lines, and their periods in steps, strongest first; none in several sequences.

    Lines are looked for in what is left after the `steps`, (T, D), that a few levels explain.
    """
    rest, periods = series.y - steps, []
    if len(series.offsets) > 2 or len(rest) < SHORTEST:
        return series, []
    time = np.arange(len(rest))
    for column in rest.T:
        known = ~np.isnan(column)
        for _ in range(LINES):
            frequency = _line(np.where(known, column, 0.0))
            if frequency is None:
                break
            angle = 2 * np.pi * frequency * time
            waves = np.column_stack([np.sin(angle), np.cos(angle)])
            column -= waves @ np.linalg.lstsq(waves[known], column[known])[0]
            periods.append(float(1 / frequency))
    return Series(rest + steps, series.offsets), periods


def _line(values: FloatArray) -> float | None:
    """The frequency, per step, of the line that stands out most."""
    from scipy.ndimage import median_filter  # slow to import

    padded = 8 * len(values)
    window = np.hanning(len(values))
    power = np.abs(np.fft.rfft((values - values.mean()) * window)) ** 2
    ratio = power / np.maximum(median_filter(power, 2 * NEIGHBOURS + 1, mode="nearest"), 1e-12)
    ratio[:CYCLES] = 0
    best = int(np.argmax(ratio))
    if ratio[best] < STANDS_OUT:
        return None
    fine = np.abs(np.fft.rfft((values - values.mean()) * window, padded))
    low, high = 8 * (best - 1), 8 * (best + 1) + 1
    return float((low + np.argmax(fine[low:high])) / padded)


def trend(series: Series, degree: int) -> FloatArray:
    """(T, D): the slowest changes of the series, around 0: a polynomial of the time."""
    basis = np.polynomial.legendre.legvander(np.linspace(-1, 1, len(series.y)), degree)
    out = np.empty_like(series.y)
    for d, column in enumerate(series.y.T):
        known = ~np.isnan(column)
        out[:, d] = basis[:, 1:] @ np.linalg.lstsq(basis[known], column[known])[0][1:]
    return out


def without(series: Series, baseline: FloatArray) -> Series:
    return Series(series.y - baseline, series.offsets)


def predictability(series: Series, order: int, *, across: bool) -> float:
    """Criterion of a single autoregression: of every column on all columns if `across`, else on its own past.

    The noise of the columns is normal and independent, so that the figure compares with that of levels.
    """
    y = series.y
    rows = np.arange(len(y))
    begins = np.repeat(series.offsets[:-1], np.diff(series.offsets))
    lags = [np.roll(y, lag, axis=0) for lag in range(1, order + 1)]
    complete = (rows - begins >= MAX_ORDER) & ~np.isnan(np.column_stack([y, *lags])).any(axis=1)
    n, columns = int(complete.sum()), y.shape[1]
    if n <= 2 * (order * columns + 1):
        return -np.inf
    total, one = 0.0, np.ones((n, 1))
    for d in range(columns):
        past = np.column_stack([one, *(lag[complete] if across else lag[complete, d] for lag in lags)])
        residual = y[complete, d] - past @ np.linalg.lstsq(past, y[complete, d])[0]
        variance = max(float(np.square(residual).mean()), 1e-12)
        total -= 0.5 * n * (np.log(2 * np.pi * variance) + 1) + 0.5 * np.log(n) * (past.shape[1] + 1)
    return total
