"""What the runners share. Each runs in an environment that has one library, so nothing but NumPy is imported here.

    python benchmarks/runners/fit_LIBRARY.py DATA.npz SEED RESULT.json

A runner fits the series of a file, judges what it found on those held out, and writes figures. The time of a fit begins
when everything is imported.
"""

import json
import math
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

MOST_STATES, PATIENCE, RESTARTS = 15, 3, 3  # of those who choose K by BIC
SWEEPS, BUDGET = 800, 20.0  # of chains: so many sweeps, or so many seconds if these are over before


class Problem(NamedTuple):
    train: np.ndarray  # (sequences, T)
    held_out: np.ndarray  # (sequences, T)
    n_states: int  # the truth, for those who must be told
    seed: int

    @property
    def symbols(self) -> bool:
        return self.train.dtype.kind == "i"


class Stopwatch:
    """Seconds of the clock since it was started, and of the processors: of all threads, and of processes that ended."""

    def __init__(self) -> None:
        self.clock, self.processors = time.perf_counter(), sum(os.times()[:4])

    def read(self) -> dict[str, float]:
        return {"seconds": time.perf_counter() - self.clock, "cpu_seconds": sum(os.times()[:4]) - self.processors}


def run(fit: Callable[[Problem], dict[str, Any]]) -> None:
    data, seed, result = sys.argv[1:]
    with np.load(data) as arrays:
        problem = Problem(arrays["train"], arrays["held_out"], int(arrays["n_states"]), int(seed))
    Path(result).write_text(json.dumps(fit(problem)), "utf-8")


def choose_by_bic(fit: Callable[[int], tuple[float, Any]], least: int = 1) -> tuple[int, Any]:
    """The number of states with the smallest BIC, and its model; `fit` returns BIC and model for a number of states.

    Sizes rise from `least` until PATIENCE of them in a row were no better than the best one before.
    """
    best_size, best_bic, best_model = 0, math.inf, None
    for size in range(least, MOST_STATES + 1):
        bic, model = fit(size)
        if bic < best_bic:
            best_size, best_bic, best_model = size, bic, model
        if size == best_size + PATIENCE:
            break
    return best_size, best_model


class Trace:
    """How many states own at least 1 % of the steps, and when: sweep by sweep."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.times: list[float] = []
        self.watch = Stopwatch()

    def add(self, states: np.ndarray) -> None:
        self.times.append(self.watch.read()["seconds"])
        self.sizes.append(int(np.sum(np.bincount(np.ravel(states)) >= 0.01 * np.size(states))))

    @property
    def unfinished(self) -> bool:
        return len(self.sizes) < SWEEPS and (not self.times or self.times[-1] < BUDGET)

    def figures(self) -> dict[str, Any]:
        return {
            "sizes": self.sizes,
            "times": self.times,
            "n_states": int(np.median(self.sizes[len(self.sizes) // 2 :])),
        }


def log_mean_exp(values: np.ndarray) -> np.ndarray:
    """Over the first axis: a likelihood averaged over draws."""
    top = values.max(axis=0)
    return top + np.log(np.mean(np.exp(values - top), axis=0))


@contextmanager
def jax_compilations() -> Iterator[dict[str, float]]:
    """Seconds that JAX spends on compiling: tracing, lowering, and the compiler proper."""
    import jax

    spent = {"compile_seconds": 0.0}

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            spent["compile_seconds"] += seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield spent
