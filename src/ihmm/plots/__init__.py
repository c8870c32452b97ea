"""Plots of a posterior with matplotlib. Needs the extra `plots`.

Functions draw on the Axes they are given and return it. Without one they make a figure: a pyplot figure if pyplot is
imported or a notebook is running, so that the cell or `plt.show()` displays it; otherwise a plain `Figure`, which needs
no display. In both cases ``ax.figure.savefig("name.pdf")`` saves it.

States have the numbers of `posterior.summary()` and the same colours in every plot. Fonts follow the settings of
matplotlib; figures are sized for two columns of a journal.
"""

from importlib.util import find_spec

if find_spec("matplotlib") is None:
    raise ImportError("ihmm.plots needs matplotlib: pip install 'ihmm[plots]'")

from ihmm.figures.plot_data import colours as colours
from ihmm.plots._emissions import emissions
from ihmm.plots._forecast import forecast
from ihmm.plots._kinetics import idealised, transition_density, transition_graph
from ihmm.plots._matrices import co_assignment, transitions
from ihmm.plots._overview import overview
from ihmm.plots._predictive import predictive_check, prior_predictive
from ihmm.plots._recordings import ribbons
from ihmm.plots._series import series
from ihmm.plots._states import dwell_histogram, dwell_times, n_levels, n_states
from ihmm.plots._traces import compare, traces

__all__ = [
    "co_assignment",
    "compare",
    "dwell_histogram",
    "dwell_times",
    "emissions",
    "forecast",
    "idealised",
    "n_levels",
    "n_states",
    "overview",
    "predictive_check",
    "prior_predictive",
    "ribbons",
    "series",
    "traces",
    "transition_density",
    "transition_graph",
    "transitions",
]
