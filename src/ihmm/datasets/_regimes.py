"""Recordings whose states are more than lasting levels in noise: volatility, alternation, rhythm, smooth plateaus."""

from collections.abc import Sequence

import numpy as np

from ihmm.datasets._realistic import Realistic, exits, jumps, smooth_noise, visiting_all


def returns(
    volatilities: Sequence[float] = (0.7, 2.0),
    *,
    dwell: float = 80.0,
    dof: float = 6.0,
    length: int = 2500,
    seed: int = 0,
) -> Realistic:
    """Daily returns in per cent: no level to speak of, but calm and turbulent times, with heavy tails in both."""
    rng = np.random.default_rng(seed)
    states = visiting_all(rng, exits(len(volatilities), dwell), length)
    noise = rng.standard_t(dof, length) * np.sqrt((dof - 2) / dof)
    return Realistic([0.04 + np.asarray(volatilities)[states] * noise], [states])


def eruptions(
    waits: Sequence[float] = (55.0, 80.0), *, spread: float = 6.0, repeat: float = 0.5, length: int = 300, seed: int = 0
) -> Realistic:
    """Waiting times of a geyser, in minutes: a short one is followed by a long one, a long one by either."""
    rng = np.random.default_rng(seed)
    states = np.zeros(length, np.int64)
    for t in range(1, length):
        states[t] = 1 if states[t - 1] == 0 or rng.random() < repeat else 0
    return Realistic([np.asarray(waits)[states] + spread * rng.standard_normal(length)], [states])


def rhythms(
    memories: Sequence[float] = (0.95, 0.1), *, dwell: float = 150.0, length: int = 3000, seed: int = 0
) -> Realistic:
    """A signal of the same size throughout that is slow in one state and fast in the other."""
    rng = np.random.default_rng(seed)
    states = visiting_all(rng, exits(len(memories), dwell), length)
    y, memory = np.zeros(length), np.asarray(memories)[states]
    for t in range(1, length):
        y[t] = memory[t] * y[t - 1] + np.sqrt(1 - memory[t] ** 2) * rng.standard_normal()
    return Realistic([y], [states])


def paces(speeds: Sequence[float] = (2.2, 2.8), *, dwell: float = 40.0, length: int = 600, seed: int = 0) -> Realistic:
    """The speed of a runner in metres per second, smoothed by the watch: plateaus without visible noise."""
    rng = np.random.default_rng(seed)
    states = jumps(rng, exits(len(speeds), dwell), length)
    window = np.hanning(11)[1:-1]
    level = np.convolve(np.pad(np.asarray(speeds)[states], 4, mode="edge"), window / window.sum(), "valid")
    return Realistic([level + 0.08 * smooth_noise(rng, length, 6.0) + 0.002 * rng.standard_normal(length)], [states])
