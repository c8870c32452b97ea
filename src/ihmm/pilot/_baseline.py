"""A slow baseline around which there are levels."""

import numpy as np
from scipy.special import fdtrc

from ihmm._typing import FloatArray
from ihmm.pilot._alternatives import trend, without
from ihmm.pilot._fit import Fit, Series, Structure, improve, most_probable_path, part_of, start
from ihmm.pilot._search import CAREFUL, QUICK, clusters, criterion, reduce, search

DEGREES = (1, 3, 6, 10)  # of the polynomials that are tried as a trend
MOST = 4  # levels around a baseline while it is looked for
ROUNDS = 4  # in which the baseline and the levels around it are improved in turn
BY_CHANCE = 0.05  # probability with which levels without a trend would look like it
STRUCTURE = Structure(1, 2, shared=True, sharp=True)  # while the baseline is looked for


def levels_around_trend(whole: Series, fit: Fit, rng: np.random.Generator) -> tuple[FloatArray, Fit, float] | None:
    """The best baseline, (T, D), for at most the levels of a fit; the levels around it; and their criterion.

    None if values have nothing to do with the time.
    """
    n_visits = 1 + int(np.count_nonzero(np.diff(most_probable_path(whole, fit))))
    tried = [
        (degree, *_alternate(whole, degree, n_states, rng))
        for degree in DEGREES
        if _drifts(whole, degree, n_visits)
        for n_states in range(2, min(fit.n_states, MOST) + 1)
    ]
    if not tried:
        return None
    degree, baseline, _ = max(tried, key=lambda one: _criterion(one[2], one[0]))
    found = search(part_of(without(whole, baseline)), rng)[0]
    baseline, found = _round(whole, degree, baseline, found, CAREFUL)
    found = reduce(part_of(without(whole, baseline)), found)
    return baseline, found, _criterion(found, degree)


def _drifts(series: Series, degree: int, n_visits: int) -> bool:
    """Whether a trend predicts the values by more than chance: each visit counts as one value."""
    away = series.y - np.nanmean(series.y, axis=0)
    rest = np.nansum(np.square(away - trend(series, degree)), axis=0)
    explained = np.nansum(np.square(away), axis=0) - rest
    freedom = n_visits - (degree + 1)
    if freedom < 1:
        return False
    ratio = (explained / degree) / np.maximum(rest / freedom, 1e-300)
    return bool(fdtrc(degree, freedom, ratio.max()) < BY_CHANCE)


def _alternate(whole: Series, degree: int, n_states: int, rng: np.random.Generator) -> tuple[FloatArray, Fit]:
    """A baseline and so many levels around it, improved in turn."""
    baseline = trend(whole, degree)
    part = part_of(without(whole, baseline))
    path = clusters(part, n_states, rng, lasting=True)
    fit = improve(part, start(part, STRUCTURE, path, int(path.max()) + 1), QUICK)
    for _ in range(ROUNDS):
        baseline, fit = _round(whole, degree, baseline, fit, QUICK)
    return baseline, fit


def _round(whole: Series, degree: int, baseline: FloatArray, fit: Fit, iterations: int) -> tuple[FloatArray, Fit]:
    """The baseline given the path of the levels, and the levels given the baseline."""
    path = most_probable_path(without(whole, baseline), fit)
    baseline = trend(without(whole, fit.level[path]), degree)
    return baseline, improve(part_of(without(whole, baseline)), fit, iterations)


def _criterion(fit: Fit, degree: int) -> float:
    """The criterion of the levels, with the parameters of the baseline."""
    assert fit.steps is not None
    return float(criterion(fit) - 0.5 * degree * fit.level.shape[1] * np.log(fit.steps.sum()))
