"""Effective sample size per second with and without moves, on the paper's synthetic data (T15 §4.1).

    python benchmarks/effective.py [--sweeps 20000] [--chains 2] [--data four_state] [--only stationary] [--page]
    python benchmarks/effective.py --only resampling [--quick]

The first table is for chains that start at the truth and run until they have forgotten it: mixing after convergence.
The second includes the convergence phase: four chains from ten random states, all their time, and the draws of the
second half. Chains take turns of a few sweeps, so that load on the machine affects all of them equally, and times are
processor times. The autocorrelation time is the number of sweeps per independent draw.

The last table compares the resampling schemes of particle Gibbs on five data sets: passes over the trajectory with all
else fixed, then whole sweeps with default moves. The path statistics do not depend on labels: occupancy, the sum of
squared shares of the states; the number of switches; the number of states in a window of 100 time steps.
"""

import argparse
import itertools
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from convergence import LARGE, fill_page, markdown, n_large

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.chain import MOVES, Init
from ihmm.datasets import SYMBOLS, Recording
from ihmm.model import Draw, Transitions
from ihmm.moves import Move
from ihmm.trajectory import Trajectory

SETTINGS: dict[str, tuple[Move, ...]] = {"no moves": (), "default moves": MOVES}
DATA = ("four_state", "ten_state")
QUANTITIES = ("K", "K ≥ 1%", "log joint", "co-assignment")
TUNE, FORGET = 100, 1000  # tuning sweeps, and sweeps dropped in total, of a chain that starts at the truth
START, CHAINS = 10, 4  # initial random states and number of chains of the second table
TURN = 100  # sweeps
N_PAIRS = 200
PASSES = {
    f"{scheme}, N = {n_particles}": ihmm.ParticleGibbs(n_particles, resampling=scheme)
    for scheme in ("multinomial", "systematic")
    for n_particles in (10, 50, 200)
}
OF_PATHS = ("occupancy", "switches", "states in a window")
WINDOW = slice(450, 550)
QUICK = 200  # passes, and sweeps, with --quick


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sweeps", type=int, default=20_000, help="sweeps kept of each chain that starts at the truth")
    parser.add_argument("--chains", type=int, default=2)
    parser.add_argument("--start-sweeps", type=int, default=5000, help="sweeps of each chain from random states")
    parser.add_argument("--data", choices=DATA, nargs="+", default=DATA)
    parser.add_argument("--only", choices=("stationary", "start", "resampling"))
    parser.add_argument("--passes", type=int, default=10_000, help="passes per chain, to compare resampling schemes")
    parser.add_argument("--quick", action="store_true", help=f"{QUICK} passes of one chain: to see that it runs")
    parser.add_argument("--page", action="store_true", help="also write the tables to the page")
    options = parser.parse_args()
    recordings = {name: getattr(ihmm.datasets, name)() for name in options.data}
    tables = {}
    if options.only in (None, "stationary"):
        found = {
            name: run(recording, recording.states, options.chains, options.sweeps, dropped=FORGET)
            for name, recording in recordings.items()
        }
        tables["stationary"] = table_of_samples(found, from_start=False)
        tables["extra"] = table_of_extra_states(found)
    if options.only in (None, "start"):
        half = options.start_sweeps // 2
        found = {name: run(recording, START, CHAINS, half, dropped=half) for name, recording in recordings.items()}
        tables["start"] = table_of_samples(found, from_start=True)
    for place, table in tables.items():
        print(f"\n{place}\n{table}")
        if options.page:
            fill_page(place, table)
    if options.only in (None, "resampling"):
        print(
            f"\nresampling\n{compare_resampling(*((1, QUICK) if options.quick else (options.chains, options.passes)))}"
        )


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
    """Share and self-transition probability of the smallest state with at least 1% of the time steps."""
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
    """How often there are too many large states, with the median, 10% and 90% quantiles of the smallest of them."""
    rows = []
    for data, settings in found.items():
        truth = len(getattr(ihmm.datasets, data)().means)
        for name, traces in settings.items():
            more = traces.values[:, :, QUANTITIES.index("K ≥ 1%")] > truth
            shown = traces.smallest[more] if more.any() else np.full((1, 2), np.nan)
            low, middle, high = np.quantile(shown, (0.1, 0.5, 0.9), axis=0)
            share, stay = (f"{middle[i]:.1%} ({low[i]:.1%} to {high[i]:.1%})" for i in range(2))
            rows.append([data, name, f"{more.mean():.1%}", share, stay])
    heads = ("data", "moves", "sweeps with an extra state", "share of time steps", "self-transition probability")
    return markdown(heads, rows)


class Case(NamedTuple):
    """Data, their model, and where chains begin."""

    model: ihmm.Model
    y: Any
    init: Init


Steps = Iterator[tuple[IntArray, tuple[float, ...]]]  # a trajectory, and other quantities


def compare_resampling(chains: int, sweeps: int) -> str:
    """Autocorrelation time and effective samples a second of every scheme and number of particles."""
    rows = []
    for data, case in cases().items():
        draw = settled(case, dropped := min(FORGET, sweeps))
        alone = {
            name: [passes(case, draw, sampler, seed) for seed in range(chains)] for name, sampler in PASSES.items()
        }
        rows += rows_of(data, "pass", *in_turns(alone, 10, sweeps), OF_PATHS)
        whole = {name: [sweeps_of(case, sampler, seed) for seed in range(chains)] for name, sampler in PASSES.items()}
        rows += rows_of(data, "sweep", *in_turns(whole, dropped, sweeps), (*OF_PATHS, "K", "log joint"))
    heads = ("data", "of", "quantity", "resampling", "mean", "sd", "time", "ESS a second", "ratio", "ms")
    return markdown(heads, rows)


def cases() -> dict[str, Case]:
    recordings = {
        "four_state": ihmm.datasets.four_state(),
        "ten_state": ihmm.datasets.ten_state(),
        "ten states one sd apart": chain_of_levels(10, spacing=1.0, stay=0.95),
        "three sticky states": chain_of_levels(3, spacing=2.0, stay=0.98),
    }
    sticky = ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1))
    out = {
        name: Case(
            ihmm.Model(
                ihmm.NormalMean(noise=recording.noise, mean=recording.means.mean(), scale=2 * recording.means.std()),
                ihmm.HDPPrior() if name in DATA else sticky,
            ),
            recording.y,
            recording.states,
        )
        for name, recording in recordings.items()
    }
    return out | {"Alice": Case(ihmm.Model(ihmm.Categorical(len(SYMBOLS), 0.3)), ihmm.datasets.alice().train, 10)}


def chain_of_levels(n_states: int, spacing: float, stay: float, length: int = 4000) -> Recording:
    """Equidistant levels with noise 1; a state that is left is followed by any other."""
    rng = np.random.default_rng(0)
    jumps = np.where(rng.random(length) < stay, 0, rng.integers(1, n_states, length))
    states, means = np.cumsum(jumps) % n_states, spacing * np.arange(n_states)
    transition = np.where(np.eye(n_states), stay, (1 - stay) / (n_states - 1))
    return Recording(means[states] + rng.standard_normal(length), states, means, 1.0, transition)


def settled(case: Case, sweeps: int) -> Draw:
    """A draw after so many sweeps, with hardly any mass left for states other than its own."""
    chain = ihmm.iterate(case.model, case.y, tune=min(TUNE, sweeps // 2), seed=0, init=case.init)
    draw, _ = next(itertools.islice(chain, sweeps - 1, None))
    return draw._replace(transitions=Transitions(*map(without_rest, draw.transitions)))


def without_rest(weights: FloatArray) -> FloatArray:
    weights = weights.copy()
    weights[..., -1] = 1e-14
    return weights / weights.sum(axis=-1, keepdims=True)


def passes(case: Case, draw: Draw, sampler: ihmm.ParticleGibbs, seed: int) -> Steps:
    """Trajectories with all else fixed; states that one does not visit keep their names."""
    rng, data, beta = np.random.default_rng(seed), case.model.observe(case.y), draw.transitions.beta
    while True:
        path, _ = sampler.resample_states(rng, data, case.model, draw)
        states = np.searchsorted(-beta[:-1], -path.beta[:-1], sorter=(order := np.argsort(-beta[:-1])))
        draw = draw._replace(trajectory=Trajectory(order[states][path.states]))
        yield draw.states, ()


def sweeps_of(case: Case, sampler: ihmm.ParticleGibbs, seed: int) -> Steps:
    for draw, info in ihmm.iterate(case.model, case.y, sampler=sampler, tune=TUNE, seed=seed, init=case.init):
        yield draw.states, (draw.n_states, info.log_joint)


def in_turns(
    running: Mapping[str, list[Steps]], dropped: int, kept: int
) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Values, (chains, kept, quantities), and seconds of the steps that are kept, by name; chains take turns."""
    values: dict[str, list[list[tuple[float, ...]]]] = {name: [[] for _ in chains] for name, chains in running.items()}
    seconds = dict.fromkeys(running, 0.0)
    for begin, end in turns(dropped, dropped + kept):
        for name, chains in running.items():
            for chain, trace in zip(chains, values[name], strict=True):
                clock = time.process_time()
                steps = list(itertools.islice(chain, end - begin))
                if begin >= dropped:
                    seconds[name] += time.process_time() - clock
                    trace += [(*of_path(states), *others) for states, others in steps]
    return {name: np.array(traces) for name, traces in values.items()}, seconds


def of_path(states: IntArray) -> tuple[float, float, float]:
    share = np.bincount(states) / len(states)
    return float(share @ share), float(np.count_nonzero(np.diff(states))), float(len(np.unique(states[WINDOW])))


def rows_of(
    data: str, what: str, values: Mapping[str, FloatArray], seconds: Mapping[str, float], quantities: tuple[str, ...]
) -> list[list[str]]:
    rows = []
    for i, quantity in enumerate(quantities):
        first = None
        for name, traces in values.items():
            x = traces[:, :, i]
            ess = float(measures()[0](x, chain_axis=0, draw_axis=1))
            rate = ess / seconds[name]
            first = first or rate
            figures = [f"{x.mean():.3f}", f"{x.std():.3f}", f"{x.size / ess:.1f}", f"{rate:.1f}", f"{rate / first:.1f}"]
            rows.append([data, what, quantity, name, *figures, f"{1e3 * seconds[name] / x.size:.2f}"])
    return rows


if __name__ == "__main__":
    main()
