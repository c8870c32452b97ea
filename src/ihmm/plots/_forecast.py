"""Fan charts of forecasts."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ihmm._typing import Array, ArrayLike, FloatArray
from ihmm.figures.plot_data import COLUMNS, GREY, PALETTE, mix
from ihmm.plots._axes import add_legend, make_axes, split_rows, text_colour
from ihmm.predictions.forecasts import Forecast

# Central intervals, widest first, and their colours
INTERVALS = {p: mix(PALETTE[0], "#FFFFFF", share) for p, share in ((0.95, 0.85), (0.8, 0.7), (0.5, 0.5))}


def forecast(forecast: Forecast, ax: Axes | None = None, history: ArrayLike | None = None) -> Axes | Array:
    """Fan chart: the median of the simulated futures, and central 50, 80 and 95% intervals.

    `history` holds the observations to show before the forecast, for example ``posterior.data.values[-100:]``. With
    several columns, the first six have a panel each and an array of Axes is returned. Quantiles need ordered values,
    so a fan chart is not meaningful for symbols.
    """
    if not isinstance(forecast, Forecast):
        raise TypeError(
            f"expected a Forecast, got {type(forecast).__name__}; "
            "posterior.forecast returns a list for several sequences: plot its items one by one"
        )
    futures = _continuous(forecast).reshape(*forecast.y.shape[:2], -1)[:, :, :COLUMNS]
    past = _history(history, forecast.y.shape[2:])[:, :COLUMNS]
    n_columns = futures.shape[2]
    ax = make_axes(ax, height=2.8 if n_columns == 1 else 1 + 1.1 * n_columns)
    panels = split_rows(ax, [1.0] * n_columns)
    step, unit = forecast.clock.scale(max(futures.shape[1], len(past)))
    names = forecast.columns or (["observation"] if n_columns == 1 else [f"column {c}" for c in range(n_columns)])
    for c, panel in enumerate(panels):
        _draw_fan(panel, futures[:, :, c], past[:, c], step)
        panel.set_ylabel(names[c])
        panel.tick_params(labelbottom=panel is panels[-1])
    panels[-1].set_xlabel(f"time ahead ({unit})" if forecast.clock.is_known else "steps ahead")
    ax.figure.align_ylabels(panels)
    fan = [Patch(color=colour, label=f"{p:.0%}") for p, colour in INTERVALS.items()]
    handles = [Line2D([], [], color=PALETTE[0], label="median"), *reversed(fan)]
    add_legend(panels[0], (), (), handles, title=None)
    return panels[0] if n_columns == 1 else np.array(panels)


def _continuous(forecast: Forecast) -> Array:
    """The forecast with angles near their mean direction, which does not jump by a turn from one step to the next."""
    y = forecast.unwrapped
    if not np.any(forecast.circular):
        return y
    center = y.mean(axis=0)
    return np.where(forecast.circular, y + np.unwrap(center, axis=0) - center, y)


def _history(history: ArrayLike | None, columns: tuple[int, ...]) -> FloatArray:
    """The history as floats, (steps, columns)."""
    if history is None:
        return np.empty((0, *(columns or (1,))))
    values = np.asarray(history, float)
    if values.shape[1:] != columns or values.ndim == 0:
        expected = "(steps,)" if not columns else f"(steps, {columns[0]})"
        raise ValueError(f"history must have shape {expected} to match the forecast, got {values.shape}")
    return values.reshape(len(values), -1)


def _draw_fan(ax: Axes, futures: Array, past: FloatArray, step: float) -> None:
    """`step`: from one observation to the next, on the horizontal axis."""
    ahead = step * np.arange(1, futures.shape[1] + 1)
    for p, colour in INTERVALS.items():
        low, high = np.quantile(futures, ((1 - p) / 2, (1 + p) / 2), axis=0)
        ax.fill_between(ahead, low, high, color=colour, linewidth=0)
    ax.plot(ahead, np.median(futures, axis=0), color=PALETTE[0], linewidth=1.3)
    ax.plot(step * np.arange(1 - len(past), 1), past, color=text_colour(), linewidth=0.8, marker=".", markersize=3)
    ax.axvline(0.5 * step, color=GREY, linewidth=0.6, linestyle=":")
    ax.margins(x=0.01)
