"""Number of states, and how long each state lasts."""

import numpy as np
from matplotlib.axes import Axes

from ihmm._typing import Array
from ihmm.figures.plot_data import LONGEST, PALETTE, WRITTEN, at_least, colours, law_at_least, runs
from ihmm.plots._axes import WIDTH, add_legend, integer_ticks, make_axes, split_rows
from ihmm.posterior import Posterior

POINTS = 200  # of the line of a fitted law
PANELS = 6  # at most, one per state
LOG_BINS = 40  # of a histogram of dwell times


def n_states(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Posterior of the number of states. Bars of at least 1% are labelled."""
    return _number(posterior.n_states_probabilities(), "number of states", ax)


def n_levels(posterior: Posterior, ax: Axes | None = None) -> Axes:
    """Posterior of the number of levels. Bars of at least 1% are labelled."""
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

    Thin dashed lines, with 95% bands, are the fitted laws: the duration laws of the model, or the geometric ones that
    the transition probabilities imply. Runs cut off by the end of a sequence count with the length they have.
    """
    ax = make_axes(ax)
    found, every = posterior.summary(), runs(posterior)
    longest = max(2.0, *(float(np.quantile(own, 1 - LONGEST)) for own in every))
    factor, unit = posterior.clock.scale(longest)
    for k, (own, colour) in enumerate(zip(every, colours(found.n_states), strict=True)):
        share = at_least(own)
        ax.plot(factor * np.arange(1, len(share) + 1), share, color=colour, linewidth=1.6)
        points = np.unique(np.geomspace(1, len(share), POINTS).round().astype(np.int64))
        law, low, high = law_at_least(posterior, k, points)
        ax.plot(factor * points, law, color=colour, linewidth=0.6, linestyle=(0, (6, 2)))
        ax.fill_between(factor * points, low, high, color=colour, alpha=0.15, linewidth=0)
    ax.set_yscale("log")
    ax.set(
        xlabel=f"dwell time n ({unit})",
        ylabel="P(dwell time ≥ n)",
        xlim=(factor, factor * longest),
        ylim=(LONGEST, 1.2),
    )
    if unit == "steps":
        ax.xaxis.set_major_locator(integer_ticks())
    medians = [f"{name}: {factor * np.median(own):.3g}" for name, own in zip(found.labels, every, strict=True)]
    add_legend(ax, medians, colours(found.n_states), title=f"state: median ({unit})")
    return ax


def dwell_histogram(posterior: Posterior, ax: Axes | None = None) -> Axes | Array:
    """Histogram of the logarithm of the dwell times of each state, pooled over draws, with the fitted law.

    Each state has a panel; of more than six states, those with the largest numbers are left out. An array of Axes is
    returned if there are several.

    An exponential law has a peak at its mean. The height is the square root of the share of the visits per unit of the
    logarithm, so that the scatter is the same everywhere. Lines are the fitted laws, with 95% bands. Visits cut off by
    the end of a sequence count with the length they have.
    """
    found, every = posterior.summary(), runs(posterior)[:PANELS]
    ax = make_axes(ax, height=2.8 if len(every) == 1 else 0.8 + 1.1 * len(every))
    panels = split_rows(ax, [1.0] * len(every))
    longest = max(int(own.max()) for own in every)
    factor, unit = posterior.clock.scale(float(np.median(np.concatenate(every))))
    edges = np.unique(np.geomspace(1, longest + 1, LOG_BINS).round().astype(np.int64))
    widths = np.diff(np.log(edges))
    middle = factor * np.sqrt(edges[1:] * edges[:-1])
    hues = colours(found.n_states)[: len(every)]
    for k, (panel, own, colour) in enumerate(zip(panels, every, hues, strict=True)):
        share = np.histogram(own, edges)[0] / len(own) / widths
        panel.stairs(np.sqrt(share), factor * edges, color=colour, fill=True, alpha=0.25)
        law, low, high = np.sqrt(np.maximum(-np.diff(law_at_least(posterior, k, edges), axis=1), 0) / widths)
        panel.plot(middle, law, color=colour, linewidth=1.4)
        panel.fill_between(middle, np.minimum(low, high), np.maximum(low, high), color=colour, alpha=0.2, linewidth=0)
        panel.set(xscale="log", ylim=(0, None))
        panel.tick_params(labelbottom=panel is panels[-1])
        panel.set_ylabel("√ share of visits", fontsize="small" if len(panels) > 1 else None)
    panels[-1].set_xlabel(f"dwell time ({unit})")
    add_legend(ax, found.labels[: len(every)], hues)
    return ax if len(panels) == 1 else np.array(panels)
