"""Pictures of kinetics: the idealised trace, jumps between levels, the graph of transitions."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Circle, FancyArrowPatch
from matplotlib.path import Path

from ihmm.figures import graph
from ihmm.figures import pictures as _pictures
from ihmm.figures.plot_data import GREY, axis_type, colours, column_names
from ihmm.plots._axes import HEAT, WIDTH, add_legend, make_axes, set_logarithmic, text_colour
from ihmm.plots._series import step_range
from ihmm.plots._time import time_scale
from ihmm.posterior import Posterior


def idealised(
    posterior: Posterior,
    ax: Axes | None = None,
    *,
    sequence: int = 0,
    start: int | None = None,
    stop: int | None = None,
    column: int | None = None,
    by: str = "level",
) -> Axes:
    """The idealised trace over the data: each step at the mean of its level, in the colour of the level.

    `sequence`, `start` and `stop` select the steps to show, as in `series`.
    """
    _pictures.refuse_symbols(posterior, "an idealised trace")
    y = _pictures.column_of(posterior, column)
    levels, path = _pictures.idealised(posterior, y, by)
    found = _pictures.groups(posterior, by)
    first, last = step_range(posterior.lengths, sequence, start, stop)
    begin = int(posterior.data.offsets[sequence])
    scale = time_scale(posterior, sequence)
    ax = make_axes(ax)
    steps = np.arange(first, last)
    ax.plot(scale.at(steps), y[begin + first : begin + last], color=GREY, linewidth=0.6, alpha=0.8, zorder=1)
    shown, level = levels[begin + first : begin + last], path[begin + first : begin + last]
    edges = np.append(np.flatnonzero(np.diff(level, prepend=-1)), len(level))
    corners, heights = np.repeat(edges, 2)[1:-1], np.repeat(shown[edges[:-1]], 2)
    ax.plot(scale.at(corners + first - 0.5), heights, color=text_colour(), linewidth=0.7, zorder=2)
    ends = scale.at(edges + first - 0.5)
    colour = [found.colours[j] for j in level[edges[:-1]]]
    ax.hlines(shown[edges[:-1]], ends[:-1], ends[1:], colors=colour, linewidth=2.2, zorder=3)
    scale.label_axis(ax, "" if len(posterior.lengths) == 1 else f", recording {sequence}")
    ax.set(xlim=(ends[0], ends[-1]), ylabel=_value(posterior, column))
    if axis_type(posterior) == "log":
        set_logarithmic(ax, "y")
    add_legend(ax, found.names, found.colours, title=by)
    return ax


def transition_density(posterior: Posterior, ax: Axes | None = None, *, column: int | None = None) -> Axes:
    """Level before against level after each change: the means of the values of the two visits, over many draws.

    Points far from the dotted lines, which mark the levels, are visits too short for a precise mean.
    """
    _pictures.refuse_symbols(posterior, "a transition density")
    y = _pictures.column_of(posterior, column)
    low, high, density = _pictures.jump_density(posterior, y)
    ax = make_axes(ax, WIDTH / 2, WIDTH / 2)
    ax.imshow(density, cmap=HEAT, origin="lower", extent=(low, high, low, high), vmin=0, aspect="equal")
    for level in np.unique(_pictures.idealised(posterior, y)[0]):
        for line in (ax.axhline, ax.axvline):
            line(level, color=GREY, linewidth=0.6, linestyle=":")
    what = _value(posterior, column)
    ax.set(xlabel=f"{what} before", ylabel=f"{what} after")
    return ax


def transition_graph(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """States as circles, as large as their share of the time; arrows as wide as their share of the exits.

    Arrows are labelled with rates per second, min, h or d, or per step if the time between steps is not known.
    Transitions of less than 2% of the exits from a state are left out; with more than three states, those of less than
    10% have no label.
    """
    found, ax = posterior.summary(), make_axes(ax, WIDTH / 2 + 0.4, WIDTH / 2 + 0.2)
    n = found.n_states
    place, radius = graph.places(n), graph.radii(found.shares)
    steps, per = _pictures.rate_unit(posterior)
    paper = {"facecolor": ax.get_facecolor(), "edgecolor": "none", "pad": 1.0}
    for source, target, share, rate in _pictures.edges(posterior):
        begin, bend, end, (x, y) = graph.arrow(place[source], place[target], radius[source], radius[target])
        path = Path([begin, bend, end], [Path.MOVETO, Path.CURVE3, Path.CURVE3])
        arrow = FancyArrowPatch(
            path=path,
            arrowstyle="-|>",
            mutation_scale=9 + 6 * share,
            linewidth=0.6 + 2.4 * share,
            color=colours(n)[source],
            zorder=1,
            clip_on=False,
        )
        ax.add_patch(arrow)
        text = _pictures.two_digits(rate * steps)
        if share < graph.LEAST_LABELLED and n > 3:
            continue
        ax.text(x, y, text, ha="center", va="center", fontsize="small", color=text_colour(), bbox=paper)
    labels = posterior.summary().labels
    for k in range(n):
        ax.add_patch(Circle(tuple(place[k]), radius[k], color=colours(n)[k], zorder=2))
        below, colour = (0.0, "white") if len(labels[k]) <= 3 else (radius[k] + 0.12, text_colour())
        at = place[k, 0], place[k, 1] - below
        ax.text(*at, labels[k], ha="center", va="center", color=colour, fontweight="bold", zorder=3)
    ax.set(xlim=(-1.5, 1.5), ylim=(-1.5, 1.5), aspect="equal", title=f"rates per {per}")
    ax.title.set_fontsize("small")
    ax.axis("off")
    return ax


def _value(posterior: Posterior, column: int | None) -> str:
    return column_names(posterior)[column or 0]
