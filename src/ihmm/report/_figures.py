"""Figures that are drawn as they are: how many states, what they are like, and the traces of the chains.

Colours of text, axes and grids are left to the page, which knows whether it is light or dark: glyphs named "ink" or
"faint" take the colour of that name from its style.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.embed import json_item
from bokeh.models import (
    BasicTickFormatter,
    ColumnDataSource,
    FixedTicker,
    HoverTool,
    Legend,
    LegendItem,
    PlainText,
    Range1d,
)
from bokeh.palettes import viridis
from bokeh.plotting import figure

from ihmm._plot_data import (
    COLUMNS,
    LONGEST,
    NAMES,
    PALE,
    PALETTE,
    WRITTEN,
    Density,
    at_least,
    by_state,
    colours,
    densities,
    has_density,
    observations,
    runs,
    sweeps,
)
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.posterior import Posterior

HEIGHT = 260
LABEL = 20  # characters that fit beside a low panel
POINTS = 400  # of a curve
SWEEPS = 2000  # of a trace that are drawn; of more, the lowest and highest in pieces
DASHES = ("solid", "dashed", "dotted", "dashdot", "dotdash")  # tell lines apart where colours do not
TRACES = {
    "n_states": "Number of states",
    "log_joint": "Joint log-likelihood",
    "gamma": "γ: large values, many states",
    "concentration": "c: large values, rows alike",
    "stickiness": "ρ: how much states prefer to stay",
    "sigma": "σ: large values, many components within states",
}
ALWAYS = ("n_states", "log_joint")  # shown even if they never change


class Drawn(NamedTuple):
    """A figure for Bokeh, with a heading and a description for those who cannot see it."""

    item: Any
    name: str
    heading: str
    label: str


def figures(posterior: Posterior, names: Sequence[str]) -> dict[str, list[Drawn]]:
    """By section of the page."""
    return {
        "states": [*_emissions(posterior, names), _transitions(posterior), _dwell_times(posterior)],
        "number": [_n_states(posterior)],
        "chains": [_trace(posterior, name) for name in TRACES if name in ALWAYS or _varies(posterior, name)],
    }


def _n_states(posterior: Posterior) -> Drawn:
    probability = posterior.n_states_probabilities()
    sizes, height = list(probability), list(probability.values())
    plot = plain(HEIGHT, x_range=Range1d(min(sizes) - 0.8, max(sizes) + 0.8), y_range=Range1d(0, 1.15 * max(height)))
    source = ColumnDataSource(
        {"size": sizes, "height": height, "text": [f"{p:.0%}" if p >= 0.005 else "" for p in height]}
    )
    bars = plot.vbar("size", 0.75, "height", source=source, color=PALETTE[0])
    if len(sizes) <= WRITTEN:
        plot.text("size", "height", "text", source=source, name="ink", **_text(12), text_baseline="bottom")
        plot.xaxis.ticker = FixedTicker(ticks=sizes)
    _whole(plot, "x")
    labelled(plot, "number of states", "probability")
    hover(plot, bars, [("states", "@size"), ("probability", "@height{0.000}")])
    words = ", ".join(f"{size}: {p:.1%}" for size, p in probability.items())
    return _drawn(plot, "n_states", "Posterior of the number of states", f"bars of the probabilities {words}")


def _transitions(posterior: Posterior) -> Drawn:
    matrix = posterior.summary().transitions
    n = len(matrix)
    origin, to = (index.ravel() for index in np.indices(matrix.shape))
    p = matrix.ravel()
    plot = plain(max(HEIGHT, min(26 * n, 480)), x_range=Range1d(-0.5, n - 0.5), y_range=Range1d(n - 0.5, -0.5))
    source = ColumnDataSource({"from": origin, "to": to, "p": p, "alpha": np.sqrt(p)})
    plot.grid.visible = False
    cells = plot.rect("to", "from", 0.96, 0.96, source=source, color=PALETTE[0], alpha="alpha")
    if n <= WRITTEN:
        _write_numbers(plot, to, origin, p)
    hover(plot, cells, [("from", "@from"), ("to", "@to"), ("probability", "@p{0.0000}")])
    _whole(plot, "x", n)
    _whole(plot, "y", n)
    labelled(plot, "to state", "from state")
    return _drawn(plot, "transitions", "Transition probabilities", "heat map; the numbers are in the table beneath")


def _write_numbers(plot: figure, x: IntArray, y: IntArray, p: FloatArray) -> None:
    n = int(x.max()) + 1
    texts = np.array([f"{value:.3f}" if n <= 6 else f"{value:.2f}".removeprefix("0") for value in p])
    for here, style in ((p > 0.3, {"text_color": "white"}), (p <= 0.3, {"name": "ink"})):
        plot.text(x[here], y[here], texts[here], text_baseline="middle", **_text(12 if n <= 6 else 10), **style)


def _emissions(posterior: Posterior, names: Sequence[str]) -> list[Drawn]:
    figures = []
    for c, name in enumerate(names[:COLUMNS]):
        if not has_density(posterior, c):
            continue
        observed, density, n_symbols = observations(posterior, c)
        plot = _bars(posterior, observed, density, n_symbols) if n_symbols else _curves(posterior, observed, density)
        labelled(plot, name, "probability" if observed.dtype.kind in "iu" else "density")
        heading = "Observations by state" if len(names) == 1 else f"Observations by state: {name}"
        label = f"histogram of {name} with the density of every state"
        figures.append(_drawn(plot, f"emissions-{c}", heading, label))
    return figures


def _curves(posterior: Posterior, observed: Array, density: Density) -> figure:
    edges, grid, curves, whole = densities(posterior, observed, density)
    heights, _ = np.histogram(observed, edges, density=True)
    total = curves.sum(axis=2)
    low, high = np.quantile(total, (0.025, 0.975), axis=0)
    plot = plain(
        HEIGHT, x_range=Range1d(edges[0], edges[-1]), y_range=Range1d(0, 1.08 * max(heights.max(), high.max()))
    )
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
        lines.append((str(k), [line]))
    _legend(plot, [*lines, ("all", [every, band]), ("data", [data])])
    return plot


def _bars(posterior: Posterior, observed: Array, density: Density, n_symbols: int) -> figure:
    symbols = np.arange(n_symbols)
    curves = by_state(posterior, symbols.astype(observed.dtype), density)
    shares = np.bincount(observed.astype(np.int64), minlength=len(symbols)) / len(observed)
    low, high = np.quantile(curves.sum(axis=2), (0.025, 0.975), axis=0)
    plot = plain(
        HEIGHT, x_range=Range1d(-0.6, len(symbols) - 0.4), y_range=Range1d(0, 1.1 * max(shares.max(), high.max()))
    )
    data = plot.vbar(symbols, 0.9, shares, fill_color=PALE, line_color=None, name="pale")
    n_states = curves.shape[2]
    width, bars = 0.8 / n_states, []
    for k, (curve, colour) in enumerate(zip(curves.mean(axis=0).T, colours(n_states), strict=True)):
        source = {"symbol": symbols, "x": symbols + (k - (n_states - 1) / 2) * width, "p": curve}
        bar = plot.vbar("x", width, "p", source=ColumnDataSource(source), color=colour)
        hover(plot, bar, [("state", str(k)), ("symbol", "@symbol"), ("probability", "@p{0.0000}")])
        bars.append((str(k), [bar]))
    every = plot.segment(symbols, low, symbols, high, line_width=2, name="ink")
    _whole(plot, "x", len(symbols))
    _legend(plot, [*bars, ("all", [every]), ("data", [data])])
    return plot


def _dwell_times(posterior: Posterior) -> Drawn:
    found, own = posterior.summary(), runs(posterior)
    longest = max(2.0, *(float(np.quantile(lengths, 1 - LONGEST)) for lengths in own))
    plot = plain(HEIGHT, x_range=Range1d(1, longest), y_range=Range1d(LONGEST, 1.2), y_axis_type="log")
    lines = []
    for k, (lengths, colour) in enumerate(zip(own, colours(found.n_states), strict=True)):
        share = at_least(lengths)
        steps = np.unique(np.geomspace(1, len(share), POINTS).round().astype(np.int64))
        law = found.transitions[k, k] ** (steps - 1.0)  # P(L ≥ n) = π_kk^(n − 1)
        plot.line(steps, np.maximum(law, LONGEST / 10), line_color=colour, line_width=0.8, line_alpha=0.7)
        source = ColumnDataSource({"steps": steps, "share": share[steps - 1]})
        line = plot.line(
            "steps", "share", source=source, line_color=colour, line_width=2, line_dash=DASHES[k % len(DASHES)]
        )
        hover(plot, line, [("state", str(k)), ("at least", "@steps steps"), ("share of runs", "@share{0.000}")])
        lines.append((f"{k}: {np.median(lengths):g}", [line]))
    labelled(plot, "steps, at least", "share of runs")
    _legend(plot, lines)
    label = "share of the runs of each state that last at least so many steps; the thin lines are geometric laws"
    return _drawn(plot, "dwell_times", "Dwell times, with medians", label)


# Traces


def _varies(posterior: Posterior, name: str) -> bool:
    trace = posterior.traces.get(name, np.zeros(1))
    return bool(np.isfinite(trace).all() and np.ptp(trace) > 0)


def _trace(posterior: Posterior, name: str) -> Drawn:
    by_chain, tune = sweeps(posterior, name)
    settled = np.concatenate([trace[tune // 10 :] for trace in by_chain.values()])
    margin = 0.06 * np.ptp(settled) or 0.5
    n_sweeps = max(map(len, by_chain.values()))
    plot = plain(
        180,
        x_range=Range1d(1, max(2, n_sweeps)),
        y_range=Range1d(settled.min() - margin, settled.max() + margin),
    )
    if tune:
        plot.vstrip([1], [tune + 0.5], fill_color=PALE, line_color=None, name="gaps")
    lines = []
    for (chain, trace), colour in zip(by_chain.items(), _chain_colours(len(by_chain)), strict=True):
        sweep = _thinned(trace)
        line = plot.line(sweep + 1, trace[sweep].astype(np.float64), line_color=colour, line_width=1, line_alpha=0.85)
        lines.append((f"chain {chain}", [line]))
    labelled(plot, "sweep, tuning shaded" if tune else "draw", NAMES[name])
    plot.yaxis.formatter = BasicTickFormatter(use_scientific=False)
    _whole(plot, "x")
    if name == "n_states":
        _whole(plot, "y")
        _legend(plot, lines)
    label = f"trace of {NAMES[name]}, a line for each of {len(by_chain)} chains"
    return _drawn(plot, f"trace-{name}", TRACES[name], label)


def _thinned(trace: FloatArray) -> IntArray:
    """All sweeps, or of each piece of them the lowest and the highest."""
    size = -(-len(trace) // (SWEEPS // 2))
    if size <= 2:
        return np.arange(len(trace))
    begins = np.arange(0, len(trace), size)
    return np.unique([[b + np.argmin(trace[b : b + size]), b + np.argmax(trace[b : b + size])] for b in begins])


def _chain_colours(n: int) -> list[str]:
    """Not those of states, and neither so dark nor so light that they are lost on the page."""
    return [viridis(256)[i] for i in np.linspace(70, 205, n).astype(int)]


# What all figures have in common


def plain(height: int, *, tools: Any = "", toolbar_location: Any = None, **settings: Any) -> figure:
    plot = figure(
        height=height, sizing_mode="stretch_width", tools=tools, toolbar_location=toolbar_location,
        background_fill_alpha=0, border_fill_alpha=0, outline_line_color=None, min_border_left=62, min_border_right=12,
        **settings,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
    return plot


def labelled(plot: figure, x: str, y: str) -> None:
    """Names of the axes, as they are: a string with $$ would be taken for TeX, which is fetched from elsewhere."""
    plot.xaxis.axis_label = PlainText(text=x) if x else None
    plot.yaxis.axis_label = PlainText(text=y if len(y) <= LABEL else y[: LABEL - 1] + "…")


def _state_line(k: int, colour: str) -> dict[str, Any]:
    return {"line_color": colour, "line_width": 2, "line_dash": DASHES[k % len(DASHES)]}


def _text(size: int) -> dict[str, Any]:
    return {"text_align": "center", "text_font_size": f"{size}px"}


def _whole(plot: figure, axis: str, n: int | None = None) -> None:
    """Ticks at whole numbers: at each of the first n, or where there is room."""
    (which,) = getattr(plot, f"{axis}axis")
    if n is not None and n <= WRITTEN:
        which.ticker = FixedTicker(ticks=list(range(n)))
    elif not isinstance(which.ticker, FixedTicker):
        which.ticker.mantissas = [1, 2, 5]
        which.ticker.min_interval = 1


def hover(plot: figure, renderer: Any, tooltips: list[tuple[str, str]]) -> None:
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=tooltips, visible=False))


def _legend(plot: figure, entries: list[tuple[str, list[Any]]]) -> None:
    """Above the plot, in as many rows as a phone needs."""
    items = [LegendItem(label={"value": name}, renderers=renderers) for name, renderers in entries]
    legend = Legend(items=items, orientation="horizontal", ncols=6, border_line_color=None, background_fill_alpha=0)
    legend.update(padding=0, margin=2, spacing=10, glyph_width=18, label_text_font_size="12px", label_standoff=4)
    plot.add_layout(legend, "above")


def _drawn(plot: figure, name: str, heading: str, label: str) -> Drawn:
    return Drawn(json_item(plot), name, heading, label)
