"""Would fewer levels explain a recording as well as those that were found, or several as well as one?

Noise with a long memory and slow trends wander as levels do, and what is skewed has two spreads: a short recording can
often be read in both ways. Readings are fitted by maximum likelihood and penalised for their parameters.
"""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.pilot._alternatives import trend, without
from ihmm.pilot._counts import improve as improve_counts
from ihmm.pilot._fit import MAX_ORDER, Fit, Series, Structure, improve, part_of, start
from ihmm.pilot._search import CAREFUL, clusters, criterion

NUMBERS = (2, 3)  # of levels that are compared with one
ORDERS = (0, 1, 2, 4)  # of the noise around a single level
SHORT = 2  # greatest order of the noise around several
SHORTEST = 30  # steps below which nothing is compared
CLOSE = 5.0  # nats by which several levels have to be better than one
UNDECIDED = 1.0  # nats by which one has to be better than several: three to one is hardly evidence
MERGED = 2  # pairs of neighbouring levels that are made one
WAVES = (0, 2, 5)  # cosines of the trends that are tried
OF_LEVELS = (
    *(Structure(order, 2, shared) for order in (0, 1) for shared in (True, False)),
    *(Structure(order, 2, False, sharp=False) for order in (1, 2)),
    *(Structure(0, 1, shared) for shared in (True, False)),
)


class Rival(NamedTuple):
    """Levels in noise of the given order, and by how many nats their penalised likelihood is better."""

    n_levels: int
    order: int
    gain: float
    trend: bool = False  # whether they follow a slow trend
    log: bool = False  # whether they are levels of the logarithms


class CountRival(NamedTuple):
    """Levels of counts, and by how many nats their penalised likelihood is better."""

    n_levels: int
    overdispersed: bool
    gain: float


def rival_of_one_level(values: FloatArray, offsets: IntArray) -> Rival | None:
    """The best reading of `values`, (T, D), by several levels, if it is as good as that by one, or hardly worse.

    Only a few thousand steps of long recordings are compared.
    """
    series = _standardised(values, offsets)
    if series is None:
        return None
    series = part_of(series)
    orders = [order for order in ORDERS if order <= series.max_order]
    one = max(rival.gain for rival in _readings_by_one(series, orders))
    rng, found = np.random.default_rng(0), []
    for n_levels in NUMBERS:
        path = clusters(series, n_levels, rng, lasting=True)
        if int(path.max()) + 1 < n_levels:
            break
        for order in range(min(SHORT, series.max_order) + 1):
            found.append(Rival(n_levels, order, _value(series, Structure(order), path) - one))
    best = max(found, key=lambda rival: rival.gain, default=None)
    return best if best is not None and best.gain > -UNDECIDED else None


def rival_of_levels(
    values: FloatArray,
    offsets: IntArray,
    path: IntArray,
    own: Structure = OF_LEVELS[0],
    *,
    of_logarithms: bool = True,
) -> Rival | None:
    """The best reading of `values` by a single level or by one level fewer, if it is hardly worse than that by the
    levels of a `path`, (T,), whose noise has a structure of its `own` or one of a few others. By default readings of
    the logarithms are tried, too, if all values are positive.

    In recordings that are too long for this to be compared there is none.
    """
    series = _standardised(values, offsets)
    if series is None or len(part_of(series).y) < len(series.y):
        return None
    path = np.unique(path, return_inverse=True)[1]
    most = series.max_order if series.max_order < MAX_ORDER else max(own.order, MAX_ORDER)
    structures = [one for one in dict.fromkeys([*OF_LEVELS, own]) if one.order <= most]
    orders = [order for order in sorted({*ORDERS, own.order}) if order <= most]
    found = [*_readings_by_one(series, orders), *_readings_by_one_fewer(series, path, structures)]
    logs = _standardised(np.log(values), offsets) if of_logarithms and np.nanmin(values) > 0 else None
    if logs is not None:
        jacobian = log_jacobian(values, series)
        by_logs = [*_readings_by_one(logs, orders), *_readings_by_one_fewer(logs, path, structures)]
        found += [rival._replace(gain=rival.gain + jacobian, log=True) for rival in by_logs]
    best = max(found, key=lambda rival: rival.gain)
    several = -np.inf
    for structure in structures:
        several = max(several, _value(series, structure, path))
        if several > best.gain + CLOSE:
            return None
    return best._replace(gain=best.gain - several)


def rival_of_counts(counts: FloatArray, offsets: IntArray, path: IntArray) -> CountRival | None:
    """The best reading of `counts`, (T, 1), by one level fewer, if it is hardly worse than that by those of a `path`.

    Both may be of Poisson or of overdispersed counts. In recordings that are too long for this there is none.
    """
    series = Series(np.asarray(counts, np.float64), np.asarray(offsets, np.int64))
    if len(counts) < SHORTEST or len(part_of(series).y) < len(series.y):
        return None
    path = np.unique(path, return_inverse=True)[1]
    kinds = (False, True)
    several = max(improve_counts(series, path, overdispersed).criterion for overdispersed in kinds)
    found = [
        CountRival(int(path.max()), overdispersed, improve_counts(series, coarse, overdispersed).criterion - several)
        for coarse in _one_fewer(series, path)
        for overdispersed in kinds
    ]
    best = max(found, key=lambda rival: rival.gain, default=None)
    return best if best is not None and best.gain > -CLOSE else None


def log_jacobian(values: FloatArray, series: Series) -> float:
    """What turns the log likelihood of standardised logarithms into that of the standardised values of a series."""
    logs = np.log(values)
    unit = np.log(np.nanstd(values, axis=0)) - np.log(np.nanstd(logs, axis=0))
    return float((unit - logs[series.counted]).sum())


def _standardised(values: FloatArray, offsets: IntArray) -> Series | None:
    """The series in units of its spread; None if there is too little to compare."""
    spread = np.nanstd(values, axis=0)
    if len(values) < SHORTEST or not np.all(spread > 0):
        return None
    return Series((values - np.nanmean(values, axis=0)) / spread, np.asarray(offsets, np.int64))


def _readings_by_one(series: Series, orders: Sequence[int]) -> Iterator[Rival]:
    """A single level, and one that follows a slow trend; `gain` is the penalised likelihood itself."""
    yield _single(series, orders)
    if len(series.offsets) == 2:
        for n in WAVES:
            parameters = 0.5 * (n + 1) * series.y.shape[1]
            found = _single(without(series, trend(series, n)), orders)
            yield found._replace(gain=found.gain - parameters * float(np.log(len(series.y))), trend=True)


def _single(series: Series, orders: Sequence[int]) -> Rival:
    nothing = np.zeros(len(series.y), np.int64)
    found = [Rival(1, order, _value(series, Structure(order), nothing)) for order in orders]
    return max(found, key=lambda rival: rival.gain)


def _readings_by_one_fewer(series: Series, path: IntArray, structures: Sequence[Structure]) -> Iterator[Rival]:
    """Two of the levels of a path made one, if there are more than two."""
    if path.max() > 1:
        for coarse in _one_fewer(series, path):
            for structure in structures:
                yield Rival(int(path.max()), structure.order, _value(series, structure, coarse))


def _one_fewer(series: Series, path: IntArray) -> Iterator[IntArray]:
    """The path with two levels made one, for each of the pairs that are closest together."""
    n_levels = int(path.max()) + 1
    level = np.array([np.nanmean(series.y[path == k], axis=0) for k in range(n_levels)])
    pairs = list(combinations(range(n_levels), 2))
    distance = [float(np.square(level[a] - level[b]).sum()) for a, b in pairs]
    for i in np.argsort(distance)[:MERGED]:
        a, b = pairs[i]
        yield np.unique(np.where(path == b, a, path), return_inverse=True)[1]


def _value(series: Series, structure: Structure, path: IntArray) -> float:
    """Penalised likelihood of a fit that starts from a path."""
    fit: Fit = improve(series, start(series, structure, path, int(path.max()) + 1), CAREFUL)
    value = criterion(fit)
    return value if np.isfinite(value) else -np.inf
