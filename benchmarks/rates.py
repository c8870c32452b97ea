"""Do intervals of dwell times and rates, in seconds, contain the truth? Simulated channels in continuous time.

    python benchmarks/rates.py                 # 100 data sets for each model, about six minutes
    python benchmarks/rates.py --number 10     # fewer

A channel with three conductances, C ⇄ S ⇄ O, changes at rates of 40 to 160 per second; it is sampled at 5 kHz
for 0.8 s, with noise. Each data set is fitted as users would: as a hidden Markov model, with durations, by default.

Goal: of the 90% intervals of dwell times, and of those of rates, 85 to 95% contain the truth for every model.
"""

import argparse
from collections.abc import Callable

import numpy as np

import ihmm
from ihmm.posterior import Posterior

RATES = np.array([[0.0, 80.0, 0.0], [120.0, 0.0, 160.0], [0.0, 40.0, 0.0]])  # per second, from row to column
LEVELS = np.array([0.0, 1.0, 2.0])
NOISE, SAMPLE_RATE, SECONDS = 0.25, 5000.0, 0.8
INTERVAL = (0.05, 0.95)

MODELS: dict[str, Callable[[], ihmm.InfiniteHMM]] = {
    "hidden Markov": lambda: estimator(emission="normal"),
    "geometric durations": lambda: estimator(emission="normal", duration="geometric"),
    "default": lambda: estimator(),
}


def estimator(**options: object) -> ihmm.InfiniteHMM:
    return ihmm.InfiniteHMM(sample_rate=SAMPLE_RATE, draws=240, tune=60, chains=1, random_state=1, **options)


def main() -> None:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("--number", type=int, default=100, help="of data sets")
    number = options.parse_args().number
    print(f"{number} data sets, 90% intervals\n")
    print("| model | dwell times that contain the truth | rates | states not found |\n|---|---|---|---|")
    for name, make in MODELS.items():
        dwell, rates = [], []
        for seed in range(number):
            each = covered(make().fit(simulate(np.random.default_rng(seed))).posterior_)
            dwell.append(each[0])
            rates.append(each[1])
        lost = int(np.isnan(dwell).sum())
        print(f"| {name} | {np.nanmean(dwell):.1%} | {np.nanmean(rates):.1%} | {lost} of {3 * number} |", flush=True)


def simulate(rng: np.random.Generator) -> np.ndarray:
    """The current of a channel that changes at any time, at the times of the samples."""
    steps = int(SECONDS * SAMPLE_RATE)
    state, time = int(rng.integers(3)), 0.0
    states = np.empty(steps, np.int64)
    while time < SECONDS:
        until = time + rng.exponential(1 / RATES[state].sum())
        states[int(np.ceil(time * SAMPLE_RATE)) : int(np.ceil(until * SAMPLE_RATE))] = state
        state, time = int(rng.choice(3, p=RATES[state] / RATES[state].sum())), until
    return LEVELS[states] + rng.normal(0.0, NOISE, steps)


def covered(posterior: Posterior) -> tuple[np.ndarray, np.ndarray]:
    """Whether the intervals contain the truth: of the dwell time of each state, and of each rate that is not 0.

    NaN for states that were not found: no state of the summary has a mean near theirs.
    """
    found = posterior.summary()
    means = np.nanmedian(found.parameters["mean"].reshape(len(found.dwell), -1), axis=0)
    label = np.abs(means - LEVELS[:, None]).argmin(axis=1)
    known = np.abs(means[label] - LEVELS) < 0.25
    low, high = np.nanquantile(posterior.clock.duration(found.dwell), INTERVAL, axis=0)[:, label]
    truth = 1 / RATES.sum(axis=1)
    dwell = np.where(known, (low <= truth) & (truth <= high), np.nan)
    pairs = np.argwhere(RATES > 0)
    rates = np.full(len(pairs), np.nan)
    for i, (a, b) in enumerate(pairs):
        if known[a] and known[b] and label[a] != label[b]:
            low, high = np.nanquantile(found.rates[:, label[a], label[b]], INTERVAL)
            rates[i] = low <= RATES[a, b] <= high
    return dwell, rates


if __name__ == "__main__":
    main()
