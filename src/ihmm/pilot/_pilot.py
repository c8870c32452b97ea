"""The pilot: what a recording is made of, with reasons."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.pilot._alternatives import predictability, trend, without, without_hum
from ihmm.pilot._baseline import DEGREES, levels_around_trend
from ihmm.pilot._columns import cost, decorrelation, differ, transformed
from ihmm.pilot._dynamics import ORDERS, Dynamics, switching
from ihmm.pilot._fit import MAX_ORDER, Fit, Series, improve, most_probable_path, part_of, restructured, start
from ihmm.pilot._reasons import (
    AROUND_TREND,
    CORRELATED,
    HEAVY,
    OWN_CORRELATIONS,
    STANDING_OUT,
    TREND,
    WITHIN_VISITS,
    columns_predict,
    dynamics_switch,
    levels_in_noise,
)
from ihmm.pilot._search import (
    CAREFUL,
    MARGIN,
    PASSING_WEIGHT,
    SEPARATION,
    SINGLE,
    SINGLE_STEPS,
    STRUCTURES,
    clusters,
    criterion,
    nearness,
    noise,
    plateaus,
    reduce,
    search,
)
from ihmm.pilot._segments import levels_of_segments
from ihmm.pilot._visits import levels_with_course

DYNAMICS = 0.05  # nats per value by which switching dynamics have to be better than levels
FEWER_DYNAMICS = 30.0  # nats in all, if there are fewer states than levels
FEW_DYNAMICS = 3  # states; more of them must not be more than there would be levels
ACROSS = 0.25  # nats per value by which the columns predict each other, if nothing else needs to be looked at
CLUSTERS = 3  # of the values, that may follow each other from step to step
TIED = 0.5  # share of values equal to the one before from which no trend is looked for
LINE = 1.5  # log n that a line costs: its frequency, amplitude and phase
COARSE = 2.5  # standard deviations between the levels around which hum is looked for
BRIEF = 0.04  # nats per step by which single-step visits have to be better
DEPENDENCE = 10.0  # nats beyond chance by which the state before predicts the next, unless levels are far apart
SMOOTH = 0.9  # sum of the coefficients from which a series is smooth: levels in it are a matter of the eye
ALIKE = 1.5  # ratio of the scales of two states up to which they are the same, as for levels in `summaries.overlap`
LONGER, LONGER_GAIN = 8, 0.05  # order of a filter, and nats per value by which it is better than the longest searched
ROUNDS = 3  # in which correlations are estimated from the levels, and levels found given the correlations
FORGOTTEN = 0.05  # coefficients up to which noise may be white
FAR = 3.0  # standard deviations between levels whose order does not matter


@dataclass(frozen=True, eq=False)
class Pilot:
    """The structure of a model for a recording, a path to start from, and why.

    Attributes
    ----------
    family
        ``"levels"``, or ``"autoregressive"`` if the columns follow dynamics of their own; the rest is about levels.
    order, filtered
        Memory of the noise. Levels pass through the same filter as the noise if `filtered`, else they change at once.
    scale, tails
        ``"shared"`` or ``"own"``; ``"normal"`` or ``"student-t"``.
    min_dwell
        Steps that a state lasts at least.
    resolution
        (D,): levels that differ by less, in units of the data, are not told apart.
    states, n_states
        (T,): the path; its number of states.
    level, noise, innovation
        (n_states, D): levels, standard deviations around them, and those of what neither the memory of the noise nor
        that of correlated columns before predicts, in units of the data.
    baseline
        (T, D): a slow trend, or a course of values within visits, around which the levels are; None if there is none.
    number_given
        Whether the number of levels is taken as given, not inferred: a single one with a trend, or unmistakable ones.
    correlated, own_correlations
        Whether the noise of the columns is correlated; and whether it is so in each state in its own way.
    criterion
        Penalised log likelihood of the values, in units of the data, that structures are compared by; −∞ if nothing was
        compared.
    reasons
        Sentences.
    """

    family: str
    order: int
    filtered: bool
    scale: str
    tails: str
    min_dwell: int
    resolution: FloatArray
    states: IntArray
    level: FloatArray
    noise: FloatArray
    innovation: FloatArray
    baseline: FloatArray | None
    number_given: bool
    correlated: bool
    own_correlations: bool
    criterion: float
    reasons: tuple[str, ...]

    @property
    def n_states(self) -> int:
        return len(self.level)


class Found(NamedTuple):
    """Levels, and the series they were found in: that of the columns, or of their product with a matrix."""

    whole: Series
    part: Series  # in which structures are compared
    fit: Fit
    criterion: float
    hum: list[float]  # periods
    matrix: FloatArray | None
    baseline: FloatArray | None = None  # (T, D): around which the levels are, already subtracted
    why: str = ""  # there is a baseline


class Decision(NamedTuple):
    fit: Fit
    number_given: bool
    reasons: list[str]


def pilot(values: Array, offsets: IntArray, seed: int = 0) -> Pilot:
    """Fit real values, (T, D), NaN where missing; `offsets` has the first step of every sequence and the total."""
    values, rng = np.asarray(values, np.float64), np.random.default_rng(seed)
    centre, unit = np.nanmean(values, axis=0), np.nanstd(values, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    series = Series((values - centre) / unit, np.asarray(offsets, np.int64))
    gain = _across(part_of(series), rng)
    if gain > ACROSS:
        return _autoregressive(series, unit, 1, -np.inf, columns_predict(gain))
    found = _find_levels(series, rng)
    dynamics = _dynamics(found.part, rng)
    gain = (dynamics.criterion - found.criterion) / found.part.y.size
    switches = _are_better(dynamics, gain, found)
    plain = plateaus(found.part, rng) if switches or _is_smooth(found.fit) else None
    if switches and plain is None:
        value = _in_units(found, unit, dynamics.criterion)
        return _autoregressive(series, unit, dynamics.order, value, dynamics_switch(dynamics, gain))
    fit, number_given, reasons = _decide(found, plain)
    path = most_probable_path(found.whole, fit)
    used, path = np.unique(path, return_inverse=True)
    fit = replace(fit, level=fit.level[used], scale=fit.scale[used])
    own_correlations = False
    if found.matrix is not None:
        white = fit.structure.order == 0 and fit.dof >= HEAVY
        own_correlations = white and differ(found.whole, fit, path)
        fit = _in_columns(fit, found.matrix)
        reasons = [OWN_CORRELATIONS if own_correlations else CORRELATED, *reasons]
    baseline = found.baseline
    if baseline is not None:
        if found.matrix is not None:
            baseline = baseline @ np.linalg.inv(found.matrix).T
        series = without(series, baseline)
        reasons = [found.why, *reasons]
    spread, structure = noise(series, fit, path), fit.structure
    return Pilot(
        "levels",
        structure.order,
        structure.order > 0 and not structure.sharp,
        "shared" if structure.shared else "own",
        "student-t" if fit.dof < HEAVY else "normal",
        structure.dwell,
        _separation(path) * unit * np.sqrt(np.mean(spread**2, axis=0)),
        path,
        centre + unit * fit.level,
        unit * spread,
        unit * fit.scale,
        None if baseline is None else unit * baseline,
        number_given,
        found.matrix is not None,
        own_correlations,
        _in_units(found, unit, found.criterion),
        tuple(reasons),
    )


def _in_units(found: Found, unit: FloatArray, criterion: float) -> float:
    """A criterion of the standardised, perhaps transformed series as one of the data."""
    of_columns = criterion if found.matrix is None else criterion + cost(found.part, found.matrix)
    return float(of_columns - found.part.counted.sum() * np.log(unit).sum())


def _separation(path: IntArray) -> float:
    """Standard deviations of the noise below which levels are not told apart: more if visits are single steps."""
    visit = len(path) / (1 + np.count_nonzero(np.diff(path)))
    return SEPARATION / PASSING_WEIGHT if visit < SINGLE else SEPARATION


def _find_levels(whole: Series, rng: np.random.Generator) -> Found:
    """The best levels, in coordinates whose noise is independent if these are better than the columns.

    Levels that are found in noise taken for independent may be wrong, and so are the correlations around them.
    """
    columns = part = part_of(whole)
    matrix = np.eye(columns.y.shape[1])
    fit, best, hum = _levels(part, rng)
    total = best  # in units of the columns
    for _ in range(ROUNDS):
        turn = decorrelation(part, fit, best)
        if turn is None:
            break
        mixed, product = transformed(part, turn), turn @ matrix
        other, value, other_hum = _levels(mixed, rng)
        in_columns = value + cost(columns, product)
        if in_columns <= total:
            break
        part, matrix, fit, best, hum, total = mixed, product, other, value, other_hum, in_columns
    correlated = part is not columns
    if correlated:
        whole = transformed(whole, matrix)
    fit, best = _single_steps(part, fit, best, rng)
    return _around_baseline(_staircase(Found(whole, part, fit, best, hum, matrix if correlated else None)), rng)


def _staircase(found: Found) -> Found:
    """What was found, or the levels of segments if these are better than noise with a long memory."""
    stairs = levels_of_segments(found.part) if _is_smooth(found.fit) else None
    if stairs is None or stairs.n_states == 1 or criterion(stairs) < found.criterion + MARGIN:
        return found
    return found._replace(fit=stairs, criterion=criterion(stairs), hum=[])


def _around_baseline(found: Found, rng: np.random.Generator) -> Found:
    """What was found, or fewer levels around a slow trend or a course within visits, if these are better.

    Noise with a long memory may stand for a trend: then there may be as many levels around it.
    """
    n_levels, wanders = found.fit.n_states, found.fit.structure.order > 0 and _is_smooth(found.fit)
    others = [(WITHIN_VISITS, levels_with_course(found.whole, found.fit))] if n_levels > 2 else []
    if len(found.whole.offsets) == 2 and (n_levels > 2 or (n_levels == 2 and wanders)):
        around = levels_around_trend(found.whole, found.fit, rng)
        others += [(AROUND_TREND, around)] if around is not None else []
    for why, (baseline, fit, value) in sorted(others, key=lambda other: -other[1][2]):
        fewer = fit.n_states < n_levels or (fit.n_states == n_levels and wanders and why == AROUND_TREND)
        if fit.n_states > 1 and fewer and value > found.criterion + MARGIN:
            whole = without(found.whole, baseline)
            return Found(whole, part_of(whole), fit, value, [], found.matrix, baseline, why.format(fit.n_states))
    return found


def _are_better(dynamics: Dynamics, gain: float, found: Found) -> bool:
    """Whether switching dynamics explain the series better than levels, by `gain` nats per value."""
    fewer = dynamics.n_states < found.fit.n_states
    enough = gain > (FEWER_DYNAMICS / found.part.y.size if fewer else DYNAMICS)
    return enough and dynamics.n_states <= max(found.fit.n_states, FEW_DYNAMICS)


def _is_smooth(fit: Fit) -> bool:
    return fit.structure.order > 0 and (fit.n_states == 1 or bool(fit.coefficients.sum(axis=0).min() > SMOOTH))


def _decide(found: Found, plain: Fit | None) -> Decision:
    """The levels that were found, those that stand out, or a single one around a trend."""
    fit = found.fit
    if plain is not None and plain.n_states != fit.n_states:
        return Decision(plain, True, [STANDING_OUT.format(plain.n_states)])
    if (fit.n_states == 1 and found.hum) or (fit.n_states > 1 and _has_trend(found.part, found.criterion)):
        return Decision(_one_level(found.part), True, [TREND])
    fit = _scales(found.part, _dwell(found.part, _longer_memory(found.part, _memory(found.part, fit))))
    return Decision(fit, False, levels_in_noise(fit, found.hum))


def _in_columns(fit: Fit, matrix: FloatArray) -> Fit:
    """The fit in units of the columns, with the scales of what each has of its own beside the columns before it."""
    back = np.linalg.inv(matrix)
    return replace(fit, level=fit.level @ back.T, scale=fit.scale * np.diag(back))


def _levels(part: Series, rng: np.random.Generator) -> tuple[Fit, float, list[float]]:
    """The best fit, its criterion, and the periods of the hum if it is better with the hum taken out."""
    fit, best = search(part, rng)
    coarse = reduce(part, fit, COARSE)
    quiet, periods = without_hum(part, coarse.level[coarse.path(part)])
    if periods:
        other, value = search(quiet, rng)
        value -= LINE * len(periods) * np.log(len(part.y))
        if value > best:
            return other, value, periods
    return fit, best, []


def _has_trend(series: Series, best: float) -> bool:
    """Whether one level around a slow trend or a wave is better than the best criterion of levels."""
    if len(series.offsets) > 2 or np.mean(np.diff(series.y, axis=0) == 0) > TIED:
        return False
    quiet, periods = without_hum(series, np.zeros_like(series.y))
    found = [(quiet, LINE * len(periods))] if periods else []
    found += [(without(series, trend(series, n)), 0.5 * n * series.y.shape[1]) for n in DEGREES]
    values = [criterion(_one_level(without)) - parameters * np.log(len(series.y)) for without, parameters in found]
    return bool(max(values) > best + MARGIN)


def _one_level(series: Series) -> Fit:
    """The best fit with a single state."""
    path = np.zeros(len(series.y), np.int64)
    structures = [one for one in STRUCTURES if one.shared and one.order <= series.max_order]
    return max((improve(series, start(series, one, path, 1), CAREFUL) for one in structures), key=criterion)


def _single_steps(series: Series, fit: Fit, best: float, rng: np.random.Generator) -> tuple[Fit, float]:
    """The fit and its criterion, or levels in white noise that may last a single step, if there are no others.

    These have to be far apart, or to depend on the level before: otherwise they are one law that is not normal.
    """
    if fit.n_states > 1:
        return fit, best
    brief, value = search(series, rng, SINGLE_STEPS)
    if brief.n_states == 1 or value - best < BRIEF * len(series.y):
        return fit, best
    assert brief.steps is not None
    share = brief.steps / brief.steps.sum()
    rows = np.diag(1 - brief.exit) + brief.exit[:, None] * brief.jump
    dependence = brief.steps @ (rows * np.log(np.maximum(rows, 1e-300) / share)).sum(axis=1)
    by_chance = 0.5 * (brief.n_states - 1) ** 2  # half a nat for each degree of freedom
    if dependence > DEPENDENCE + by_chance or nearness(series, brief).min() > FAR:
        return brief, value
    return fit, best


def _memory(series: Series, fit: Fit) -> Fit:
    """The fit, or the same levels in white noise if the noise hardly remembers anything and nothing is gained by it."""
    if fit.structure.order == 0 or np.abs(fit.coefficients).max() > FORGOTTEN:
        return fit
    white = improve(series, restructured(fit, replace(fit.structure, order=0, sharp=True)), CAREFUL)
    return white if criterion(white) > criterion(fit) - MARGIN else fit


def _longer_memory(series: Series, fit: Fit) -> Fit:
    """The fit, or the same levels through a longer filter: recordings are often sampled faster than they change."""
    if fit.structure.order < MAX_ORDER or fit.structure.sharp or series.max_order < MAX_ORDER:
        return fit
    longer = improve(series, restructured(fit, replace(fit.structure, order=LONGER)), CAREFUL)
    return longer if criterion(longer) - criterion(fit) > LONGER_GAIN * series.y.size else fit


def _dwell(series: Series, fit: Fit) -> Fit:
    """The fit, or the same levels with visits of a single step if these are clearly better."""
    if fit.n_states == 1 or fit.structure.recalled > 1:
        return fit
    brief = improve(series, restructured(fit, replace(fit.structure, dwell=1)), CAREFUL)
    gain = (brief.log_likelihood - fit.log_likelihood) / len(series.y)
    return reduce(series, brief) if gain > BRIEF else fit


def _scales(series: Series, fit: Fit) -> Fit:
    """The fit, or the same levels with one scale for all if theirs hardly differ.

    If each state had its own, blurred changes of level would become a state with a large one.
    """
    if fit.structure.shared or fit.n_states == 1 or np.max(fit.scale.max(axis=0) / fit.scale.min(axis=0)) > ALIKE:
        return fit
    return improve(series, restructured(fit, replace(fit.structure, shared=True)), CAREFUL)


def _across(series: Series, rng: np.random.Generator) -> float:
    """Nats per value by which the columns predict each other's next values better than each its own.

    0 if a few clusters that follow each other explain them better: values that alternate predict each other, too.
    """
    if series.y.shape[1] == 1:
        return 0.0
    alone = max(predictability(series, order, across=False) for order in (1, 2, 4))
    across = max(predictability(series, order, across=True) for order in (1, 2))
    gain = (across - alone) / series.y.size
    if gain > ACROSS:
        path = clusters(series, CLUSTERS, rng, lasting=False)
        alternating = improve(series, start(series, SINGLE_STEPS[1], path, int(path.max()) + 1), CAREFUL)
        if criterion(alternating) > across:
            return 0.0
    return gain


def _dynamics(series: Series, rng: np.random.Generator) -> Dynamics:
    across = series.y.shape[1] > 1
    found = [switching(series, order, rng, across=across) for order in ORDERS if order <= series.max_order]
    nothing = Dynamics(0, -np.inf, np.zeros(len(series.y), np.int64))
    return max(found, key=lambda one: one.criterion, default=nothing)


def _autoregressive(series: Series, unit: FloatArray, order: int, criterion: float, reason: str) -> Pilot:
    nothing = np.zeros((1, series.y.shape[1]))
    path = np.zeros(len(series.y), np.int64)
    return Pilot(
        "autoregressive",
        order,
        False,
        "own",
        "normal",
        1,
        0 * unit,
        path,
        nothing,
        nothing,
        nothing,
        None,
        False,
        False,
        False,
        criterion,
        (reason,),
    )
