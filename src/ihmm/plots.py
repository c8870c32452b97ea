"""Pictures of a posterior: plain functions, results in, matplotlib Axes out. Needs the extra `plots`.

Every function draws on the Axes it is given. Without one it makes a figure: one of pyplot's where pyplot is in use or a
notebook is open, so that the cell or `plt.show()` shows it; elsewhere one of its own, which needs no display and leaves
nothing behind. Either way `ax.figure.savefig("name.pdf")` writes it.

States have the numbers of `posterior.summary()` and the same colours in every picture. Fonts follow
matplotlib's settings; figures are made for the width of two columns.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._pictures import (
    COLUMNS,
    GREY,
    LANE,
    LONGEST,
    NAMES,
    PALE,
    PALETTE,
    WRITTEN,
    Density,
    alphabet,
    at_least,
    by_state,
    colours,
    densities,
    has_density,
    mix,
    observations,
    runs,
    sweeps,
)
from ihmm._typing import Array, ArrayLike, BoolArray, FloatArray, IntArray
from ihmm.posterior import Posterior
from ihmm.predict import Forecast

try:
    import matplotlib as mpl
except ImportError as error:
    raise ImportError("pictures need matplotlib: pip install 'ihmm[plots]'") from error

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator

HEAT = "Blues"
WHOLE = partial(MaxNLocator, "auto", integer=True, min_n_ticks=1)  # ticks at whole numbers
WIDTH = 7.0  # inches: two columns of a journal
JOINED, DOTTED = 1000, 5000  # steps up to which a series is a line with dots, and dots alone
BINS = 1000  # a longer one is shown by the range of its values in so many pieces
SPANS = (0.95, 0.8, 0.5)  # of a fan chart


def series(
    posterior: Posterior,
    ax: Axes | None = None,
    *,
    sequence: int = 0,
    start: int | None = None,
    stop: int | None = None,
    y: Any = None,
) -> Array:
    """A sequence coloured by state, and beneath it how sure that is: the probability of each state at each step.

    Steps without a value are shaded. Beyond 5000 steps the range of the values of each state is drawn piece by piece,
    so that a state met for one step still shows. Symbols (the emission has `n_symbols`) have a lane each. Of several
    columns the first six have a panel each.

    Parameters
    ----------
    sequence, start, stop
        Which sequence, and which of its steps; all of them if not given.
    y
        New observations as for `posterior.smooth`, which finds their states; the fitted series if not given.

    Returns
    -------
    Array of Axes: one a column, the last one for the probabilities.
    """
    shown = _excerpt(posterior, sequence, start, stop, y)
    n_columns = shown.values.shape[1]
    n_panels = min(n_columns, COLUMNS)
    ax = _axes(ax, height=_height(n_panels))
    *panels, strip = _stack(ax, [1.0] * n_panels + [0.25 if n_panels == 1 else 0.45])
    for c, panel in enumerate(panels):
        _draw_values(panel, shown, shown.values[:, c])
        panel.set_ylabel("observation" if n_columns == 1 else f"column {c}")
        panel.tick_params(labelbottom=False)
    if n_columns > n_panels:
        panels[-1].set_ylabel(f"column {n_panels - 1}\nof {n_columns}")
    strip.stackplot(shown.edges, *_by_bin(shown).T, step="post", colors=shown.colours, linewidth=0)
    strip.set(
        xlim=(shown.edges[0], shown.edges[-1]),
        ylim=(0, 1),
        yticks=(0, 1),
        ylabel="P(state)",
        xlabel="step" if shown.only else f"step of sequence {sequence}",
    )
    strip.figure.align_ylabels([*panels, strip])
    _legend_above(panels[0], shown)
    return np.array([*panels, strip])


def n_states(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """The posterior of the number of states, in percent where that is at least one."""
    ax = _axes(ax, WIDTH / 2)
    probability = posterior.n_states_probabilities()
    bars = ax.bar(list(probability), list(probability.values()), width=0.75, color=PALETTE[0])
    ax.set(xlabel="number of states", ylabel="posterior probability", ylim=(0, 1.12 * max(probability.values())))
    ax.set_xlim(min(probability) - 0.8, max(probability) + 0.8)
    if len(probability) <= WRITTEN:
        ax.bar_label(bars, [f"{p:.0%}" if p >= 0.01 else "" for p in probability.values()], padding=2, fontsize="small")
        ax.set_xticks(list(probability))
    return ax


def traces(
    posterior: Posterior,
    names: Sequence[str] = ("n_states", "log_joint", "gamma", "concentration"),
    axes: Iterable[Axes] | None = None,
) -> Array:
    """Some of `posterior.traces`, a panel each and a line a chain. Tuning sweeps are shaded if they were saved."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        _checks.one_of("names", name, tuple(posterior.traces))
    panels = list(np.ravel(np.asarray(axes))) if axes is not None else _rows(len(names))
    if len(panels) != len(names):
        raise ValueError(f"axes must be as many as names, {len(names)}, got {len(panels)}")
    for name, ax in zip(names, panels, strict=True):
        _draw_trace(ax, posterior, name)
        if axes is None:
            ax.label_outer()
    if len(posterior.draws) > 1:
        chains = [f"chain {draws.chain}" for draws in posterior.draws]
        _legend(panels[0], chains, _chain_colours(len(chains)), title=None)
    return np.array(panels)


def transitions(of: Posterior | ArrayLike, ax: Axes | None = None) -> Axes:
    """Transition probabilities, of a posterior on average or of any matrix, as a heat map with numbers."""
    matrix = of.summary().transitions if isinstance(of, Posterior) else np.asarray(of, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected a posterior or a square matrix of transitions, got shape {matrix.shape}")
    ax = _axes(ax, WIDTH / 2, WIDTH / 2 - 0.2)
    image = ax.imshow(matrix, cmap=HEAT, vmin=0, vmax=1)
    n = len(matrix)
    ax.set(xlabel="to state", ylabel="from state")
    if n > WRITTEN:
        _colour_bar(ax, image, "probability")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(WHOLE())
        return ax
    for (j, k), p in np.ndenumerate(matrix):
        text = f"{p:.2f}" if n <= 6 else f"{p:.2f}".removeprefix("0")
        ax.text(k, j, text, ha="center", va="center", fontsize=_fitting(n), color="white" if p > 0.55 else "black")
    ax.set(xticks=range(n), yticks=range(n))
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def emissions(posterior: Posterior, ax: Axes | None = None, *, column: int | None = None) -> Axes:
    """The density of every state, times its share of the steps, over the histogram of the data.

    The line for all states together has a 95 % band. Counts have steps in place of curves and symbols bars; the
    family's own density is used, whatever it is. Of several columns one is shown, the first if not said otherwise, by
    the emission's law of that `column`, or by a normal one if φ has the fields mean and variance or covariance.
    """
    observed, density, n_symbols = observations(posterior, column)
    ax = _axes(ax)
    found = posterior.summary()
    if n_symbols:
        _draw_bars(ax, posterior, observed, density, n_symbols)
    else:
        _draw_densities(ax, posterior, observed, density)
    ax.set_xlabel("observation" if posterior.data.y.ndim == 1 else f"column {column or 0}")
    ax.set_ylim(bottom=0)
    others = [Line2D([], [], color=_ink(), label="all"), Patch(color=PALE, label="data")]
    _legend(ax, range(found.n_states), colours(found.n_states), others)
    return ax


def dwell_times(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """How long runs of each state last: the share of its runs, over the draws, that have at least so many steps.

    The thin lines are the geometric laws that the transition probabilities imply. Runs cut short by the end of a
    sequence count as they are.
    """
    ax = _axes(ax)
    found = posterior.summary()
    medians, longest = [], 2.0
    for k, (own, colour) in enumerate(zip(runs(posterior), colours(found.n_states), strict=True)):
        share = at_least(own)
        steps = np.arange(1, len(share) + 1)
        ax.plot(steps, share, color=colour, linewidth=1.6)
        # P(L ≥ n) = π_kk^(n − 1)
        ax.plot(steps, found.transitions[k, k] ** (steps - 1.0), color=colour, linewidth=0.6, linestyle=(0, (6, 2)))
        medians.append(f"{k}: {np.median(own):g}")
        longest = max(longest, float(np.quantile(own, 1 - LONGEST)))
    ax.set_yscale("log")
    ax.set(xlabel="steps, at least", ylabel="share of runs", xlim=(1, longest), ylim=(LONGEST, 1.2))
    ax.xaxis.set_major_locator(WHOLE())
    _legend(ax, medians, colours(found.n_states), title="state: median")
    return ax


def co_assignment(posterior: Posterior, ax: Axes | None = None, steps: ArrayLike | None = None) -> Axes:
    """P(s_t = s_u) for pairs of steps: blocks are what belongs together. It does not depend on labels.

    At most 500 steps, evenly spread, are shown if `steps` are not given. Thin lines part the sequences.
    """
    together = posterior.co_assignment(steps)
    total = int(posterior.lengths.sum())
    ax = _axes(ax, WIDTH / 2 + 0.6, WIDTH / 2 - 0.2)
    if steps is None:
        image = ax.imshow(together, cmap=HEAT, vmin=0, vmax=1, extent=(-0.5, total - 0.5, total - 0.5, -0.5))
        for begin in posterior.data.offsets[1:-1]:
            ax.axhline(begin - 0.5, color=GREY, linewidth=0.5)
            ax.axvline(begin - 0.5, color=GREY, linewidth=0.5)
    else:
        image = ax.imshow(together, cmap=HEAT, vmin=0, vmax=1)
        names = np.asarray(steps).astype(int)
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(WHOLE())
            axis.set_major_formatter(FuncFormatter(partial(_name_of, names)))
    _colour_bar(ax, image, "P(same state)")
    ax.set(xlabel="step", ylabel="step")
    return ax


def forecast(forecast: Forecast, ax: Axes | None = None, history: ArrayLike | None = None) -> Axes | Array:
    """What comes next: the median of the futures, and bands that hold 50, 80 and 95 % of them.

    `history` are the last observations, as many as are to be seen, such as ``posterior.data.values[-100:]``. Several
    columns have a panel each, at most six, and an array of Axes is returned. Quantiles need an order: they say nothing
    about symbols.
    """
    if not isinstance(forecast, Forecast):
        raise TypeError(
            f"expected a Forecast, got {type(forecast).__name__}; "
            "posterior.forecast returns a list for several sequences: draw them one by one"
        )
    futures = forecast.y.reshape(*forecast.y.shape[:2], -1)[:, :, :COLUMNS]
    past = _history(history, forecast.y.shape[2:])[:, :COLUMNS]
    n_columns = futures.shape[2]
    ax = _axes(ax, height=2.8 if n_columns == 1 else 1 + 1.1 * n_columns)
    panels = _stack(ax, [1.0] * n_columns)
    for c, panel in enumerate(panels):
        _draw_fan(panel, futures[:, :, c], past[:, c])
        panel.set_ylabel("observation" if n_columns == 1 else f"column {c}")
        panel.tick_params(labelbottom=panel is panels[-1])
    panels[-1].set_xlabel("steps ahead")
    ax.figure.align_ylabels(panels)
    fan = [Patch(color=mix(PALETTE[0], "#FFFFFF", _paleness(i)), label=f"{p:.0%}") for i, p in enumerate(SPANS)]
    handles = [Line2D([], [], color=PALETTE[0], label="median"), *reversed(fan)]
    _legend(panels[0], (), (), handles, title=None)
    return panels[0] if n_columns == 1 else np.array(panels)


def compare(
    posteriors: Mapping[str, Posterior],
    quantity: str = "n_states",
    ax: Axes | None = None,
    *,
    lags: int | None = None,
) -> Axes:
    """One trace of several runs, such as those of different samplers: the median over chains, and a 95 % band.

    Sweeps are counted from the first one there is: tuning is part of the line if it was saved. With `lags` the
    autocorrelations of the draws are shown instead, up to that lag.
    """
    if not posteriors:
        raise ValueError("posteriors must map names to posteriors, got none")
    for posterior in posteriors.values():
        _checks.one_of("quantity", quantity, tuple(posterior.traces))
    ax = _axes(ax)
    seen = []
    for (name, posterior), colour in zip(posteriors.items(), colours(len(posteriors)), strict=True):
        if lags is None:
            by_chain, tune = sweeps(posterior, quantity)
            table, first = _padded(list(by_chain.values())), 1
        else:
            table, first, tune = _autocorrelations(posterior.traces[quantity], lags), 0, 0
        band = np.nanquantile(table, (0.025, 0.5, 0.975), axis=0)
        x = np.arange(first, first + table.shape[1])
        ax.fill_between(x, band[0], band[2], color=colour, alpha=0.25, linewidth=0)
        ax.plot(x, band[1], color=colour, linewidth=1.3, label=name)
        seen.append(band[:, tune // 10 :].ravel())
    _set_range(ax, np.concatenate(seen))
    ax.margins(x=0)
    what = NAMES.get(quantity, quantity)
    if lags is None:
        ax.set(xlabel="sweep", ylabel=what)
    else:
        ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        ax.set(xlabel="lag (draws)", ylabel=f"autocorrelation, {what}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def overview(posterior: Posterior) -> Figure:
    """One page for the lab book: the first sequence with its states, what the states are, and whether chains agree."""
    n_panels = min(posterior.data.y[0].size, COLUMNS)
    figure = _figure(10, 5.2 + _height(n_panels))
    parts: Array = figure.subfigures(3, 1, height_ratios=[_height(n_panels), 2.8, 2.4])  # type: ignore[assignment]
    top, middle, bottom = parts
    with mpl.rc_context(OPEN):
        above = top.subplots()
        densities, matrix, dwell = middle.subplots(1, 3, width_ratios=[1.35, 1, 1.2])
        sizes, counts, joint = bottom.subplots(1, 3, width_ratios=[0.8, 1.2, 1.2])
    series(posterior, above)
    if has_density(posterior):
        emissions(posterior, densities)
    else:
        co_assignment(posterior, densities)
    transitions(posterior, matrix)
    dwell_times(posterior, dwell)
    n_states(posterior, sizes)
    traces(posterior, ("log_joint", "n_states"), (joint, counts))
    titles = {
        above: "States" if len(posterior.lengths) == 1 else f"States, the first of {len(posterior.lengths)} sequences",
        densities: "Observations by state" if has_density(posterior) else "Steps in the same state",
        matrix: "Transitions",
        dwell: "Dwell times",
        sizes: "How many states",
        counts: "Number of states by sweep",
        joint: "Joint log-likelihood by sweep",
    }
    for ax, title in titles.items():
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    return figure


# Figures and Axes

OPEN: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False}


def _figure(width: float, height: float) -> Figure:
    """A figure that someone will show, if anyone is there to; otherwise one that only its owner knows of."""
    if "matplotlib.pyplot" in sys.modules or _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    return Figure(figsize=(width, height), layout="constrained")


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def _axes(ax: Axes | None, width: float = WIDTH, height: float = 2.8) -> Axes:
    if ax is not None:
        return ax
    with mpl.rc_context(OPEN):
        return _figure(width, height).add_subplot()


def _rows(n: int) -> list[Axes]:
    """Panels one above the other, for the same sweeps."""
    with mpl.rc_context(OPEN):
        panels: Array = _figure(WIDTH, 0.6 + 1.2 * n).subplots(n, 1, sharex=True, squeeze=False)
    return list(panels[:, 0])


def _stack(ax: Axes, heights: Sequence[float]) -> list[Axes]:
    """Divide an Axes into several, one above the other, that share its x axis. The first is `ax` itself."""
    spec, figure, box = ax.get_subplotspec(), ax.figure, ax.get_position()
    if spec is not None:
        gap = 0.0 if figure.get_layout_engine() else 0.06
        grid = spec.subgridspec(len(heights), 1, height_ratios=heights, hspace=gap)
        ax.set_subplotspec(grid[0])
        others = [figure.add_subplot(grid[i], sharex=ax) for i in range(1, len(heights))]
    else:
        tops = box.y1 - box.height * np.append(0, np.cumsum(heights)) / sum(heights)
        places = [(box.x0, 0.06 * high + 0.94 * low, box.width, 0.94 * (high - low)) for high, low in pairwise(tops)]
        ax.set_position(places[0])
        others = [figure.add_axes(place, sharex=ax) for place in places[1:]]
    for other in others:
        for side in ("top", "right"):
            other.spines[side].set_visible(ax.spines[side].get_visible())
    return [ax, *others]


def _height(n_panels: int) -> float:
    """Inches for a series in so many panels."""
    return 3.0 if n_panels == 1 else 1.3 + 0.9 * n_panels


def _legend(
    ax: Axes,
    names: Iterable[object],
    colours: Iterable[str],
    others: Iterable[Artist] = (),
    title: str | None = "state",
) -> None:
    """Names and colours to the right of the Axes."""
    handles = [Patch(color=colour, label=str(name)) for name, colour in zip(names, colours, strict=True)] + [*others]
    ax.legend(
        handles=handles,
        title=title,
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        borderaxespad=0,
        ncols=1 + (len(handles) - 1) // 10,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        alignment="left",
        handlelength=1.0,
        columnspacing=1.0,
    )


def _legend_above(ax: Axes, shown: "_Excerpt") -> None:
    """States in a row above the Axes, on the right."""
    names = ["state 0", *shown.names[1:]]
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


def _colour_bar(ax: Axes, image: Any, label: str) -> None:
    bar = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.05, 1)), label=label)
    bar.outline.set_visible(False)


def _ink() -> str:
    return str(mpl.rcParams["text.color"])


# A series and its states


class _Excerpt(NamedTuple):
    """Some steps of a sequence, n of them, in pieces: `edges` are where these begin and end."""

    values: FloatArray  # (n, columns), NaN where missing
    states: IntArray  # (n,)
    probabilities: FloatArray  # (n, states)
    symbols: int | None
    bins: IntArray  # (n,): the piece each step is in
    edges: FloatArray  # (pieces + 1,)
    names: list[str]
    colours: list[str]
    only: bool  # there is no other sequence


def _excerpt(posterior: Posterior, sequence: int, start: int | None, stop: int | None, y: Any) -> _Excerpt:
    found = posterior.summary()
    names, hues = [str(k) for k in range(found.n_states)], colours(found.n_states)
    if y is None:
        data, states, probabilities = posterior.data, found.states, found.probabilities
    else:
        data, probabilities = posterior.model.observe(y, shortest=1), posterior.smooth(y)
        states = probabilities.argmax(axis=1)
        names, hues = [*names, "new"], [*hues, GREY]
    first, last = _range(data.lengths, sequence, start, stop)
    here = slice(data.offsets[sequence] + first, data.offsets[sequence] + last)
    n = last - first
    begins = np.linspace(0, n, min(n, BINS) + 1).round().astype(np.int64)
    return _Excerpt(
        data.values[here].reshape(n, -1).astype(np.float64),
        states[here],
        probabilities[here],
        alphabet(posterior),
        np.repeat(np.arange(len(begins) - 1), np.diff(begins)),
        begins + first - 0.5,
        names,
        hues,
        len(data.lengths) == 1,
    )


def _range(lengths: IntArray, sequence: int, start: int | None, stop: int | None) -> tuple[int, int]:
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
    n, steps = len(values), shown.edges[0] + 0.5 + np.arange(len(values))
    dots = n <= DOTTED and not shown.symbols
    if dots and n <= JOINED:
        ax.plot(steps, values, color=GREY, linewidth=0.5, alpha=0.7, zorder=1)
    for k, colour in enumerate(shown.colours):  # the rarest last, on top
        here = ~missing & (shown.states == k)
        if dots:
            ax.scatter(steps[here], values[here], s=np.clip(4000 / n, 3, 18), color=colour, linewidths=0, zorder=2)
        elif here.any():
            ax.add_collection(_boxes(shown, values, here, colour))
    if missing.any():
        _shade(ax, shown, missing)
    if shown.symbols:
        ax.set_ylim(-0.6, shown.symbols - 0.4)
        ax.yaxis.set_major_locator(WHOLE() if shown.symbols > WRITTEN else FixedLocator(range(shown.symbols)))
    else:
        ax.autoscale_view()


def _boxes(shown: _Excerpt, values: FloatArray, here: BoolArray, colour: str) -> PolyCollection:
    """For every piece the range of its values, or the lanes of its symbols."""
    bins, values = shown.bins[here], values[here]
    if shown.symbols:
        bins, symbols = np.unique(np.stack([bins, values.astype(np.int64)]), axis=1)
        low, high = symbols - LANE, symbols + LANE
    else:
        first = np.flatnonzero(np.diff(bins, prepend=-1))
        low, high = np.minimum.reduceat(values, first), np.maximum.reduceat(values, first)
        bins = bins[first]
    left, right = shown.edges[bins], shown.edges[bins + 1]
    corners = np.stack([np.stack(part, axis=1) for part in ((left, low), (left, high), (right, high), (right, low))], 1)
    return PolyCollection(
        list(corners), facecolors=colour, edgecolors=colour, linewidths=0.5 if shown.symbols else 1.5, zorder=2
    )


def _shade(ax: Axes, shown: _Excerpt, missing: BoolArray) -> None:
    """Grey over the pieces of which half or more is missing."""
    n_bins = len(shown.edges) - 1
    mostly = 2 * np.bincount(shown.bins, missing, n_bins) >= np.bincount(shown.bins, minlength=n_bins)
    change = np.diff(np.concatenate([[0], mostly, [0]]))
    begin, end = shown.edges[change > 0], shown.edges[change < 0]
    ranges = list(zip(begin, end - begin, strict=True))
    ax.broken_barh(ranges, (0, 1), transform=ax.get_xaxis_transform(), color=PALE, linewidth=0, zorder=0)


def _by_bin(shown: _Excerpt) -> FloatArray:
    """The probabilities averaged over each piece, the last one twice: (pieces + 1, states)."""
    begins = np.flatnonzero(np.diff(shown.bins, prepend=-1))
    mean = np.add.reduceat(shown.probabilities, begins) / np.bincount(shown.bins)[:, None]
    return np.vstack([mean, mean[-1:]])


# Traces


def _draw_trace(ax: Axes, posterior: Posterior, name: str) -> None:
    by_chain, tune = sweeps(posterior, name)
    for trace, colour in zip(by_chain.values(), _chain_colours(len(by_chain)), strict=True):
        ax.plot(np.arange(1, len(trace) + 1), trace, color=colour, linewidth=0.6, alpha=0.7)
    if tune:
        ax.axvspan(1, tune + 0.5, color=PALE, linewidth=0, alpha=0.6, zorder=0)
    _set_range(ax, np.concatenate([trace[tune // 10 :] for trace in by_chain.values()]))
    if name == "n_states":
        ax.yaxis.set_major_locator(WHOLE())
    ax.set_xlim(1, max(2, *map(len, by_chain.values())))
    ax.set_ylabel(NAMES.get(name, name))
    ax.set_xlabel("sweep, tuning shaded" if tune else "draw")


def _set_range(ax: Axes, values: FloatArray) -> None:
    """Show all of `values`, from which the first sweeps are left out: a random start may be far away."""
    finite = values[np.isfinite(values)]
    if finite.size and np.ptp(finite) > 0:
        low, high = finite.min(), finite.max()
        ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))


def _chain_colours(n: int) -> list[str]:
    """Not those of states."""
    return [to_hex(rgba) for rgba in mpl.colormaps["viridis"](np.linspace(0.1, 0.9, n))]


def _padded(traces: list[FloatArray]) -> FloatArray:
    """(chains, sweeps), NaN where a chain has ended."""
    table = np.full((len(traces), max(map(len, traces))), np.nan)
    for row, trace in zip(table, traces, strict=True):
        row[: len(trace)] = trace
    return table


def _autocorrelations(traces: Array, lags: int) -> FloatArray:
    """Of every chain, (chains, lags + 1); 1 for one that never moves."""
    n = traces.shape[1]
    if _checks.count("lags", lags) >= n:
        raise ValueError(f"lags must be less than the number of draws, {n}, got {lags}")
    centred = traces - traces.mean(axis=1, keepdims=True)
    products = np.stack([(centred[:, : n - lag] * centred[:, lag:]).sum(axis=1) for lag in range(lags + 1)], axis=1)
    variance = products[:, :1]
    return np.where(variance > 0, products / np.where(variance > 0, variance, 1), 1.0)


# Heat maps


def _fitting(n: int) -> float:
    """Size of n numbers in a row."""
    return min(1.0, 7.5 / n) * 0.85 * float(mpl.rcParams["font.size"])


def _name_of(names: IntArray, position: float, _: int | None) -> str:
    return str(names[round(position)]) if 0 <= round(position) < len(names) else ""


# Densities


def _draw_densities(ax: Axes, posterior: Posterior, observed: Array, density: Density) -> None:
    edges, grid, curves, whole = densities(posterior, observed, density)
    draw_style, step = ("steps-mid", "mid") if whole else ("default", None)
    ax.set_ylabel("probability" if whole else "density")
    ax.hist(observed, list(edges), density=True, color=PALE)
    total = curves.sum(axis=2)
    low_band, high_band = np.quantile(total, (0.025, 0.975), axis=0)
    ax.fill_between(grid, low_band, high_band, step=step, color=_ink(), alpha=0.2, linewidth=0)  # type: ignore[arg-type]
    ax.plot(grid, total.mean(axis=0), color=_ink(), linewidth=1, drawstyle=draw_style)
    for curve, colour in zip(curves.mean(axis=0).T, colours(curves.shape[2]), strict=True):
        ax.plot(grid, curve, color=colour, linewidth=1.6, drawstyle=draw_style)


def _draw_bars(ax: Axes, posterior: Posterior, observed: Array, density: Density, n_symbols: int) -> None:
    symbols = np.arange(n_symbols)
    ax.bar(symbols, np.bincount(observed, minlength=n_symbols) / len(observed), width=0.9, color=PALE)
    curves = by_state(posterior, symbols.astype(observed.dtype), density)
    n_labels = curves.shape[2]
    width = 0.8 / n_labels
    for k, (curve, colour) in enumerate(zip(curves.mean(axis=0).T, colours(n_labels), strict=True)):
        ax.bar(symbols + (k - (n_labels - 1) / 2) * width, curve, width=width, color=colour)
    low, middle, high = np.quantile(curves.sum(axis=2), (0.025, 0.5, 0.975), axis=0)
    ax.errorbar(symbols, middle, (middle - low, high - middle), fmt="_", color=_ink(), markersize=10, linewidth=1)
    ax.xaxis.set_major_locator(WHOLE())
    ax.set_ylabel("probability")


# Forecasts


def _history(history: ArrayLike | None, columns: tuple[int, ...]) -> FloatArray:
    """(steps, columns) of floats."""
    if history is None:
        return np.empty((0, *(columns or (1,))))
    values = np.asarray(history, float)
    if values.shape[1:] != columns or values.ndim == 0:
        expected = "(steps,)" if not columns else f"(steps, {columns[0]})"
        raise ValueError(f"history must have shape {expected} as the forecast does, got {values.shape}")
    return values.reshape(len(values), -1)


def _draw_fan(ax: Axes, futures: Array, past: FloatArray) -> None:
    ahead = np.arange(1, futures.shape[1] + 1)
    for i, p in enumerate(SPANS):
        low, high = np.quantile(futures, ((1 - p) / 2, (1 + p) / 2), axis=0)
        ax.fill_between(ahead, low, high, color=mix(PALETTE[0], "#FFFFFF", _paleness(i)), linewidth=0)
    ax.plot(ahead, np.median(futures, axis=0), color=PALETTE[0], linewidth=1.3)
    ax.plot(np.arange(1 - len(past), 1), past, color=_ink(), linewidth=0.8, marker=".", markersize=3)
    ax.axvline(0.5, color=GREY, linewidth=0.6, linestyle=":")
    ax.margins(x=0.01)


def _paleness(i: int) -> float:
    return (0.85, 0.7, 0.5)[i]
