"""Bokeh figures in the style of the page.

Text, axes and grids are coloured by the page, which may be light or dark: glyphs named "ink", "faint", "pale" or "gaps"
get the colour of that name from its style sheet.
"""

from typing import Any, NamedTuple

from bokeh.embed import json_item
from bokeh.models import FixedTicker, HoverTool, Legend, LegendItem, PlainText
from bokeh.plotting import figure

from ihmm.figures.plot_data import WRITTEN

MAX_LABEL = 20  # characters of a label that fit beside a panel
NARROW, KEY, LETTER = 340, 32, 7  # pixels: the width of a narrow figure, of the key of a legend, of one of its letters


class FigureItem(NamedTuple):
    """A serialised Bokeh figure with a heading, and a description for screen readers."""

    item: Any
    name: str
    heading: str
    label: str


def empty_figure(height: int, *, tools: Any = "", toolbar_location: Any = None, **settings: Any) -> figure:
    plot = figure(
        height=height, sizing_mode="stretch_width", tools=tools, toolbar_location=toolbar_location,
        background_fill_alpha=0, border_fill_alpha=0, outline_line_color=None, min_border_left=62, min_border_right=12,
        **settings,
    )  # fmt: skip
    plot.toolbar.logo = None
    plot.axis.minor_tick_line_color = None
    plot.axis.axis_label_text_font_style = "normal"
    return plot


def set_axis_labels(plot: figure, x: str, y: str) -> None:
    """Label the axes with plain text: Bokeh would load a TeX renderer from the network for a string with $$."""
    plot.xaxis.axis_label = PlainText(text=x) if x else None
    plot.yaxis.axis_label = PlainText(text=y if len(y) <= MAX_LABEL else y[: MAX_LABEL - 1] + "…")


def set_integer_ticks(plot: figure, axis: str, n: int | None = None) -> None:
    """Ticks at integers: at each of the first n if these are few, otherwise where there is room."""
    (which,) = getattr(plot, f"{axis}axis")
    if n is not None and n <= WRITTEN:
        which.ticker = FixedTicker(ticks=list(range(n)))
    elif not isinstance(which.ticker, FixedTicker):
        which.ticker.mantissas = [1, 2, 5]
        which.ticker.min_interval = 1


def add_hover(plot: figure, renderer: Any, tooltips: list[tuple[str, str]]) -> None:
    plot.add_tools(HoverTool(renderers=[renderer], tooltips=tooltips, visible=False))


def add_legend(plot: figure, entries: list[tuple[str, list[Any]]]) -> None:
    """A legend above the plot, in several rows if the screen is narrow."""
    items = [LegendItem(label={"value": name}, renderers=renderers) for name, renderers in entries]
    widths = [KEY + LETTER * len(name) for name, _ in entries]
    ncols = len(entries) if sum(widths) <= NARROW else max(1, int(NARROW // max(widths)))
    legend = Legend(items=items, orientation="horizontal", ncols=ncols, border_line_color=None, background_fill_alpha=0)
    legend.update(padding=0, margin=2, spacing=10, glyph_width=18, label_text_font_size="12px", label_standoff=4)
    plot.add_layout(legend, "above")


def figure_item(plot: figure, name: str, heading: str, label: str) -> FigureItem:
    return FigureItem(json_item(plot), name, heading, label)
