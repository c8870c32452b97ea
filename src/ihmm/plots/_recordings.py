"""Many recordings at a glance: one ribbon of levels for each."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb

from ihmm.figures import pictures as _pictures
from ihmm.plots._axes import WIDTH, add_legend, integer_ticks, make_axes
from ihmm.posterior import Posterior

BINS = 1200  # of the longest recording
LABELLED = 30  # recordings up to which each has a number


def ribbons(posterior: Posterior, ax: Axes | None = None, *, by: str = "level") -> Axes:
    """One ribbon for each recording, coloured by level, from the first recording at the top to the last.

    Times are counted from the start of each recording.
    """
    found = _pictures.groups(posterior, by)
    n = len(posterior.lengths)
    ax = make_axes(ax, WIDTH, float(np.clip(0.9 + 0.22 * n, 1.4, 7)))
    hues = np.array([to_rgb(colour) for colour in found.colours])
    longest = int(posterior.lengths.max())
    scale = posterior.clock.scale(longest)
    thick = 0.8 if n <= 60 else 1.0
    for i, length in enumerate(posterior.lengths):
        path, edges = _pictures.ribbon(posterior, i, by, max(1, int(BINS * length / longest)))
        ax.pcolorfast((edges - 0.5) * scale.factor, (i - thick / 2, i + thick / 2), hues[path][None])
    ax.set(xlim=(-0.5 * scale.factor, (longest - 0.5) * scale.factor), ylim=(n - 0.5, -0.5), ylabel="recording")
    ax.set_xlabel("step" if scale.unit == "steps" else f"time ({scale.unit})")
    ax.yaxis.set_major_locator(integer_ticks())
    if n <= LABELLED:
        ax.set_yticks(range(n))
    add_legend(ax, found.names, found.colours, title=by)
    return ax
