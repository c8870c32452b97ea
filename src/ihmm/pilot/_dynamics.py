"""Maximum likelihood for autoregressions that switch between states, by expectation–maximisation."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.kernels import pilot as kernels
from ihmm.pilot._fit import EXIT, MAX_ORDER, Series, log_transitions, transitions, uniform

ORDERS = (1, 2)
WINDOW = 25  # steps that are in one state at the start
RESTARTS, ROUNDS, ITERATIONS = 4, 8, 12
MOST = 6  # states
MARGIN = 3.0  # nats that a state has to gain beyond the penalty
BORROWED = 3.0  # steps of all states that the variance of each borrows
LEAST = 1e-12  # variance
DWELL = 2


@dataclass(frozen=True, eq=False)
class Regression:
    """Each column regressed on past values: of all columns, or on its own."""

    y: FloatArray  # (T, D)
    past: list[FloatArray]  # (T, R), the last of which is constant: one for all columns, or one for each
    known: BoolArray  # (T,): rows without missing values; others are uninformative
    offsets: IntArray

    @property
    def n_known(self) -> int:
        return int(self.known.sum())

    @property
    def parts(self) -> Iterator[tuple[FloatArray, slice]]:
        """Past values, and the columns that are regressed on them."""
        n_columns = self.y.shape[1] // len(self.past)
        for i, past in enumerate(self.past):
            yield past, slice(i * n_columns, (i + 1) * n_columns)


@dataclass(frozen=True, eq=False)
class Dynamics:
    """Autoregressions of a few states: their criterion, comparable with that of levels, and the most probable path."""

    order: int
    criterion: float
    path: IntArray  # (T,)

    @property
    def n_states(self) -> int:
        return int(self.path.max()) + 1


def regression(series: Series, order: int, *, across: bool) -> Regression:
    y, offsets = series.y, series.offsets
    rows = np.arange(len(y))
    begins = np.repeat(offsets[:-1], np.diff(offsets))
    lags = np.stack([np.roll(y, lag, axis=0) for lag in range(1, order + 1)], axis=2)  # (T, D, order)
    known = (rows - begins >= MAX_ORDER) & ~np.isnan(y).any(axis=1) & ~np.isnan(lags).any(axis=(1, 2))
    one = np.ones((len(y), 1))
    of = [lags.reshape(len(y), -1)] if across else [lags[:, d] for d in range(y.shape[1])]
    past = [np.where(known[:, None], np.hstack([each, one]), 0.0) for each in of]
    return Regression(np.where(known[:, None], y, 0.0), past, known, offsets)


def switching(series: Series, order: int, rng: np.random.Generator, *, across: bool) -> Dynamics:
    """The best fit over numbers of states."""
    data = regression(series, order, across=across)
    parameters = data.y.shape[1] * (data.past[0].shape[1] + 1)
    best = Dynamics(order, -np.inf, np.zeros(len(data.y), np.int64))
    for n_states in range(1, MOST + 1):
        if data.n_known < 4 * parameters * n_states:
            break
        start = _windows(data, n_states, rng)
        criterion, path = _improve(data, start, n_states, parameters)
        if criterion < best.criterion + MARGIN and n_states > 1:
            break
        best = Dynamics(order, criterion, np.unique(path, return_inverse=True)[1])
    return best


def _improve(data: Regression, start: IntArray, n_states: int, parameters: int) -> tuple[float, IntArray]:
    """The criterion and the most probable path after some iterations from a path."""
    weight = (start[:, None] == np.arange(n_states)) * data.known[:, None]
    initial, exit, jump = np.full(n_states, 1 / n_states), np.full(n_states, EXIT), uniform(n_states)
    total, before = -np.inf, -np.inf
    for i in range(ITERATIONS):
        settled = _log_densities(data, *_maximise(data, weight.astype(np.float64)))
        change = _after_change(settled, data.offsets)
        logs = log_transitions(initial, exit, jump)
        stays, moves = np.zeros_like(settled), np.zeros_like(change)
        total = kernels.smooth(settled, change, data.offsets, *logs, DWELL, stays, moves)
        if i == ITERATIONS - 1 or total - before < 0.1:
            break
        before = total
        initial, exit, jump = transitions(stays, moves, data.offsets)
        entered = moves.sum(axis=1)
        weight = stays + entered
        weight[1:] += entered[:-1]
        weight = weight * data.known[:, None]
    steps, exits = weight.sum(axis=0), np.maximum(moves.sum(axis=(0, 2)), 2.0)
    penalty = parameters * np.log(np.maximum(steps, 2.0)).sum() + (n_states - 1) * np.log(exits).sum()
    path = np.empty(len(settled), np.int64)
    kernels.decode(settled, change, data.offsets, *logs, DWELL, path)
    return float(total - 0.5 * penalty), path


def _maximise(data: Regression, weight: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Coefficients, (K, D, R), and variances, (K, D), given the (T, K) weights of the states."""
    n_columns, n_regressors = data.y.shape[1], data.past[0].shape[1]
    coefficients = np.empty((weight.shape[1], n_columns, n_regressors))
    squares, counts = np.empty((weight.shape[1], n_columns)), weight.sum(axis=0) + 1e-9
    for k in range(weight.shape[1]):
        for past, columns in data.parts:
            y, weighted = data.y[:, columns], past * weight[:, k, None]
            left = weighted.T @ past
            left[np.diag_indices(n_regressors)] += 1e-6 * (1 + np.trace(left) / n_regressors)
            found = np.linalg.solve(left, weighted.T @ y)
            coefficients[k, columns] = found.T
            squares[k, columns] = weight[:, k] @ np.square(y - past @ found)
    pooled = squares.sum(axis=0) / counts.sum()
    variance = (squares + BORROWED * pooled) / (counts[:, None] + BORROWED)
    return coefficients, np.maximum(variance, LEAST)


def _log_densities(data: Regression, coefficients: FloatArray, variance: FloatArray) -> FloatArray:
    """(T, K), 0 at steps that are not known."""
    out = np.tile(-0.5 * np.log(2 * np.pi * variance).sum(axis=1), (len(data.y), 1))
    for past, columns in data.parts:
        for k in range(len(variance)):
            error = data.y[:, columns] - past @ coefficients[k, columns].T
            out[:, k] -= 0.5 * np.square(error) @ (1 / variance[k, columns])
    out[~data.known] = 0.0
    return out


def _after_change(settled: FloatArray, offsets: IntArray) -> FloatArray:
    """(T, K, K): log densities of the first steps after a change from j to k at t."""
    total = settled.copy()
    total[:-1] += settled[1:]
    total[offsets[1:] - 1] = settled[offsets[1:] - 1]
    change = np.repeat(total[:, None], settled.shape[1], axis=1)
    change[:, np.arange(settled.shape[1]), np.arange(settled.shape[1])] = -np.inf
    return change


def _windows(data: Regression, n_states: int, rng: np.random.Generator) -> IntArray:
    """(T,): windows clustered by the autoregressions that predict them best; the best of several random starts."""
    window = np.concatenate([*_numbered_windows(data.offsets)])
    n_windows = int(window[-1]) + 1
    best, most = np.zeros(len(window), np.int64), -np.inf
    if n_states == 1:
        return best
    for _ in range(RESTARTS):
        of = rng.integers(n_states, size=n_windows)
        for _ in range(ROUNDS):
            weight = (of[window][:, None] == np.arange(n_states)) * data.known[:, None]
            density = _log_densities(data, *_maximise(data, weight.astype(np.float64)))
            by_window = np.stack([np.bincount(window, density[:, k], n_windows) for k in range(n_states)], axis=1)
            of = by_window.argmax(axis=1)
        if by_window.max(axis=1).sum() > most:
            best, most = of[window], by_window.max(axis=1).sum()
    return best


def _numbered_windows(offsets: IntArray) -> Iterator[IntArray]:
    number = 0
    for length in np.diff(offsets):
        yield number + np.arange(length) // WINDOW
        number += (length - 1) // WINDOW + 1
