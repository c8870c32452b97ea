"""Data of the pictures that `ihmm.plots` and `ihmm.report` share: jumps between levels, rates, predictive checks."""

from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import FloatArray, IntArray
from ihmm.figures.plot_data import alphabet, axis_type, colours
from ihmm.posterior import Posterior
from ihmm.predictions import forecasts
from ihmm.summaries.labels import evenly_spaced
from ihmm.summaries.summary import dwell_times

JUMP_DRAWS = 40  # draws whose jumps are pooled
REPLICATES = 60  # simulated series
CELLS = 8_000_000  # of all simulated series together
FEWEST = 10  # of them, however long the series are
MAX_LAG = 60
GRID = 120  # cells of a transition density, in each direction
BAND = (0.025, 0.975)


class Groups(NamedTuple):
    """Levels or states: the group of each state of the summary, and the name and colour of each group."""

    of_state: IntArray
    names: list[str]
    colours: list[str]


def groups(posterior: Posterior, by: str) -> Groups:
    """``by="level"`` or ``by="state"``. A level has the colour of its most used state."""
    n_states = posterior.summary().n_states
    hues = colours(n_states)
    of_state: IntArray = np.arange(n_states)
    labels = posterior.summary().labels
    if _checks.one_of("by", by, ("level", "state")) == "level":
        of_state, labels = posterior.levels().level_of_state, posterior.levels().labels
        hues = [hues[int(np.flatnonzero(of_state == j)[0])] for j in range(int(of_state.max()) + 1)]
    return Groups(of_state, labels, hues)


def column_of(posterior: Posterior, column: int | None) -> FloatArray:
    """(total T,): values of one column, the first by default, NaN where missing."""
    values = posterior.data.values.reshape(len(posterior.data.y), -1)
    if not 0 <= (column or 0) < values.shape[1]:
        raise ValueError(f"column must be from 0 to {values.shape[1] - 1}, got {column!r}")
    return values[:, column or 0].astype(np.float64)


def refuse_symbols(posterior: Posterior, what: str) -> None:
    if alphabet(posterior):
        raise ValueError(f"{what} needs measurements or counts, but these observations are symbols")


# Levels


def idealised(posterior: Posterior, y: FloatArray, by: str = "level") -> tuple[FloatArray, IntArray]:
    """(total T,): mean of the values on the level of each step, and the level.

    If logarithms are modelled, it is the exponential of their mean.
    """
    if axis_type(posterior) == "log":
        mean, path = _idealised(posterior, np.log(y), by)
        return np.exp(mean), path
    return _idealised(posterior, y, by)


def _idealised(posterior: Posterior, y: FloatArray, by: str) -> tuple[FloatArray, IntArray]:
    found = groups(posterior, by)
    path = found.of_state[posterior.summary().states]
    known = np.isfinite(y)
    n = len(found.names)
    count = np.bincount(path[known], minlength=n)
    mean = np.bincount(path[known], y[known], n) / np.maximum(count, 1)
    return np.where(count > 0, mean, np.nan)[path], path


class Jumps(NamedTuple):
    """Mean of the values before and after each change of level, pooled over draws, and the levels."""

    before: FloatArray
    after: FloatArray
    level_before: IntArray
    level_after: IntArray
    n_draws: int


def jumps(posterior: Posterior, y: FloatArray) -> Jumps:
    """All changes of level of some draws. Visits without a value are left out."""
    level_of, matches = posterior.levels().level_of_state, posterior.summary().matches
    draws = [draw for chain in posterior.draws for draw in chain]
    chosen = evenly_spaced(len(draws), JUMP_DRAWS)
    known = np.isfinite(y)
    total, count = np.cumsum(np.append(0, np.where(known, y, 0.0))), np.cumsum(np.append(0, known))
    parts = []
    for d in chosen:
        length, level = dwell_times(level_of[matches[d].label[draws[d].states]], posterior.data.offsets)
        end = np.cumsum(length)
        number = count[end] - count[end - length]
        mean = (total[end] - total[end - length]) / np.where(number > 0, number, np.nan)
        inside = ~np.isin(end[:-1], posterior.data.offsets) & np.isfinite(mean[:-1]) & np.isfinite(mean[1:])
        parts.append([x[inside] for x in (mean[:-1], mean[1:], level[:-1], level[1:])])
    before, after, first, second = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Jumps(before, after, first, second, len(chosen))


class JumpDensity(NamedTuple):
    """Smoothed number of jumps per draw: rows are the values after, columns the values before."""

    low: float
    high: float
    density: FloatArray  # (GRID, GRID), largest value 1


def jump_density(posterior: Posterior, y: FloatArray) -> JumpDensity:
    """Transition density: where changes of level begin and end."""
    from scipy.ndimage import gaussian_filter  # slow to import

    found = jumps(posterior, y)
    centers = idealised(posterior, y)[0]
    low, high = float(np.nanmin(centers)), float(np.nanmax(centers))
    margin = 0.35 * (high - low) or 1.0
    low, high = low - margin, high + margin
    counts, _, _ = np.histogram2d(found.after, found.before, GRID, ((low, high), (low, high)))
    smooth = gaussian_filter(counts, 2.5)
    return JumpDensity(low, high, smooth / max(smooth.max(), 1e-300))


class Edge(NamedTuple):
    """Transitions from one state to another."""

    source: int
    target: int
    share: float  # of the exits from the source
    rate: float  # per step spent in the source


def edges(posterior: Posterior, least: float = 0.02) -> list[Edge]:
    """Transitions that make up at least this share of the exits from a state; rates are per step."""
    found = posterior.summary()
    rates = np.nansum(found.exits, axis=0) / np.maximum(np.isfinite(found.exits).sum(axis=0), 1)
    share = rates / np.maximum(rates.sum(axis=1, keepdims=True), 1e-300)
    return [Edge(i, j, float(share[i, j]), float(rates[i, j])) for i, j in np.argwhere(share >= least).tolist()]


def rate_unit(posterior: Posterior) -> tuple[float, str]:
    """Steps in the unit of time of rates, and its name: seconds, or min, h or d if transitions are that rare."""
    rates = [edge.rate for edge in edges(posterior)]
    factor, unit = posterior.clock.scale(1 / max(float(np.median(rates)), 1e-300) if rates else 1.0)
    if unit in ("min", "h", "d"):
        return 1 / factor, unit
    return 1 / posterior.clock.duration(1.0), posterior.clock.unit


def two_digits(x: float) -> str:
    """0.10 rather than 0.1, and 1200 rather than 1.2e+03."""
    return f"{x:#.2g}" if 1e-3 <= x < 10 else f"{float(f'{x:.2g}'):g}"


# Recordings


def ribbon(posterior: Posterior, sequence: int, by: str, n_bins: int) -> tuple[IntArray, FloatArray]:
    """Most frequent level of each of at most `n_bins` bins of a recording, and the edges of the bins in steps."""
    found = groups(posterior, by)
    here = slice(*posterior.data.offsets[sequence : sequence + 2])
    path = found.of_state[posterior.summary().states[here]]
    edges = np.linspace(0, len(path), min(len(path), n_bins) + 1).round().astype(np.int64)
    bins = np.repeat(np.arange(len(edges) - 1), np.diff(edges))
    votes = np.zeros((len(edges) - 1, len(found.names)), np.int64)
    np.add.at(votes, (bins, path), 1)
    return votes.argmax(axis=1), edges.astype(np.float64)


# Posterior predictive checks


class Checked(NamedTuple):
    """A curve of the data and the band of the same curve over series simulated from the draws."""

    x: FloatArray
    data: FloatArray
    low: FloatArray
    high: FloatArray


class Predictive(NamedTuple):
    """Posterior predictive checks; `edges` are the bins of `marginal`, whose x are their middles."""

    marginal: Checked
    edges: FloatArray
    autocorrelation: Checked
    dwell: Checked


def predictive(posterior: Posterior, column: int | None = None) -> Predictive:
    """Compare the data with series simulated from the draws: distribution, autocorrelation and dwell times."""
    data, y = posterior.data, column_of(posterior, column)
    draws = [draw for chain in posterior.draws for draw in chain]
    most = max(min(REPLICATES, CELLS // data.y.size), FEWEST)
    chosen = evenly_spaced(len(draws), most)
    simulated, labels = forecasts.replicate(posterior.model, data, [posterior.labelled_draws[d] for d in chosen])
    values = simulated.reshape(len(chosen), len(y), -1)[:, :, column or 0].astype(np.float64)
    values[:, np.isnan(y)] = np.nan

    edges = _bins(posterior, y)
    marginal = [_histogram(each, edges) for each in values]
    lags = np.arange(1, min(MAX_LAG, int(data.lengths.max()) - 1) + 1)
    related = [_autocorrelation(posterior, each, lags) for each in values]
    dwell = _dwell_checks(posterior, [draws[d].states for d in chosen], chosen, labels)
    return Predictive(
        _checked(0.5 * (edges[1:] + edges[:-1]), _histogram(y, edges), marginal),
        edges,
        _checked(lags.astype(np.float64), _autocorrelation(posterior, y, lags), related),
        dwell,
    )


def _checked(x: FloatArray, data: FloatArray, simulated: list[FloatArray]) -> Checked:
    return Checked(x, data, *np.quantile(simulated, BAND, axis=0))


def _bins(posterior: Posterior, y: FloatArray) -> FloatArray:
    known = y[np.isfinite(y)]
    low, high = known.min(), known.max()
    if alphabet(posterior) or (posterior.data.y.dtype.kind in "iu" and high - low < 60):
        return np.arange(low, high + 2) - 0.5
    return np.histogram_bin_edges(known, int(np.clip(np.sqrt(len(known)), 10, 60)))


def _histogram(y: FloatArray, edges: FloatArray) -> FloatArray:
    """Density, with respect to all values, also those beyond the bins."""
    known = y[np.isfinite(y)]
    return np.asarray(np.histogram(known, edges)[0] / (len(known) * np.diff(edges)))


def _autocorrelation(posterior: Posterior, y: FloatArray, lags: IntArray) -> FloatArray:
    """Autocorrelation within sequences; of symbols the share of pairs that are equal, of angles the mean cosine."""
    n_columns = posterior.data.y[0].size
    circular = bool(np.any(forecasts.angular_columns(posterior.model.emission, n_columns)))
    sequence = np.repeat(np.arange(len(posterior.lengths)), posterior.lengths)
    center, spread = np.nanmean(y), np.nanvar(y) or 1.0
    out = np.empty(len(lags))
    for i, lag in enumerate(lags):
        pair = np.isfinite(y[:-lag]) & np.isfinite(y[lag:]) & (sequence[:-lag] == sequence[lag:])
        first, second = y[:-lag][pair], y[lag:][pair]
        if not len(first):
            out[i] = np.nan
        elif alphabet(posterior):
            out[i] = np.mean(first == second)
        elif circular:
            out[i] = np.mean(np.cos(first - second))
        else:
            out[i] = np.mean((first - center) * (second - center)) / spread
    return out


def _dwell_checks(posterior: Posterior, states: list[IntArray], chosen: IntArray, labels: IntArray) -> Checked:
    """P(a visit to a level lasts at least n steps): mean over the draws, against simulated series."""
    level_of, matches = posterior.levels().level_of_state, posterior.summary().matches
    offsets, unseen = posterior.data.offsets, int(level_of.max()) + 1
    own = [dwell_times(level_of[matches[d].label[path]], offsets)[0] for d, path in zip(chosen, states, strict=True)]
    new = [dwell_times(np.where(path < 0, unseen, level_of[path]), offsets)[0] for path in labels]
    longest = max(int(np.quantile(np.concatenate(own), 0.998)), 2)
    n = np.unique(np.geomspace(1, longest, 80).round())
    survival = [np.array([np.mean(lengths >= x) for x in n]) for lengths in own]
    return _checked(n, np.mean(survival, axis=0), [np.array([np.mean(lengths >= x) for x in n]) for lengths in new])
