"""A slow baseline around which there are levels."""

import numpy as np
from scipy.special import fdtrc

from ihmm._typing import FloatArray
from ihmm.pilot._alternatives import trend, without
from ihmm.pilot._fit import Fit, Series, Structure, improve, most_probable_path, part_of, start
from ihmm.pilot._search import CAREFUL, QUICK, clusters, criterion, reduce, search

WAVES = (0, 2, 5)  # cosines of the trends that are tried
MOST = 4  # levels around a baseline while it is looked for
ROUNDS = 4  # in which the baseline and the levels around it are improved in turn
BY_CHANCE = 1e-3  # probability with which levels without a trend would look like it
STRUCTURE = Structure(1, 2, shared=True, sharp=True)  # while the baseline is looked for


def levels_around_trend(whole: Series, fit: Fit, rng: np.random.Generator) -> tuple[FloatArray, Fit, float] | None:
    """The best baseline, (T, D), for fewer levels than those of a fit, the levels around it, and their criterion.

    None if the levels that are in use at a time have nothing to do with the time.
    """
    steps = Series(fit.level[most_probable_path(whole, fit)], whole.offsets)
    tried = [
        (n_waves, *_alternate(whole, n_waves, n_states, rng))
        for n_waves in WAVES
        if _drifts(steps, n_waves)
        for n_states in range(2, min(fit.n_states, MOST + 1))
    ]
    if not tried:
        return None
    n_waves, baseline, _ = max(tried, key=lambda one: _criterion(one[2], one[0]))
    found = search(part_of(without(whole, baseline)), rng)[0]
    baseline, found = _round(whole, n_waves, baseline, found, CAREFUL)
    found = reduce(part_of(without(whole, baseline)), found)
    return baseline, found, _criterion(found, n_waves)


def _drifts(steps: Series, n_waves: int) -> bool:
    """Whether a trend predicts the levels that are in use, by more than chance: each visit is one value."""
    away = steps.y - steps.y.mean(axis=0)
    rest = np.square(away - trend(steps, n_waves)).sum(axis=0)
    explained = np.square(away).sum(axis=0) - rest
    freedom = 1 + np.sum(np.any(np.diff(steps.y, axis=0) != 0, axis=1)) - (n_waves + 2)
    if freedom < 1:
        return False
    ratio = (explained / (n_waves + 1)) / np.maximum(rest / freedom, 1e-300)
    return bool(fdtrc(n_waves + 1, freedom, ratio.max()) < BY_CHANCE)


def _alternate(whole: Series, n_waves: int, n_states: int, rng: np.random.Generator) -> tuple[FloatArray, Fit]:
    """A baseline and so many levels around it, improved in turn."""
    baseline = trend(whole, n_waves)
    part = part_of(without(whole, baseline))
    path = clusters(part, n_states, rng, lasting=True)
    fit = improve(part, start(part, STRUCTURE, path, int(path.max()) + 1), QUICK)
    for _ in range(ROUNDS):
        baseline, fit = _round(whole, n_waves, baseline, fit, QUICK)
    return baseline, fit


def _round(whole: Series, n_waves: int, baseline: FloatArray, fit: Fit, iterations: int) -> tuple[FloatArray, Fit]:
    """The baseline given the path of the levels, and the levels given the baseline."""
    path = most_probable_path(without(whole, baseline), fit)
    baseline = trend(without(whole, fit.level[path]), n_waves)
    return baseline, improve(part_of(without(whole, baseline)), fit, iterations)


def _criterion(fit: Fit, n_waves: int) -> float:
    """The criterion of the levels, with the parameters of the baseline."""
    assert fit.steps is not None
    return criterion(fit) - 0.5 * (n_waves + 1) * fit.level.shape[1] * float(np.log(fit.steps.sum()))
