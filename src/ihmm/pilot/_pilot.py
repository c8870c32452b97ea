"""The pilot: what a recording is made of, with reasons."""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.pilot._alternatives import predictability, without_hum, without_trend
from ihmm.pilot._columns import decorrelation, log_volume, spread_before, transformed
from ihmm.pilot._dynamics import ORDERS, Dynamics, switching
from ihmm.pilot._fit import Fit, Series, improve, part_of, restructured, start
from ihmm.pilot._search import (
    CAREFUL,
    MARGIN,
    SEPARATION,
    SINGLE_STEPS,
    STRUCTURES,
    criterion,
    nearness,
    noise,
    plateaus,
    reduce,
    search,
)

CHUNK = 20_000  # steps decoded at a time
DYNAMICS = 0.05  # nats per value by which switching dynamics have to be better than levels
FEWER_DYNAMICS = 30.0  # nats in all, if there are fewer states than levels
FEW_DYNAMICS = 3  # states; more of them must not be more than there would be levels
ACROSS = 0.25  # nats per value by which the columns predict each other, if nothing else needs to be looked at
HEAVY = 12.0  # degrees of freedom below which tails are heavy
TIED = 0.5  # share of values equal to the one before from which nobody would speak of a trend
WAVES = (0, 2, 5)  # cosines of the trends that are tried
LINE = 1.5  # log n that a line costs: its frequency, amplitude and phase
COARSE = 2.5  # standard deviations between the levels around which hum is looked for
BRIEF = 0.04  # nats per step by which single-step visits have to be better
DEPENDENCE = (
    10.0  # nats by which the state before predicts the next one more than by chance, unless levels are far apart
)
SMOOTH = 0.9  # sum of the coefficients from which a series is smooth: levels in it are a matter of the eye
STANDING_OUT = (
    "{} levels stand out: far apart, visited again and again, with hardly a value in between. Values on a level "
    "follow each other smoothly, which is no reason for further levels, so their number is taken as given."
)
TREND = (
    "A slow trend or a regular wave explains the recording better than levels do, so it is taken for one level. To ask "
    "for levels around the trend, subtract it first, with scipy.signal.detrend or a running median, for example."
)
CORRELATED = "The noise of the columns is correlated, which is taken into account."
NUMBER_GIVEN = "The number of levels, {}, is that of the pilot fit."
WEAK = 0.5  # sum of the coefficients below which memory matters less than correlated noise
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
        (n_states, D): levels, standard deviations around them, and those of what the memory of the noise does not
        predict, in units of the data.
    number_given
        Whether the number of levels is taken as given, not inferred: a single one with a trend, or unmistakable ones.
    correlated
        Whether the noise of the columns is correlated.
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
    number_given: bool
    correlated: bool
    reasons: tuple[str, ...]

    @property
    def n_states(self) -> int:
        return len(self.level)


def pilot(values: Array, offsets: IntArray, seed: int = 0) -> Pilot:
    """Fit real values, (T, D), NaN where missing; `offsets` has the first step of every sequence and the total."""
    values = np.asarray(values, np.float64)
    centre = np.nanmean(values, axis=0)
    unit = np.nanstd(values, axis=0)
    unit = np.where(unit > 0, unit, 1.0)
    whole = standardised = Series((values - centre) / unit, np.asarray(offsets, np.int64))
    part, rng = part_of(whole), np.random.default_rng(seed)
    gain = _across(part)
    if gain > ACROSS:
        return _autoregressive(whole, unit, 1, [_columns_predict(gain)])
    fit, best, hum = _levels(part, rng)
    matrix = decorrelation(part, fit)
    if matrix is not None:
        mixed = transformed(part, matrix)
        other, value, other_hum = _levels(mixed, rng)
        parameters = 0.25 * len(matrix) * (len(matrix) - 1)  # half of log n for each correlation
        if value + log_volume(part, matrix) - parameters * np.log(len(part.y)) > best:
            part, whole, fit, best, hum = mixed, transformed(whole, matrix), other, value, other_hum
        else:
            matrix = None
    fit, best = _single_steps(part, fit, best, rng)
    dynamics = _dynamics(part, rng)
    gain = (dynamics.criterion - best) / part.y.size
    least = DYNAMICS if dynamics.n_states >= fit.n_states else FEWER_DYNAMICS / part.y.size
    switches = gain > least and dynamics.n_states <= max(fit.n_states, FEW_DYNAMICS)
    smooth = fit.structure.order > 0 and (fit.n_states == 1 or fit.coefficients.sum(axis=0).min() > SMOOTH)
    plain = plateaus(part, rng) if switches or smooth else None
    if plain is not None and plain.n_states != fit.n_states:
        fit, hum = plain, []
    elif switches and plain is None:
        return _autoregressive(whole, unit, dynamics.order, [_switch(dynamics, gain)])
    if fit is plain:
        reasons = [STANDING_OUT.format(fit.n_states)]
    elif (fit.n_states == 1 and hum) or (fit.n_states > 1 and _has_trend(part, best)):
        fit, reasons = _one_level(part), [TREND]
    else:
        fit = _dwell(part, fit)
        reasons = _reasons(fit, hum)
    given = fit is plain or reasons == [TREND]
    path = _without_short(_decode(whole, fit), whole.offsets, fit.structure.dwell)
    used, path = np.unique(path, return_inverse=True)
    fit = _select(fit, used)
    structure = fit.structure
    if matrix is not None:
        fit = replace(fit, level=fit.level @ np.linalg.inv(matrix).T, scale=spread_before(fit.scale, matrix))
        reasons = [CORRELATED, *reasons]
        if structure.order > 0:  # no family has both
            given, reasons = True, [*reasons, NUMBER_GIVEN.format(fit.n_states)]
            if np.abs(fit.coefficients.sum(axis=0)).max() < WEAK:
                structure = replace(structure, order=0)
    spread = noise(standardised, fit, path)
    return Pilot(
        "levels",
        structure.order,
        structure.order > 0 and not structure.sharp,
        "shared" if structure.shared else "own",
        "student-t" if fit.dof < HEAVY else "normal",
        structure.dwell,
        SEPARATION * unit * np.sqrt(np.mean(spread**2, axis=0)),
        path,
        centre + unit * fit.level,
        unit * spread,
        unit * fit.scale,
        given,
        matrix is not None,
        tuple(reasons),
    )


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
    found += [(without_trend(series, n), 0.5 * (n + 1) * series.y.shape[1]) for n in WAVES]
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


def _dwell(series: Series, fit: Fit) -> Fit:
    """The fit, or the same levels with visits of a single step if these are clearly better."""
    if fit.n_states == 1 or fit.structure.recalled > 1:
        return fit
    brief = improve(series, restructured(fit, replace(fit.structure, dwell=1)), CAREFUL)
    gain = (brief.log_likelihood - fit.log_likelihood) / len(series.y)
    return reduce(series, brief) if gain > BRIEF else fit


def _decode(series: Series, fit: Fit) -> IntArray:
    """The most probable path, chunk by chunk."""
    path = np.empty(len(series.y), np.int64)
    for begin, end in pairwise(series.offsets):
        for first in range(begin, end, CHUNK):
            last = min(first + CHUNK, end)
            path[first:last] = fit.path(Series(series.y[first:last], np.array([0, last - first])))
    return path


def _without_short(path: IntArray, offsets: IntArray, dwell: int) -> IntArray:
    """The path without visits that are too short, which there may be where chunks meet."""
    path = path.copy()
    for begin, end in pairwise(offsets):
        changes = [begin, *(np.flatnonzero(np.diff(path[begin:end])) + 1 + begin), end]
        for first, last in pairwise(changes[:-1]):
            if last - first < dwell:
                path[first:last] = path[first - 1] if first > begin else path[last]
    return path


def _select(fit: Fit, states: IntArray) -> Fit:
    return replace(fit, level=fit.level[states], scale=fit.scale[states])


def _across(series: Series) -> float:
    """Nats per value by which the columns predict each other's next values better than each its own."""
    if series.y.shape[1] == 1:
        return 0.0
    alone = max(predictability(series, order, across=False) for order in (1, 2, 4))
    across = max(predictability(series, order, across=True) for order in (1, 2))
    return (across - alone) / series.y.size


def _dynamics(series: Series, rng: np.random.Generator) -> Dynamics:
    across = series.y.shape[1] > 1
    found = [switching(series, order, rng, across=across) for order in ORDERS if order <= series.max_order]
    nothing = Dynamics(0, -np.inf, np.zeros(len(series.y), np.int64))
    return max(found, key=lambda one: one.criterion, default=nothing)


def _autoregressive(series: Series, unit: FloatArray, order: int, reasons: list[str]) -> Pilot:
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
        False,
        False,
        tuple(reasons),
    )


def _columns_predict(gain: float) -> str:
    return (
        f"The columns predict each other's next values, by {gain:.2f} nats per value more than each its own: what the "
        "states have is dynamics, not levels."
    )


def _switch(dynamics: Dynamics, gain: float) -> str:
    return (
        f"How values follow each other changes between {dynamics.n_states} states, which explains the series better "
        f"than levels do, by {gain:.2f} nats per value: what the states have is dynamics, not levels."
    )


def _reasons(fit: Fit, hum: list[float]) -> list[str]:
    structure = fit.structure
    memory = ", ".join(f"{a:.2f}" for a in fit.coefficients.mean(axis=1))
    if structure.order == 0:
        reasons = ["The noise is white: values around their level do not depend on the values before."]
    elif structure.sharp:
        reasons = [
            f"The noise has a memory of {structure.order} step(s) (coefficients {memory}), and levels change at once."
        ]
    else:
        reasons = [
            f"The recording was filtered: levels and noise have the same memory of {structure.order} step(s) "
            f"(coefficients {memory}), and changes of level take a few steps."
        ]
    if fit.n_states > 1:
        ratio = np.max(fit.scale.max(axis=0) / fit.scale.min(axis=0))
        own = f"The noise differs between states, by a factor of up to {ratio:.1f}."
        reasons.append("The noise has the same scale in all states." if structure.shared else own)
        reasons.append(
            "A state lasts at least 2 steps: values on the way from one level to another are not states."
            if structure.dwell > 1
            else "There are visits of a single step."
        )
    if fit.dof < HEAVY:
        reasons.append(
            f"There are outliers: the tails are those of a Student t with about {fit.dof:.0f} degrees of freedom."
        )
    if hum:
        periods = ", ".join(f"{period:.1f}" for period in hum)
        reasons.append(f"There is hum, with a period of {periods} steps; it is no reason for further levels.")
    return reasons
