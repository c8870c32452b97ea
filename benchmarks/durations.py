"""States with durations against the hidden Markov model: answers, chains that get stuck, and time.

    python benchmarks/durations.py [answers] [extra] [stuck] [speed] [peers] [--seeds 3]

`answers`: levels one and a half standard deviations apart, visits of negative binomial length (shape 20) or geometric.
`extra`: the paper's data. `stuck`: where chains are after tuning, from several starts. `speed`: ms of processor time a
sweep, and how it grows. `peers`: the HDP-HSMM of tsseg, installed in build/peers as in benchmarks/peers.py, and that of
pyhsmm, if it is installed in build/peers/pyhsmm; see benchmarks/runners/sweep_pyhsmm.py for how.
"""

import argparse
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from peers import Peer, clean_environment, install, python
from scipy.optimize import linear_sum_assignment

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.chain import MOVES
from ihmm.durations import Duration, Geometric, NegativeBinomial, Poisson
from ihmm.gibbs import initial_draw, sweep
from ihmm.moves import Move

ROOT = Path(__file__).resolve().parents[1]
LAWS: dict[str, Duration | None] = {
    "HMM": None,
    "geometric": Geometric(),
    "negative binomial": NegativeBinomial(),
    "Poisson": Poisson(),
}
LARGE = 0.01  # share of the steps
# durations, standard deviations between levels, number of states
STUCK_DATA = (("shape 20", 20.0, 1.5, 3), ("shape 20", 20.0, 3.0, 6), ("geometric", 1.0, 3.0, 6))


def main() -> None:
    sections: dict[str, Callable[[int], None]] = {
        "answers": answers,
        "extra": extra,
        "stuck": stuck,
        "speed": speed,
        "peers": peers,
    }
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("sections", nargs="*", default=list(sections), choices=sections)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.sections:
        sections[name](options.seeds)


def model_for(law: Duration | None, emission: ihmm.Emission) -> ihmm.Model:
    """The priors of `InfiniteHMM`."""
    stickiness = ihmm.BetaPrior(1, 1) if law is None else 0.0
    prior = ihmm.HDPPrior(ihmm.GammaPrior(1, 20), ihmm.GammaPrior(1, 0.001), stickiness)
    return ihmm.Model(emission, prior, law)


def simulate(
    shape: float, mean: float, length: int, seed: int, step: float = 1.5, n_states: int = 3
) -> tuple[IntArray, FloatArray]:
    """Levels `step` standard deviations apart; visits of 1 + NegBin(shape) steps, `mean` on average."""
    rng, states, k = np.random.default_rng(seed), [], 0
    while len(states) < length:
        k = (k + int(rng.integers(1, n_states))) % n_states
        states += [k] * int(1 + rng.poisson(rng.gamma(shape, (mean - 1) / shape)))
    path = np.array(states[:length])
    return path, step * path + rng.standard_normal(length)


def answers(n_seeds: int) -> None:
    print("Three levels 1.5 sd apart, T = 3000, visits of 20 steps on average, 2 chains of 200 draws after 150")
    print("visits       seed  model               states ≥ 1%    changes/true   accuracy")
    for name, shape in {"shape 20": 20.0, "geometric": 1.0}.items():
        for seed in range(n_seeds):
            truth, y = simulate(shape, 20.0, 3000, seed)
            for law in ("HMM", "geometric", "negative binomial"):
                model = model_for(LAWS[law], ihmm.Normal(1.5, 0.1, 2.0, 1.0))
                found = fit(model, y, draws=200, tune=150, chains=2, init="auto")
                sizes, counts = np.unique(large(found), return_counts=True)
                text = ", ".join(f"{k}: {n / counts.sum():.0%}" for k, n in zip(sizes, counts, strict=True))
                ratio = changes(found).mean() / np.count_nonzero(np.diff(truth))
                right = np.mean([accuracy(truth, each) for each in found[::20]])
                print(f"{name:12s} {seed:4d}  {law:18s}  {text:18s}  {ratio:6.2f}  {right:13.3f}", flush=True)


def extra(n_seeds: int) -> None:
    print("Share of draws with an extra state of at least 1% of the steps, and with a state too few; T = 2000")
    for data, n_states in ((ihmm.datasets.four_state, 4), (ihmm.datasets.ten_state, 10)):
        for law in ("HMM", "geometric"):
            shares = []
            for seed in range(n_seeds):
                recording = data(length=2000, seed=seed)
                model = model_for(LAWS[law], ihmm.NormalMean(noise=recording.noise, scale=3.0))
                sizes = large(fit(model, recording.y, draws=300, tune=150, chains=2, init="auto"))
                shares.append([np.mean(sizes > n_states), np.mean(sizes < n_states)])
            more, fewer = np.mean(shares, axis=0)
            print(f"{data.__name__:12s} {law:12s} extra {more:6.1%}   too few {fewer:6.1%}", flush=True)


def stuck(n_seeds: int) -> None:
    print(
        "Chains with too few and too many states of 1% or more, after 150 tuning sweeps and 50 draws, 4 chains a seed"
    )
    print(f"{'start':<54}{'without SplitMerge':>20}{'with it':>20}")
    for name, shape, step, n_states in STUCK_DATA:
        for law in ("geometric", "negative binomial"):
            for init in ("auto", 1, 10):
                wrong = np.array([ends(shape, step, n_states, LAWS[law], init, seed) for seed in range(n_seeds)])
                columns = "".join(f"{few:>13d} and {many:>2d}" for few, many in wrong.sum(axis=0))
                print(f"{n_states} states, {name}, {law}, from {init}".ljust(54) + columns, flush=True)


def ends(
    shape: float, step: float, n_states: int, law: Duration | None, init: int | str, seed: int
) -> list[tuple[int, int]]:
    """Numbers of chains that end with too few and with too many states, without and with `SplitMerge`."""
    _, y = simulate(shape, 20.0, 3000, seed, step, n_states)
    model = model_for(law, ihmm.Normal(float(y.mean()), 0.1, 2.0, 1.0))
    out = []
    for moves in (tuple(move for move in MOVES if not isinstance(move, ihmm.SplitMerge)), MOVES):
        found = ihmm.sample(model, y, draws=50, tune=150, chains=4, init=init, moves=moves, seed=1, progress=False)
        n_found = large(found.states[:, -1].reshape(-1, len(y)))
        out.append((int(np.count_nonzero(n_found < n_states)), int(np.count_nonzero(n_found > n_states))))
    return out


def speed(n_seeds: int) -> None:
    exact = tuple(move for move in MOVES if isinstance(move, (ihmm.PairGibbs, ihmm.SplitMerge)))
    for text, moves in (("", ()), (", with the moves that act in all sweeps", exact)):
        print(f"ms of processor time per sweep{text}, the tenth percentile; ratio to the HMM")
        print("     T  dwell " + "".join(f"{law:>24s}" for law in LAWS))
        for length, dwell in ((4000, 25), (8000, 25), (16000, 25), (4000, 50), (4000, 100), (4000, 200)):
            truth, y = simulate(20.0, dwell, length, 0, step=2.0)
            models = [model_for(law, ihmm.Normal(2.0, 0.1, 2.0, 1.0)) for law in LAWS.values()]
            each = [sweep_ms(model, y, truth, moves) for model in models]
            print(f"{length:6d} {dwell:6d} " + "".join(f"{ms:14.2f} ({ms / each[0]:5.2f}×)" for ms in each), flush=True)


def sweep_ms(model: ihmm.Model, y: FloatArray, states: IntArray, moves: Sequence[Move] = ()) -> float:
    rng, data = np.random.default_rng(0), model.observe(y)
    draw, times = initial_draw(rng, data, model, states), []
    for _ in range(70):
        begin = time.process_time()
        draw, _ = sweep(rng, data, model, draw, ihmm.ParticleGibbs(), moves)
        times.append(time.process_time() - begin)
    return 1e3 * float(np.quantile(times[10:], 0.1))


def peers(n_seeds: int) -> None:
    """tsseg is installed; pyhsmm is used if build/peers/pyhsmm has it, which takes some steps by hand."""
    tsseg, pyhsmm = (ROOT / "build" / "peers" / name for name in ("tsseg", "pyhsmm"))
    outcome = install(Peer(("tsseg", "numba"), "import tsseg"), tsseg)
    print("tsseg", outcome.get("failed") or outcome["versions"]["tsseg"])
    for dwell, longest in ((25, 100), (100, 400)):
        truth, y = simulate(20.0, dwell, 4000, 0, step=2.0)
        for law, name in ((NegativeBinomial(), "negative binomial"), (Poisson(), "Poisson")):
            ours = sweep_ms(model_for(law, ihmm.Normal(2.0, 0.1, 2.0, 1.0)), y, truth)
            folder, runner = (tsseg, "sweep_tsseg.py") if law == NegativeBinomial() else (pyhsmm, "sweep_pyhsmm.py")
            print(f"T = 4000, dwell {dwell}, {name}: ihmm {ours:.2f} ms a sweep; {folder.name}, ", end="")
            if not Path(python(folder)).exists():
                print("not installed")
                continue
            theirs = sweep_ms_elsewhere(folder, runner, y, longest)
            print(f"20 states and durations up to {longest}, {theirs:.0f} ms ({theirs / ours:.0f}×)", flush=True)


def sweep_ms_elsewhere(folder: Path, runner: str, y: FloatArray, longest: int) -> float:
    """The number that a program prints which runs in another environment."""
    with tempfile.TemporaryDirectory() as place:
        np.save(f"{place}/y.npy", y)
        command = [python(folder), str(ROOT / "benchmarks" / "runners" / runner), f"{place}/y.npy", str(longest)]
        done = subprocess.run(command, env=clean_environment(), capture_output=True, check=True)
    return float(done.stdout)


def fit(model: ihmm.Model, y: FloatArray, **options: object) -> IntArray:
    """State sequences of all draws, (draws, T)."""
    found = ihmm.sample(model, y, seed=1, progress=False, **options)  # type: ignore[arg-type]
    return found.states.reshape(-1, len(y))


def large(paths: IntArray) -> IntArray:
    """Number of states with at least 1% of the steps, of each path."""
    return np.array([np.count_nonzero(np.bincount(path) >= LARGE * len(path)) for path in paths])


def changes(paths: IntArray) -> IntArray:
    return np.count_nonzero(paths[:, 1:] != paths[:, :-1], axis=1)


def accuracy(truth: IntArray, path: IntArray) -> float:
    """Share of steps in the right state, states matched one to one."""
    table = np.zeros((truth.max() + 1, path.max() + 1))
    np.add.at(table, (truth, path), 1)
    return float(table[linear_sum_assignment(-table)].sum() / len(truth))


if __name__ == "__main__":
    main()
