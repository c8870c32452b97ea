"""Are similar but distinct states separated as in the posterior?

    python benchmarks/similar.py [--chains 4] [--sweeps 4000] [--tune 500] [--prior "few states"] [--page]

Two of three states have means 0.6 standard deviations apart. A single observation says little about which of them it
belongs to, but one lasts fifty time steps on average and the other twelve, and only the second leads to the third
state. Long runs without moves that start at the truth serve as the reference, and the settings below have to agree
with them. z is the largest difference of any quantity in standard errors and p the smallest p-value, corrected for the
number of quantities, both from averages over batches of sweeps. "Separated" is the number of chains with at least
three large states at the end of tuning.
"""

import argparse
from typing import NamedTuple

import numpy as np
from convergence import fill_page, markdown, n_large
from scipy import stats

import ihmm
from ihmm._typing import FloatArray
from ihmm.chain import MOVES, Init
from ihmm.datasets import Recording
from ihmm.moves import GreedySplitMerge, Move

SETTINGS: dict[str, tuple[Move, ...]] = {
    "default moves": MOVES,
    "careful greedy only": (GreedySplitMerge(careful=True),),
    "greedy only": (GreedySplitMerge(sweeps=500),),
}
PRIORS = {"default": ihmm.HDPPrior(), "few states": ihmm.HDPPrior(gamma=0.1, concentration=1.0)}
QUANTITIES = ("large states", "A with A", "B with B", "A with B", "mean in A", "mean in B")
N_PAIRS, BATCH = 200, 500


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--sweeps", type=int, default=4000, help="sweeps kept of each chain")
    parser.add_argument("--tune", type=int, default=500)
    parser.add_argument("--prior", choices=tuple(PRIORS), nargs="+", default=tuple(PRIORS))
    parser.add_argument("--page", action="store_true", help="also write the table to the page")
    options = parser.parse_args()
    recording = similar_states()
    rows = []
    for prior in options.prior:
        model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, scale=2.0), PRIORS[prior])
        size = (options.chains, options.tune, options.sweeps)
        plain = run(model, recording, (), recording.states, *size)
        rows.append((prior, "no moves, truth", *cells(plain), "", ""))
        for name, moves in SETTINGS.items():
            for start, init in {"truth": recording.states, "10": 10}.items():
                found = run(model, recording, moves, init, *size)
                z, p = difference(found.kept, plain.kept)
                rows.append(("", f"{name}, {start}", *cells(found), f"{z:.1f}", f"{p:.2g}"))
                print(*rows[-1], flush=True)
    table = markdown(("prior", "moves, start", "separated", *QUANTITIES, "z", "p"), rows)
    print(table)
    if options.page:
        fill_page("similar", table)


def similar_states(length: int = 2000, seed: int = 0) -> Recording:
    """States A and B with means 0 and 0.6 and a third with mean 4, noise 1; only B leads to the third."""
    transition = np.array([[0.98, 0.02, 0.0], [0.03, 0.92, 0.05], [0.0, 0.1, 0.9]])
    means, noise = np.array([0.0, 0.6, 4.0]), 1.0
    rng = np.random.default_rng(seed)
    reached = transition.cumsum(axis=1)
    states = np.zeros(length, np.int64)
    for t, u in enumerate(rng.random(length - 1), 1):
        states[t] = np.searchsorted(reached[states[t - 1]], u, side="right")
    return Recording(means[states] + noise * rng.standard_normal(length), states, means, noise, transition)


class Run(NamedTuple):
    tuned: FloatArray  # (chains,) number of large states at the end of tuning
    kept: FloatArray  # (chains, sweeps, quantities)


def run(
    model: ihmm.Model, recording: Recording, moves: tuple[Move, ...], init: Init, chains: int, tune: int, sweeps: int
) -> Run:
    values = np.empty((chains, tune + sweeps, len(QUANTITIES)))
    pairs = [pairs_between(recording, *states) for states in ((0, 0), (1, 1), (0, 1))]
    own = [recording.states == k for k in (0, 1)]
    for seed in range(chains):
        chain = ihmm.iterate(model, recording.y, moves=moves, tune=tune, seed=seed, init=init)
        for i in range(tune + sweeps):
            draw, _ = next(chain)
            together = [np.mean(draw.states[first] == draw.states[second]) for first, second in pairs]
            means = draw.phi.mean[draw.states]
            values[seed, i] = n_large(draw.states), *together, *(means[steps].mean() for steps in own)
    return Run(values[:, tune - 1, 0], values[:, tune:])


def pairs_between(recording: Recording, first: int, second: int) -> tuple[np.ndarray, np.ndarray]:
    """Time steps of one true state and as many of another, identical in every run."""
    rng = np.random.default_rng(1)
    a, b = (rng.choice(np.flatnonzero(recording.states == k), N_PAIRS) for k in (first, second))
    return a, b


def difference(first: FloatArray, second: FloatArray) -> tuple[float, float]:
    """The largest z over all quantities, and the smallest p-value of Welch's test, Bonferroni-corrected."""
    samples = [batches(values) for values in (first, second)]
    means, errors = np.array([average(sample) for sample in samples]).transpose(1, 0, 2)
    variances = np.maximum(errors**2, 1e-18)
    z = np.abs(means[0] - means[1]) / np.sqrt(variances.sum(axis=0))
    spare = np.array([[len(sample) - 1] for sample in samples])
    freedom = variances.sum(axis=0) ** 2 / (variances**2 / spare).sum(axis=0)
    return float(z.max()), float(min(1.0, len(z) * 2 * stats.t.sf(z, freedom).min()))


def batches(values: FloatArray) -> FloatArray:
    """Averages over batches of consecutive sweeps, (batches, quantities)."""
    return values.reshape(-1, BATCH, values.shape[2]).mean(axis=1)


def average(sample: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The mean of every quantity and its standard error."""
    return sample.mean(axis=0), sample.std(axis=0, ddof=1) / np.sqrt(len(sample))


def cells(found: Run) -> list[str]:
    separated = f"{np.sum(found.tuned >= 3)} of {len(found.tuned)}"
    means, errors = average(batches(found.kept))
    return [separated, *(f"{mean:.3f} ± {error:.3f}" for mean, error in zip(means, errors, strict=True))]


if __name__ == "__main__":
    main()
