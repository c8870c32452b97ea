"""The series and its states, to be zoomed into.

The page holds as much of the series as it can, and its script draws what is in view: single steps where there are few,
otherwise the range of the values of each state, pixel by pixel. This file decides what the page holds, and lays out the
empty figures. Nothing short is lost on the way: what is left out of a long series lies, within its piece of the series
and its state, between two values that are kept.
"""

import base64
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import (
    BasicTickFormatter,
    BoxZoomTool,
    ColumnDataSource,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from ihmm._plot_data import COLUMNS, LANE, PALE, WRITTEN, alphabet, colours
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.posterior import Posterior
from ihmm.report._figures import hover, labelled, plain

MOST = 240_000  # values of a series that a page holds
MOST_PROBABILITIES = 600_000
EXACT = 1e-4  # error allowed in a value that is shown, as a share of the range of all
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star")
SIDES = ("left", "right", "bottom", "top")
STEPS = "@first{0} to @last{0}"
HEIGHTS = {"one": 300, "several": 150, "strip": 96}


class Series(NamedTuple):
    """A figure for Bokeh, what its script draws, and words about both."""

    figure: Any
    data: dict[str, Any]
    lengths: list[int]
    piece: int  # steps of which only extremes are kept, 1 if all are
    columns: list[str]  # those that are shown
    n_columns: int
    gaps: bool
    label: str


def series(posterior: Posterior, names: Sequence[str]) -> Series:
    """The first few columns, a panel each, and beneath them the probabilities of the states."""
    summary, symbols = posterior.summary(), alphabet(posterior)
    values = posterior.data.values.reshape(len(summary.states), -1).astype(np.float64)
    shown = list(names[:COLUMNS])
    sizes, parts = zip(
        *(kept(values[:, c], summary.states, MOST // len(shown), symbols) for c in range(len(shown))), strict=True
    )
    gaps = [stretches(np.isnan(values[:, c]), size) for c, size in enumerate(sizes)]
    piece, probabilities = averaged(summary.probabilities, MOST_PROBABILITIES // summary.n_states)
    data = {
        "offsets": pack(posterior.data.offsets.astype(np.int32)),
        "columns": [
            {"ahead": pack(_ahead(part.step)), "value": pack(part.value), "state": pack(part.state)} for part in parts
        ],
        "gaps": [pack(gap.astype(np.int32)) for gap in gaps],
        "probabilities": pack(np.rint(255 * probabilities).astype(np.uint8)),
        "piece": piece,
        "whole": max(sizes) == 1,
        "symbols": symbols or 0,
        "lane": LANE if symbols else 0,
        "colours": colours(summary.n_states),
        "markers": MARKERS,
    }
    total = len(values)
    return Series(
        json_item(_layout(values[:, : len(shown)], shown, symbols)),
        data,
        posterior.lengths.tolist(),
        max(sizes),
        shown,
        values.shape[1],
        any(gap.size for gap in gaps),
        f"{', '.join(shown)} over {total} steps, coloured by state, with the probability of each state beneath",
    )


# What the page holds


class Kept(NamedTuple):
    """Steps of a column, their values and their states."""

    step: IntArray
    value: FloatArray
    state: IntArray


def kept(values: FloatArray, states: IntArray, most: int, symbols: int | None = None) -> tuple[int, Kept]:
    """All that is not missing, or of a longer series what is extreme in pieces of equal size: the size, and that."""
    size = 1 if len(values) <= most else -(-2 * len(values) // most)
    steps = extremes(values, states, size, symbols)
    while len(steps) > most:
        size *= 2
        steps = extremes(values, states, size, symbols)
    small = np.min_scalar_type(int(states.max()))
    return size, Kept(steps, _narrow(values[steps]), states[steps].astype(small))


def extremes(values: FloatArray, states: IntArray, size: int, symbols: int | None = None) -> IntArray:
    """Where, in every piece of `size` steps, each state has its lowest and its highest value, or each symbol first."""
    steps = np.flatnonzero(~np.isnan(values))
    if size == 1:
        return steps
    group = states[steps] if symbols is None else states[steps] * symbols + values[steps].astype(np.int64)
    order = np.lexsort((values[steps], group, steps // size))
    first = np.flatnonzero(np.diff((steps // size)[order], prepend=-1) | np.diff(group[order], prepend=-1))
    last = np.append(first[1:], len(order)) - 1
    return np.asarray(steps[np.unique(order[np.concatenate([first, last])])])


def _narrow(values: FloatArray) -> FloatArray:
    """In four bytes each if that is exact enough."""
    with np.errstate(over="ignore"):
        short = values.astype(np.float32)
    return short if np.all(np.abs(short - values) <= EXACT * np.ptp(values)) else values


def _ahead(steps: IntArray) -> IntArray:
    """How far each step is from the one before, the first one from 0, in as few bytes as it takes."""
    ahead = np.diff(steps, prepend=0)
    return ahead.astype(np.min_scalar_type(int(ahead.max(initial=0))))


def averaged(probabilities: FloatArray, most: int) -> tuple[int, FloatArray]:
    """Averages over at most so many pieces of equal size, the last one shorter: the size, and (pieces, states)."""
    total = len(probabilities)
    size = -(-total // most)
    begins = np.arange(0, total, size)
    return size, np.add.reduceat(probabilities, begins) / np.diff(begins, append=total)[:, None]


def stretches(missing: BoolArray, shortest: int) -> IntArray:
    """(stretches, 2): where something is missing from, and where it is there again, if that is not too short."""
    change = np.diff(np.concatenate([[False], missing, [False]]).astype(np.int8))
    found = np.stack([np.flatnonzero(change > 0), np.flatnonzero(change < 0)], axis=1)
    return found[np.diff(found)[:, 0] >= shortest]


def pack(array: Array) -> dict[str, str]:
    """An array as the page's script reads it."""
    kind = {"f": "Float", "i": "Int", "u": "Uint"}[array.dtype.kind]
    little = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {"type": f"{kind}{8 * array.itemsize}Array", "bytes": base64.b64encode(little.tobytes()).decode()}


# Figures without marks; the script knows them by their names


def _layout(values: FloatArray, names: Sequence[str], symbols: int | None) -> Any:
    x = Range1d(-0.5, len(values) - 0.5, bounds=(-0.5, len(values) - 0.5), name="x")
    panels = [_panel(c, name, values[:, c], x, symbols, len(names)) for c, name in enumerate(names)]
    return column([*panels, _strip(x)], sizing_mode="stretch_width", spacing=2)


def _panel(c: int, name: str, values: FloatArray, x: Range1d, symbols: int | None, n_panels: int) -> figure:
    height = HEIGHTS["one"] if n_panels == 1 else HEIGHTS["several"]
    panel = _zoomable(height + 30 * (c == 0), x, _span(values, symbols), toolbar="above" if c == 0 else None)
    panel.xaxis.major_label_text_font_size = "0px"
    labelled(panel, "", name)
    gaps, borders = _empty(f"gaps-{c}", "begin", "end"), _empty(f"borders-{c}", "x")
    panel.vstrip("begin", "end", source=gaps, fill_color=PALE, line_color=None, name="gaps")
    panel.vspan("x", source=borders, line_dash="dotted", line_width=1, name="faint")
    source = _empty(f"boxes-{c}", *SIDES, "low", "high", "first", "last", "state", "colour")
    boxes = panel.quad(*SIDES, source=source, fill_color="colour", line_color="colour")
    panel.line("x", "y", source=_empty(f"line-{c}", "x", "y"), line_width=0.7, line_alpha=0.6, name="faint")
    source = _empty(f"dots-{c}", "x", "y", "state", "colour", "marker", "sure")
    dots = panel.scatter("x", "y", source=source, marker="marker", size=6, fill_color="colour", line_color=None)
    what = ("symbol", "@low{0}") if symbols else ("values", "@low{0.[0000]} to @high{0.[0000]}")
    hover(panel, boxes, [what, ("state", "@state"), ("steps", STEPS)])
    hover(panel, dots, [("value", "@y{0.[00000]}"), ("state", "@state (@sure %)"), ("step", "@x{0}")])
    if symbols and symbols <= WRITTEN:
        panel.yaxis.ticker = list(range(symbols))
    return panel


def _strip(x: Range1d) -> figure:
    strip = _zoomable(HEIGHTS["strip"], x, Range1d(0, 1), toolbar=None)
    strip.yaxis.ticker = [0, 1]
    labelled(strip, "step", "P(state)")
    source = _empty("strip", *SIDES, "state", "colour", "percent", "first", "last")
    areas = strip.quad(*SIDES, source=source, fill_color="colour", line_color="colour", line_width=0.5)
    strip.vspan("x", source=_empty("borders-strip", "x"), line_dash="dotted", line_width=1, name="faint")
    hover(strip, areas, [("state", "@state"), ("probability", "@percent{0.[0]} %"), ("steps", STEPS)])
    return strip


def _zoomable(height: int, x: Range1d, y: Range1d, toolbar: Any) -> figure:
    wheel, pan = WheelZoomTool(dimensions="width", maintain_focus=False), PanTool(dimensions="width")
    tools = [pan, wheel, BoxZoomTool(), ResetTool(), SaveTool()]
    panel = plain(height, x_range=x, y_range=y, tools=tools, toolbar_location=toolbar, active_scroll=wheel)
    panel.toolbar.active_drag = pan
    panel.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    return panel


def _span(values: FloatArray, symbols: int | None) -> Range1d:
    if symbols:
        return Range1d(-0.6, symbols - 0.4)
    low, high = np.nanmin(values), np.nanmax(values)
    margin = 0.05 * (high - low) or 1.0
    return Range1d(low - margin, high + margin)


def _empty(name: str, *fields: str) -> ColumnDataSource:
    return ColumnDataSource({field: [] for field in fields}, name=name)
