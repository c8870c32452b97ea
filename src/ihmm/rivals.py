"""Would several levels explain a recording as well as the single one that was found?

Noise with a long memory wanders as levels do, so that a short recording can often be read in both ways.
"""

from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.pilot._fit import Fit, Series, Structure, improve, part_of, start
from ihmm.pilot._search import CAREFUL, clusters, criterion

NUMBERS = (2, 3)  # of levels that are compared with one
ORDERS = (0, 1, 2, 4)  # of the noise around a single level
SHORT = 2  # greatest order of the noise around several
SHORTEST = 30  # steps below which nothing is compared


class Rival(NamedTuple):
    """Levels in noise of the given order, and by how many nats their penalised likelihood is better than one level."""

    n_levels: int
    order: int
    gain: float


def rival_of_one_level(values: FloatArray, offsets: IntArray) -> Rival | None:
    """The best reading of `values`, (T, D), by several levels, if it is as good as that by one; None if there is none.

    Both are fitted by maximum likelihood to at most a few thousand steps, and penalised for their parameters.
    """
    spread = np.nanstd(values, axis=0)
    if len(values) < SHORTEST or not np.all(spread > 0):
        return None
    series = part_of(Series((values - np.nanmean(values, axis=0)) / spread, np.asarray(offsets, np.int64)))
    nothing = np.zeros(len(series.y), np.int64)
    one = max(criterion(_fit(series, order, nothing)) for order in ORDERS if order <= series.max_order)
    rng, found = np.random.default_rng(0), []
    for n_levels in NUMBERS:
        path = clusters(series, n_levels, rng, lasting=True)
        if int(path.max()) + 1 < n_levels:
            break
        for order in range(min(SHORT, series.max_order) + 1):
            gain = criterion(_fit(series, order, path)) - one
            found.append(Rival(n_levels, order, gain if np.isfinite(gain) else -np.inf))
    best = max(found, key=lambda rival: rival.gain, default=None)
    return best if best is not None and best.gain > 0 else None


def _fit(series: Series, order: int, path: IntArray) -> Fit:
    return improve(series, start(series, Structure(order), path, int(path.max()) + 1), CAREFUL)
