"""Sweeps until particle Gibbs has the right states on the paper's synthetic data (T15 §4.1).

    python benchmarks/convergence.py [--seeds 4] [--sweeps 4000] [--moves]

A state counts if it owns at least 1 % of the steps. The number of states stays right from the sweep on after which it
is the truth but for at most 5 % of the sweeps, and then off by one. The path is the most frequent state over the last
draws, states matched to the truth draw by draw; beside it stands the path decoded with the true parameters.
"""

import argparse
import time

import numpy as np
from scipy.optimize import linear_sum_assignment

import ihmm
from ihmm._typing import FloatArray, IntArray
from ihmm.datasets import Recording

STARTS = {"four_state": [1, 10, 30], "ten_state": [1, 3, 30]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=4)
    parser.add_argument("--sweeps", type=int, default=4000)
    parser.add_argument("--moves", action="store_true", help="split and merge greedily in the first 30 sweeps")
    options = parser.parse_args()
    print("data        init  seed  reached  stays from     K   accuracy   with true parameters   ms/sweep")
    for name, starts in STARTS.items():
        recording = getattr(ihmm.datasets, name)()
        best = accuracy(recording, [decode(recording)])
        for init in starts:
            for seed in range(options.seeds):
                begin = time.perf_counter()
                sizes, late = run(recording, init, seed, options.sweeps, options.moves)
                ms = 1e3 * (time.perf_counter() - begin) / options.sweeps
                reached, stays = arrival(sizes, len(recording.means))
                found = accuracy(recording, late)
                start = f"{name:<11} {init:4d} {seed:5d} {reached or 'never':>8} {stays or 'never':>11}"
                print(f"{start} {sizes[-1]:5d} {found:10.4f} {best:22.4f} {ms:10.2f}")


def run(
    recording: Recording, init: int | str, seed: int, sweeps: int, moves: bool = False
) -> tuple[IntArray, list[IntArray]]:
    """States owning at least 1 % after each sweep, and the paths of the last quarter."""
    model = ihmm.Model(ihmm.NormalMean(noise=recording.noise, mean=0.0, scale=2.0))
    chain = ihmm.iterate(model, recording.y, seed=seed, init=init, tune=sweeps if moves else 0)
    sizes, late = np.empty(sweeps, np.int64), []
    for i in range(sweeps):
        draw, _ = next(chain)
        sizes[i] = np.sum(np.bincount(draw.states) >= 0.01 * len(recording.y))
        if i >= 0.75 * sweeps and i % 5 == 0:
            late.append(draw.states)
    return sizes, late


def arrival(sizes: IntArray, truth: int, wrong: float = 0.05, far: float = 0.0) -> tuple[int | None, int | None]:
    """The sweep at which the number of states is right for the first time, and that from which it stays so.

    Sweeps are counted from 1; None if it never is. It stays if at most the share `wrong` of later sweeps differs, and
    the share `far` by more than one; that must show for a tenth of the sweeps at least.
    """
    later = np.arange(len(sizes), 0, -1)
    wrong_later = np.cumsum((sizes != truth)[::-1])[::-1] / later
    far_later = np.cumsum((np.abs(sizes - truth) > 1)[::-1])[::-1] / later
    settled = np.flatnonzero((sizes == truth) & (wrong_later <= wrong) & (far_later <= far))
    return _first(np.flatnonzero(sizes == truth)), _first(settled[settled < 0.9 * len(sizes)])


def _first(sweeps: IntArray) -> int | None:
    return int(sweeps[0]) + 1 if sweeps.size else None


def accuracy(recording: Recording, paths: list[IntArray]) -> float:
    """Share of steps at which the most frequent matched state is the true one."""
    truth, n_states = recording.states, len(recording.means)
    votes = np.zeros((len(truth), n_states))
    for path in paths:
        confusion = np.zeros((path.max() + 1, n_states))
        np.add.at(confusion, (path, truth), 1)
        found, meaning = linear_sum_assignment(confusion, maximize=True)
        label = np.full(len(confusion), -1)
        label[found] = meaning
        matched = label[path] >= 0
        votes[np.flatnonzero(matched), label[path][matched]] += 1
    return float(np.mean(votes.argmax(axis=1) == truth))


def decode(recording: Recording) -> IntArray:
    """The most probable state of every step given all observations and the true parameters."""
    likelihood = np.exp(-0.5 * ((recording.y[:, None] - recording.means) / recording.noise) ** 2)
    forward, backward = (_messages(likelihood[::way], recording.transition) for way in (1, -1))
    return np.argmax(forward * backward[::-1] / np.maximum(likelihood, 1e-300), axis=1)


def _messages(likelihood: FloatArray, transition: FloatArray) -> FloatArray:
    """Normalised forward messages; the transition matrix is symmetric, so they also serve backwards."""
    out = np.empty_like(likelihood)
    message = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for t, row in enumerate(likelihood):
        message = row * (message if t == 0 else message @ transition)
        out[t] = message = message / message.sum()
    return out


if __name__ == "__main__":
    main()
