"""Figures of the number of states, the emissions, the transitions and the dwell times."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, FixedTicker, Range1d
from bokeh.plotting import figure

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.figures.plot_data import (
    COLUMNS,
    LONGEST,
    PALE,
    PALETTE,
    WRITTEN,
    Density,
    at_least,
    axis_type,
    by_state,
    colours,
    densities,
    has_density,
    law_at_least,
    letters,
    observations,
    runs,
)
from ihmm.posterior import Posterior
from ihmm.report._bokeh import (
    FigureItem,
    add_hover,
    add_legend,
    empty_figure,
    figure_item,
    set_axis_labels,
    set_integer_ticks,
)
from ihmm.report._kinetics import predictive_checks, ribbons, transition_density, transition_graph
from ihmm.report._traces import traces

HEIGHT = 260
POINTS = 400  # of a curve
DASHES = ("solid", "dashed", "dotted", "dashdot", "dotdash")  # distinguish lines of similar colour


def figures(posterior: Posterior, names: Sequence[str]) -> dict[str, list[FigureItem]]:
    """Figures by section of the page."""
    return {
        "recordings": ribbons(posterior),
        "states": [*_emissions(posterior, names), _transitions(posterior), _dwell_times(posterior)],
        "kinetics": [*transition_graph(posterior), *transition_density(posterior, names)],
        "checks": predictive_checks(posterior, names),
        "number": [_n_states(posterior)],
        "chains": traces(posterior),
    }


def _n_states(posterior: Posterior) -> FigureItem:
    probability = posterior.n_states_probabilities()
    sizes, height = list(probability), list(probability.values())
    plot = empty_figure(
        HEIGHT, x_range=Range1d(min(sizes) - 0.8, max(sizes) + 0.8), y_range=Range1d(0, 1.15 * max(height))
    )
    source = ColumnDataSource(
        {"size": sizes, "height": height, "text": [f"{p:.0%}" if p >= 0.005 else "" for p in height]}
    )
    bars = plot.vbar("size", 0.75, "height", source=source, color=PALETTE[0])
    if len(sizes) <= WRITTEN:
        plot.text("size", "height", "text", source=source, name="ink", **_text_style(12), text_baseline="bottom")
        plot.xaxis.ticker = FixedTicker(ticks=sizes)
    set_integer_ticks(plot, "x")
    set_axis_labels(plot, "number of states", "probability")
    add_hover(plot, bars, [("states", "@size"), ("probability", "@height{0.000}")])
    values = ", ".join(f"{size}: {p:.1%}" for size, p in probability.items())
    return figure_item(plot, "n_states", "Posterior distribution of the number of states", f"bar chart: {values}")


def _transitions(posterior: Posterior) -> FigureItem:
    matrix = posterior.summary().transitions
    n = len(matrix)
    origin, to = (index.ravel() for index in np.indices(matrix.shape))
    p = matrix.ravel()
    plot = empty_figure(max(HEIGHT, min(26 * n, 480)), x_range=Range1d(-0.5, n - 0.5), y_range=Range1d(n - 0.5, -0.5))
    labels = np.array(posterior.summary().labels, object)
    names = {"from_name": labels[origin].tolist(), "to_name": labels[to].tolist()}
    source = ColumnDataSource({"from": origin, "to": to, "p": p, "alpha": np.sqrt(p), **names})
    plot.grid.visible = False
    cells = plot.rect("to", "from", 0.96, 0.96, source=source, color=PALETTE[0], alpha="alpha")
    if n <= WRITTEN:
        _write_probabilities(plot, to, origin, p)
    add_hover(plot, cells, [("from", "@from_name"), ("to", "@to_name"), ("probability", "@p{0.0000}")])
    set_integer_ticks(plot, "x", n)
    set_integer_ticks(plot, "y", n)
    plot.axis.major_label_overrides = dict(enumerate(labels.tolist()))
    set_axis_labels(plot, "to state", "from state")
    return figure_item(plot, "transitions", "Transition probabilities", "heat map; the values are in the table below")


def _write_probabilities(plot: figure, x: IntArray, y: IntArray, p: FloatArray) -> None:
    n = int(x.max()) + 1
    texts = np.array([f"{value:.3f}" if n <= 6 else f"{value:.2f}".removeprefix("0") for value in p])
    for here, style in ((p > 0.3, {"text_color": "white"}), (p <= 0.3, {"name": "ink"})):
        plot.text(x[here], y[here], texts[here], text_baseline="middle", **_text_style(12 if n <= 6 else 10), **style)


def _emissions(posterior: Posterior, names: Sequence[str]) -> list[FigureItem]:
    figures = []
    for c, name in enumerate(names[:COLUMNS]):
        if not has_density(posterior, c):
            continue
        observed, density, n_symbols = observations(posterior, c)
        plot = _bars(posterior, observed, density, n_symbols) if n_symbols else _curves(posterior, observed, density)
        of = " of the log" if axis_type(posterior) == "log" else ""
        set_axis_labels(plot, name, "probability" if observed.dtype.kind in "iu" else f"density{of}")
        heading = "Observations by state" if len(names) == 1 else f"Observations by state: {name}"
        label = f"histogram of {name} with the density of each state"
        figures.append(figure_item(plot, f"emissions-{c}", heading, label))
    return figures


def _curves(posterior: Posterior, observed: Array, density: Density) -> figure:
    edges, heights, grid, curves, whole = densities(posterior, observed, density)
    total = curves.sum(axis=2)
    low, high = np.quantile(total, (0.025, 0.975), axis=0)
    plot = empty_figure(
        HEIGHT, x_range=Range1d(edges[0], edges[-1]), y_range=Range1d(0, 1.08 * max(heights.max(), high.max())),
        x_axis_type=axis_type(posterior),
    )  # fmt: skip
    data = plot.quad(edges[:-1], edges[1:], 0, heights, fill_color=PALE, line_color=None, name="pale")
    if whole:
        band = plot.varea_step(grid, low, high, step_mode="center", fill_alpha=0.2, name="ink")
        every = plot.step(grid, total.mean(axis=0), mode="center", line_width=1, name="ink")
    else:
        band = plot.varea(grid, low, high, fill_alpha=0.2, name="ink")
        every = plot.line(grid, total.mean(axis=0), line_width=1, name="ink")
    lines = []
    for k, (curve, colour) in enumerate(zip(curves.mean(axis=0).T, colours(curves.shape[2]), strict=True)):
        style = _state_line(k, colour)
        line = plot.step(grid, curve, mode="center", **style) if whole else plot.line(grid, curve, **style)
        lines.append((posterior.summary().labels[k], [line]))
    add_legend(plot, [*lines, ("all", [every, band]), ("data", [data])])
    return plot


def _bars(posterior: Posterior, observed: Array, density: Density, n_symbols: int) -> figure:
    symbols = np.arange(n_symbols)
    curves = by_state(posterior, symbols.astype(observed.dtype), density)
    shares = np.bincount(observed.astype(np.int64), minlength=len(symbols)) / len(observed)
    low, high = np.quantile(curves.sum(axis=2), (0.025, 0.975), axis=0)
    plot = empty_figure(
        HEIGHT, x_range=Range1d(-0.6, len(symbols) - 0.4), y_range=Range1d(0, 1.1 * max(shares.max(), high.max()))
    )
    data = plot.vbar(symbols, 0.9, shares, fill_color=PALE, line_color=None, name="pale")
    n_states = curves.shape[2]
    width, bars = 0.8 / n_states, []
    labels = posterior.summary().labels
    names = letters(posterior) if len(letters(posterior)) == n_symbols else [str(i) for i in symbols]
    for k, (curve, colour) in enumerate(zip(curves.mean(axis=0).T, colours(n_states), strict=True)):
        source = {"symbol": names, "x": symbols + (k - (n_states - 1) / 2) * width, "p": curve}
        bar = plot.vbar("x", width, "p", source=ColumnDataSource(source), color=colour)
        add_hover(plot, bar, [("state", labels[k]), ("symbol", "@symbol"), ("probability", "@p{0.0000}")])
        bars.append((labels[k], [bar]))
    every = plot.segment(symbols, low, symbols, high, line_width=2, name="ink")
    set_integer_ticks(plot, "x", len(symbols))
    plot.xaxis.major_label_overrides = dict(enumerate(names))
    add_legend(plot, [*bars, ("all", [every]), ("data", [data])])
    return plot


def _dwell_times(posterior: Posterior) -> FigureItem:
    summary, lengths_by_state = posterior.summary(), runs(posterior)
    longest = max(2.0, *(float(np.quantile(lengths, 1 - LONGEST)) for lengths in lengths_by_state))
    factor, unit = posterior.clock.scale(longest)
    x_range = Range1d(factor, factor * longest)
    plot = empty_figure(HEIGHT, x_range=x_range, y_range=Range1d(LONGEST, 1.2), y_axis_type="log")
    lines = []
    for k, (lengths, colour) in enumerate(zip(lengths_by_state, colours(summary.n_states), strict=True)):
        share = at_least(lengths)
        steps = np.unique(np.geomspace(1, len(share), POINTS).round().astype(np.int64))
        law, low, high = np.maximum(law_at_least(posterior, k, steps), LONGEST / 10)
        plot.varea(factor * steps, low, high, fill_color=colour, fill_alpha=0.15)
        plot.line(factor * steps, law, line_color=colour, line_width=0.8, line_alpha=0.7)
        source = ColumnDataSource({"steps": factor * steps, "share": share[steps - 1]})
        line = plot.line(
            "steps", "share", source=source, line_color=colour, line_width=2, line_dash=DASHES[k % len(DASHES)]
        )
        add_hover(
            plot,
            line,
            [("state", summary.labels[k]), ("n", f"@steps{{0.[000]}} {unit}"), ("P(dwell time ≥ n)", "@share{0.000}")],
        )
        lines.append((f"{summary.labels[k]}: {factor * np.median(lengths):.3g}", [line]))
    set_axis_labels(plot, f"dwell time n ({unit})", "P(dwell time ≥ n)")
    add_legend(plot, lines)
    label = "survival functions of the dwell times of each state; thin lines with 95% bands are the fitted laws"
    return figure_item(plot, "dwell_times", "Dwell times (medians in the legend)", label)


def _state_line(k: int, colour: str) -> dict[str, Any]:
    return {"line_color": colour, "line_width": 2, "line_dash": DASHES[k % len(DASHES)]}


def _text_style(size: int) -> dict[str, Any]:
    return {"text_align": "center", "text_font_size": f"{size}px"}
