"""Recordings as instruments make them, with the truth kept: blurred, filtered, drifting, quantised, with hum.

No simulator is an HMM with the emissions of this library: what a state is stays clear, what the noise is does not.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.datasets._paper import pink_noise

FINE = 10  # simulated instants per sample, where an instrument averages or filters


class Realistic(NamedTuple):
    """A recording with its true levels.

    States that look the same are one level: the two closed states of a channel differ in nothing but their dwell times.
    """

    series: list[Array]  # one array, (T,) or (T, D), per sequence
    levels: list[IntArray]  # the true level of each step

    @property
    def n_levels(self) -> int:
        return len(np.unique(np.concatenate(self.levels)))


def fret(
    levels: Sequence[float] = (0.25, 0.75),
    dwell: float = 30.0,
    *,
    traces: int = 1,
    length: int = 2000,
    photons: float = 200.0,
    seed: int = 0,
) -> Realistic:
    """FRET efficiencies seen by a camera: each frame averages over its exposure, so that changes show as blur.

    `dwell` is the mean dwell time in frames. Each trace has its own brightness, about `photons` per frame, and both
    colours have shot noise and background.
    """
    rng, efficiency = np.random.default_rng(seed), np.asarray(levels)
    series, truth = [], []
    for _ in range(traces):
        states = jumps(rng, exits(len(levels), dwell * FINE), length * FINE)
        frames = states.reshape(length, FINE)
        mean, bright = efficiency[frames].mean(axis=1), photons * rng.gamma(20, 1 / 20)
        acceptor = rng.poisson(bright * mean) + 3.0 * rng.standard_normal(length)
        donor = rng.poisson(bright * (1 - mean)) + 3.0 * rng.standard_normal(length)
        series.append(acceptor / (acceptor + donor))
        truth.append(_majority(frames, len(levels)))
    return Realistic(series, truth)


def patch_clamp(
    open_levels: Sequence[float] = (2.0,),
    *,
    closed: tuple[float, float] = (400.0, 20.0),
    dwell: float = 60.0,
    noise: float = 0.35,
    hum: float = 0.1,
    flicker: float = 0.1,
    length: int = 8000,
    seed: int = 0,
) -> Realistic:
    """Current of a channel with two closed states of the same level, 0, and open levels, after a low-pass filter.

    `closed` and `dwell` are mean dwell times in samples of the closed and the open states. The corner of the
    four-pole Bessel filter is at a fifth of the sampling rate. `noise`, `flicker` (1/f) and `hum` (a line and its third
    harmonic) are standard deviations after the filter.
    """
    from scipy import signal  # slow to import

    rng = np.random.default_rng(seed)
    means = np.array([0.0, 0.0, *open_levels])
    n = len(means)
    rates = np.zeros((n, n))
    rates[0, 1:], rates[1, 2:] = 1 / (closed[0] * (n - 1)), 1 / (closed[1] * (n - 1))
    rates[1, 0] = 0.3 / closed[1]
    rates[2:, 0], rates[2:, 1] = 0.3 / dwell, 0.7 / dwell
    states = jumps(rng, rates / FINE, length * FINE)
    low_pass = signal.bessel(4, 0.2, fs=FINE, output="sos")
    current = signal.sosfilt(low_pass, means[states])[FINE // 2 :: FINE]
    white = signal.sosfilt(low_pass, rng.standard_normal(length * FINE))[::FINE]
    time, phase = np.arange(length), rng.uniform(0, 2 * np.pi, 2)
    line = np.sin(2 * np.pi * time / 93 + phase[0]) + 0.3 * np.sin(6 * np.pi * time / 93 + phase[1])
    y = current + noise * white / white.std() + flicker * pink_noise(rng, length) + hum * line / line.std()
    level = np.maximum(states - 1, 0)[FINE // 2 :: FINE]
    return Realistic([y], [_shift(level, 2)])


def copy_numbers(
    copies: Sequence[int] = (1, 2, 3),
    *,
    purity: float = 0.8,
    noise: float = 0.15,
    waves: float = 0.05,
    probes: int = 3000,
    segment: float = 80.0,
    seed: int = 0,
) -> Realistic:
    """Log2 ratios along 22 chromosomes, with waves (slow, from base composition) and outlying probes.

    Half of the segments have two copies. `segment` is the mean length of a segment in probes.
    """
    rng = np.random.default_rng(seed)
    share = np.linspace(2.2, 0.6, 22)
    series, truth = [], []
    normal = list(copies).index(2)
    for length in np.maximum((share / share.sum() * probes).astype(int), 20):
        level = np.empty(length, np.int64)
        begin, state = 0, normal
        while begin < length:
            end = begin + 8 + int(rng.exponential(segment))
            level[begin:end] = state
            others = [k for k in range(len(copies)) if k != state]
            state = normal if state != normal and rng.random() < 0.5 else int(rng.choice(others))
            begin = end
        ratio = np.log2((purity * np.asarray(copies)[level] + (1 - purity) * 2) / 2)
        wave = smooth_noise(rng, length, 25.0)
        heavy = rng.standard_t(5, length) * np.sqrt(3 / 5)
        series.append(ratio + waves * wave + noise * heavy)
        truth.append(level)
    return Realistic(series, truth)


def oscillators(
    periods: Sequence[tuple[float, float]] = ((9.0, 40.0), (20.0, 14.0), (60.0, 25.0)),
    *,
    dwell: float = 150.0,
    columns: int = 12,
    noise: float = 0.1,
    length: int = 2000,
    seed: int = 0,
) -> Realistic:
    """Two damped oscillators whose periods switch with the state, seen through `columns` noisy mixtures of them."""
    rng = np.random.default_rng(seed)
    states = visiting_all(rng, exits(len(periods), dwell), length)
    x = np.zeros((length, 4))
    for t in range(1, length):
        for i, period in enumerate(periods[states[t]]):
            cosine, sine = 0.995 * np.cos(2 * np.pi / period), 0.995 * np.sin(2 * np.pi / period)
            a, b = x[t - 1, 2 * i : 2 * i + 2]
            x[t, 2 * i : 2 * i + 2] = cosine * a - sine * b, sine * a + cosine * b
        x[t] += 0.15 * rng.standard_normal(4)
    mixture = rng.standard_normal((4, columns)) / 2
    return Realistic([x @ mixture + noise * rng.standard_normal((length, columns))], [states])


def dance(
    *,
    turn: float = 0.12,
    spread: tuple[float, float] = (0.16, 0.05),
    waggle: float = 25.0,
    turning: float = 45.0,
    memory: float = 0.3,
    with_speed: bool = False,
    length: int = 1000,
    seed: int = 0,
) -> Realistic:
    """Turning rate of a dancing bee, in radians per frame: waggle, turn right, waggle, turn left, and so on.

    Waggling has mean 0 and a large `spread`, turns have means ±`turn` and a smaller one. `with_speed` adds a column
    with the speed, which is lower while waggling.
    """
    rng = np.random.default_rng(seed)
    level = np.empty(length, np.int64)
    begin, phase = 0, 0
    while begin < length:
        mean, state = (waggle, 0) if phase % 2 == 0 else (turning, 1 + (phase // 2) % 2)
        end = begin + 5 + int(rng.gamma(6, (mean - 5) / 6))
        level[begin:end] = state
        begin, phase = end, phase + int(rng.choice([1, 3], p=[0.9, 0.1]))
    sd = np.where(level == 0, spread[0], spread[1])
    rate = np.array([0.0, turn, -turn])[level] + sd * _autoregressive(rng, length, memory)
    if not with_speed:
        return Realistic([rate], [level])
    speed = np.where(level == 0, 1.2, 2.0) + np.where(level == 0, 0.5, 0.3) * _autoregressive(rng, length, 0.5)
    return Realistic([np.column_stack([rate, speed])], [level])


def pump(
    faults: int = 2,
    *,
    columns: int = 5,
    drift: float = 0.3,
    memory: float = 0.5,
    dwell: float = 200.0,
    step: float = 4.0,
    length: int = 3000,
    seed: int = 0,
) -> Realistic:
    """Sensors of a pump that works normally or has one of several faults, each of which shifts some of the sensors.

    Sensors have noise with memory, standard deviation 1, a slow `drift`, are rounded to tenths, and one saturates.
    """
    rng = np.random.default_rng(seed)
    rates = np.zeros((faults + 1, faults + 1))
    rates[0, 1:], rates[1:, 0] = 1 / (dwell * faults), 2 / dwell
    states = visiting_all(rng, rates, length)
    levels = np.zeros((faults + 1, columns))
    for k in range(1, faults + 1):
        hit = rng.choice(columns, max(2, columns // 2), replace=False)
        levels[k, hit] = step * rng.choice([-1.0, 1.0], len(hit)) * rng.uniform(0.7, 1.3, len(hit))
    y = levels[states]
    for column in range(columns):
        y[:, column] += _autoregressive(rng, length, memory) + drift * smooth_noise(rng, length, length / 6)
    y = np.round(y + 10.0, 1)
    y[:, 0] = np.clip(y[:, 0], 10.0 - 1.3 * step, 10.0 + 1.3 * step)
    return Realistic([y], [states])


def steady(
    kind: str = "white", *, columns: int = 1, memory: float = 0.8, length: int = 2000, seed: int = 0
) -> Realistic:
    """One level, and noise: "white", a random "walk", or with "memory", heavy "tails", "hum" or "drift"."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((length, columns))
    if kind == "memory":
        noise = np.column_stack([_autoregressive(rng, length, memory) for _ in range(columns)])
    if kind == "walk":
        noise = noise.cumsum(axis=0)
    if kind == "tails":
        noise = rng.standard_t(3, (length, columns))
    if kind == "hum":
        noise += np.sin(2 * np.pi * np.arange(length)[:, None] / 37.0)
    if kind == "drift":
        noise += np.column_stack([smooth_noise(rng, length, length / 8) for _ in range(columns)])
    return Realistic([noise[:, 0] if columns == 1 else noise], [np.zeros(length, np.int64)])


def spike_counts(
    rates: Sequence[float] = (1.0, 6.0, 18.0), *, dwell: float = 40.0, length: int = 1500, seed: int = 0
) -> Realistic:
    """Spikes per bin of a neuron whose rate switches; counts vary a little more than Poisson."""
    rng = np.random.default_rng(seed)
    states = visiting_all(rng, exits(len(rates), dwell), length)
    return Realistic([rng.poisson(np.asarray(rates)[states] * rng.gamma(50, 1 / 50, length))], [states])


def sequence_composition(n_kinds: int = 2, *, dwell: float = 300.0, length: int = 6000, seed: int = 0) -> Realistic:
    """Bases (0 to 3) of a genome with stretches of different composition."""
    rng = np.random.default_rng(seed)
    frequent = np.array([[0.38, 0.12, 0.12, 0.38], [0.15, 0.35, 0.35, 0.15], [0.1, 0.15, 0.6, 0.15]])[:n_kinds]
    states = visiting_all(rng, exits(n_kinds, dwell), length)
    bases = (rng.random(length)[:, None] > frequent.cumsum(axis=1)[states]).sum(axis=1)
    return Realistic([np.minimum(bases, 3)], [states])


def exits(n_states: int, dwell: float) -> FloatArray:
    """Rates to all other states alike, with mean dwell times that differ by up to a factor of two."""
    means = dwell * np.geomspace(0.7, 1.4, n_states)
    return np.asarray((1 - np.eye(n_states)) / (means[:, None] * max(n_states - 1, 1)))


def jumps(rng: np.random.Generator, rates: FloatArray, length: int) -> IntArray:
    """A Markov jump process at whole instants; `rates` per instant, (K, K) with zeros on the diagonal."""
    path = np.empty(length, np.int64)
    begin, state = 0, int(rng.integers(len(rates)))
    while begin < length:
        total = rates[state].sum()
        end = begin + 1 + int(rng.exponential(1 / total))
        path[begin:end] = state
        begin, state = end, int(rng.choice(len(rates), p=rates[state] / total))
    return path


def visiting_all(rng: np.random.Generator, rates: FloatArray, length: int) -> IntArray:
    """A jump process that spends at least a twentieth of its time in every state."""
    while True:
        path = jumps(rng, rates, length)
        if np.bincount(path, minlength=len(rates)).min() >= length / 20:
            return path


def _majority(frames: IntArray, n_states: int) -> IntArray:
    """The state in which each frame spends most of its time."""
    return np.asarray(np.argmax((frames[:, :, None] == np.arange(n_states)).sum(axis=1), axis=1))


def _shift(path: IntArray, steps: int) -> IntArray:
    """The path delayed, as a filter delays the current."""
    return np.concatenate([np.repeat(path[:1], steps), path[:-steps]])


def _autoregressive(rng: np.random.Generator, length: int, memory: float) -> FloatArray:
    """AR(1) noise with standard deviation 1."""
    noise = rng.standard_normal(length)
    noise[1:] *= np.sqrt(1 - memory**2)
    for t in range(1, length):
        noise[t] += memory * noise[t - 1]
    return noise


def smooth_noise(rng: np.random.Generator, length: int, scale: float) -> FloatArray:
    """Smooth noise with mean 0, standard deviation about 1 and the given correlation length."""
    margin = int(4 * scale)
    kernel = np.exp(-0.5 * (np.arange(-margin, margin + 1) / scale) ** 2)
    white = rng.standard_normal(length + 2 * margin)
    return np.asarray(np.convolve(white, kernel / np.sqrt(np.square(kernel).sum()), "valid"))
