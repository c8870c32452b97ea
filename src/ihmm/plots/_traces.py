"""Traces of the chains of one run, and comparisons of several runs."""

from collections.abc import Iterable, Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex

from ihmm import _checks
from ihmm._typing import Array, FloatArray
from ihmm.figures.plot_data import GREY, NAMES, PALE, colours, sweeps
from ihmm.plots._axes import add_legend, integer_ticks, make_axes, make_rows
from ihmm.posterior import Posterior


def traces(
    posterior: Posterior,
    names: Sequence[str] = ("n_states", "log_joint", "gamma", "concentration"),
    axes: Iterable[Axes] | None = None,
) -> Array:
    """Entries of `posterior.traces`, one panel each and one line per chain. Saved tuning sweeps are shaded."""
    names = [names] if isinstance(names, str) else list(names)
    for name in names:
        _checks.one_of("names", name, tuple(posterior.traces))
    panels = list(np.ravel(np.asarray(axes))) if axes is not None else make_rows(len(names))
    if len(panels) != len(names):
        raise ValueError(f"expected one Axes for each of {len(names)} names, got {len(panels)}")
    for name, ax in zip(names, panels, strict=True):
        _draw_trace(ax, posterior, name)
        if axes is None:
            ax.label_outer()
    panels[0].figure.align_ylabels(panels)
    if len(posterior.draws) > 1:
        chains = [f"chain {draws.chain}" for draws in posterior.draws]
        add_legend(panels[0], chains, _chain_colours(len(chains)), title=None)
    return np.array(panels)


def _draw_trace(ax: Axes, posterior: Posterior, name: str) -> None:
    by_chain, tune = sweeps(posterior, name)
    for trace, colour in zip(by_chain.values(), _chain_colours(len(by_chain)), strict=True):
        ax.plot(np.arange(1, len(trace) + 1), trace, color=colour, linewidth=0.6, alpha=0.7)
    if tune:
        ax.axvspan(1, tune + 0.5, color=PALE, linewidth=0, alpha=0.6, zorder=0)
    _set_y_range(ax, np.concatenate([trace[tune // 10 :] for trace in by_chain.values()]))
    if name == "n_states":
        ax.yaxis.set_major_locator(integer_ticks())
    ax.set_xlim(1, max(2, *map(len, by_chain.values())))
    ax.set_ylabel(NAMES.get(name, name))
    ax.set_xlabel("sweep, tuning shaded" if tune else "draw")


def _chain_colours(n: int) -> list[str]:
    """Distinct from the colours of states."""
    return [to_hex(rgba) for rgba in mpl.colormaps["viridis"](np.linspace(0.1, 0.9, n))]


def compare(
    posteriors: Mapping[str, Posterior],
    quantity: str = "n_states",
    ax: Axes | None = None,
    *,
    lags: int | None = None,
) -> Axes:
    """One trace of several runs, for instance with different samplers: median over chains and 95% band.

    Sweeps are counted from the first saved one; saved tuning sweeps are included. With `lags`, autocorrelations of the
    draws up to that lag are shown instead.
    """
    if not posteriors:
        raise ValueError("expected posteriors to map at least one name to a posterior, got an empty mapping")
    for posterior in posteriors.values():
        _checks.one_of("quantity", quantity, tuple(posterior.traces))
    ax = make_axes(ax)
    seen = []
    for (name, posterior), colour in zip(posteriors.items(), colours(len(posteriors)), strict=True):
        if lags is None:
            by_chain, tune = sweeps(posterior, quantity)
            table, first = _padded(list(by_chain.values())), 1
        else:
            table, first, tune = _autocorrelations(posterior.traces[quantity], lags), 0, 0
        band = np.nanquantile(table, (0.025, 0.5, 0.975), axis=0)
        x = np.arange(first, first + table.shape[1])
        ax.fill_between(x, band[0], band[2], color=colour, alpha=0.25, linewidth=0)
        ax.plot(x, band[1], color=colour, linewidth=1.3, label=name)
        seen.append(band[:, tune // 10 :].ravel())
    _set_y_range(ax, np.concatenate(seen))
    ax.margins(x=0)
    what = NAMES.get(quantity, quantity)
    if lags is None:
        ax.set(xlabel="sweep", ylabel=what)
    else:
        ax.axhline(0, color=GREY, linewidth=0.6, zorder=0)
        ax.set(xlabel="lag (draws)", ylabel=f"autocorrelation, {what}")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _padded(traces: list[FloatArray]) -> FloatArray:
    """Traces as (chains, sweeps), padded with NaN after the end of a chain."""
    table = np.full((len(traces), max(map(len, traces))), np.nan)
    for row, trace in zip(table, traces, strict=True):
        row[: len(trace)] = trace
    return table


def _autocorrelations(traces: Array, lags: int) -> FloatArray:
    """Autocorrelations of each chain, (chains, lags + 1); 1 at all lags for a constant chain."""
    n = traces.shape[1]
    if _checks.count("lags", lags) >= n:
        raise ValueError(f"lags must be less than the number of draws, {n}, got {lags}")
    centred = traces - traces.mean(axis=1, keepdims=True)
    products = np.stack([(centred[:, : n - lag] * centred[:, lag:]).sum(axis=1) for lag in range(lags + 1)], axis=1)
    variance = products[:, :1]
    return np.where(variance > 0, products / np.where(variance > 0, variance, 1), 1.0)


def _set_y_range(ax: Axes, values: FloatArray) -> None:
    """Show the range of `values`. Callers leave out the first sweeps, which may be far from the rest."""
    finite = values[np.isfinite(values)]
    if finite.size and np.ptp(finite) > 0:
        low, high = finite.min(), finite.max()
        ax.set_ylim(low - 0.06 * (high - low), high + 0.06 * (high - low))
