"""Figures of the traces of the chains."""

import numpy as np
from bokeh.models import BasicTickFormatter, Range1d
from bokeh.palettes import viridis

from ihmm._typing import FloatArray, IntArray
from ihmm.figures.plot_data import NAMES, PALE, sweeps
from ihmm.posterior import Posterior
from ihmm.report._bokeh import FigureItem, add_legend, empty_figure, figure_item, set_axis_labels, set_integer_ticks

HEIGHT = 180
MAX_POINTS = 2000  # per trace; of longer ones, the extremes of blocks are drawn
HEADINGS = {
    "n_states": "Number of states",
    "log_joint": "Joint log-likelihood",
    "gamma": "γ: concentration of β (large: many states)",
    "concentration": "c: concentration of the rows (large: similar rows)",
    "stickiness": "ρ: stickiness (large: long dwell times)",
    "sigma": "σ: concentration of the mixtures (large: many components)",
}
ALWAYS_SHOWN = ("n_states", "log_joint")  # even if constant


def traces(posterior: Posterior) -> list[FigureItem]:
    """One figure for each quantity that varies."""
    return [_trace(posterior, name) for name in HEADINGS if name in ALWAYS_SHOWN or _varies(posterior, name)]


def _varies(posterior: Posterior, name: str) -> bool:
    trace = posterior.traces.get(name, np.zeros(1))
    return bool(np.isfinite(trace).all() and np.ptp(trace) > 0)


def _trace(posterior: Posterior, name: str) -> FigureItem:
    by_chain, tune = sweeps(posterior, name)
    after_start = np.concatenate([trace[tune // 10 :] for trace in by_chain.values()])
    margin = 0.06 * np.ptp(after_start) or 0.5
    n_sweeps = max(map(len, by_chain.values()))
    plot = empty_figure(
        HEIGHT,
        x_range=Range1d(1, max(2, n_sweeps)),
        y_range=Range1d(after_start.min() - margin, after_start.max() + margin),
    )
    if tune:
        plot.vstrip([1], [tune + 0.5], fill_color=PALE, line_color=None, name="gaps")
    lines = []
    for (chain, trace), colour in zip(by_chain.items(), _chain_colours(len(by_chain)), strict=True):
        sweep = _thinned(trace)
        line = plot.line(sweep + 1, trace[sweep].astype(np.float64), line_color=colour, line_width=1, line_alpha=0.85)
        lines.append((f"chain {chain}", [line]))
    set_axis_labels(plot, "sweep (tuning shaded)" if tune else "draw", NAMES[name])
    plot.yaxis.formatter = BasicTickFormatter(use_scientific=False)
    set_integer_ticks(plot, "x")
    if name == "n_states":
        set_integer_ticks(plot, "y")
        add_legend(plot, lines)
    label = f"trace plot of {NAMES[name]}, one line for each of {len(by_chain)} chains"
    return figure_item(plot, f"trace-{name}", HEADINGS[name], label)


def _thinned(trace: FloatArray) -> IntArray:
    """All sweeps, or those with the minimum and the maximum of each block."""
    size = -(-len(trace) // (MAX_POINTS // 2))
    if size <= 2:
        return np.arange(len(trace))
    begins = np.arange(0, len(trace), size)
    return np.unique([[b + np.argmin(trace[b : b + size]), b + np.argmax(trace[b : b + size])] for b in begins])


def _chain_colours(n: int) -> list[str]:
    """Colours that differ from those of the states and are visible on light and dark pages."""
    return [viridis(256)[i] for i in np.linspace(70, 205, n).astype(int)]
