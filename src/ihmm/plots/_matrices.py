"""Heat maps: transition probabilities and co-assignment of time steps."""

from functools import partial

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter

from ihmm._typing import ArrayLike, FloatArray
from ihmm.figures.plot_data import GREY, WRITTEN
from ihmm.plots._axes import HEAT, WIDTH, add_colour_bar, integer_ticks, make_axes
from ihmm.posterior import Posterior


def transitions(of: Posterior | ArrayLike, ax: Axes | None = None) -> Axes:
    """Heat map of transition probabilities: the posterior mean, or any square matrix."""
    matrix = of.summary().transitions if isinstance(of, Posterior) else np.asarray(of, float)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"expected a posterior or a square matrix of transitions, got shape {matrix.shape}")
    ax = make_axes(ax, WIDTH / 2, WIDTH / 2 - 0.2)
    image = ax.imshow(matrix, cmap=HEAT, vmin=0, vmax=1)
    n = len(matrix)
    ax.set(xlabel="to state", ylabel="from state")
    if n > WRITTEN:
        add_colour_bar(ax, image, "probability")
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(integer_ticks())
        return ax
    for (j, k), p in np.ndenumerate(matrix):
        text = f"{p:.2f}" if n <= 6 else f"{p:.2f}".removeprefix("0")
        ax.text(k, j, text, ha="center", va="center", fontsize=_font_size(n), color="white" if p > 0.55 else "black")
    labels = of.summary().labels if isinstance(of, Posterior) else [str(k) for k in range(n)]
    ax.set_xticks(range(n), labels)
    ax.set_yticks(range(n), labels)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return ax


def _font_size(n: int) -> float:
    """Font size at which n numbers fit side by side."""
    return min(1.0, 7.5 / n) * 0.85 * float(mpl.rcParams["font.size"])


def co_assignment(posterior: Posterior, ax: Axes | None = None, steps: ArrayLike | None = None) -> Axes:
    """Heat map of P(s_t = s_u) for pairs of time steps. It does not depend on state labels.

    Without `steps`, at most 500 evenly spaced steps are shown, and thin lines separate the sequences.
    """
    together = posterior.co_assignment(steps)
    total = int(posterior.lengths.sum())
    has_times = posterior.clock.is_known and len(posterior.lengths) == 1
    step, unit = posterior.clock.scale(total) if has_times else (1.0, "")
    ax = make_axes(ax, WIDTH / 2 + 0.6, WIDTH / 2 - 0.2)
    if steps is None:
        begin, end = -0.5 * step, (total - 0.5) * step
        image = ax.imshow(together, cmap=HEAT, vmin=0, vmax=1, extent=(begin, end, end, begin))
        for first in posterior.data.offsets[1:-1]:
            ax.axhline(first - 0.5, color=GREY, linewidth=0.5)
            ax.axvline(first - 0.5, color=GREY, linewidth=0.5)
    else:
        image = ax.imshow(together, cmap=HEAT, vmin=0, vmax=1)
        places = np.asarray(steps) * step
        for axis in (ax.xaxis, ax.yaxis):
            axis.set_major_locator(integer_ticks())
            axis.set_major_formatter(FuncFormatter(partial(_place_label, places)))
    add_colour_bar(ax, image, "P(same state)")
    label = f"time ({unit})" if has_times else "step"
    ax.set(xlabel=label, ylabel=label)
    return ax


def _place_label(places: FloatArray, position: float, _: int | None) -> str:
    return f"{places[round(position)]:.6g}" if 0 <= round(position) < len(places) else ""
