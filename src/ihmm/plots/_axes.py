"""Figures, axes, legends and tick locators shared by all plots."""

import sys
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator, StrMethodFormatter

from ihmm._typing import Array

WIDTH = 7.0  # inches: two columns of a journal
HEAT = "Blues"  # colour map of matrices
OPEN: dict[Any, Any] = {"axes.spines.top": False, "axes.spines.right": False}  # rcParams of new axes
integer_ticks = partial(MaxNLocator, "auto", integer=True, min_n_ticks=1)


def make_axes(ax: Axes | None, width: float = WIDTH, height: float = 2.8) -> Axes:
    """Return `ax`, or the only axes of a new figure if it is None."""
    if ax is not None:
        return ax
    with mpl.rc_context(OPEN):
        return make_figure(width, height).add_subplot()


def make_figure(width: float, height: float) -> Figure:
    """A pyplot figure if pyplot is imported or a notebook is running, otherwise a plain `Figure`.

    A plain figure needs no display and is freed with its last reference.
    """
    if "matplotlib.pyplot" in sys.modules or _in_notebook():
        from matplotlib import pyplot

        return pyplot.figure(figsize=(width, height), layout="constrained")
    return Figure(figsize=(width, height), layout="constrained")


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    return ipython is not None and ipython.get_ipython() is not None


def make_rows(n: int) -> list[Axes]:
    """A new figure of n axes, one above the other, with a common x axis."""
    with mpl.rc_context(OPEN):
        panels: Array = make_figure(WIDTH, 0.6 + 1.2 * n).subplots(n, 1, sharex=True, squeeze=False)
    return list(panels[:, 0])


def split_rows(ax: Axes, heights: Sequence[float]) -> list[Axes]:
    """Split an axes into several, one above the other, with a common x axis. The first is `ax` itself."""
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


def add_legend(
    ax: Axes,
    names: Iterable[object],
    colours: Iterable[str],
    others: Iterable[Artist] = (),
    title: str | None = "state",
) -> None:
    """A legend to the right of the axes: coloured patches, then the handles in `others`."""
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


def add_colour_bar(ax: Axes, image: Any, label: str) -> None:
    bar: Any = ax.figure.colorbar(image, cax=ax.inset_axes((1.03, 0, 0.05, 1)), label=label)
    bar.outline.set_visible(False)


def set_logarithmic(ax: Axes, which: str) -> None:
    """A logarithmic axis, ``"x"`` or ``"y"``, with ticks such as 2, 5 and 10."""
    ax.set(**{f"{which}scale": "log"})
    axis = ax.xaxis if which == "x" else ax.yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_locator(NullLocator())


def text_colour() -> str:
    return str(mpl.rcParams["text.color"])
