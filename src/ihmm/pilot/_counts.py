"""Maximum likelihood for counts, Poisson or overdispersed in each state, by expectation–maximisation."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.emissions.negative_binomial import log_probability
from ihmm.kernels import pilot as kernels
from ihmm.pilot._fit import CHUNK, EXIT, Series, log_transitions, part_of, transitions, uniform
from ihmm.pilot._search import clusters

MOST = 8  # states
ITERATIONS = 40
MARGIN = 3.0  # nats that a state, or overdispersion, has to gain beyond the penalty
SIZES = np.geomspace(0.2, 500, 40)  # of a negative binomial
FEWER = 10.0  # nats per state by which fewer overdispersed states may be worse than Poisson ones
MEASURED, LARGE = 0.4, 5.0  # variance relative to the mean, of large counts, below which they are measurements
POISSON = 1e9  # a size from which counts are Poisson
MEDIAN_SQUARE = 0.455  # of a standard normal variable


@dataclass(frozen=True, eq=False)
class CountFit:
    """Rates and sizes of the states, (K,), and the criterion: log likelihood minus a penalty."""

    rate: FloatArray
    size: FloatArray
    initial: FloatArray
    exit: FloatArray
    jump: FloatArray
    criterion: float = -np.inf

    @property
    def n_states(self) -> int:
        return len(self.rate)

    @property
    def overdispersed(self) -> bool:
        return bool(np.any(self.size < POISSON))

    def logs(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        return log_transitions(self.initial, self.exit, self.jump)

    def scores(self, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log densities of the steps, (T, K), 0 where missing; and of those after a change, (T, K, K)."""
        known = ~np.isnan(y)
        counts, place = np.unique(np.where(known, y, 0.0), return_inverse=True)
        settled = log_probability(counts[:, None], self.rate, self.size)[place] * known[:, None]
        change = np.repeat(settled[:, None], self.n_states, axis=1)
        change[:, np.arange(self.n_states), np.arange(self.n_states)] = -np.inf
        return np.ascontiguousarray(settled), np.ascontiguousarray(change)

    def path(self, y: FloatArray, offsets: IntArray) -> IntArray:
        """(T,): the most probable path, chunk by chunk."""
        path = np.empty(len(y), np.int64)
        for begin, end in pairwise(offsets):
            for first in range(begin, end, CHUNK):
                here = slice(first, min(first + CHUNK, end))
                settled, change = self.scores(y[here])
                kernels.decode(settled, change, np.array([0, len(settled)]), *self.logs(), 1, path[here])
        return path


def fit_counts(values: FloatArray, offsets: IntArray, seed: int = 0) -> tuple[CountFit, IntArray]:
    """The best fit over numbers of states, and its path: Poisson unless negative binomials are better or fewer.

    `values` are counts, (T, 1), NaN where missing; `offsets` has the first step of every sequence and the total.
    """
    whole = Series(np.asarray(values, np.float64), np.asarray(offsets, np.int64))
    part, rng = part_of(whole), np.random.default_rng(seed)
    poisson, negative_binomial = (_best_number(part, rng, overdispersed) for overdispersed in (False, True))
    fewer = max(poisson.n_states - negative_binomial.n_states, 0)
    better = negative_binomial.criterion > poisson.criterion + MARGIN - (FEWER + MARGIN) * fewer
    fit = negative_binomial if better else poisson
    return fit, fit.path(whole.y[:, 0], whole.offsets)


def are_measurements(fit: CountFit, values: FloatArray, path: IntArray) -> bool:
    """Whether whole numbers vary less within states than counts do, as rounded measurements may."""
    known = ~np.isnan(values[:, 0]) & (fit.rate[path] > LARGE)
    if not known.any():
        return False
    away = values[known, 0] - fit.rate[path[known]]
    return bool(np.median(np.square(away) / fit.rate[path[known]]) < MEASURED * MEDIAN_SQUARE)


def _best_number(series: Series, rng: np.random.Generator, overdispersed: bool) -> CountFit:
    root = Series(np.sqrt(series.y), series.offsets)  # of about equal variance
    best = improve(series, np.zeros(len(series.y), np.int64), overdispersed)
    for n_states in range(2, MOST + 1):
        path = clusters(root, n_states, rng, lasting=False)
        if path.max() + 1 < n_states:
            break
        fit = improve(series, path, overdispersed)
        if fit.criterion < best.criterion + MARGIN:
            if n_states > best.n_states + 1:
                break
        else:
            best = fit
    return best


def improve(series: Series, path: IntArray, overdispersed: bool) -> CountFit:
    """The best fit to counts that starts from a path."""
    y, offsets, n_states = series.y[:, 0], series.offsets, int(path.max()) + 1
    known = ~np.isnan(y)
    weight = (path[:, None] == np.arange(n_states)) * known[:, None]
    rate, size = _maximise(y, weight.astype(np.float64), overdispersed)
    fit = CountFit(rate, size, np.full(n_states, 1 / n_states), np.full(n_states, EXIT), uniform(n_states))
    before = -np.inf
    for i in range(ITERATIONS + 1):
        settled, change = fit.scores(y)
        stays, moves = np.zeros_like(settled), np.zeros_like(change)
        total = kernels.smooth(settled, change, offsets, *fit.logs(), 1, stays, moves)
        weight = stays + moves.sum(axis=1)
        if i == ITERATIONS or (i > 3 and total - before < 0.1):
            break
        before = total
        rate, size = _maximise(y, weight * known[:, None], overdispersed)
        fit = CountFit(rate, size, *transitions(stays, moves, offsets))
    steps, exits = weight.sum(axis=0), moves.sum(axis=(0, 2))
    penalty = (1 + overdispersed) * np.log(np.maximum(steps, 2.0)).sum()
    penalty += (n_states - 1) * np.log(np.maximum(exits, 2.0)).sum()
    return CountFit(fit.rate, fit.size, fit.initial, fit.exit, fit.jump, float(total - 0.5 * penalty))


def _maximise(y: FloatArray, weight: FloatArray, overdispersed: bool) -> tuple[FloatArray, FloatArray]:
    """Rates and sizes, (K,), given the (T, K) weights of the states."""
    counts, place = np.unique(np.nan_to_num(y), return_inverse=True)
    number = np.stack([np.bincount(place, column, len(counts)) for column in weight.T])  # (K, counts)
    rate = np.maximum(number @ counts / np.maximum(number.sum(axis=1), 1e-9), 1e-3)
    if not overdispersed:
        return rate, np.full(len(rate), POISSON)
    fit = np.stack([(number * log_probability(counts, rate[:, None], size)).sum(axis=1) for size in SIZES])
    return rate, SIZES[fit.argmax(axis=0)]
