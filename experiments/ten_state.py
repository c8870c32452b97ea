"""T15 Fig. 4: ten states 2 apart, from K = 3 and K = 30 random ones; and the ranking on all synthetic data."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments import four_state, style
from experiments.chains import (
    CONTENDERS,
    arrivals,
    chain_jobs,
    describe,
    of,
    recording_of,
    sooner,
    true_log_joint,
)
from experiments.four_state import draw_traces
from experiments.jobs import Job, Results
from experiments.settings import Settings
from ihmm._typing import FloatArray

TITLE = "Fig. 4: ten states, from K = 3 and K = 30; the ranking"
DATA, INITS = "ten_state", (3, 30)
PAPER = ("pg", "pg_sticky", "beam")
OURS = ("systematic", "moves")


def jobs(settings: Settings) -> list[Job]:
    ours = [
        job
        for init in INITS
        for name in (*PAPER, *OURS)
        for job in chain_jobs(
            DATA, name, init, settings.seeds, settings.ten_sweeps if name in PAPER else settings.shown
        )
    ]
    return [*ours, *four_state.jobs(settings)]


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    truth = recording_of(DATA)
    n_states = len(truth.means)
    out: dict[str, object] = {"true_log_joint": true_log_joint(truth), "sweeps": settings.ten_sweeps}
    for init in INITS:
        chains = {name: of(results, DATA, name, init) for name in (*PAPER, *OURS)}
        out[f"from_{init}"] = {
            **{name: describe(found, n_states) for name, found in chains.items()},
            "pg_before_beam": sooner(chains["pg"], chains["beam"], n_states),
            "pg_sticky_before_beam": sooner(chains["pg_sticky"], chains["beam"], n_states),
        }
    return out


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    return {"ten_state": _traces(results, (*PAPER, *OURS)), "ranking": _ranking(results)}


def _traces(results: Results, names: tuple[str, ...]) -> Figure:
    figure, axes = style.panels(2, 2, 5.2)
    truth = recording_of(DATA)
    for row, init in zip(axes, INITS, strict=True):
        draw_traces(row, results, DATA, names, init)
        row[0].set_title(f"Active states, from K = {init}")
        row[1].set_title("Joint log-likelihood")
        style.truth_line(row[0], len(truth.means))
        style.truth_line(row[1], true_log_joint(truth))
    return figure


def _ranking(results: Results) -> Figure:
    """Sweeps and seconds until the number is first correct (rings) and stays correct (dots), medians as bars."""
    groups = {
        "4 states from 10": (four_state.DATA, 10, (*four_state.PAPER, *OURS)),
        "10 states from 3": (DATA, 3, (*PAPER, *OURS)),
        "10 states from 30": (DATA, 30, (*PAPER, *OURS)),
    }
    heights = [len(names) for _, _, names in groups.values()]
    figure, axes = style.panels(3, 2, 5.4, sharex="col", height_ratios=heights)
    for row, (title, (data, init, names)) in zip(axes, groups.items(), strict=True):
        for i, name in enumerate(reversed(names)):
            colour = CONTENDERS[name].colour
            found = arrivals(of(results, data, name, init), len(recording_of(data).means))
            for ax, first, stay in zip(row, found[:2], found[2:4], strict=True):
                _dots(ax, first, i + 0.2, edgecolors=colour, facecolors="none", linewidths=0.9)
                _dots(ax, stay, i - 0.2, facecolors=colour, linewidths=0, alpha=0.8)
            n_stay = np.isfinite(found.stay).sum()
            row[0].annotate(
                f"{n_stay} of {len(found.stay)} stay", (1.02, i - 0.2), xycoords=("axes fraction", "data"),
                va="center", fontsize=6.5, color=colour, annotation_clip=False,
            )  # fmt: skip
        row[0].set(yticks=range(len(names)), yticklabels=[CONTENDERS[name].label for name in reversed(names)])
        row[1].set(yticks=[])
        row[0].set_title(title)
        for ax in row:
            ax.set(xscale="log", ylim=(-0.6, len(names) - 0.4))
            ax.grid(axis="x", color="#EEEEEE", linewidth=0.6)
            ax.set_axisbelow(True)
            ax.spines["left"].set_visible(False)
            ax.tick_params(axis="y", length=0)
        for tick, name in zip(row[0].get_yticklabels(), reversed(names), strict=True):
            tick.set_color(CONTENDERS[name].colour)
    axes[-1, 0].set_xlabel("sweeps: first correct (rings), stays correct (dots)")
    axes[-1, 1].set_xlabel("processor seconds")
    return figure


def _dots(ax: Axes, values: FloatArray, height: float, **look: object) -> None:
    """One dot per seed, and a bar at the median if it is finite."""
    colour = look["edgecolors"] if "edgecolors" in look else look["facecolors"]
    arrived = values[np.isfinite(values)]
    ax.scatter(arrived, np.full(len(arrived), height), s=15, **look)
    if np.isfinite(np.median(values)):
        ax.plot([np.median(values)] * 2, [height - 0.17, height + 0.17], color=colour, linewidth=1.8)
