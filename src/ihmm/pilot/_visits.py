"""Levels that rise or fall in the same way in every visit, such as the current of a motor after it is switched on."""

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.pilot._alternatives import without
from ihmm.pilot._fit import Fit, Series, improve, most_probable_path, part_of, restructured
from ihmm.pilot._search import CAREFUL, QUICK, STRUCTURES, criterion, downwards, reduce

FEWEST_VISITS = 4  # in which values have to change in the same way
TIMES = np.array([2.0, 4.0, 8.0, 16.0, 32.0])  # steps: time constants of a decay or rise, of which any is a sum
PARAMETERS = 1 + len(TIMES)  # of a course
OLD = 0.9  # quantile of the ages of a state that is taken for old
MOST = 4  # states


def levels_with_course(whole: Series, fit: Fit) -> tuple[FloatArray, Fit, float]:
    """The best course of values within visits, (T, D), for fewer levels than a fit has; the levels; their criterion."""
    structures = [one for one in STRUCTURES if one.order <= whole.max_order]
    found = []
    for coarse in downwards(part_of(whole), fit):
        if 1 < coarse.n_states < min(fit.n_states, MOST + 1):
            course = _course(whole, coarse, most_probable_path(whole, coarse))
            part = part_of(without(whole, course))
            fits = [improve(part, restructured(coarse, structure), QUICK) for structure in structures]
            found.append((course, max(fits, key=_criterion)))
    course, best = max(found, key=lambda one: _criterion(one[1]))
    course = _course(whole, best, most_probable_path(without(whole, course), best))
    part = part_of(without(whole, course))
    best = reduce(part, improve(part, best, CAREFUL))
    return course, best, _criterion(best)


def _criterion(fit: Fit) -> float:
    """The criterion of the levels, with the parameters of their courses."""
    assert fit.steps is not None
    informed = np.log(np.maximum(fit.steps, 2.0)).sum()
    return float(criterion(fit) - 0.5 * PARAMETERS * fit.level.shape[1] * informed)


def _course(series: Series, fit: Fit, path: IntArray) -> FloatArray:
    """(T, D): what the time since the last change predicts of the values of each state, around their mean.

    A straight line and exponential decays or rises, for states with enough visits. Those that a sequence begins with
    are old already: when they began is not known.
    """
    age, visit = _ages(path, series.offsets)
    old = np.isin(visit, visit[series.offsets[:-1]])
    out = np.zeros_like(series.y)
    for k in range(fit.n_states):
        here = path == k
        if len(np.unique(visit[here & ~old])) < FEWEST_VISITS:
            continue
        since = np.where(old[here], np.quantile(age[here & ~old], OLD), age[here])
        basis = np.column_stack([since, np.exp(-since[:, None] / TIMES)])
        for d, column in enumerate(series.y[here].T):
            known = ~np.isnan(column) & ~old[here]
            centred = basis - basis[known].mean(axis=0)
            out[here, d] = centred @ np.linalg.lstsq(centred[known], column[known] - column[known].mean())[0]
    return out


def _ages(path: IntArray, offsets: IntArray) -> tuple[FloatArray, IntArray]:
    """(T,): steps since the visit began; and the number of the visit."""
    begins = np.zeros(len(path), bool)
    begins[1:] = np.diff(path) != 0
    begins[offsets[:-1]] = True
    visit = np.cumsum(begins) - 1
    return np.arange(len(path)) - np.flatnonzero(begins)[visit].astype(np.float64), visit
