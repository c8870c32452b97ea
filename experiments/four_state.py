"""T15 Fig. 2 and 3: four states, from K = 10 random ones: which samplers find them, and the learned transitions."""

import numpy as np
from matplotlib.figure import Figure

from experiments import style
from experiments.chains import (
    CONTENDERS,
    SHOWN,
    chain_jobs,
    describe,
    of,
    recording_of,
    sooner,
    stack,
    true_log_joint,
)
from experiments.jobs import Job, Result, Results
from experiments.settings import Settings
from ihmm._typing import FloatArray
from ihmm.plots._axes import HEAT

TITLE = "Fig. 2 and 3: four states, from K = 10"
DATA, INIT = "four_state", 10
PAPER = ("pg", "pg_sticky", "beam", "gibbs")
OURS = ("systematic", "moves", "moves_sticky", "literal")
LONG = ("pg", "pg_sticky", "beam")  # run for longer


def jobs(settings: Settings) -> list[Job]:
    return [
        job
        for name in (*PAPER, *OURS)
        for job in chain_jobs(
            DATA, name, INIT, settings.seeds, settings.four_sweeps if name in LONG else settings.shown
        )
    ]


def numbers(results: Results, settings: Settings) -> dict[str, object]:
    chains = {name: of(results, DATA, name, INIT) for name in (*PAPER, *OURS)}
    truth = recording_of(DATA)
    found = {name: describe(chains[name], len(truth.means)) for name in chains}
    return {
        **found,
        "gibbs_is_last": all(found["gibbs"]["log_joint_shown"] < found[name]["log_joint_shown"] for name in LONG),
        "sweeps": settings.four_sweeps,
        "shown": settings.shown,
        "half": settings.shown // 2,
        "seeds": settings.seeds,
        "true_log_joint": true_log_joint(truth),
        "pg_before_beam": sooner(chains["pg"], chains["beam"], len(truth.means)),
        "pg_before_gibbs": sooner(chains["pg"], chains["gibbs"], len(truth.means)),
        "pg_sticky_before_beam": sooner(chains["pg_sticky"], chains["beam"], len(truth.means)),
        "beam_before_gibbs": sooner(chains["beam"], chains["gibbs"], len(truth.means)),
        "moves_before_pg": sooner(chains["moves"], chains["pg"], len(truth.means)),
        "spurious": {name: _spurious(chains[name]) for name in PAPER},
        "self_transition": {name: _self_transition(chains[name]) for name in PAPER},
    }


def _spurious(chains: list[Result]) -> float:
    """Share of time steps outside the four largest states, averaged over seeds, at the last sweep shown in T15."""
    return float(np.mean([1 - np.sort(one["visits"])[-4:].sum() / one["visits"].sum() for one in chains]))


def _self_transition(chains: list[Result]) -> float:
    """Self-transition probability, averaged over the time steps; the truth is 0.75."""
    return float(np.mean([np.average(np.diag(one["rows"]), weights=one["visits"]) for one in chains]))


def figures(results: Results, settings: Settings) -> dict[str, Figure]:
    return {"four_state": _traces(results), "matrices": _matrices(results)}


def _traces(results: Results) -> Figure:
    figure, axes = style.panels(1, 2, 3.0)
    truth = recording_of(DATA)
    draw_traces(axes[0], results, DATA, (*PAPER, "systematic", "moves"), INIT)
    axes[0, 0].set_title("Active states")
    axes[0, 1].set_title("Joint log-likelihood")
    style.truth_line(axes[0, 0], len(truth.means))
    style.truth_line(axes[0, 1], true_log_joint(truth))
    return figure


def draw_traces(
    axes: np.ndarray,
    results: Results,
    data: str,
    names: tuple[str, ...],
    init: int,
    labels: dict[str, str] | None = None,
) -> None:
    """The number of states and the joint log-likelihood for the sweeps shown in T15."""
    labels = {name: CONTENDERS[name].label for name in names} | (labels or {})
    for ax, quantity in zip(axes, ("n_states", "log_joint"), strict=True):
        ends, seen = [], []
        for name in names:
            contender, traces = CONTENDERS[name], stack(of(results, data, name, init), quantity)[:, :SHOWN]
            x: FloatArray = np.arange(1.0, traces.shape[1] + 1)
            ends.append((style.band(ax, x, traces, contender.colour), labels[name], contender.colour))
            seen.append(np.quantile(traces[:, traces.shape[1] // 50 :], style.BAND, axis=0).ravel())
        shown = np.concatenate(seen)
        if quantity == "log_joint":  # random starts lie far below
            shown = np.append(np.quantile(shown, (0.04, 1.0)), true_log_joint(recording_of(data)))
        else:
            shown = np.append(shown, len(recording_of(data).means) - 0.5)
        margin = 0.04 * np.ptp(shown)
        ax.set(xlim=(0, len(x)), ylim=(shown.min() - margin, shown.max() + margin), xlabel="sweep")
        style.names_at_the_right(ax, ends)


def _matrices(results: Results) -> Figure:
    """For the chain with the median joint log-likelihood; the width of a state is its share of the time steps."""
    figure, axes = style.panels(1, 4, 2.3)
    truth = recording_of(DATA)
    shown = {"truth": (truth.transition, np.bincount(truth.states))}
    for name in ("pg", "pg_sticky", "beam"):
        chains = of(results, DATA, name, INIT)
        end = min(SHOWN, len(chains[0]["log_joint"])) - 1
        middle = sorted(chains, key=lambda one: one["log_joint"][end])[(len(chains) - 1) // 2]
        shown[CONTENDERS[name].label] = middle["rows"], middle["visits"]
    for ax, (name, (matrix, visits)) in zip(axes[0], shown.items(), strict=True):
        edges = np.concatenate([[0], np.cumsum(visits / visits.sum())])
        ax.pcolormesh(edges, edges, matrix, cmap=HEAT, vmin=0, vmax=1, edgecolors="white", linewidth=0.6)
        centres, wide = (edges[1:] + edges[:-1]) / 2, np.diff(edges) > 0.11
        for (j, k), p in np.ndenumerate(matrix):
            if wide[j] and wide[k]:
                ink = "white" if p > 0.55 else "black"
                ax.text(centres[k], centres[j], f"{p:.2f}"[1:], ha="center", va="center", fontsize=6.5, color=ink)
        ax.set_title(f"{name}, {len(matrix)} states")
        ax.set(xticks=[], yticks=[], xlim=(0, 1), ylim=(1, 0), aspect="equal")
        ax.spines[:].set_visible(False)
    axes[0, 0].set(xlabel="to", ylabel="from")
    return figure
