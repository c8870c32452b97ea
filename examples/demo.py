"""Recover four hidden states, and the fact that there are four, from the paper's synthetic series (T15 §4.1).

    make demo        or        python examples/demo.py

Fits an infinite hidden Markov model, says what it found and draws it in demo.png. Needs the extras `plots` and `arviz`.
"""

import time
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import ihmm
from ihmm import plots
from ihmm.datasets import Recording
from ihmm.predict import viterbi
from ihmm.summaries import match

SHOWN = 400  # steps in the figure


def main() -> None:
    recording = ihmm.datasets.four_state()
    model = ihmm.Model(
        emission=ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0),
        prior=ihmm.HDPPrior(stickiness=0.9),  # γ and c are learned; rows lean towards their own state
    )
    print(f"{len(recording.y)} steps from a hidden Markov model. The sampler is not told how many states it has.")
    print("Sampling: 4 chains of 2500 sweeps; a first run compiles before it starts …")
    begin = time.perf_counter()
    posterior = ihmm.sample(model, recording.y, draws=2000, tune=500, chains=4, seed=1, save_warmup=True)
    print(f"Done in {time.perf_counter() - begin:.0f} s.\n")

    truth = names_of_truth(posterior, recording)
    print(posterior.summary())
    tell_truth(posterior, recording, truth)
    print(f"\nHow far to trust this, by posterior.check():\n{posterior.check()}")

    path = Path("demo.png").resolve()
    draw(posterior, recording.transition[np.ix_(truth, truth)]).savefig(path, dpi=200)
    print(f"\nThe figure is in {path}")


def names_of_truth(posterior: ihmm.Posterior, recording: Recording) -> np.ndarray:
    """For every state found the true state that has most of its steps."""
    found = posterior.summary()
    return match(found.states, found.n_states, recording.states, len(recording.means)).label


def tell_truth(posterior: ihmm.Posterior, recording: Recording, truth: np.ndarray) -> None:
    means = ", ".join(f"{mean:g}" for mean in recording.means[truth]).replace("-", "−")
    stay = recording.transition[0, 0]
    print(f"\nThe true means of these states are {means}; each is left after {1 / (1 - stay):g} steps on average.")

    right = np.mean(truth[posterior.summary().states] == recording.states)
    log_density = -0.5 * ((recording.y[:, None] - recording.means) / recording.noise) ** 2
    start = np.full(len(recording.means), 1 / len(recording.means))
    decoded, _ = viterbi(log_density, posterior.data.offsets, start, recording.transition)
    best = np.mean(decoded == recording.states)
    print(f"The path found is right at {right:.1%} of the steps; decoding with the true parameters: {best:.1%}.")


def draw(posterior: ihmm.Posterior, true_transitions: np.ndarray) -> Figure:
    figure = Figure(figsize=(10, 6), layout="constrained")  # without pyplot: no display needed
    top, bottom = figure.subfigures(2, 1, height_ratios=[1.15, 1])
    series = top.subplots()
    sizes, trace, learned, true = bottom.subplots(1, 4, width_ratios=[0.85, 1.2, 1, 1])
    plots.series(posterior, series, stop=SHOWN)
    plots.n_states(posterior, sizes)
    plots.traces(posterior, ["log_joint"], [trace])
    plots.transitions(posterior, learned)
    plots.transitions(true_transitions, true)
    titles = {
        series: f"The first {SHOWN} steps",
        sizes: "Number of states",
        trace: "Joint log-likelihood",
        learned: "Transitions, learned",
        true: "Transitions, true",
    }
    for ax, title in titles.items():
        ax.set_title(title, loc="left", fontsize="medium", fontweight="bold")
    for ax in figure.axes:
        ax.spines[["top", "right"]].set_visible(False)
    return figure


if __name__ == "__main__":
    main()
