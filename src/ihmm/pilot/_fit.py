"""Maximum likelihood for levels in noise with memory, by expectation–maximisation."""

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.kernels import pilot as kernels

DOFS = np.array([4.0, 8.0, 16.0, np.inf])  # degrees of freedom that are tried
MAX_ORDER = 4  # of the noise
SEARCHED = 5000  # steps of the part in which structures are compared
PIECES = 5  # that this part consists of, if it is cut out of a long sequence
MAX_BROKEN = 0.2  # share of the values that may lack some of their past before the memory of the noise is not asked for
CHUNK = 20_000  # steps decoded at a time
LEAST_SCALE = 1e-6  # of the noise, in units of the spread of the series
EXIT, SOON = 0.05, 0.5  # probability of leaving a state at the start of a fit; if it may last a single step


@dataclass(frozen=True)
class Structure:
    """What is fixed in a fit: order of the noise, minimum dwell time, and whether scales are shared."""

    order: int = 0
    dwell: int = 2
    shared: bool = True
    sharp: bool = True  # levels change at once; otherwise they pass through the same filter as the noise

    @property
    def recalled(self) -> int:
        """Steps after a change in which the state before matters."""
        return self.order if self.sharp else 0


@dataclass(frozen=True, eq=False)
class Series:
    """The steps a fit sees: standardised values, (T, D), NaN where missing; where sequences begin and the total."""

    y: FloatArray
    offsets: IntArray

    @cached_property
    def max_order(self) -> int:
        """Greatest order of the noise to consider: 0 if gaps leave too few values with a complete past."""
        known = ~np.isnan(self.y).any(axis=1)
        for order in (MAX_ORDER, 2, 1):
            if np.sum(self._after_gaps(order) & known) <= MAX_BROKEN * known.sum():
                return order
        return 0

    @cached_property
    def least_scale(self) -> FloatArray:
        """(D,): standard deviation that rounding alone gives the noise, if most values occur more than once."""
        out = np.full(self.y.shape[1], LEAST_SCALE)
        for d, column in enumerate(self.y.T):
            values = np.unique(column[~np.isnan(column)])
            if 1 < len(values) < len(column) / 2:
                out[d] = max(np.diff(values).min() / np.sqrt(12), LEAST_SCALE)  # of a uniform distribution
        return out

    @cached_property
    def _broken(self) -> BoolArray:
        """(T,): rows that lack some of the `max_order` values before them, and the first rows of sequences."""
        return self._lack(self.max_order)

    def _lack(self, order: int) -> BoolArray:
        """(T,): rows that lack some of the `order` values before them, and at least the first `MAX_ORDER` ones."""
        out = self._after_gaps(order)
        for begin in self.offsets[:-1]:
            out[begin : begin + max(order, MAX_ORDER)] = True
        return out

    def _after_gaps(self, order: int) -> BoolArray:
        """(T,): rows that come fewer than `order` steps after a missing one."""
        missing = np.asarray(np.isnan(self.y).any(axis=1))
        out = np.zeros_like(missing)
        for lag in range(1, order + 1):
            out[lag:] |= missing[:-lag]
        for begin in self.offsets[1:-1]:
            out[begin : begin + order] = False
        return out

    @property
    def counted(self) -> BoolArray:
        """(T,): rows that count in the likelihood of a fit with noise of any order up to `MAX_ORDER`."""
        return np.asarray(~np.isnan(self.unpredicted(np.empty((0, self.y.shape[1])))).any(axis=1))

    def unpredicted(self, coefficients: FloatArray) -> FloatArray:
        """(T, D): y_t − Σ a_l y_{t−l}, NaN in rows where any of it is unknown.

        The first rows of a sequence and those after a gap are left out, as many for every order up to `MAX_ORDER`:
        likelihoods are of the same values.
        """
        z = self.y.copy()
        for lag, a in enumerate(coefficients, 1):
            z[lag:] -= a * self.y[:-lag]
        if self.max_order > 0:
            z[self._broken if len(coefficients) <= MAX_ORDER else self._lack(len(coefficients))] = np.nan
        z[np.isnan(z).any(axis=1)] = np.nan
        return z


def part_of(series: Series) -> Series:
    """At most `SEARCHED` steps: some of the sequences, or pieces of a single long one."""
    lengths = np.diff(series.offsets)
    if lengths.sum() <= SEARCHED:
        return series
    if len(lengths) > 2 * PIECES:
        wanted = max(int(len(lengths) * SEARCHED / lengths.sum()), PIECES)
        chosen = np.unique(np.linspace(0, len(lengths) - 1, wanted).round().astype(int))
        bounds = [(series.offsets[i], min(series.offsets[i + 1], series.offsets[i] + SEARCHED)) for i in chosen]
    else:
        size = SEARCHED // PIECES if len(lengths) > 1 else SEARCHED
        bounds = []
        for begin, end in pairwise(series.offsets):
            share = max(int(SEARCHED * (end - begin) / lengths.sum()), min(size, end - begin))
            first = begin + (end - begin - share) // 2
            bounds.append((first, first + share))
    y = np.concatenate([series.y[begin:end] for begin, end in bounds])
    return Series(y, np.concatenate([[0], np.cumsum([end - begin for begin, end in bounds])]).astype(np.int64))


@dataclass(frozen=True, eq=False)
class Fit:
    """Parameters, their log likelihood, and the posterior share of each state."""

    structure: Structure
    level: FloatArray  # (K, D)
    scale: FloatArray  # (K, D), of the innovations
    coefficients: FloatArray  # (p, D)
    dof: float
    initial: FloatArray  # (K,)
    exit: FloatArray  # (K,)
    jump: FloatArray  # (K, K), rows sum to one
    log_likelihood: float = -np.inf
    steps: FloatArray | None = None  # (K,) expected steps
    visits: FloatArray | None = None  # (K,) expected visits
    exits: FloatArray | None = None

    @property
    def n_states(self) -> int:
        return len(self.level)

    def logs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return log_transitions(self.initial, self.exit, self.jump)

    def scores(self, series: Series) -> tuple[FloatArray, FloatArray]:
        z = series.unpredicted(self.coefficients)
        settled = np.zeros((len(z), self.n_states))
        change = np.full((len(z), self.n_states, self.n_states), -np.inf)
        kernels.score(
            z,
            series.offsets,
            self.level,
            self.scale,
            self.coefficients,
            self.dof,
            self.structure.dwell,
            self.structure.recalled,
            settled,
            change,
        )
        return settled, change

    def path(self, series: Series) -> IntArray:
        """(T,): the most probable path."""
        settled, change = self.scores(series)
        path = np.empty(len(settled), np.int64)
        kernels.decode(settled, change, series.offsets, *self.logs(), self.structure.dwell, path)
        return path


def start(series: Series, structure: Structure, path: IntArray, n_states: int) -> Fit:
    """Parameters from a path."""
    level = np.array([np.nanmean(series.y[path == k], axis=0) for k in range(n_states)])
    within = series.y - level[path]
    scale = np.sqrt(np.nanmean(within**2, axis=0)) + series.least_scale
    coefficients = np.zeros((structure.order, series.y.shape[1]))
    return Fit(
        structure,
        level,
        np.tile(scale, (n_states, 1)),
        coefficients,
        8.0,
        np.full(n_states, 1 / n_states),
        np.full(n_states, EXIT if structure.dwell > 1 else SOON),
        uniform(n_states),
    )


def log_transitions(
    initial: FloatArray, exit: FloatArray, jump: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Logarithms of the probabilities of the first state, (K,), of staying, (K,), and of each change, (K, K)."""
    with np.errstate(divide="ignore"):
        return np.log(initial), np.log1p(-exit), np.log(exit[:, None] * jump)


def uniform(n_states: int) -> FloatArray:
    return np.asarray((1 - np.eye(n_states)) / max(n_states - 1, 1))


def improve(series: Series, fit: Fit, iterations: int, tolerance: float = 0.1) -> Fit:
    """Expectation–maximisation until the log likelihood gains less than `tolerance`."""
    before = -np.inf
    for i in range(iterations + 1):
        settled, change = fit.scores(series)
        weight, moves = np.zeros_like(settled), np.zeros_like(change)
        total = kernels.smooth(settled, change, series.offsets, *fit.logs(), fit.structure.dwell, weight, moves)
        done = i == iterations or (i > 3 and total - before < tolerance)
        if done:
            return _with_counts(fit, total, weight, moves)
        before = total
        fit = _maximise(series, fit, weight, moves)
    return fit


def _with_counts(fit: Fit, total: float, weight: FloatArray, moves: FloatArray) -> Fit:
    entered, left = moves.sum(axis=(0, 1)), moves.sum(axis=(0, 2))
    steps = weight.sum(axis=0) + entered * fit.structure.dwell
    return replace(fit, log_likelihood=float(total), steps=steps, visits=entered + 1e-9, exits=left)


def _maximise(series: Series, fit: Fit, weight: FloatArray, moves: FloatArray) -> Fit:
    initial, exit, jump = transitions(weight, moves, series.offsets)
    s = fit.structure
    level, scale, coefficients = fit.level.copy(), fit.scale.copy(), fit.coefficients.copy()
    dof = kernels.maximise(
        series.y,
        series.unpredicted(fit.coefficients),
        series.offsets,
        weight,
        moves,
        level,
        scale,
        coefficients,
        fit.dof,
        s.dwell,
        s.recalled,
        s.shared,
        DOFS,
    )
    return replace(
        fit,
        level=level,
        scale=np.maximum(scale, series.least_scale),
        coefficients=coefficients,
        dof=float(dof),
        initial=initial,
        exit=exit,
        jump=jump,
    )


def transitions(stays: FloatArray, moves: FloatArray, offsets: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Initial, exit and jump probabilities, given the weights of settled steps, (T, K), and of changes, (T, K, K)."""
    n_states, counts = stays.shape[1], moves.sum(axis=0)
    initial = stays[offsets[:-1]].sum(axis=0) + 0.1
    left = counts.sum(axis=1)
    jump = counts + 0.1 * uniform(n_states)
    if n_states > 1:
        jump /= jump.sum(axis=1, keepdims=True)
    return initial / initial.sum(), (left + 0.1) / (stays.sum(axis=0) + left + 1.0), jump


def merged(fit: Fit, first: int, second: int) -> Fit:
    """The fit with two states made one, as a start."""
    assert fit.steps is not None
    keep = [k for k in range(fit.n_states) if k != second]
    share = fit.steps[[first, second]] + 1e-9
    share = share / share.sum()
    level, scale, jump = fit.level.copy(), fit.scale.copy(), fit.jump.copy()
    level[first] = share @ fit.level[[first, second]]
    scale[first] = np.sqrt(share @ fit.scale[[first, second]] ** 2)
    initial = fit.initial.copy()
    initial[first] += initial[second]
    exit = fit.exit.copy()
    exit[first] = share @ fit.exit[[first, second]]
    jump[:, first] += jump[:, second]
    jump[first] = share @ fit.jump[[first, second]]
    jump = jump[np.ix_(keep, keep)]
    np.fill_diagonal(jump, 0.0)
    n = len(keep)
    jump = jump + 0.02 * uniform(n)
    if n > 1:
        jump /= jump.sum(axis=1, keepdims=True)
    return replace(
        fit, level=level[keep], scale=scale[keep], initial=initial[keep], exit=exit[keep], jump=jump, steps=None
    )


def restructured(fit: Fit, structure: Structure) -> Fit:
    """The same levels as a start under another structure."""
    order = structure.order
    coefficients = np.zeros((order, fit.level.shape[1]))
    kept = min(order, len(fit.coefficients))
    coefficients[:kept] = fit.coefficients[:kept]
    scale = fit.scale
    if structure.shared:
        scale = np.tile(np.exp(np.log(scale).mean(axis=0)), (fit.n_states, 1))
    return replace(fit, structure=structure, coefficients=coefficients, scale=scale)


def most_probable_path(series: Series, fit: Fit) -> IntArray:
    """(T,), decoded chunk by chunk."""
    path = np.empty(len(series.y), np.int64)
    for begin, end in pairwise(series.offsets):
        for first in range(begin, end, CHUNK):
            last = min(first + CHUNK, end)
            path[first:last] = fit.path(Series(series.y[first:last], np.array([0, last - first])))
    return _without_short(path, series.offsets, fit.structure.dwell)


def _without_short(path: IntArray, offsets: IntArray, dwell: int) -> IntArray:
    """The path without visits that are too short, which there may be where chunks meet."""
    path = path.copy()
    for begin, end in pairwise(offsets):
        changes = [begin, *(np.flatnonzero(np.diff(path[begin:end])) + 1 + begin), end]
        for first, last in pairwise(changes[:-1]):
            if last - first < dwell:
                path[first:last] = path[first - 1] if first > begin else path[last]
    return path
