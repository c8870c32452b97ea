"""Can the verdict be trusted? Posteriors that have converged, and posteriors that have not, each with its verdict.

    python benchmarks/verdicts.py                # 40 of each, some minutes
    python benchmarks/verdicts.py --number 8     # fewer

Goals: of 40 converged posteriors at most 2 are not called reliable; of 40 that are unconverged or multimodal, none is.
"""

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np

import ihmm
from ihmm.posterior import Posterior

STEPS = 300


def simulate(rng: np.random.Generator, n_states: int, stay: float = 0.95, steps: int = STEPS) -> np.ndarray:
    """States of a Markov chain that stays with the given probability."""
    states = np.zeros(steps, np.int64)
    for t in range(1, steps):
        states[t] = states[t - 1] if rng.random() < stay else (states[t - 1] + rng.integers(1, n_states)) % n_states
    return states


def normal(rng: np.random.Generator, steps: int = STEPS) -> tuple[ihmm.Model, np.ndarray]:
    states = simulate(rng, 3, steps=steps)
    return default_model(y := 4.0 * states + rng.normal(size=steps)), y


def outliers(rng: np.random.Generator) -> tuple[ihmm.Model, np.ndarray]:
    y = 6.0 * simulate(rng, 2) + rng.standard_t(4, size=STEPS)
    return default_model(y, "student-t"), y


def counts(rng: np.random.Generator) -> tuple[ihmm.Model, np.ndarray]:
    y = rng.poisson(np.array([2.0, 12.0])[simulate(rng, 2)])
    return default_model(y, "poisson"), y


def columns(rng: np.random.Generator) -> tuple[ihmm.Model, np.ndarray]:
    states = simulate(rng, 2)
    return default_model(y := 3.0 * states[:, None] + rng.normal(size=(STEPS, 3))), y


def one_level(rng: np.random.Generator) -> tuple[ihmm.Model, np.ndarray]:
    return default_model(y := rng.normal(size=STEPS)), y


def default_model(y: np.ndarray, emission: str = "normal") -> ihmm.Model:
    return ihmm.model.model_for(y.reshape(len(y), -1), emission)


KINDS: tuple[Callable[[np.random.Generator], tuple[ihmm.Model, np.ndarray]], ...] = (
    normal,
    outliers,
    counts,
    columns,
    one_level,
)


def converged(number: int, draws: int) -> Iterator[tuple[str, Posterior]]:
    """Default settings on data that the model fits."""
    for i in range(number):
        kind = KINDS[i % len(KINDS)]
        model, y = kind(np.random.default_rng(i))
        options = {"draws": draws, "tune": 300, "init": "auto", "progress": False}
        yield kind.__name__, ihmm.sample(model, y, seed=i, **options)


def unconverged(number: int) -> Iterator[tuple[str, Posterior]]:
    """Chains that have not found the posterior yet, or sit in different modes."""
    ways = (from_random_states, stuck_at_one_state, one_chain_apart, on_overlapping_levels)
    for i in range(number):
        way = ways[i % len(ways)]
        yield way.__name__, way(i)


def from_random_states(i: int) -> Posterior:
    """No tuning and no moves, from many random states."""
    model, y = normal(np.random.default_rng(1000 + i), 500)
    return ihmm.sample(model, y, seed=i, draws=60, tune=0, moves=(), init=20 + i % 10, progress=False)


def stuck_at_one_state(i: int) -> Posterior:
    """Three chains with all levels, and one that is kept at a single state."""
    model, y = normal(np.random.default_rng(1000 + i))
    whole = ihmm.sample(model, y, seed=i, draws=300, tune=200, chains=3, init="auto", progress=False)
    single = ihmm.Model(model.emission, ihmm.FinitePrior(n_states=1))
    stuck = ihmm.sample(single, y, seed=i, draws=300, tune=0, chains=1, init=1, progress=False)
    return together(whole, stuck)


def one_chain_apart(i: int) -> Posterior:
    """One chain is kept at two of the three levels."""
    model, y = normal(np.random.default_rng(1000 + i))
    whole = ihmm.sample(model, y, seed=i, draws=300, tune=200, chains=3, init="auto", progress=False)
    fewer = ihmm.Model(model.emission, ihmm.FinitePrior(n_states=2))
    return together(whole, ihmm.sample(fewer, y, seed=i, draws=300, tune=100, chains=1, init=2, progress=False))


def on_overlapping_levels(i: int) -> Posterior:
    """Half of the chains are kept at two levels, half at three, where the levels overlap."""
    rng = np.random.default_rng(1000 + i)
    y = 2.0 * simulate(rng, 3) + rng.normal(size=STEPS)
    emission = default_model(y).emission
    halves = [
        ihmm.sample(
            ihmm.Model(emission, ihmm.FinitePrior(n_states=n)),
            y,
            seed=i,
            draws=300,
            tune=100,
            chains=2,
            init=n,
            progress=False,
        )
        for n in (2, 3)
    ]
    return together(*halves)


def together(first: Posterior, second: Posterior) -> Posterior:
    """The chains of two runs on the same data as if they were of one."""
    from dataclasses import replace

    n = len(first._records)
    records = [*first._records, *(replace(record, chain=n + record.chain) for record in second._records)]
    names = set(records[0].traces) & set(records[-1].traces)
    records = [replace(record, traces={name: record.traces[name] for name in names}) for record in records]
    states = np.concatenate([first._states, second._states])
    return Posterior(first.model, first.data, states, records, sampler=first.sampler, seed=first.seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--number", type=int, default=40, help="posteriors of each sort")
    parser.add_argument("--draws", type=int, default=500, help="per chain, of the converged ones")
    options = parser.parse_args()
    for sort, posteriors in (
        ("unconverged", unconverged(options.number)),
        ("converged", converged(options.number, options.draws)),
    ):
        reliable, begin = 0, time.perf_counter()
        for i, (name, posterior) in enumerate(posteriors):
            found = posterior.check()
            reliable += bool(found)
            if bool(found) != (sort == "converged"):
                print(f"--- {sort} {i}, {name}: {posterior.levels()}\n{found}", flush=True)
        seconds = time.perf_counter() - begin
        print(f"{sort}: {reliable} of {options.number} called reliable ({seconds:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
