"""The zoomable figure of the series and its states.

The page contains the series, downsampled if it is long, and empty Bokeh figures. The script of the page fills them with
what is in view: a marker for every step if there are few, otherwise the range of the values of each state per pixel.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from bokeh.embed import json_item
from bokeh.layouts import column
from bokeh.models import (
    BasicTickFormatter,
    BoxZoomTool,
    ColumnDataSource,
    DatetimeAxis,
    LinearAxis,
    PanTool,
    PlainText,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.plotting import figure

from ihmm._typing import FloatArray
from ihmm.figures.pictures import idealised
from ihmm.figures.plot_data import COLUMNS, LANE, PALE, WRITTEN, alphabet, axis_type, colours, letters
from ihmm.posterior import Posterior
from ihmm.report._bokeh import add_hover, empty_figure, set_axis_labels
from ihmm.report._downsampling import block_means, downsample, encode, gaps, increments

MAX_VALUES = 240_000  # values of the series in a page
MAX_PROBABILITIES = 600_000
MARKERS = ("circle", "square", "triangle", "diamond", "inverted_triangle", "hex", "star")
SIDES = ("left", "right", "bottom", "top")
STEPS = "@first{0} to @last{0}"
HEIGHTS = {"one": 300, "several": 150, "strip": 96}
MAX_UNEVEN = 0.02  # of the whole time: dates that are less evenly spaced have no place on an axis of steps


class Series(NamedTuple):
    """A Bokeh figure, the data that the script draws in it, and facts for the text around it."""

    figure: Any
    data: dict[str, Any]
    lengths: list[int]
    block: int  # steps per block of which only extremes are kept; 1 if all values are
    columns: list[str]  # shown
    n_columns: int  # in the data
    gaps: bool
    label: str  # for screen readers


def series(posterior: Posterior, names: Sequence[str]) -> Series:
    """One panel for each of the first columns, and below them the probabilities of the states."""
    summary, symbols = posterior.summary(), alphabet(posterior)
    values = posterior.data.values.reshape(len(summary.states), -1).astype(np.float64)
    shown = list(names[:COLUMNS])
    most = MAX_VALUES // len(shown)
    sizes, columns = zip(
        *(downsample(values[:, c], summary.states, most, symbols) for c in range(len(shown))), strict=True
    )
    missing = [gaps(np.isnan(values[:, c]), size) for c, size in enumerate(sizes)]
    block, probabilities = block_means(summary.probabilities, MAX_PROBABILITIES // summary.n_states)
    factor, unit = posterior.clock.scale(float(posterior.lengths.max()))
    axis = date_axis(posterior)
    data = {
        "offsets": encode(posterior.data.offsets.astype(np.int32)),
        "columns": [
            {
                "increment": encode(increments(points.step)),
                "value": encode(points.value),
                "state": encode(points.state),
            }
            for points in columns
        ],
        "gaps": [encode(each.astype(np.int32)) for each in missing],
        "probabilities": encode(np.rint(255 * probabilities).astype(np.uint8)),
        "block": block,  # steps per entry of probabilities
        "complete": max(sizes) == 1,  # not downsampled
        "symbols": symbols or 0,
        "lane": LANE if symbols else 0,
        "letters": letters(posterior),
        "labels": summary.labels,
        "colours": colours(summary.n_states),
        "markers": MARKERS,
        "levels": None if symbols else [_levels(posterior, values[:, c]) for c in range(len(shown))],
        "names": shown,
        "tick": factor,  # time from one step to the next
        "axis": axis or (0.0, factor),  # where the first step is on the axis of time, and how far the next one is
    }
    label = f"{', '.join(shown)} over {len(values)} steps, coloured by state, above the probability of each state"
    return Series(
        figure=json_item(
            _layout(values[:, : len(shown)], shown, letters(posterior), _time_axis(unit, axis), axis_type(posterior))
        ),
        data=data,
        lengths=posterior.lengths.tolist(),
        block=max(sizes),
        columns=shown,
        n_columns=values.shape[1],
        gaps=any(each.size for each in missing),
        label=label,
    )


def _levels(posterior: Posterior, values: FloatArray) -> list[float | None]:
    """Mean of the values on the level of each state; None if there are none."""
    mean, _ = idealised(posterior, values)
    states = posterior.summary().states
    found = [mean[states == k][0] for k in range(posterior.summary().n_states)]
    return [None if np.isnan(x) else float(x) for x in found]


def date_axis(posterior: Posterior) -> tuple[float, float] | None:
    """Date of the first step and time to the next, in milliseconds; None if there are no dates, or uneven ones."""
    dates = posterior.clock.dates()
    if dates is None or len(posterior.lengths) > 1 or len(dates) == 1:
        return None
    milliseconds = (dates - np.datetime64(0, "s")) / np.timedelta64(1, "ms")
    even = np.linspace(milliseconds[0], milliseconds[-1], len(dates))
    if np.abs(milliseconds - even).max() > MAX_UNEVEN * np.ptp(even):
        return None
    return float(even[0]), float(even[1] - even[0])


def _time_axis(unit: str, dates: tuple[float, float] | None) -> LinearAxis | None:
    """An axis of dates or of the time since the start; None if steps are counted."""
    style = {"x_range_name": "time", "minor_tick_line_color": None, "axis_label_text_font_style": "normal"}
    if dates is not None:
        return DatetimeAxis(**style)
    return LinearAxis(axis_label=PlainText(text=f"time since the start ({unit})"), **style) if unit != "steps" else None


# Empty figures; the script finds their data sources by name


def _layout(values: FloatArray, names: Sequence[str], symbols: list[str], time: LinearAxis | None, axis: str) -> Any:
    x = Range1d(-0.5, len(values) - 0.5, bounds=(-0.5, len(values) - 0.5), name="x")
    panels = [_panel(c, name, values[:, c], x, symbols, len(names), axis) for c, name in enumerate(names)]
    if time is not None:
        for panel in panels:  # their ticks and grids are at round numbers of steps
            panel.xaxis.ticker, panel.xgrid.visible = [], False
    return column([*panels, _strip(x, time)], sizing_mode="stretch_width", spacing=2)


def _panel(c: int, name: str, values: FloatArray, x: Range1d, symbols: list[str], n_panels: int, axis: str) -> figure:
    height = HEIGHTS["one"] if n_panels == 1 else HEIGHTS["several"]
    toolbar = "above" if c == 0 else None
    panel = _zoomable(height + 30 * (c == 0), x, _y_range(values, len(symbols), axis), toolbar, axis)
    panel.xaxis.major_label_text_font_size = "0px"
    set_axis_labels(panel, "", name)
    missing, borders = _empty(f"gaps-{c}", "begin", "end"), _empty(f"borders-{c}", "x")
    panel.vstrip("begin", "end", source=missing, fill_color=PALE, line_color=None, name="gaps")
    panel.vspan("x", source=borders, line_dash="dotted", line_width=1, name="faint")
    source = _empty(f"boxes-{c}", *SIDES, "low", "high", "first", "last", "symbol", "state", "colour")
    boxes = panel.quad(*SIDES, source=source, fill_color="colour", line_color="colour")
    panel.line("x", "y", source=_empty(f"line-{c}", "x", "y"), line_width=0.7, line_alpha=0.6, name="faint")
    panel.line("x", "y", source=_empty(f"ideal-{c}", "x", "y"), line_width=1.2, name="ink")
    source = _empty(f"dots-{c}", "x", "y", "state", "colour", "marker", "percent")
    dots = panel.scatter("x", "y", source=source, marker="marker", size=6, fill_color="colour", line_color=None)
    what = ("symbol", "@symbol") if symbols else ("values", "@low{0.[0000]} to @high{0.[0000]}")
    add_hover(panel, boxes, [what, ("state", "@state"), ("steps", STEPS)])
    add_hover(panel, dots, [("value", "@y{0.[00000]}"), ("state", "@state (@percent %)"), ("step", "@x{0}")])
    if 0 < len(symbols) <= WRITTEN:
        panel.yaxis.ticker = list(range(len(symbols)))
        panel.yaxis.major_label_overrides = dict(enumerate(symbols))
    return panel


def _strip(x: Range1d, time: LinearAxis | None) -> figure:
    strip = _zoomable(HEIGHTS["strip"], x, Range1d(0, 1), toolbar=None)
    strip.yaxis.ticker = [0, 1]
    set_axis_labels(strip, "step", "P(state)")
    if time is not None:
        strip.xaxis.visible = False
        strip.extra_x_ranges = {"time": Range1d(0, 1, name="time")}
        strip.add_layout(time, "below")
    source = _empty("strip", *SIDES, "state", "colour", "percent", "first", "last")
    areas = strip.quad(*SIDES, source=source, fill_color="colour", line_color="colour", line_width=0.5)
    strip.vspan("x", source=_empty("borders-strip", "x"), line_dash="dotted", line_width=1, name="faint")
    add_hover(strip, areas, [("state", "@state"), ("probability", "@percent{0.[0]}%"), ("steps", STEPS)])
    return strip


def _zoomable(height: int, x: Range1d, y: Range1d, toolbar: Any, axis: str = "linear") -> figure:
    wheel, pan = WheelZoomTool(dimensions="width", maintain_focus=False), PanTool(dimensions="width")
    tools = [pan, wheel, BoxZoomTool(), ResetTool(), SaveTool()]
    panel = empty_figure(
        height, x_range=x, y_range=y, y_axis_type=axis, tools=tools, toolbar_location=toolbar, active_scroll=wheel
    )
    panel.toolbar.active_drag = pan
    panel.xaxis.formatter = BasicTickFormatter(use_scientific=False)
    return panel


def _y_range(values: FloatArray, symbols: int, axis: str) -> Range1d:
    if symbols:
        return Range1d(-0.6, symbols - 0.4)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    if axis == "log":
        factor = (high / low) ** 0.05
        return Range1d(low / factor, high * factor)
    margin = 0.05 * (high - low) or 1.0
    return Range1d(low - margin, high + margin)


def _empty(name: str, *fields: str) -> ColumnDataSource:
    return ColumnDataSource({field: [] for field in fields}, name=name)
