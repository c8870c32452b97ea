"""Shared code of the runners. Each environment contains a single library, so only NumPy is imported here.

    python benchmarks/runners/fit_LIBRARY.py DATA.npz SEED RESULT.json

A runner fits the training series of a file, evaluates the fit on the held-out series, and writes the results. The time
of a fit excludes imports.
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

MOST_STATES, PATIENCE, RESTARTS = 15, 3, 3  # of libraries that select K by BIC
SWEEPS, BUDGET = 800, 20.0  # of chains: number of sweeps, or seconds if that is reached first


class Problem(NamedTuple):
    train: np.ndarray  # (sequences, T)
    held_out: np.ndarray  # (sequences, T)
    n_states: int  # the truth, for libraries that must be given it
    seed: int

    @property
    def symbols(self) -> bool:
        return self.train.dtype.kind == "i"


class Stopwatch:
    """Wall-clock seconds since the start, and processor seconds of all threads and finished child processes."""

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

    The number of states increases from `least` until PATIENCE values in a row do not improve on the best.
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
    """The number of states with at least 1% of the time steps, and the elapsed time, by sweep."""

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
    """Over the first axis: the log of the likelihood averaged over draws."""
    top = values.max(axis=0)
    return top + np.log(np.mean(np.exp(values - top), axis=0))


@contextmanager
def jax_compilations() -> Iterator[dict[str, float]]:
    """Seconds that JAX spends on compilation: tracing, lowering and compiling."""
    import jax

    spent = {"compile_seconds": 0.0}

    def listen(event: str, seconds: float, **_: Any) -> None:
        if event.startswith("/jax/core/compile/"):
            spent["compile_seconds"] += seconds

    jax.monitoring.register_event_duration_secs_listener(listen)
    yield spent
