"""Effective sample size per second with and without moves, on the paper's synthetic data (T15 §4.1).

    python benchmarks/effective.py [--sweeps 20000] [--chains 2] [--data four_state] [--only stationary] [--page]

The first table is for chains that start at the truth and run until they have forgotten it: mixing after convergence.
The second includes the convergence phase: four chains from ten random states, all their time, and the draws of the
second half. Chains take turns of a few sweeps, so that load on the machine affects all of them equally, and times are
processor times. The autocorrelation time is the number of sweeps per independent draw.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
from convergence import LARGE, fill_page, markdown, n_large

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.chain import MOVES, Init
from ihmm.datasets import Recording
from ihmm.model import Draw
from ihmm.moves import Move

SETTINGS: dict[str, tuple[Move, ...]] = {"no moves": (), "default moves": MOVES}
DATA = ("four_state", "ten_state")
QUANTITIES = ("K", "K ≥ 1 %", "log joint", "co-assignment")
TUNE, FORGET = 100, 1000  # tuning sweeps, and sweeps dropped in total, of a chain that starts at the truth
START, CHAINS = 10, 4  # initial random states and number of chains of the second table
TURN = 100  # sweeps
N_PAIRS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=20_000, help="sweeps kept of each chain that starts at the truth")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--start-sweeps", type=int, default=5000, help="sweeps of each chain from random states")
    parser.add_argument("--data", choices=DATA, nargs="+", default=DATA)
    parser.add_argument("--only", choices=("stationary", "start"))
    parser.add_argument("--page", action="store_true", help="also write the tables to the page")
    options = parser.parse_args()
    recordings = {name: getattr(ihmm.datasets, name)() for name in options.data}
    tables = {}
    if options.only != "start":
        found = {
            name: run(recording, recording.states, options.chains, options.sweeps, dropped=FORGET)
            for name, recording in recordings.items()
        }
        tables["stationary"] = table_of_samples(found, from_start=False)
        tables["extra"] = table_of_extra_states(found)
    if options.only != "stationary":
        half = options.start_sweeps // 2
        found = {name: run(recording, START, CHAINS, half, dropped=half) for name, recording in recordings.items()}
        tables["start"] = table_of_samples(found, from_start=True)
    for place, table in tables.items():
        print(f"\n{place}\n{table}")
        if options.page:
            fill_page(place, table)


class Traces(NamedTuple):
    values: FloatArray  # (chains, kept sweeps, quantities)
    smallest: FloatArray  # (chains, kept sweeps, 2): share and self-transition probability of the smallest large state
    dropped_seconds: float
    kept_seconds: float


Found = Mapping[str, Mapping[str, Traces]]  # by data and setting


def run(recording: Recording, init: Init, chains: int, sweeps: int, dropped: int) -> dict[str, Traces]:
    """Run the chains of all settings in turns of a few sweeps; the first `dropped` sweeps are not kept."""
    model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0))
    pairs = pairs_of_one_state(recording.states)
    warm_up(model, recording)
    running = {
        (name, seed): ihmm.iterate(model, recording.y, moves=moves, tune=TUNE, seed=seed, init=init)
        for name, moves in SETTINGS.items()
        for seed in range(chains)
    }
    shape = (chains, dropped + sweeps)
    values = {name: np.empty((*shape, len(QUANTITIES))) for name in SETTINGS}
    smallest = {name: np.empty((*shape, 2)) for name in SETTINGS}
    seconds = {name: np.zeros(2) for name in SETTINGS}  # dropped, kept
    for begin, end in turns(dropped, dropped + sweeps):
        for (name, seed), chain in running.items():
            clock = time.process_time()
            steps = [next(chain) for _ in range(begin, end)]
            seconds[name][int(begin >= dropped)] += time.process_time() - clock
            values[name][seed, begin:end] = [
                [draw.n_states, n_large(draw.states), info.log_joint, together(draw.states, pairs)]
                for draw, info in steps
            ]
            smallest[name][seed, begin:end] = [smallest_large(draw) for draw, _ in steps]
    return {name: Traces(values[name][:, dropped:], smallest[name][:, dropped:], *seconds[name]) for name in SETTINGS}


def warm_up(model: ihmm.Model, recording: Recording) -> None:
    """Compile everything, or load it from the cache."""
    for moves in SETTINGS.values():
        chain = ihmm.iterate(model, recording.y, moves=moves, tune=5, seed=0, init=10)
        for _ in range(10):
            next(chain)


def turns(*ends: int) -> list[tuple[int, int]]:
    """Intervals from 0 to the last end, at most TURN long, none of which crosses an end."""
    stops = sorted({*ends, *range(0, ends[-1], TURN)})
    return list(itertools.pairwise(stops))


def smallest_large(draw: Draw) -> tuple[float, float]:
    """Share and self-transition probability of the smallest state with at least 1 % of the time steps."""
    share = np.bincount(draw.states) / len(draw.states)
    k = int(np.argmin(np.where(share >= LARGE, share, np.inf)))
    return float(share[k]), float(draw.transitions.rows[k, k])


def pairs_of_one_state(truth: IntArray) -> IntArray:
    """Pairs of time steps with the same true state, (2, N), identical in every run."""
    rng = np.random.default_rng(0)
    first = rng.integers(len(truth), size=N_PAIRS)
    second = np.array([rng.choice(np.flatnonzero(truth == truth[t])) for t in first])
    return np.stack([first, second])


def together(states: IntArray, pairs: IntArray) -> float:
    return float(np.mean(states[pairs[0]] == states[pairs[1]]))


def table_of_samples(found: Found, from_start: bool) -> str:
    """Mean, R-hat, autocorrelation time and ESS per second, with the ratio to the first setting."""
    rows = []
    for data, settings in found.items():
        for i, quantity in enumerate(QUANTITIES):
            first = None
            for name, traces in settings.items():
                x = traces.values[:, :, i]
                ess, rhat = (float(measure(x, chain_axis=0, draw_axis=1)) for measure in measures())
                rate = ess / (traces.kept_seconds + from_start * traces.dropped_seconds)
                first = first or rate
                average = [f"{x.mean():.3f}", f"{x.std():.3f}", f"{rhat:.3f}"]
                worth = [f"{x.size / ess:.0f}", f"{ess:.0f}", f"{rate:.2f}", f"{rate / first:.1f}"]
                rows.append([data, quantity, name, *average, *worth, f"{1e3 * traces.kept_seconds / x.size:.2f}"])
    statistics = ("mean", "sd", "R-hat", "autocorrelation time", "ESS", "ESS per second", "ratio", "ms per sweep")
    return markdown(("data", "quantity", "moves", *statistics), rows)


def measures() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Effective sample size and R-hat, as in `posterior.check()`."""
    from arviz_stats.base import array_stats

    return array_stats.ess, array_stats.rhat


def table_of_extra_states(found: Found) -> str:
    """How often there are too many large states, with the median, 10 % and 90 % quantiles of the smallest of them."""
    rows = []
    for data, settings in found.items():
        truth = len(getattr(ihmm.datasets, data)().means)
        for name, traces in settings.items():
            more = traces.values[:, :, QUANTITIES.index("K ≥ 1 %")] > truth
            shown = traces.smallest[more] if more.any() else np.full((1, 2), np.nan)
            low, middle, high = np.quantile(shown, (0.1, 0.5, 0.9), axis=0)
            share, stay = (f"{middle[i]:.1%} ({low[i]:.1%} to {high[i]:.1%})" for i in range(2))
            rows.append([data, name, f"{more.mean():.1%}", share, stay])
    heads = ("data", "moves", "sweeps with an extra state", "share of time steps", "self-transition probability")
    return markdown(heads, rows)


if __name__ == "__main__":
    main()
