"""Model criticism: where the data contradict the model, and the setting that answers it.

Given the states and parameters of a draw from the posterior, residuals are independent and standard normal if the model
is right. A finding must be significant and large: on long series, every real recording deviates significantly.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple, cast

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.data import Data
from ihmm.diagnostics.check import Criticism
from ihmm.diagnostics.doubts import check_length, check_overlap, check_rival
from ihmm.diagnostics.residuals import residuals
from ihmm.emissions import LogScale
from ihmm.emissions.noisy_levels import MAX_ORDER
from ihmm.model import Draw, Model, on_additive_scale
from ihmm.priors import FinitePrior
from ihmm.summaries.levels import Levels
from ihmm.summaries.summary import dwell_times

MIN_Z = 5.0  # standard errors by which a statistic must differ from its value under the model
CORRELATION, GROSS_CORRELATION = 0.1, 0.2  # of successive residuals within a visit
KURTOSIS, GROSS_KURTOSIS = 1.0, 3.0  # excess over a normal distribution
DISPERSION, GROSS_DISPERSION = 1.15, 1.4  # standard deviation of residuals
OVERDISPERSED = 'emission="negative-binomial"'
MAX_SCORE = 6.0  # larger residuals count as this, so that a single one does not decide
LINE_ORDER = 4  # of noise whose memory can stand for an oscillation
LINE_SHARE, GROSS_LINE, LINE_WINDOW, LONGEST_LINE = 0.02, 0.1, 101, 2**17
LINE_CHANCE, LINE_MARGIN = 1e-4, 1.3  # of a false line, and a margin because the power around it is estimated
MIN_VISITS, DWELL_EFFECT = 50, 0.1
BLUR_DWELL, BLUR_SHARE = 2.0, 0.7
CYCLE_STEP, CYCLE_DWELL = 0.8, 10.0
NEIGHBOURS = 0.85  # of the changes of a continuous movement
MIN_VALUES = 100


class Visits(NamedTuple):
    """The visits of one state sequence, in order, with the visits before and after in the same series."""

    length: IntArray
    state: IntArray
    before: IntArray  # −1 at the start of a series
    after: IntArray  # −1 at the end


def criticise(
    model: Model, data: Data, draws: Sequence[Draw], levels: Levels, label_of: Sequence[IntArray]
) -> list[Criticism]:
    """Examine some draws.

    `label_of` are, for each draw, the states of the summary that its states match.
    """
    if not isinstance(model.emission, LogScale):
        return _criticise(model, data, draws, levels, label_of)
    model, data = on_additive_scale(model, data)
    if levels.centers is not None:
        levels = replace(levels, centers=np.log(levels.centers))
    found = _criticise(model, data, draws, levels, label_of, logs=True)
    return [_of_logarithms(each) if each.setting.startswith("emission=") else each for each in found]


def _of_logarithms(criticism: Criticism) -> Criticism:
    """What is answered by a setting for the logarithms, which is none for the values."""
    text = criticism.text[0].lower() + criticism.text[1:]
    return criticism._replace(text=f"Of the logarithms: {text}", setting="")


def _criticise(
    model: Model, data: Data, draws: Sequence[Draw], levels: Levels, label_of: Sequence[IntArray], logs: bool = False
) -> list[Criticism]:
    scores = [residuals(np.random.default_rng(i), model, data, draw) for i, draw in enumerate(draws)]
    found: list[Criticism] = []
    correlation = check_correlation(model, scores, [draw.states for draw in draws], data.offsets)
    found += correlation
    found += check_tails(model, scores)
    found += check_dispersion(model, scores)
    values = np.asarray(data.values, np.float64).reshape(len(data.y), -1)
    if not correlation:
        found += check_lines(model, scores, values, data.offsets)
    visits, level_visits = (visits_of(path, data.offsets) for path in (levels.summary.states, levels.segmentation))
    if levels.centers is not None:
        found += check_movement(model, values[:, 0], levels, level_visits)
        found += check_outliers(model, values[:, 0], levels, level_visits)
    if getattr(model, "duration", None) is None:
        found += check_blur(visits, levels)
        found += check_dwell(
            [visits_of(label[draw.states], data.offsets) for draw, label in zip(draws, label_of, strict=True)]
        )
    found += check_length(model, values)
    found += check_overlap(levels)
    found += check_rival(model, values, data.offsets, levels, of_logarithms=not logs)
    found += check_cycle(level_visits, levels.n_levels)
    if is_number_given(model, levels):
        # Their number is given, so that nothing can create too many: no change of the model is advised.
        return [Criticism(criticism.text.partition(":")[0].rstrip(".") + ".", False) for criticism in found]
    return found


def is_number_given(model: Model, levels: Levels) -> bool:
    """Whether the model has as many states as there are levels, so that their number was not inferred."""
    return isinstance(model.prior, FinitePrior) and model.prior.n_states == levels.n_levels


def visits_of(states: IntArray, offsets: IntArray) -> Visits:
    length, state = dwell_times(states, offsets)
    first = np.isin(np.cumsum(length) - length, offsets[:-1])
    before, after = np.append(-1, state[:-1]), np.append(state[1:], -1)
    before[first] = -1
    after[np.append(first[1:], True)] = -1
    return Visits(length, state, before, after)


# Residuals


def check_correlation(
    model: Model, scores: Sequence[FloatArray], paths: Sequence[IntArray], offsets: IntArray
) -> list[Criticism]:
    """Successive residuals within a visit."""
    worst, column = 0.0, 0
    n_columns = scores[0].shape[1]
    for d in range(n_columns):
        each = [_lag_one(z[:, d], states, offsets) for z, states in zip(scores, paths, strict=True)]
        r, n = np.median([r for r, _ in each]), np.median([n for _, n in each])
        if n >= MIN_VALUES and abs(r) > CORRELATION and abs(r) * np.sqrt(n) > MIN_Z and abs(r) > abs(worst):
            worst, column = float(r), d
    if worst == 0.0:
        return []
    where = f" (column {column})" if n_columns > 1 else ""
    setting, advice = _with_memory(model)
    text = f"Residuals within states have lag-1 autocorrelation {worst:.2f}{where}: {advice}"
    return [Criticism(text.replace("-0", "−0"), abs(worst) > GROSS_CORRELATION, setting)]


def _lag_one(z: FloatArray, states: IntArray, offsets: IntArray) -> tuple[float, int]:
    """Correlation of successive residuals of the same visit, and the number of pairs."""
    together = states[1:] == states[:-1]
    together[offsets[1:-1] - 1] = False
    clipped = np.clip(z, -MAX_SCORE, MAX_SCORE)
    one, two = clipped[:-1][together], clipped[1:][together]
    known = np.isfinite(one) & np.isfinite(two)
    one, two = one[known], two[known]
    square = float(np.sqrt(np.square(one).sum() * np.square(two).sum()))
    return (float(one @ two) / square if square > 0 else 0.0), int(known.sum())


def _with_memory(model: Model) -> tuple[str, str]:
    """The setting with a longer memory, and how to say it."""
    emission = model.emission
    name, order = type(emission).__name__, int(getattr(emission, "order", 0))
    if name == "NoisyLevels":
        if order >= MAX_ORDER:
            return "", "the noise remembers more than the model allows for; take every other value, for example."
        longer = min(max(2 * order, 1), MAX_ORDER)
        return (
            f'emission="levels", order={longer}',
            f'the noise has a memory; try emission="levels" with order={longer}.',
        )
    if name == "Autoregressive":
        return f'emission="autoregressive", order={order + 1}', f"try order={order + 1}."
    if name in ("Poisson", "NegativeBinomial", "Multinomial", "Independent"):
        return "", "values of successive steps depend on each other, which this family does not allow for."
    advice = 'the noise has a memory; try emission="levels" with order=1, or emission="autoregressive".'
    return 'emission="levels", order=1', advice


def check_tails(model: Model, scores: Sequence[FloatArray]) -> list[Criticism]:
    """Excess kurtosis."""
    worst, column = 0.0, 0
    for d in range(scores[0].shape[1]):
        each = []
        for z in scores:
            known = np.clip(z[np.isfinite(z[:, d]), d], -MAX_SCORE, MAX_SCORE)
            if len(known) < MIN_VALUES or np.ptp(known) == 0:
                continue
            centered = known - known.mean()
            each.append((np.mean(centered**4) / np.mean(centered**2) ** 2 - 3, len(known)))
        if each:
            excess, n = np.median(each, axis=0)
            if excess > max(KURTOSIS, MIN_Z * np.sqrt(24 / n), worst):
                worst, column = float(excess), d
    if worst == 0.0:
        return []
    setting, advice = _with_heavy_tails(model)
    where = f" (column {column})" if scores[0].shape[1] > 1 else ""
    text = f"Residuals within states have heavy tails, excess kurtosis {worst:.1f}{where}: {advice}"
    return [Criticism(text, worst > GROSS_KURTOSIS, setting)]


def _with_heavy_tails(model: Model) -> tuple[str, str]:
    """The setting that allows for outliers, if it is not in force, and how to say it."""
    emission = model.emission
    name, order = type(emission).__name__, int(getattr(emission, "order", 0))
    if name == "NoisyLevels" and getattr(emission, "tails", "") == "normal":
        setting = f'emission="levels", order={order}'
        return setting, f'the noise has outliers; try emission="levels" with order={order}, whose tails are heavy.'
    if name in ("Normal", "NormalMean"):
        return 'emission="student-t"', 'the noise has outliers; try emission="student-t".'
    if name == "Poisson":
        return OVERDISPERSED, f"counts vary more than a Poisson law allows; try {OVERDISPERSED}."
    return (
        "",
        "the noise has outliers that the model does not allow for; mark them as missing (NaN) if they are faults.",
    )


def check_dispersion(model: Model, scores: Sequence[FloatArray]) -> list[Criticism]:
    """Counts that vary more within states than Poisson counts, whose variance is their mean."""
    if type(model.emission).__name__ != "Poisson":
        return []
    known = [z[np.isfinite(z)] for z in scores]
    spread, n = np.median([z.std() for z in known]), np.median([len(z) for z in known])
    if n < MIN_VALUES or spread < DISPERSION or (spread - 1) * np.sqrt(2 * n) < MIN_Z:
        return []
    text = f"Counts vary more within states than a Poisson law allows, residuals have standard deviation {spread:.2f}"
    return [Criticism(f"{text} instead of 1; try {OVERDISPERSED}.", bool(spread > GROSS_DISPERSION), OVERDISPERSED)]


def check_lines(model: Model, scores: Sequence[FloatArray], values: FloatArray, offsets: IntArray) -> list[Criticism]:
    """A single frequency with more power than its neighbours, such as hum.

    It is gross if the series itself has much of its variance there: levels are then phases of it.
    """
    longest = int(np.argmax(np.diff(offsets)))
    begin = offsets[longest]
    end = min(offsets[longest + 1], begin + LONGEST_LINE)
    if end - begin < 4 * LINE_WINDOW:
        return []
    for d in range(scores[0].shape[1]):
        share, period = np.median([_line(z[begin:end, d]) for z in scores], axis=0)
        if share > LINE_SHARE:
            text = f"{share:.0%} of the variance within states is an oscillation with a period of {period:.3g} steps"
            advice = "hum, for instance: filter it out before the fit"
            in_force = int(getattr(model.emission, "order", 0)) >= LINE_ORDER
            advice += "." if in_force else f', or try emission="levels" with order={LINE_ORDER}.'
            whole = max((_share_at(column, period) for column in values[begin:end].T), default=0.0)
            return [Criticism(f"{text}: {advice}", bool(max(share, whole) > GROSS_LINE))]
    return []


def _share_at(y: FloatArray, period: float) -> float:
    """Share of the variance of a series at one period."""
    known = np.where(np.isfinite(y), y - np.nanmean(y), 0.0)
    power = np.square(np.abs(np.fft.rfft(known)))[1:]
    peak = round(len(y) / period) - 1
    return float(power[max(peak - 2, 0) : peak + 3].sum() / max(power.sum(), 1e-300))


def _line(z: FloatArray) -> tuple[float, float]:
    """Share of the variance in the strongest line of the spectrum, 0 if it is not significant, and its period."""
    known = np.where(np.isfinite(z), np.clip(z, -MAX_SCORE, MAX_SCORE), 0.0)
    power = np.square(np.abs(np.fft.rfft(known - known.mean())))[1:]
    from scipy.ndimage import median_filter  # slow to import

    around = median_filter(power, LINE_WINDOW, mode="nearest") / np.log(2)  # of exponential variates
    ratio = power / np.maximum(around, 1e-300)
    ratio[: LINE_WINDOW // 4] = 0.0  # slow changes are not lines
    peak = int(ratio.argmax())
    if ratio[peak] < LINE_MARGIN * np.log(len(power) / LINE_CHANCE):
        return 0.0, 1.0
    inside = slice(max(peak - 2, 0), peak + 3)
    return float((power[inside] - around[inside]).sum() / power.sum()), len(z) / (peak + 1)


# Visits


def check_blur(visits: Visits, levels: Levels) -> Iterator[Criticism]:
    """States of one or two steps between two levels, with a mean in between: blurred changes of level."""
    name = next((name for name in ("mean", "location", "rate") if name in levels.summary.parameters), None)
    if name is None:
        return
    mean = np.nanmean(levels.summary.parameters[name], axis=0)
    mean = mean.reshape(len(mean), -1)
    length, state, before, after = visits
    for k in range(levels.summary.n_states):
        here = np.flatnonzero((state == k) & (before >= 0) & (after >= 0))
        if len(here) < 10 or length[here].mean() > BLUR_DWELL:
            continue
        low, high = np.minimum(mean[before[here]], mean[after[here]]), np.maximum(mean[before[here]], mean[after[here]])
        widest = (high - low).argmax(axis=1)
        pick = np.arange(len(here)), widest
        between = (mean[k][widest] > low[pick]) & (mean[k][widest] < high[pick])
        if between.mean() > BLUR_SHARE and np.mean(before[here] != after[here]) > BLUR_SHARE:
            text = (
                f"State {k} lasts {length[here].mean():.1f} steps and lies between the states before and after it: "
                "a blurred change of level rather than a state; try min_dwell=2."
            )
            yield Criticism(text, False, "min_dwell=2")
            return


def check_dwell(draws: Sequence[Visits]) -> Iterator[Criticism]:
    """Visits of a single step against the geometric law of the model."""
    n_states = 1 + max(int(visits.state.max()) for visits in draws)
    for k in range(n_states):
        each = []
        for length, state, before, after in draws:
            own = length[(state == k) & (before >= 0) & (after >= 0)]
            if len(own) >= MIN_VISITS:
                expected = 1 / own.mean()
                error = np.sqrt(expected * (1 - expected) ** 2 / len(own)) + 1e-12  # the mean is estimated
                each.append(((own == 1).mean(), expected, ((own == 1).mean() - expected) / error))
        if len(each) < len(draws) / 2:
            continue
        share, expected, z = np.median(each, axis=0)
        if abs(share - expected) > DWELL_EFFECT and abs(z) > MIN_Z:
            if share < expected:
                advice = 'visits are more regular than the model allows; try duration="negative binomial".'
                setting = 'duration="negative binomial"'
            else:
                advice, setting = "many of these may be blur or outliers; try min_dwell=2.", "min_dwell=2"
            text = f"{share:.0%} of the visits to state {k} last one step, where a geometric law has {expected:.0%}"
            yield Criticism(f"{text}: {advice}", False, setting)
            return


def check_movement(model: Model, y: FloatArray, levels: Levels, visits: Visits) -> Iterator[Criticism]:
    """Four or more levels, close together and brief, of which each leads to its neighbours: a continuous movement."""
    n, spread = levels.n_levels, _spreads(y, levels)
    if n < 4 or visits.length.mean() > CYCLE_DWELL:
        return
    near = np.diff(cast(FloatArray, levels.centers)) < 3 * np.minimum(spread[1:], spread[:-1])
    leaving = visits.after >= 0
    step = np.abs(visits.state[leaving] - visits.after[leaving]) == 1
    count = np.bincount(visits.state, minlength=n)
    beside = np.append(count[1:], 0) + np.append(0, count[:-1])
    expected = float((count * beside / np.maximum(count.sum() - count, 1)).sum() / count.sum())
    if step.size >= MIN_VISITS and near.mean() > 0.5 and step.mean() > max(NEIGHBOURS, expected + 0.15):
        setting, advice = _with_memory(model)
        text = f"{step.mean():.0%} of the changes are between neighbouring levels, which are close together and brief"
        yield Criticism(f"{text}: a continuous movement rather than levels; {advice}", True, setting)


def check_outliers(model: Model, y: FloatArray, levels: Levels, visits: Visits) -> Iterator[Criticism]:
    """A level of brief visits around the mean of another one, but wider: its outliers."""
    if type(model.emission).__name__ not in ("Normal", "NormalMean") or levels.n_levels < 2:
        return
    centers, spread = cast(FloatArray, levels.centers), _spreads(y, levels)
    for j in np.argsort(-spread):
        visit = visits.length[visits.state == j].mean() if np.any(visits.state == j) else np.inf
        wider = (spread[j] > 1.5 * spread) & (np.abs(centers - centers[j]) < spread[j])
        wider &= levels.shares > levels.shares[j]
        if visit < 3 and wider.any():
            i = int(np.flatnonzero(wider)[0])
            text = (
                f"Level {j} lasts {visit:.1f} steps, has about the mean of level {i} and is {spread[j] / spread[i]:.1f}"
            )
            advice = 'outliers rather than a level; try emission="student-t".'
            yield Criticism(f"{text} times as wide: {advice}", True, 'emission="student-t"')
            return


def _spreads(y: FloatArray, levels: Levels) -> FloatArray:
    """(n_levels,): standard deviation of the values on each level."""
    here = [y[(levels.segmentation == j) & np.isfinite(y)] for j in range(levels.n_levels)]
    return np.array([own.std() if len(own) > 1 else 0.0 for own in here])


def check_cycle(visits: Visits, n_levels: int) -> Iterator[Criticism]:
    """Levels that follow each other in a fixed order, briefly: phases of one movement."""
    length, state, _, after = visits
    leaving = after >= 0
    counts = np.zeros((n_levels, n_levels))
    np.add.at(counts, (state[leaving], after[leaving]), 1)
    following = counts.argmax(axis=1)
    total = counts.sum(axis=1)
    sure = counts[np.arange(n_levels), following] / np.maximum(total, 1)
    for start in range(n_levels):
        cycle = [start]
        while following[cycle[-1]] not in cycle:
            cycle.append(int(following[cycle[-1]]))
        cycle = cycle[cycle.index(int(following[cycle[-1]])) :]
        mean = np.mean([length[state == k].mean() for k in cycle])
        if (
            len(cycle) >= 3
            and min(total[cycle]) >= 5
            and min(sure[cycle]) > CYCLE_STEP
            and mean < CYCLE_DWELL
            and np.isin(state, cycle).mean() > 0.5
        ):
            order = " → ".join(map(str, [*cycle, cycle[0]]))
            text = f"Levels follow each other in a fixed order ({order}), {mean:.1f} steps each"
            advice = 'phases of one continuous movement rather than states; try emission="autoregressive".'
            yield Criticism(f"{text}: {advice}", True, 'emission="autoregressive"')
            return
