"""Time predictions for a long series: draws side by side, and one draw at a time, as they were made before.

    python benchmarks/predictions.py [--steps 100000] [--draws 2000] [--sample 32] [--models default hmm …]

Both are timed in turn in the same process, with as many threads as there are processors; one draw at a time with a
`--sample` of the draws, as all would take long, and the time of all is that multiplied. State probabilities are
averaged over all draws, and over as many as it takes for a standard error of 0.01. Ratios are of processor seconds. The
last columns are the largest difference between the results of the sample, of the likelihoods relative to their size,
and that between the results of all draws and of as many as it takes.
"""

import argparse
import time
from collections.abc import Callable, Sequence

import numpy as np

import ihmm
from ihmm._threads import in_threads
from ihmm._typing import FloatArray
from ihmm.data import Data
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.kernels.forward_backward import smooth
from ihmm.kernels.segment_chain import smooth_segments
from ihmm.model import Model
from ihmm.predictions import averages
from ihmm.predictions.predict import (
    FiniteHMM,
    LabelledDraw,
    chain_over_ages,
    finite_hmm,
    run_filter,
    run_segment_filter,
)
from ihmm.samplers._base import sequence_starts

MODELS: dict[str, dict[str, object]] = {
    "default": {},  # what is chosen for these data: white noise around levels, at least two steps each
    "filtered": {"emission": ihmm.NoisyLevels(2, filtered=True), "duration": Geometric(minimum=2)},
    "memory": {"emission": ihmm.NoisyLevels(1), "duration": Geometric(minimum=2)},
    "negative binomial": {"emission": ihmm.Normal(), "duration": NegativeBinomial()},
    "poisson": {"emission": ihmm.Normal(), "duration": Poisson()},
    "hmm": {"emission": ihmm.Normal()},
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--sample", type=int, default=32)
    parser.add_argument("--models", nargs="+", choices=list(MODELS), default=list(MODELS))
    options = parser.parse_args()
    print(f"{options.steps} steps, {options.draws} draws; seconds of the clock, and processor seconds in brackets")
    print(
        f"{'':<32}{'one by one':>18}{'all draws':>18}{'ratio':>7}{'as needed':>18}{'ratio':>7}"
        f"{'difference':>12}{'error':>9}"
    )
    for name in options.models:
        compare(name, options.steps, options.draws, options.sample)


def compare(name: str, n_steps: int, n_draws: int, n_sample: int) -> None:
    """Print the lines of one model."""
    settings = {"draws": n_draws // 4, "tune": 200, "chains": 4}
    estimator = ihmm.InfiniteHMM(**MODELS[name], **settings, random_state=0)  # type: ignore[arg-type]
    posterior = estimator.fit(series(2000, seed=0)[:, None]).posterior_
    model, items, n_labels = posterior.model, posterior.labelled_draws, posterior.summary().n_states
    data = model.observe(series(n_steps, seed=1))
    sample = items[:: max(len(items) // n_sample, 1)]

    def probabilities(causal: bool, error: float) -> Callable[..., FloatArray]:
        return lambda *case: averages.state_probabilities(*case, n_labels, causal=causal, error=error)

    def alone(causal: bool) -> Callable[..., FloatArray]:
        return lambda *case: probabilities_one_by_one(*case, n_labels, causal=causal)

    cases: dict[str, tuple[Callable[..., FloatArray], Callable[..., FloatArray], Callable[..., FloatArray] | None]] = {
        "predict_proba": (alone(False), probabilities(False, 0.0), probabilities(False, 0.01)),
        "filter": (alone(True), probabilities(True, 0.0), probabilities(True, 0.01)),
        "score": (likelihoods_one_by_one, averages.log_likelihood, None),
    }
    for task, (old, new, thinned) in cases.items():
        for function in (old, new):
            function(model, data.take(slice(0, 200)), sample[:40])  # compile
        before, *old_time = timed(old, model, data, sample)
        old_time = [seconds * len(items) / len(sample) for seconds in old_time]
        again = new(model, data, sample)
        difference = np.abs(again - before).max() if task != "score" else np.abs(again / before - 1).max()
        everything, *new_time = timed(new, model, data, items)
        line = f"{name + ', ' + task:<32}{shown(old_time)}{shown(new_time)}{old_time[1] / new_time[1]:>7.1f}"
        if thinned is None:
            line += f"{'':>25}{difference:>12.1e}"
        else:
            some, *some_time = timed(thinned, model, data, items)
            line += f"{shown(some_time)}{old_time[1] / some_time[1]:>7.1f}{difference:>12.1e}"
            line += f"{np.abs(some - everything).max():>9.4f}"
        print(line, flush=True)


def shown(times: Sequence[float]) -> str:
    return f"{times[0]:>9.1f} ({times[1]:>6.1f})"


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

    def one_draw(item: LabelledDraw) -> FloatArray:
        hmm = finite_hmm(model, item)
        to_label = np.zeros((len(hmm.label), n_labels + 1))
        to_label[np.arange(len(hmm.label)), hmm.label] = 1
        return probabilities_of_one(model, data, hmm, causal=causal) @ to_label

    total = sum(in_threads(one_draw, items), start=np.zeros((len(data.y), n_labels + 1)))
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def probabilities_of_one(model: Model, data: Data, hmm: FiniteHMM, *, causal: bool) -> FloatArray:
    sequence = sequence_starts(data.offsets)
    if model.duration is None:
        probabilities, _ = run_filter(model, data, hmm)
        if not causal:
            smooth(probabilities, sequence, hmm.rows)
        return probabilities
    if causal:
        return run_segment_filter(model, data, hmm)[1]
    chain, table = chain_over_ages(model, data, hmm)
    probabilities = np.empty((len(table), len(hmm.initial)))
    smooth_segments(chain, table, sequence, probabilities)
    return probabilities


def likelihoods_one_by_one(model: Model, data: Data, items: Sequence[LabelledDraw]) -> FloatArray:
    def one_draw(item: LabelledDraw) -> FloatArray:
        hmm = finite_hmm(model, item)
        run = run_filter if model.duration is None else lambda *case: run_segment_filter(*case)[1:3]
        return np.add.reduceat(run(model, data, hmm)[1], data.offsets[:-1])

    return np.array(list(in_threads(one_draw, items)))


if __name__ == "__main__":
    main()
