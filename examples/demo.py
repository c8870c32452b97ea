"""Recover four hidden states, and the fact that there are four, from the paper's synthetic series (T15 §4.1).

    make demo        or        python examples/demo.py

Fits an infinite hidden Markov model, says what it found and draws it in demo.png. Needs the extra `plots`.
"""

import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.optimize import linear_sum_assignment

import ihmm
from ihmm.datasets import Recording

SHARE = 0.01  # a state counts if it owns at least this share of the steps
SHOWN = 400  # steps in the figure


def main() -> None:
    recording = ihmm.datasets.four_state()
    model = ihmm.Model(
        emission=ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0),
        prior=ihmm.HDPPrior(stickiness=0.9),  # γ and c are learned; rows lean towards their own state
    )
    print(f"{len(recording.y)} steps from a hidden Markov model. The sampler is not told how many states it has.")
    print("Sampling: 2 chains of 4000 sweeps; a first run compiles before it starts …")
    begin = time.perf_counter()
    posterior = ihmm.sample(model, recording.y, draws=3000, tune=1000, chains=2, seed=1, save_warmup=True)
    print(f"Done in {time.perf_counter() - begin:.0f} s.\n")

    finding = summarise(posterior)
    tell(finding, recording)
    path = Path("demo.png").resolve()
    draw_figure(posterior, finding, recording).savefig(path, dpi=200)
    print(f"\nThe figure is in {path}")


class Finding(NamedTuple):
    """What the draws agree on. States are numbered by their means, so that labels match across draws."""

    sizes: dict[int, float]  # number of states → probability
    means: np.ndarray  # (draws, K), for the draws with the most probable number of states K
    shares: np.ndarray  # (draws, K): share of the steps
    rows: np.ndarray  # (draws, K, K): transition probabilities
    path: np.ndarray  # (T,): the most frequent state of each step
    gaps: np.ndarray  # for the draws with more states: the smallest distance between two means

    @property
    def n_states(self) -> int:
        return self.means.shape[1]


def summarise(posterior: ihmm.Posterior) -> Finding:
    draws = [draw for chain in posterior.draws for draw in chain]
    n_steps = int(posterior.lengths.sum())
    large = [np.flatnonzero(np.bincount(draw.states) >= SHARE * n_steps) for draw in draws]
    sizes = Counter(len(states) for states in large)
    n_states = sizes.most_common(1)[0][0]

    means, shares, rows, votes, gaps = [], [], [], np.zeros((n_steps, n_states)), []
    for draw, states in zip(draws, large, strict=True):
        states = states[np.argsort(draw.phi.mean[states])]
        if len(states) > n_states:
            gaps.append(np.diff(draw.phi.mean[states]).min())
        if len(states) != n_states:
            continue
        here = draw.states[:, None] == states
        votes += here
        means.append(draw.phi.mean[states])
        shares.append(here.mean(axis=0))
        rows.append(draw.transitions.rows[np.ix_(states, states)])
    probability = {size: count / len(draws) for size, count in sorted(sizes.items())}
    path = votes.argmax(axis=1)
    return Finding(probability, np.array(means), np.array(shares), np.array(rows), path, np.array(gaps))


def tell(finding: Finding, recording: Recording) -> None:
    listed = ", ".join(f"{size} ({percent(p)})" for size, p in finding.sizes.items())
    print(f"Number of states owning at least {SHARE:.0%} of the steps: {listed}.")
    if finding.gaps.size:
        gap = np.median(finding.gaps)
        print(f"In draws with more than {finding.n_states}, the two closest means are {gap:.2f} apart (median).")
    print(f"\nThe draws with {finding.n_states}, states ordered by mean:\n")
    print("  state   true mean   posterior mean ± sd   share of time   expected dwell (steps)")
    matched = match(finding.path, recording.states)
    dwell = 1 / (1 - np.diagonal(finding.rows, axis1=1, axis2=2))
    for k in range(finding.n_states):
        truth = f"{recording.means[matched[k]]:.1f}" if k in matched else "–"
        mean = f"{finding.means[:, k].mean():.3f} ± {finding.means[:, k].std():.3f}"
        share = f"{finding.shares[:, k].mean():.1%}"
        print(f"  {k + 1:5d}   {truth:>9}   {mean:>19}   {share:>13}   {dwell[:, k].mean():22.1f}")

    named = np.array([matched.get(k, -1) for k in range(finding.n_states)])[finding.path]
    found, best = np.mean(named == recording.states), np.mean(decode(recording) == recording.states)
    stay = recording.transition[0, 0]
    print(f"\nIn truth each state stays with probability {stay}: an expected dwell of {1 / (1 - stay):.1f} steps.")
    print(f"The recovered path is right at {found:.1%} of the steps; decoding with the true parameters: {best:.1%}.")


def percent(p: float) -> str:
    return f"{p:.0%}" if p >= 0.01 else "under 1%"


def match(path: np.ndarray, truth: np.ndarray) -> dict[int, int]:
    """Found state → true state, one to one, so that as many steps as possible agree."""
    agreement = np.zeros((path.max() + 1, truth.max() + 1))
    np.add.at(agreement, (path, truth), 1)
    return dict(zip(*(index.tolist() for index in linear_sum_assignment(agreement, maximize=True)), strict=True))


def decode(recording: Recording) -> np.ndarray:
    """The most probable state of every step given all observations and the true parameters."""
    likelihood = np.exp(-0.5 * ((recording.y[:, None] - recording.means) / recording.noise) ** 2)
    ahead, behind = np.empty_like(likelihood), np.ones_like(likelihood)
    message = np.full(len(recording.means), 1 / len(recording.means))
    for t, f in enumerate(likelihood):
        message = f * (message if t == 0 else message @ recording.transition)
        ahead[t] = message = message / message.sum()
    for t in range(len(likelihood) - 1, 0, -1):
        message = recording.transition @ (likelihood[t] * behind[t])
        behind[t - 1] = message / message.sum()
    return np.argmax(ahead * behind, axis=1)


# The figure. Okabe and Ito's colours, told apart by all kinds of colour vision; states are also named by their means.

COLOURS = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9")
INK, FAINT = "#222222", "#8A8A8A"
STYLE = {
    "font.size": 8.5,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 7,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": INK,
    "axes.linewidth": 0.7,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.major.width": 0.7,
    "ytick.major.width": 0.7,
}


def draw_figure(posterior: ihmm.Posterior, finding: Finding, recording: Recording) -> Figure:
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(10, 6.2), layout="constrained")  # without pyplot: Agg draws it, no display needed
        figure.get_layout_engine().set(w_pad=0.08, h_pad=0.08)
        top, bottom = figure.subfigures(2, 1, height_ratios=[1.05, 1])
        plot_series(top.subplots(), recording.y, finding)
        sizes, trace, learned, truth = bottom.subplots(1, 4, width_ratios=[0.85, 1.25, 1, 1])
        plot_sizes(sizes, finding.sizes)
        plot_trace(trace, posterior)
        plot_matrix(learned, finding.rows.mean(axis=0), "Transitions, learned")
        plot_matrix(truth, recording.transition, "Transitions, true")
        return figure


def plot_series(ax: Axes, y: np.ndarray, finding: Finding) -> None:
    steps, path = np.arange(SHOWN), finding.path[:SHOWN]
    level = finding.means.mean(axis=0)
    ax.plot(steps, level[path], drawstyle="steps-mid", color="#BDBDBD", linewidth=0.7, zorder=1)
    for k in range(finding.n_states):
        here, colour = path == k, COLOURS[k % len(COLOURS)]
        ax.scatter(steps[here], y[:SHOWN][here], s=11, color=colour, linewidths=0, zorder=2)
        ax.annotate(
            f"state {k + 1}\nmean {level[k]:.2f}".replace("-", "−"),
            (1.0, level[k]),
            xycoords=("axes fraction", "data"),
            xytext=(8, 0),
            textcoords="offset points",
            color=colour,
            va="center",
            fontweight="bold",
        )
    ax.set(title=f"The first {SHOWN} steps, coloured by inferred state", xlabel="step", ylabel="observation")
    ax.set_xlim(-3, SHOWN + 2)


def plot_sizes(ax: Axes, sizes: dict[int, float]) -> None:
    bars = ax.bar(list(sizes), list(sizes.values()), width=0.7, color=COLOURS[0])
    ax.bar_label(bars, [percent(p).replace("under ", "<") for p in sizes.values()], padding=2, fontsize=8)
    ax.set(title="Number of states", xlabel=f"states with ≥ {SHARE:.0%} of the steps", ylabel="posterior probability")
    ax.set_xticks(list(sizes))
    ax.set_ylim(0, 1.08 * max(sizes.values()))


def plot_trace(ax: Axes, posterior: ihmm.Posterior) -> None:
    before, after = posterior.warmup.traces["log_joint"], posterior.traces["log_joint"]
    tune = before.shape[1]
    whole = np.concatenate([before, after], axis=1) / 1000
    ax.axvspan(0, tune, color="#EFEFEF", linewidth=0)
    for c, chain in enumerate(whole):
        ax.plot(chain, linewidth=0.5, alpha=0.85, color=COLOURS[(0, 3)[c % 2]], label=f"chain {c + 1}")
    low, high = after.min() / 1000, after.max() / 1000  # the random start is far below
    ax.set_ylim(low - 0.3 * (high - low), high + 0.05 * (high - low))
    ax.set_xlim(0, whole.shape[1])
    ax.text(tune / 2, 0.03, "tuning", transform=ax.get_xaxis_transform(), ha="center", color=FAINT)
    ax.set(title="Joint log-likelihood", xlabel="sweep", ylabel="thousand nats")
    for line in ax.legend(frameon=False, loc="lower right", handlelength=1.2, fontsize=8).get_lines():
        line.set_linewidth(1.5)


def plot_matrix(ax: Axes, matrix: np.ndarray, title: str) -> None:
    ax.imshow(matrix, cmap="Blues", vmin=0, vmax=1)
    ax.set_anchor("N")
    for j, row in enumerate(matrix):
        for k, p in enumerate(row):
            ax.text(k, j, f"{p:.2f}", ha="center", va="center", fontsize=8, color="white" if p > 0.55 else INK)
    ax.set(title=title, xlabel="to state", ylabel="from state")
    ticks = np.arange(len(matrix))
    ax.set_xticks(ticks, ticks + 1)
    ax.set_yticks(ticks, ticks + 1)
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)


if __name__ == "__main__":
    main()
