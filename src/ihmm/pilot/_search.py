"""The search for the structure and the number of states with the best penalised likelihood."""

from collections.abc import Iterator, Sequence

import numpy as np

from ihmm._typing import BoolArray, FloatArray, IntArray
from ihmm.pilot._fit import Fit, Series, Structure, improve, merged, restructured, start

FEWEST_STEPS = 10  # per state at the start of a search
FEW, MANY = 8, 16  # states a search starts from; the larger number if the smaller one is nearly used up
QUICK, CAREFUL = 8, 30  # iterations
SEPARATION = 1.5  # standard deviations of the noise by which levels differ at least, or
CLOSE = 1.0  # by which they do if visits are long and no finer levels are preferred: see `distinct`
MARGIN = 3.0  # nats that a state, or a structure, has to gain beyond the penalty
LASTING, LASTING_WEIGHT = 8, 2.6  # steps from which a state lasts: twice the spread then counts as 1.5 deviations
LONG, LONG_WEIGHT = 40, 3.6  # and from which 1.8 times the spread does
PASSING, UNEQUAL, PASSING_WEIGHT = 5, 1.5, 0.6  # brief states of unequal spread have to be 2.5 deviations apart,
SINGLE = 2  # and all states whose visits are shorter than this on average
PLATEAUS, PLAIN, PLAIN_SHARE, PLAIN_VISITS, MAX_BETWEEN = 4, 4.5, 0.05, 3.5, 0.08  # see `plateaus`
VISITS, STEPS = 2.5, 25  # a state has this many visits or this many steps, or
FEWEST_RARE, RARE_GAIN = 8, 20.0  # this many steps, without which the criterion is lower by this many nats
EVENTS, EVENT_GAIN, RETURNS = 10, 3.0, 0.8  # see `_is_event`; nats per step of the events that they gain
WORTH = 0.045  # nats per value by which a state is better than its nearest neighbour, in its own steps
DISTINCT = 4.0  # standard deviations between levels beyond which a state is kept without this test
BASE = Structure(order=2, sharp=False, shared=False)
STRUCTURES = tuple(
    Structure(order, 2, shared, sharp)
    for shared in (True, False)
    for order, sharp in ((0, True), (1, True), (2, True), (1, False), (2, False), (4, False))
)
SINGLE_STEPS = Structure(0, 1, shared=True), Structure(0, 1, shared=False)


def search(series: Series, rng: np.random.Generator, structures: Sequence[Structure] = STRUCTURES) -> tuple[Fit, float]:
    """The best fit over structures and numbers of states, and its criterion before similar states were merged."""
    paths: dict[int, IntArray] = {}
    structures = [structure for structure in structures if structure.order <= series.max_order]
    structure, tried = BASE if BASE in structures else structures[-1], []
    found = None
    for _ in range(3):
        found = _best_number(series, structure, rng, paths)
        tried.append(structure)
        fewer = reduce(series, found)
        candidates = [found, fewer] if fewer.n_states < found.n_states < FEW else [fewer]
        fits = [improve(series, restructured(fit, other), QUICK) for other in structures for fit in candidates]
        best = max(fits, key=criterion)
        if best.structure in tried:
            break
        structure = best.structure
    assert found is not None
    found = improve(series, found, CAREFUL)
    return distinct(series, found), criterion(found)


def plateaus(series: Series, rng: np.random.Generator) -> Fit | None:
    """Levels that stand out, if there are any: far apart, visited again and again, with hardly a value between.

    Smooth series have them, where a long memory of the noise explains each value better than levels in white noise do.
    """
    path = clusters(series, PLATEAUS, rng, lasting=True)
    fit = improve(series, start(series, Structure(0, 2, shared=False), path, int(path.max()) + 1), CAREFUL)
    fit = reduce(series, fit, PLAIN)
    assert fit.steps is not None
    assert fit.visits is not None
    share, visit = fit.steps / fit.steps.sum(), fit.steps / np.maximum(fit.visits, 1.0)
    seen = fit.n_states > 1 and share.min() > PLAIN_SHARE and visit.min() > LASTING and fit.visits.sum() > PLAIN_VISITS
    return fit if seen and _between(series.y, fit.level) < MAX_BETWEEN else None


def _between(y: FloatArray, level: FloatArray) -> float:
    """Share of the values in the middle third of the way between the two levels they are closest to."""
    distance = np.sqrt(np.square(y[:, None] - level).sum(axis=2))
    distance = np.sort(distance[np.isfinite(distance[:, 0])], axis=1)
    return float(np.mean(distance[:, 0] > 0.5 * distance[:, 1]))


def criterion(fit: Fit) -> float:
    """Log likelihood minus half of log n for each parameter, n being the number of steps or changes that inform it."""
    assert fit.steps is not None
    assert fit.exits is not None
    columns, total = fit.level.shape[1], np.log(fit.steps.sum())
    per_state = np.log(np.maximum(fit.steps, 2.0)).sum() * columns
    shared = (fit.structure.order + fit.structure.shared) * columns + np.isfinite(fit.dof)
    own = per_state if fit.structure.shared else 2 * per_state
    rows = (fit.n_states - 1) * np.log(np.maximum(fit.exits, 2.0)).sum()
    return float(fit.log_likelihood - 0.5 * (own + shared * total + rows))


def _best_number(series: Series, structure: Structure, rng: np.random.Generator, paths: dict[int, IntArray]) -> Fit:
    for n_states in (FEW, MANY):
        if n_states not in paths:
            most = min(n_states, len(series.y) // FEWEST_STEPS + 1)
            paths[n_states] = clusters(series, most, rng, lasting=structure.dwell > 1)
        path = paths[n_states]
        fit = improve(
            series, start(series, structure, path, int(path.max()) + 1), QUICK if n_states > FEW else 2 * QUICK
        )
        fits = list(downwards(series, fit))
        values = np.nan_to_num(np.array([criterion(fit) for fit in fits]), nan=-np.inf)
        # the fewest states within the margin
        best = fits[int(np.flatnonzero(values >= values.max() - MARGIN)[-1])]
        if best.n_states < FEW - 1:
            break
    return best


def downwards(series: Series, fit: Fit) -> Iterator[Fit]:
    """The fit, and fits with one state fewer each, down to one: states are merged that are missed least."""
    yield fit
    while fit.n_states > 1:
        loss = _loss(fit)
        many = fit.n_states > FEW
        choices = np.argsort(loss, axis=None)[: 2 if fit.n_states > 2 and not many else 1]
        pairs = [np.unravel_index(i, loss.shape) for i in choices]
        tried = [improve(series, merged(fit, int(a), int(b)), QUICK // 2 if many else QUICK, 0.5) for a, b in pairs]
        fit = max(tried, key=lambda one: one.log_likelihood)
        yield fit


def _loss(fit: Fit) -> FloatArray:
    """(K, K), infinite on and above the diagonal: about how many nats are lost if two states become one."""
    assert fit.steps is not None
    n, whole = fit.steps + 1e-9, 1 - fit.coefficients.sum(axis=0)
    out = np.full((fit.n_states, fit.n_states), np.inf)
    for a in range(fit.n_states):
        for b in range(a):
            pooled = (n[a] * fit.scale[a] ** 2 + n[b] * fit.scale[b] ** 2) / (n[a] + n[b])
            between = n[a] * n[b] / (n[a] + n[b]) * ((fit.level[a] - fit.level[b]) * whole) ** 2 / pooled
            within = 0.5 * (n[a] * np.log(pooled / fit.scale[a] ** 2) + n[b] * np.log(pooled / fit.scale[b] ** 2))
            out[a, b] = (0.5 * between + within).sum()
    return out


def distinct(series: Series, fit: Fit) -> Fit:
    """The best fit by its criterion, without states that no one would tell apart.

    Drift is explained the better the finer the levels are, so that the best fit has some that are much closer than
    those people see. If it has none, levels in white noise of the same scale may be closer: visits show what values do
    not. Noise with a memory would say that something wanders around the levels.
    """
    if fit.n_states == 1 or not fit.structure.shared or fit.structure.order > 0:
        return reduce(series, fit)
    assert fit.steps is not None
    assert fit.visits is not None
    shortest = float((fit.steps / np.maximum(fit.visits, 1.0)).min())
    least = max(CLOSE, SEPARATION * np.sqrt(LASTING / shortest))
    preferred = least < SEPARATION and nearness(series, fit).min() >= least
    return reduce(series, fit, least if preferred else SEPARATION)


def reduce(series: Series, fit: Fit, separation: float = SEPARATION) -> Fit:
    """The fit without states that no one would tell apart, or that are hardly ever visited."""
    while fit.n_states > 1:
        near = nearness(series, fit)
        pair = np.unravel_index(int(np.argmin(near)), near.shape)
        if near[pair] < separation:
            fit = improve(series, merged(fit, int(pair[0]), int(pair[1])), CAREFUL)
            continue
        rare = _rare(fit)
        if rare is not None:
            fewer = improve(series, merged(fit, int(np.argmin(np.minimum(near, near.T)[rare])), rare), CAREFUL)
            least = RARE_GAIN if _steps(fit)[rare] >= FEWEST_RARE and not _passing(fit)[rare] else np.inf
            if _is_event(fit, rare):
                least = EVENT_GAIN * _steps(fit)[rare] * series.y.shape[1]
        elif near[pair] < DISTINCT:
            fewer = improve(series, merged(fit, int(pair[0]), int(pair[1])), CAREFUL)
            least = WORTH * series.y.shape[1] * _steps(fit)[list(pair)].min()
        else:
            break
        if criterion(fit) - criterion(fewer) > least:
            break
        fit = fewer
    return fit


def _steps(fit: Fit) -> FloatArray:
    assert fit.steps is not None
    return fit.steps


def _rare(fit: Fit) -> int | None:
    """A state with too few visits and steps, or whose visits hardly last longer than they must: a change on its way."""
    assert fit.steps is not None
    assert fit.visits is not None
    rare = (fit.visits < VISITS) & (fit.steps < max(STEPS, 5 * fit.structure.dwell))
    weak = np.flatnonzero(rare | _passing(fit))
    return int(weak[np.argmin(fit.steps[weak])]) if weak.size else None


def _passing(fit: Fit) -> BoolArray:
    """(K,): states whose visits hardly last longer than they must."""
    assert fit.steps is not None
    assert fit.visits is not None
    dwell = fit.structure.dwell
    return np.asarray((fit.steps / np.maximum(fit.visits, 1.0) < 1.4 * dwell) & (dwell > 1))


def _is_event(fit: Fit, k: int) -> bool:
    """Whether a state is one of brief events that leave another level, always in the same direction, and return to it.

    Blockades of a pore, for example. Outliers go in both directions, and changes on their way do not return.
    """
    assert fit.visits is not None
    came = fit.exit * fit.jump[:, k] * _steps(fit)
    came /= max(came.sum(), 1e-300)
    origin = int(came.argmax())
    far = np.abs(fit.level[k] - fit.level[origin]) > fit.scale[k]
    return bool(fit.visits[k] >= EVENTS and came @ fit.jump[k] > RETURNS and far.any())


def nearness(series: Series, fit: Fit) -> FloatArray:
    """(K, K), infinite on and above the diagonal: how far apart the values of two states are, in standard deviations.

    For states of equal spread, the difference of their levels in units of it. In general the same function of the
    overlap (Bhattacharyya coefficient) of two normal laws; differences in many columns count for less than their sum.
    A difference in spread counts for more if both states last: a single value does not show it, a visit does. Brief
    states of unequal spread need a clearer difference: they are more often one law that is not normal. So do states of
    single steps, which only single values show.
    """
    assert fit.steps is not None
    assert fit.visits is not None
    path = fit.path(series)
    columns = series.y.shape[1]
    spread = noise(series, fit, path)
    visit = fit.steps / np.maximum(fit.visits, 1.0)
    out = np.full((fit.n_states, fit.n_states), np.inf)
    for a in range(fit.n_states):
        for b in range(a):
            mean = 0.5 * (spread[a] ** 2 + spread[b] ** 2)
            shorter = min(visit[a], visit[b])
            weight = LONG_WEIGHT if shorter >= LONG else LASTING_WEIGHT if shorter >= LASTING else 1.0
            square = (fit.level[a] - fit.level[b]) ** 2 / mean + 4 * weight * np.log(mean / (spread[a] * spread[b]))
            unequal = np.max(np.abs(np.log(spread[a] / spread[b]))) > np.log(UNEQUAL)
            out[a, b] = np.sqrt(square.sum()) / columns**0.25
            brief = shorter < SINGLE or (shorter <= PASSING and unequal)
            out[a, b] *= PASSING_WEIGHT if brief else 1.0
    return out


def noise(series: Series, fit: Fit, path: IntArray) -> FloatArray:
    """(K, D): spread of the values of each state around its level; one for all if scales are shared."""
    away = series.y - fit.level[path]
    everywhere = np.sqrt(np.nanmean(np.clip(away, *_robust_range(away)) ** 2, axis=0)) + 1e-9
    out = np.tile(everywhere, (fit.n_states, 1))
    if not fit.structure.shared:
        for k in range(fit.n_states):
            here = away[path == k]
            if len(here) > 1:
                out[k] = np.sqrt(np.nanmean(np.clip(here, *_robust_range(here)) ** 2, axis=0)) + 1e-9
    return out


def _robust_range(away: FloatArray) -> tuple[FloatArray, FloatArray]:
    middle = 3 * 1.4826 * np.nanmedian(np.abs(away), axis=0)
    return -middle, middle


def clusters(series: Series, n_states: int, rng: np.random.Generator, *, lasting: bool, restarts: int = 3) -> IntArray:
    """(T,): clusters of the values by k-means, after a running median of three if levels are `lasting`."""
    known = ~np.isnan(series.y)
    latest = np.maximum.accumulate(np.where(known, np.arange(len(known))[:, None], 0), axis=0)
    y = np.nan_to_num(np.take_along_axis(series.y, latest, axis=0))
    smooth = y.copy()
    if lasting:
        smooth[1:-1] = np.median(np.stack([y[:-2], y[1:-1], y[2:]]), axis=0)
    for begin in series.offsets[1:-1]:
        smooth[begin - 1 : begin + 1] = y[begin - 1 : begin + 1]
    best, least = np.zeros(len(y), np.int64), np.inf
    for _ in range(restarts):
        centres = smooth[[rng.integers(len(smooth))]]
        for _ in range(n_states - 1):
            far = np.square(smooth[:, None] - centres).sum(axis=2).min(axis=1)
            if far.sum() == 0:
                break
            centres = np.vstack([centres, smooth[rng.choice(len(smooth), p=far / far.sum())]])
        for _ in range(20):
            far = np.square(smooth[:, None] - centres).sum(axis=2)
            path = far.argmin(axis=1)
            centres = np.array([smooth[path == k].mean(axis=0) for k in np.unique(path)])
        total = far.min(axis=1).sum()
        if total < least:
            best, least = path, total
    return np.unique(best, return_inverse=True)[1]
