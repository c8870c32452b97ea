"""Effective samples a second of the settings below, side by side, on the paper's synthetic data (T15 §4.1).

    python benchmarks/effective.py [--sweeps 20000] [--chains 2] [--data four_state] [--only stationary]

The first table is about chains that begin at the truth and have forgotten it: what a sweep is worth once a chain has
converged. The second counts everything: four chains from ten random states, all their time, and of their sweeps the
second half. Chains take turns of a few sweeps, so that a busy machine slows all of them alike, and time is that of the
processor. An autocorrelation time is the number of sweeps that are worth one independent draw.
"""

import argparse
import itertools
import time
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from convergence import n_large

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.chain import MOVES, Init
from ihmm.datasets import Recording
from ihmm.diagnostics import RHAT
from ihmm.moves import Move

SETTINGS: dict[str, tuple[Move, ...]] = {"no moves": (), "default moves": MOVES}
DATA = ("four_state", "ten_state")
QUANTITIES = ("K", "K of 1 %", "log joint", "together")
TUNE, FORGET = 100, 1000  # sweeps that tune, and that are dropped in all, of a chain that begins at the truth
START, CHAINS = 10, 4  # random states, and chains, of the second table
TURN = 100  # sweeps
N_PAIRS = 200


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=20_000, help="kept of each chain")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--start-sweeps", type=int, default=5000, help="of each chain from random states")
    parser.add_argument("--data", choices=DATA, nargs="+", default=DATA)
    parser.add_argument("--only", choices=("stationary", "start"))
    options = parser.parse_args()
    for name in options.data:
        recording = getattr(ihmm.datasets, name)()
        if options.only != "start":
            print(f"\n{name}: {options.chains} chains of {options.sweeps} sweeps that began at the truth")
            show(run(recording, recording.states, options.chains, options.sweeps, dropped=FORGET))
        if options.only != "stationary":
            half = options.start_sweeps // 2
            print(f"\n{name}: {CHAINS} chains from {START} random states, sweeps {half + 1} to {2 * half}, all time")
            show(run(recording, START, CHAINS, half, dropped=half))


class Traces(NamedTuple):
    values: FloatArray  # (chains, kept sweeps, quantities)
    dropped_seconds: float
    kept_seconds: float


def run(recording: Recording, init: Init, chains: int, sweeps: int, dropped: int) -> dict[str, Traces]:
    """Every setting's chains, a turn of a few sweeps each; the first `dropped` sweeps are not kept."""
    model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0))
    pairs = pairs_of_one_state(recording.states)
    warm_up(model, recording)
    running = {
        (name, seed): ihmm.iterate(model, recording.y, moves=moves, tune=TUNE, seed=seed, init=init)
        for name, moves in SETTINGS.items()
        for seed in range(chains)
    }
    values = {name: np.empty((chains, dropped + sweeps, len(QUANTITIES))) for name in SETTINGS}
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
    return {name: Traces(values[name][:, dropped:], *seconds[name]) for name in SETTINGS}


def warm_up(model: ihmm.Model, recording: Recording) -> None:
    """Have everything compiled, or read from the cache."""
    for moves in SETTINGS.values():
        chain = ihmm.iterate(model, recording.y, moves=moves, tune=5, seed=0, init=10)
        for _ in range(10):
            next(chain)


def turns(*ends: int) -> list[tuple[int, int]]:
    """From 0 to the last end by turns, none of which goes past any end."""
    stops = sorted({*ends, *range(0, ends[-1], TURN)})
    return list(itertools.pairwise(stops))


def pairs_of_one_state(truth: IntArray) -> IntArray:
    """Pairs of steps, (2, N), that truly share their state, the same ones in every run."""
    rng = np.random.default_rng(0)
    first = rng.integers(len(truth), size=N_PAIRS)
    second = np.array([rng.choice(np.flatnonzero(truth == truth[t])) for t in first])
    return np.stack([first, second])


def together(states: IntArray, pairs: IntArray) -> float:
    return float(np.mean(states[pairs[0]] == states[pairs[1]]))


def show(found: Mapping[str, Traces]) -> None:
    """Mean, R-hat, autocorrelation time and effective samples a second, and how these compare with the first's."""
    from arviz_stats.base import array_stats  # what posterior.check() uses

    print(f"{'':<12}{'':<16}{'mean':>10}{'sd':>8}{'R-hat':>8}{'time':>8}{'ESS':>8}{'ESS/s':>9}{'ratio':>8}")
    for i, quantity in enumerate(QUANTITIES):
        first = None
        for name, (values, dropped_seconds, kept_seconds) in found.items():
            x = values[:, :, i]
            ess = float(array_stats.ess(x, chain_axis=0, draw_axis=1))
            rhat = float(array_stats.rhat(x, chain_axis=0, draw_axis=1))
            rate = ess / (dropped_seconds + kept_seconds)
            first = first or rate
            print(
                f"{quantity if rate == first else '':<12}{name:<16}{x.mean():10.3f}{x.std():8.3f}{rhat:7.3f}"
                f"{'!' if rhat > RHAT else ' '}{x.size / ess:8.1f}{ess:8.0f}{rate:9.2f}{rate / first:8.2f}"
            )
    cost = [f"{name} {1e3 * t.kept_seconds / t.values[:, :, 0].size:.2f}" for name, t in found.items()]
    print(f"ms a sweep: {', '.join(cost)}")


if __name__ == "__main__":
    main()
