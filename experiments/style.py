"""The style of all figures: one colour per sampler, labels at the curves, the truth as a thin line."""

import io
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from ihmm._typing import FloatArray
from ihmm.figures.plot_data import GREY
from ihmm.plots._axes import OPEN, WIDTH

INK = "#333333"
RESOLUTION = 130  # dots per inch
STYLE = OPEN | {
    "font.size": 8.5,
    "axes.titlesize": 8.5,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "xtick.color": GREY,
    "ytick.color": GREY,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "text.color": INK,
    "axes.linewidth": 0.7,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}
BAND = (0.1, 0.9)  # quantiles over seeds


def in_style() -> AbstractContextManager[None]:
    """Context in which figures are drawn and saved."""
    return mpl.rc_context(STYLE)


def panels(rows: int, columns: int, height: float, **settings: object) -> tuple[Figure, np.ndarray]:
    """A figure of page width and its Axes, (rows, columns)."""
    figure = Figure(figsize=(WIDTH, height), layout="constrained")
    figure.get_layout_engine().set(w_pad=0.06, h_pad=0.06)
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def band(ax: Axes, x: FloatArray, traces: FloatArray, colour: str, **line: object) -> float:
    """The median over chains with a band that contains 80% of them; returns the end of the line."""
    low, middle, high = np.quantile(traces, (BAND[0], 0.5, BAND[1]), axis=0)
    ax.fill_between(x, low, high, color=colour, alpha=0.18, linewidth=0)
    ax.plot(x, middle, color=colour, **{"linewidth": 1.3} | line)
    return float(np.mean(middle[-max(len(middle) // 50, 1) :]))


def truth_line(ax: Axes, value: float, name: str = "truth") -> None:
    ax.axhline(value, color=INK, linewidth=0.6, zorder=1)
    ax.annotate(name, (0.99, value), xycoords=("axes fraction", "data"), ha="right", va="bottom", fontsize=7)


def names_at_the_right(ax: Axes, labels: Iterable[tuple[float, str, str]], gap: float = 0.085) -> None:
    """(height, name, colour): labels at the ends of curves, moved apart where they would overlap."""
    to_fraction, x = ax.transScale + ax.transLimits, ax.get_xlim()[1]
    wanted = sorted((to_fraction.transform((x, height))[1], name, colour) for height, name, colour in labels)
    places = np.clip([place for place, _, _ in wanted], 0.0, 1.0)
    for _ in range(200):  # move neighbours apart step by step
        for i in range(len(places) - 1):
            overlap = gap - (places[i + 1] - places[i])
            if overlap > 1e-6:
                places[i], places[i + 1] = places[i] - overlap / 2, places[i + 1] + overlap / 2
    places += max(0.0, -places[0]) - max(0.0, places[-1] - 1.0)
    for place, (_, name, colour) in zip(places, wanted, strict=True):
        ax.annotate(
            name,
            (1.015, place),
            xycoords="axes fraction",
            va="center",
            ha="left",
            color=colour,
            fontsize=8,
            annotation_clip=False,
        )


def save(figure: Figure, file: Path) -> None:
    """Save as a PNG with 256 colours, a third of the size of one in full colour."""
    raw = io.BytesIO()
    figure.savefig(raw, dpi=RESOLUTION)
    file.parent.mkdir(parents=True, exist_ok=True)
    with Image.open(raw) as image:
        image.convert("RGB").quantize(256, Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE).save(file, optimize=True)
