"""Figures of transitions between levels, of many recordings, and of predictive checks."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from bokeh.models import ColumnDataSource, DataRange1d, Range1d
from bokeh.plotting import figure

from ihmm._typing import FloatArray
from ihmm.figures import graph
from ihmm.figures import pictures as _pictures
from ihmm.figures.plot_data import PALETTE, alphabet, colours
from ihmm.posterior import Posterior
from ihmm.report._bokeh import (
    MAX_LABEL,
    FigureItem,
    add_hover,
    add_legend,
    empty_figure,
    figure_item,
    set_axis_labels,
    set_integer_ticks,
)

HEIGHT = 260
BLUE = (0, 114, 178)  # the first colour of the palette
BINS = 400  # of the longest ribbon
MAX_RIBBONS = 300
HEAD = 0.09  # length of the head of an arrow


def transition_density(posterior: Posterior, names: Sequence[str]) -> list[FigureItem]:
    """Level before against level after, of the first column; none for symbols or a single level."""
    if alphabet(posterior) or posterior.levels().n_levels == 1:
        return []
    y = _pictures.column_of(posterior, 0)
    low, high, density = _pictures.jump_density(posterior, y)
    pixels = np.empty(density.shape, np.uint32)
    channels = pixels.view(np.uint8).reshape(*density.shape, 4)
    channels[..., :3] = BLUE
    channels[..., 3] = np.rint(255 * np.sqrt(density))
    plot = empty_figure(HEIGHT + 40, x_range=Range1d(low, high), y_range=Range1d(low, high))
    plot.image_rgba([pixels], low, low, high - low, high - low)
    for level in np.unique(_pictures.idealised(posterior, y)[0]):
        plot.hspan([level], line_dash="dotted", line_width=1, name="faint")
        plot.vspan([level], line_dash="dotted", line_width=1, name="faint")
    what = f"{names[0]} " if len(names[0]) < MAX_LABEL - len("before") else ""
    set_axis_labels(plot, f"{what}before", f"{what}after")
    heading = "Transition density: level before and after each change"
    label = "where changes of level begin and end; dotted lines mark the levels"
    return [figure_item(plot, "transition_density", heading, label)]


def transition_graph(posterior: Posterior) -> list[FigureItem]:
    """States as circles, and transitions as arrows with their rates; none for a single state or very many."""
    found, n = posterior.summary(), posterior.summary().n_states
    if not 1 < n <= 12:
        return []
    place, radius = graph.places(n), graph.radii(found.shares)
    plot = empty_figure(HEIGHT + 40, x_range=DataRange1d(), y_range=DataRange1d(), match_aspect=True)
    plot.axis.visible = plot.grid.visible = False
    plot.scatter([-1.4, 1.4], [-1.4, 1.4], size=0, line_color=None, fill_color=None)  # margins
    hues, (steps, per) = colours(n), _pictures.rate_unit(posterior)
    for source, target, share, rate in _pictures.edges(posterior):
        begin, bend, end, middle = graph.arrow(place[source], place[target], radius[source], radius[target])
        curve = graph.curve(begin, bend, end, np.linspace(0, 1, 25))
        plot.line(curve[:, 0], curve[:, 1], line_color=hues[source], line_width=1 + 3 * share)
        plot.patch(*_head(end, end - bend), fill_color=hues[source], line_color=hues[source])
        if share < graph.LEAST_LABELLED and n > 3:
            continue
        text = _pictures.two_digits(rate * steps)
        plot.text(*([x] for x in middle), [text], name="ink", text_align="center", text_baseline="middle",
                  text_font_size="12px")  # fmt: skip
    source = ColumnDataSource({
        "x": place[:, 0], "y": place[:, 1], "radius": radius, "colour": hues, "state": found.labels,
        "share": [f"{share:.1%}" for share in found.shares],
    })  # fmt: skip
    nodes = plot.circle("x", "y", radius="radius", source=source, fill_color="colour", line_color=None)
    style = {"text_align": "center", "text_baseline": "middle", "text_font_style": "bold", "text_font_size": "13px"}
    inside = np.full(found.n_states, all(len(label) <= 3 for label in found.labels))
    names = np.array(found.labels, object)
    plot.text(*place[inside].T, names[inside].tolist(), text_color="white", **style)
    below = place[~inside, 1] - radius[~inside] - 0.12
    plot.text(place[~inside, 0], below, names[~inside].tolist(), name="ink", **style)
    add_hover(plot, nodes, [("state", "@state"), ("share", "@share")])
    heading = f"Transitions between states: rates per {per}"
    label = "graph of the states; the transition probabilities are in the table below"
    return [figure_item(plot, "transition_graph", heading, label)]


def _head(tip: FloatArray, direction: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Corners of the head of an arrow."""
    along = HEAD * direction / np.hypot(*direction)
    across = 0.4 * np.array([along[1], -along[0]])
    corners = np.array([tip, tip - along + across, tip - along - across])
    return corners[:, 0], corners[:, 1]


def ribbons(posterior: Posterior) -> list[FigureItem]:
    """One ribbon of levels for each recording; none for a single one."""
    n = min(len(posterior.lengths), MAX_RIBBONS)
    if n == 1:
        return []
    found = _pictures.groups(posterior, "level")
    longest = int(posterior.lengths.max())
    factor, unit = posterior.clock.scale(longest)
    bars: dict[str, list[Any]] = {"y": [], "left": [], "right": [], "colour": [], "level": []}
    for i in range(n):
        path, edges = _pictures.ribbon(posterior, i, "level", max(1, int(BINS * posterior.lengths[i] / longest)))
        first = np.append(np.flatnonzero(np.diff(path, prepend=-1)), len(path))
        bars["y"] += [i] * (len(first) - 1)
        bars["left"] += ((edges[first[:-1]] - 0.5) * factor).tolist()
        bars["right"] += ((edges[first[1:]] - 0.5) * factor).tolist()
        bars["level"] += [found.names[j] for j in path[first[:-1]]]
        bars["colour"] += [found.colours[j] for j in path[first[:-1]]]
    plot = empty_figure(
        int(np.clip(60 + 16 * n, 140, 700)),
        x_range=Range1d(-0.5 * factor, (longest - 0.5) * factor),
        y_range=Range1d(n - 0.4, -0.6),
    )
    plot.grid.visible = False
    drawn = plot.hbar("y", left="left", right="right", height=0.8 if n <= 60 else 1.0, color="colour",
                      source=ColumnDataSource(bars))  # fmt: skip
    add_hover(plot, drawn, [("recording", "@y"), ("level", "@level")])
    set_integer_ticks(plot, "y", n)
    set_axis_labels(plot, "step" if unit == "steps" else f"time ({unit})", "recording")
    shown = "" if n == len(posterior.lengths) else f", the first {n} of {len(posterior.lengths)}"
    return [figure_item(plot, "ribbons", f"Recordings by level{shown}", "the level of each recording over time")]


def predictive_checks(posterior: Posterior, names: Sequence[str]) -> list[FigureItem]:
    """Distribution, autocorrelation and dwell times of the data, against series simulated from the draws."""
    found = _pictures.predictive(posterior, 0)
    marginal = _bands(found.marginal, 1.0)
    set_axis_labels(marginal, names[0], "density")
    factor, unit = posterior.clock.scale(float(found.autocorrelation.x.max()))
    related = _bands(found.autocorrelation, factor)
    set_axis_labels(related, f"lag ({unit})", "autocorrelation")
    factor, unit = posterior.clock.scale(float(found.dwell.x.max()))
    dwell = _bands(found.dwell, factor, x_axis_type="log")
    set_axis_labels(dwell, f"dwell time n ({unit})", "P(dwell time ≥ n)")
    add_legend(marginal, [("data", [marginal.renderers[1]]), ("simulated, 95%", [marginal.renderers[0]])])
    label = "data against the range of 95% of the series simulated from the draws"
    return [
        figure_item(marginal, "check-marginal", "Simulated data: distribution", label),
        figure_item(related, "check-autocorrelation", "Simulated data: autocorrelation", label),
        figure_item(dwell, "check-dwell", "Simulated data: dwell times", label),
    ]


def _bands(checked: _pictures.Checked, factor: float, **settings: Any) -> figure:
    known = np.isfinite(checked.data)
    x, data, low, high = (values[known] for values in checked)
    plot = empty_figure(220, **settings)
    plot.varea(x * factor, low, high, fill_color=PALETTE[0], fill_alpha=0.3)
    plot.line(x * factor, data, line_width=1.3, name="ink")
    return plot
