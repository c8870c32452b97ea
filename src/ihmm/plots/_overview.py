"""All plots of a run on one page."""

from typing import Any

import matplotlib as mpl
from matplotlib.figure import Figure

from ihmm.figures.plot_data import COLUMNS, has_density
from ihmm.plots._axes import OPEN, make_figure
from ihmm.plots._emissions import emissions
from ihmm.plots._matrices import co_assignment, transitions
from ihmm.plots._series import series, series_height
from ihmm.plots._states import dwell_times, n_levels
from ihmm.plots._traces import traces
from ihmm.posterior import Posterior


def overview(posterior: Posterior) -> Figure:
    """One page: the first sequence with its levels, the properties of the states, and the traces of the chains."""
    height = series_height(min(posterior.data.y[0].size, COLUMNS))
    figure = make_figure(10, 5.2 + height)
    parts: Any = figure.subfigures(3, 1, height_ratios=[height, 2.8, 2.4])
    top, middle, bottom = parts
    with mpl.rc_context(OPEN):
        above = top.subplots()
        densities, matrix, dwell = middle.subplots(1, 3, width_ratios=[1.35, 1, 1.2])
        sizes, counts, joint = bottom.subplots(1, 3, width_ratios=[0.8, 1.2, 1.2])
    series(posterior, above)
    if has_density(posterior):
        emissions(posterior, densities)
    else:
        co_assignment(posterior, densities)
    transitions(posterior, matrix)
    dwell_times(posterior, dwell)
    n_levels(posterior, sizes)
    traces(posterior, ("log_joint", "n_states"), (joint, counts))
    titles = {
        above: "Levels" if len(posterior.lengths) == 1 else f"Levels (first of {len(posterior.lengths)} sequences)",
        densities: "Observations by state" if has_density(posterior) else "Co-assignment",
        matrix: "Transitions",
        dwell: "Dwell times",
        sizes: "Number of levels",
        counts: "Number of states by sweep",
        joint: "Joint log-likelihood by sweep",
    }
    for ax, title in titles.items():
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    return figure
