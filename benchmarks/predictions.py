"""Time predictions for a long series: all draws side by side, and one draw at a time, as they were made before.

    python benchmarks/predictions.py [--steps 100000] [--draws 2000]

Both are timed in turn in the same process, with as many threads as there are processors. The last column is the largest
difference between their results; of the likelihoods, relative to their size.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import ihmm
from ihmm import predict
from ihmm._threads import in_threads
from ihmm._typing import FloatArray
from ihmm.data import Data
from ihmm.kernels.forward_backward import smooth
from ihmm.model import Model
from ihmm.predict import LabelledDraw, finite_hmm, run_filter
from ihmm.samplers._base import sequence_starts

DRAWS_PER_TASK = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=2000)
    options = parser.parse_args()

    estimator = ihmm.InfiniteHMM(draws=options.draws // 4, tune=200, chains=4, random_state=0)
    posterior = estimator.fit(series(2000, seed=0)[:, None]).posterior_
    model, items, n_labels = posterior.model, posterior._labelled, posterior.summary().n_states
    data = model.observe(series(options.steps, seed=1))
    cases: dict[str, tuple[Callable[..., FloatArray], Callable[..., FloatArray]]] = {
        "predict_proba": (
            lambda *case: predict.state_probabilities(*case, n_labels, causal=False),
            lambda *case: probabilities_one_by_one(*case, n_labels, causal=False),
        ),
        "filter": (
            lambda *case: predict.state_probabilities(*case, n_labels, causal=True),
            lambda *case: probabilities_one_by_one(*case, n_labels, causal=True),
        ),
        "score": (predict.log_likelihood, likelihoods_one_by_one),
    }
    print(f"{options.steps} steps, {len(items)} draws; seconds, and processor seconds in brackets")
    print(f"{'':<14}{'one by one':>18}{'side by side':>18}{'ratio':>8}{'difference':>12}")
    for name, (together, alone) in cases.items():
        together(model, data.take(slice(0, 50)), items[:2])  # compile
        alone(model, data.take(slice(0, 50)), items[:2])
        old, old_wall, old_processor = timed(alone, model, data, items)
        new, wall, processor = timed(together, model, data, items)
        difference = np.abs(new - old).max() if name != "score" else np.abs(new / old - 1).max()
        print(
            f"{name:<14}{old_wall:>8.1f} ({old_processor:>6.1f}){wall:>9.1f} ({processor:>6.1f}) "
            f"{old_wall / wall:>7.1f}{difference:>12.1e}",
            flush=True,
        )


def series(n_steps: int, seed: int) -> FloatArray:
    """Four levels with noise, left every fifty steps on average."""
    rng = np.random.default_rng(seed)
    leaves = rng.random(n_steps) < 0.02
    visits = rng.integers(0, 4, n_steps)[np.maximum.accumulate(np.where(leaves, np.arange(n_steps), 0))]
    return np.array([-3.0, 0.0, 2.0, 5.0])[visits] + rng.normal(0, 0.8, n_steps)


def timed(function: Callable[..., FloatArray], *arguments: object) -> tuple[FloatArray, float, float]:
    """The result, and the seconds it took: of the clock and of all processors."""
    wall, processor = time.perf_counter(), time.process_time()
    result = function(*arguments)
    return result, time.perf_counter() - wall, time.process_time() - processor


def probabilities_one_by_one(
    model: Model, data: Data, items: Sequence[LabelledDraw], n_labels: int, *, causal: bool
) -> FloatArray:
    """Filter and smooth one draw at a time, with all its probabilities and densities in memory."""

    def sum_over(part: Sequence[LabelledDraw]) -> FloatArray:
        total = np.zeros((len(data.y), n_labels + 1))
        for item in part:
            hmm = finite_hmm(model, item)
            probabilities, _ = run_filter(model, data, hmm)
            if not causal:
                smooth(probabilities, sequence_starts(data.offsets), hmm.rows)
            to_label = np.zeros((len(hmm.label), n_labels + 1))
            to_label[np.arange(len(hmm.label)), hmm.label] = 1
            total += probabilities @ to_label
        return total

    parts = [items[i : i + DRAWS_PER_TASK] for i in range(0, len(items), DRAWS_PER_TASK)]
    total = sum(in_threads(sum_over, parts), start=np.zeros((len(data.y), n_labels + 1)))
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def likelihoods_one_by_one(model: Model, data: Data, items: Sequence[LabelledDraw]) -> FloatArray:
    def one_draw(item: LabelledDraw) -> FloatArray:
        _, log_predictive = run_filter(model, data, finite_hmm(model, item))
        return np.add.reduceat(log_predictive, data.offsets[:-1])

    return np.array(list(in_threads(one_draw, items)))


if __name__ == "__main__":
    main()
