"""Densities of the states over the histogram of the data."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ihmm._typing import Array
from ihmm.figures.plot_data import (
    PALE,
    WRITTEN,
    Density,
    axis_type,
    by_state,
    colours,
    column_names,
    densities,
    letters,
    observations,
)
from ihmm.plots._axes import add_legend, integer_ticks, make_axes, set_logarithmic, text_colour
from ihmm.posterior import Posterior


def emissions(posterior: Posterior, ax: Axes | None = None, *, column: int | None = None) -> Axes:
    """Density of each state, weighted by its share of the time steps, over the histogram of the data.

    The sum over states has a 95% credible band. Counts are drawn as steps and symbols as bars.

    One column of multivariate data is shown, the first by default. Its density comes from the emission's method
    `column`; without one it is normal if φ has fields `mean` and `variance` or `covariance`.
    """
    observed, density, n_symbols = observations(posterior, column)
    ax = make_axes(ax)
    found = posterior.summary()
    if n_symbols:
        _draw_bars(ax, posterior, observed, density, n_symbols)
    else:
        _draw_curves(ax, posterior, observed, density)
    ax.set_xlabel(column_names(posterior)[column or 0])
    ax.set_ylim(bottom=0)
    others = [Line2D([], [], color=text_colour(), label="all"), Patch(color=PALE, label="data")]
    add_legend(ax, found.labels, colours(found.n_states), others)
    return ax


def _draw_bars(ax: Axes, posterior: Posterior, observed: Array, density: Density, n_symbols: int) -> None:
    symbols = np.arange(n_symbols)
    ax.bar(symbols, np.bincount(observed, minlength=n_symbols) / len(observed), width=0.9, color=PALE)
    curves = by_state(posterior, symbols.astype(observed.dtype), density)
    n_labels = curves.shape[2]
    width = 0.8 / n_labels
    for k, (curve, colour) in enumerate(zip(curves.mean(axis=0).T, colours(n_labels), strict=True)):
        ax.bar(symbols + (k - (n_labels - 1) / 2) * width, curve, width=width, color=colour)
    low, middle, high = np.quantile(curves.sum(axis=2), (0.025, 0.5, 0.975), axis=0)
    errors = middle - low, high - middle
    ax.errorbar(symbols, middle, errors, fmt="_", color=text_colour(), markersize=10, linewidth=1)
    names = letters(posterior)
    if n_symbols == len(names) <= WRITTEN:
        ax.set_xticks(symbols, names)
    else:
        ax.xaxis.set_major_locator(integer_ticks())
    ax.set_ylabel("probability")


def _draw_curves(ax: Axes, posterior: Posterior, observed: Array, density: Density) -> None:
    edges, heights, grid, curves, whole = densities(posterior, observed, density)
    draw_style, step = ("steps-mid", "mid") if whole else ("default", None)
    ax.set_ylabel("probability" if whole else "density")
    if axis_type(posterior) == "log":
        set_logarithmic(ax, "x")
        ax.set_ylabel("density of the logarithm")
    ax.bar(edges[:-1], heights, np.diff(edges), align="edge", color=PALE)
    total = curves.sum(axis=2)
    low, high = np.quantile(total, (0.025, 0.975), axis=0)
    ax.fill_between(grid, low, high, step=step, color=text_colour(), alpha=0.2, linewidth=0)  # type: ignore[arg-type]
    ax.plot(grid, total.mean(axis=0), color=text_colour(), linewidth=1, drawstyle=draw_style)
    for curve, colour in zip(curves.mean(axis=0).T, colours(curves.shape[2]), strict=True):
        ax.plot(grid, curve, color=colour, linewidth=1.6, drawstyle=draw_style)
