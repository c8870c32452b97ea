"""Number of states, and how long each state lasts."""

import numpy as np
from matplotlib.axes import Axes

from ihmm._plot_data import LONGEST, PALETTE, WRITTEN, at_least, colours, runs
from ihmm.plots._axes import WIDTH, add_legend, integer_ticks, make_axes
from ihmm.posterior import Posterior


def n_states(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Posterior of the number of states. Bars of at least 1 % are labelled."""
    return _number(posterior.n_states_probabilities(), "number of states", ax)


def n_levels(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Posterior of the number of levels. Bars of at least 1 % are labelled."""
    return _number(posterior.levels().n_levels_probabilities, "number of levels", ax)


def _number(probability: dict[int, float], label: str, ax: Axes | None) -> Axes:
    ax = make_axes(ax, WIDTH / 2)
    bars = ax.bar(list(probability), list(probability.values()), width=0.75, color=PALETTE[0])
    ax.set(xlabel=label, ylabel="posterior probability", ylim=(0, 1.12 * max(probability.values())))
    ax.set_xlim(min(probability) - 0.8, max(probability) + 0.8)
    if len(probability) <= WRITTEN:
        ax.bar_label(bars, [f"{p:.0%}" if p >= 0.01 else "" for p in probability.values()], padding=2, fontsize="small")
        ax.set_xticks(list(probability))
    return ax


def dwell_times(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Survival function of the dwell times of each state, pooled over draws, on a log scale.

    Thin lines are the geometric distributions implied by the transition probabilities. Runs cut off by the end of a
    sequence count with the length they have.
    """
    ax = make_axes(ax)
    found = posterior.summary()
    medians, longest = [], 2.0
    for k, (own, colour) in enumerate(zip(runs(posterior), colours(found.n_states), strict=True)):
        share = at_least(own)
        steps = np.arange(1, len(share) + 1)
        ax.plot(steps, share, color=colour, linewidth=1.6)
        # P(L ≥ n) = π_kk^(n − 1)
        ax.plot(steps, found.transitions[k, k] ** (steps - 1.0), color=colour, linewidth=0.6, linestyle=(0, (6, 2)))
        medians.append(f"{k}: {np.median(own):g}")
        longest = max(longest, float(np.quantile(own, 1 - LONGEST)))
    ax.set_yscale("log")
    ax.set(xlabel="n (steps)", ylabel="P(dwell time ≥ n)", xlim=(1, longest), ylim=(LONGEST, 1.2))
    ax.xaxis.set_major_locator(integer_ticks())
    add_legend(ax, medians, colours(found.n_states), title="state: median")
    return ax
