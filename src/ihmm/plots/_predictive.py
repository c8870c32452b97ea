"""Checks of the model: does it simulate data like those it was fitted to, and what does its prior expect?"""

from collections.abc import Iterable

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ihmm._typing import Array
from ihmm.figures import pictures as _pictures
from ihmm.figures.plot_data import GREY, PALETTE, colours, column_names, mix
from ihmm.plots._axes import OPEN, WIDTH, integer_ticks, make_figure, text_colour
from ihmm.posterior import Posterior
from ihmm.simulation import PriorPredictive
from ihmm.summaries.labels import order_by_use
from ihmm.summaries.summary import dwell_times

SIMULATED = mix(PALETTE[0], "#FFFFFF", 0.6)
EXAMPLES = 4  # series from the prior


def predictive_check(posterior: Posterior, axes: Iterable[Axes] | None = None, *, column: int | None = None) -> Array:
    """Data against series simulated from the draws: distribution of the values, autocorrelation and dwell times.

    Bands contain 95% of the simulated series. Where the data leave them, the model does not explain the data. Dwell
    times of the data are those of the states that were drawn. Symbols have the share of equal pairs instead of an
    autocorrelation, angles the mean cosine of differences.
    """
    found = _pictures.predictive(posterior, column)
    panels = _three(axes)
    left, middle, right = panels
    for ax, (x, data, low, high) in zip(panels, (found.marginal, found.autocorrelation, found.dwell), strict=True):
        if ax is left:
            ax.stairs(high, found.edges, baseline=low, fill=True, color=SIMULATED)
            ax.stairs(data, found.edges, color=text_colour(), linewidth=1)
        else:
            ax.fill_between(x * _unit(posterior, x)[0], low, high, color=SIMULATED, linewidth=0)
            ax.plot(x * _unit(posterior, x)[0], data, color=text_colour(), linewidth=1)
    left.set(xlabel=column_names(posterior)[column or 0], ylabel="density", ylim=(0, None))
    middle.set(xlabel=f"lag ({_unit(posterior, found.autocorrelation.x)[1]})", ylabel="autocorrelation")
    right.set(xlabel=f"dwell time n ({_unit(posterior, found.dwell.x)[1]})", ylabel="P(dwell time ≥ n)")
    right.set_xscale("log")
    handles = [Line2D([], [], color=text_colour(), label="data"), Patch(color=SIMULATED, label="simulated, 95%")]
    left.legend(
        handles=handles, frameon=False, fontsize="small", ncols=2, columnspacing=1.0, loc="lower left",
        bbox_to_anchor=(0, 1.0), borderaxespad=0.3,
    )  # fmt: skip
    return np.array(panels)


def _unit(posterior: Posterior, steps: Array) -> tuple[float, str]:
    return posterior.clock.scale(float(steps.max()))


def prior_predictive(prior: PriorPredictive, axes: Iterable[Axes] | None = None) -> Array:
    """What the model expects before it has seen data: example series, number of states, and dwell times.

    Four of the simulated series are drawn above each other, coloured by state; the histograms are over all of them.
    """
    panels = _three(axes)
    left, middle, right = panels
    y = prior.y.reshape(*prior.y.shape[:2], -1)[:EXAMPLES, :, 0].astype(np.float64)
    height = float(np.ptp(y, axis=1).max()) or 1.0
    for i, (values, states) in enumerate(zip(y, prior.states, strict=False)):
        path = order_by_use(states)
        shift = -1.15 * i * height - values.min()
        left.plot(values + shift, color=GREY, linewidth=0.4, zorder=1)
        hues = np.array(colours(int(path.max()) + 1))
        left.scatter(np.arange(len(values)), values + shift, s=3, c=hues[path], linewidths=0, zorder=2)
    left.set(xlabel="step", yticks=(), ylabel="simulated series")
    sizes, count = np.unique(prior.n_states, return_counts=True)
    middle.bar(sizes, count / count.sum(), color=PALETTE[0])
    middle.set(xlabel="number of states", ylabel="prior probability")
    middle.xaxis.set_major_locator(integer_ticks())
    offsets = np.concatenate([[0], np.cumsum(prior.lengths)])
    lengths = np.concatenate([dwell_times(states, offsets)[0] for states in prior.states])
    edges = np.geomspace(0.5, max(prior.lengths) + 0.5, 30)
    right.hist(lengths, list(edges), color=PALETTE[0], weights=np.full(len(lengths), 1 / len(lengths)))
    right.set(xlabel="dwell time (steps)", ylabel="share of visits", xscale="log")
    return np.array(panels)


def _three(axes: Iterable[Axes] | None) -> list[Axes]:
    """The given axes, or three beside each other."""
    if axes is None:
        with mpl.rc_context(OPEN):
            panels: Array = make_figure(WIDTH + 1.5, 2.5).subplots(1, 3)
        return list(panels)
    given = list(np.ravel(np.asarray(axes)))
    if len(given) != 3:
        raise ValueError(f"expected three Axes, got {len(given)}")
    return given
