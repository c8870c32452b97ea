"""A sequence coloured by level or by state, with their probabilities."""

from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.patches import Patch

from ihmm import _checks
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.figures.pictures import groups
from ihmm.figures.plot_data import COLUMNS, GREY, LANE, PALE, WRITTEN, axis_type, column_names, letters
from ihmm.plots._axes import integer_ticks, make_axes, set_logarithmic, split_rows
from ihmm.plots._time import TimeScale, step_scale, time_scale
from ihmm.posterior import Posterior

MAX_LINE, MAX_DOTS = 1000, 5000  # steps up to which values are joined by a line, and drawn as dots
BINS = 1000  # longer series are summarised in this many bins


def series(
    posterior: Posterior,
    ax: Axes | None = None,
    *,
    sequence: int = 0,
    start: int | None = None,
    stop: int | None = None,
    y: Any = None,
    by: str = "level",
) -> Array:
    """A sequence coloured by level, and below it the probability of each level at each time step.

    A level has the colour of its most used state. Missing values are shaded. Beyond 5000 steps, the range of values of
    each level is drawn in bins, so that a visit of a single step stays visible. Symbols (emissions with `n_symbols`)
    have a lane each. With several columns, the first six have a panel each.

    Parameters
    ----------
    sequence, start, stop
        Index of the sequence and range of its time steps; by default the whole first sequence.
    y
        New observations to show instead of the fitted ones. Their states are found by `posterior.smooth`.
    by
        ``"level"``, or ``"state"`` to tell the kinetic states of a level apart.

    Returns
    -------
    Array of Axes: one per column, then one for the probabilities.
    """
    shown = _excerpt(posterior, sequence, start, stop, y, _checks.one_of("by", by, ("level", "state")))
    n_columns = shown.values.shape[1]
    n_panels = min(n_columns, COLUMNS)
    ax = make_axes(ax, height=series_height(n_panels))
    *panels, strip = split_rows(ax, [1.0] * n_panels + [0.25 if n_panels == 1 else 0.45])
    columns = column_names(posterior)
    for c, panel in enumerate(panels):
        _draw_values(panel, shown, shown.values[:, c])
        panel.set_ylabel(columns[c])
        if axis_type(posterior) == "log":
            set_logarithmic(panel, "y")
        panel.tick_params(labelbottom=False)
    if n_columns > n_panels:
        panels[-1].set_ylabel(f"{columns[n_panels - 1]}\n({n_panels} of {n_columns})")
    strip.stackplot(shown.edges, *_mean_by_bin(shown).T, step="post", colors=shown.colours, linewidth=0)
    strip.set(
        xlim=(shown.edges[0], shown.edges[-1]),
        ylim=(0, 1),
        yticks=(0, 1),
        ylabel=f"P({by})",
    )
    shown.scale.label_axis(strip, "" if shown.is_only_sequence else f" of sequence {sequence}")
    strip.figure.align_ylabels([*panels, strip])
    _add_legend_above(panels[0], shown)
    return np.array([*panels, strip])


def series_height(n_panels: int) -> float:
    """Height in inches of a series with this many panels."""
    return 3.0 if n_panels == 1 else 1.3 + 0.9 * n_panels


class _Excerpt(NamedTuple):
    """n consecutive time steps of a sequence, divided into bins."""

    values: FloatArray  # (n, columns), NaN where missing
    states: IntArray  # (n,)
    probabilities: FloatArray  # (n, states)
    letters: list[str]  # of symbols; empty unless values are symbols
    bins: IntArray  # (n,): bin of each step
    edges: FloatArray  # (bins + 1,): times
    steps: FloatArray  # (n,): times
    scale: TimeScale
    names: list[str]
    colours: list[str]
    is_only_sequence: bool
    by: str


def _excerpt(posterior: Posterior, sequence: int, start: int | None, stop: int | None, y: Any, by: str) -> _Excerpt:
    found, (level, names, hues) = posterior.summary(), groups(posterior, by)
    to_level = (level[:, None] == np.arange(len(hues))).astype(np.float64)
    if y is None:
        data, states, probabilities = posterior.data, level[found.states], found.probabilities @ to_level
    else:
        data, smoothed = posterior.observe(y), posterior.smooth(y)
        probabilities = np.column_stack([smoothed[:, :-1] @ to_level, smoothed[:, -1]])
        states = probabilities.argmax(axis=1)
        names, hues = [*names, "new"], [*hues, GREY]
    first, last = step_range(data.lengths, sequence, start, stop)
    here = slice(data.offsets[sequence] + first, data.offsets[sequence] + last)
    n = last - first
    scale = time_scale(posterior, sequence) if y is None else step_scale(int(data.lengths[sequence]))
    begins = np.linspace(0, n, min(n, BINS) + 1).round().astype(np.int64)
    return _Excerpt(
        data.values[here].reshape(n, -1).astype(np.float64),
        states[here],
        probabilities[here],
        letters(posterior),
        np.repeat(np.arange(len(begins) - 1), np.diff(begins)),
        scale.at(begins + first - 0.5),
        scale.at(np.arange(first, last)),
        scale,
        names,
        hues,
        len(data.lengths) == 1,
        by,
    )


def step_range(lengths: IntArray, sequence: int, start: int | None, stop: int | None) -> tuple[int, int]:
    if not 0 <= sequence < len(lengths):
        raise ValueError(f"sequence must be from 0 to {len(lengths) - 1}, got {sequence!r}")
    length = int(lengths[sequence])
    first, last = 0 if start is None else start, length if stop is None else stop
    if not 0 <= first < last <= length:
        raise ValueError(
            f"start and stop must be steps with 0 ≤ start < stop ≤ {length}, the length of sequence {sequence}; "
            f"got {start!r} and {stop!r}"
        )
    return first, last


def _draw_values(ax: Axes, shown: _Excerpt, values: FloatArray) -> None:
    missing = np.isnan(values)
    n, steps = len(values), shown.steps
    dots = n <= MAX_DOTS and not shown.letters
    if dots and n <= MAX_LINE:
        ax.plot(steps, values, color=GREY, linewidth=0.5, alpha=0.7, zorder=1)
    order = np.arange(len(shown.colours))  # the rarest is drawn on top; states are ordered by use
    if shown.by == "level":
        order = np.argsort(-np.bincount(shown.states, minlength=len(order)), kind="stable")
    for k in order:
        colour = shown.colours[k]
        here = ~missing & (shown.states == k)
        if dots:
            ax.scatter(steps[here], values[here], s=np.clip(4000 / n, 3, 18), color=colour, linewidths=0, zorder=2)
        elif here.any():
            ax.add_collection(_boxes(shown, values, here, colour))
    if missing.any():
        _shade_missing(ax, shown, missing)
    if n_symbols := len(shown.letters):
        ax.set_ylim(-0.6, n_symbols - 0.4)
        if n_symbols > WRITTEN:
            ax.yaxis.set_major_locator(integer_ticks())
        else:
            ax.set_yticks(range(n_symbols), shown.letters)
    else:
        ax.autoscale_view()


def _boxes(shown: _Excerpt, values: FloatArray, here: BoolArray, colour: str) -> PolyCollection:
    """The range of values in each bin, or the lanes of its symbols."""
    bins, values = shown.bins[here], values[here]
    if shown.letters:
        bins, symbols = np.unique(np.stack([bins, values.astype(np.int64)]), axis=1)
        low, high = symbols - LANE, symbols + LANE
    else:
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        bins = bins[first]
    left, right = shown.edges[bins], shown.edges[bins + 1]
    corners = np.stack([np.stack(part, axis=1) for part in ((left, low), (left, high), (right, high), (right, low))], 1)
    return PolyCollection(
        list(corners), facecolors=colour, edgecolors=colour, linewidths=0.5 if shown.letters else 1.5, zorder=2
    )


def _shade_missing(ax: Axes, shown: _Excerpt, missing: BoolArray) -> None:
    """Shade the bins with at least half of their values missing."""
    n_bins = len(shown.edges) - 1
    mostly = 2 * np.bincount(shown.bins, missing, n_bins) >= np.bincount(shown.bins, minlength=n_bins)
    change = np.diff(np.concatenate([[0], mostly, [0]]))
    begin, end = shown.edges[change > 0], shown.edges[change < 0]
    ranges = list(zip(begin, end - begin, strict=True))
    ax.broken_barh(ranges, (0, 1), transform=ax.get_xaxis_transform(), color=PALE, linewidth=0, zorder=0)


def _mean_by_bin(shown: _Excerpt) -> FloatArray:
    """Mean probabilities of each bin, (bins + 1, states); the last row is repeated to close the step plot."""
    begins = np.flatnonzero(np.diff(shown.bins, prepend=-1))
    mean = np.add.reduceat(shown.probabilities, begins) / np.bincount(shown.bins)[:, None]
    return np.vstack([mean, mean[-1:]])


def _add_legend_above(ax: Axes, shown: _Excerpt) -> None:
    """A legend in one row above the axes."""
    first = shown.names[0]
    names = [f"{shown.by} {first}" if first.isdecimal() else first, *shown.names[1:]]
    handles = [Patch(color=colour, label=name) for name, colour in zip(names, shown.colours, strict=True)]
    if np.isnan(shown.values).any():
        handles.append(Patch(color=PALE, label="missing"))
    ax.legend(
        handles=handles,
        loc="lower right",
        bbox_to_anchor=(1, 1),
        borderaxespad=0.2,
        ncols=16,
        frameon=False,
        fontsize="small",
        handlelength=0.9,
        handletextpad=0.4,
        columnspacing=0.8,
    )
