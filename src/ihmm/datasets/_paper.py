"""Datasets of the paper: synthetic series (T15 §4.1), ion channels (§4.2) and a chapter of *Alice* (§4.3)."""

import hashlib
import os
import re
from importlib import resources
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import ArrayLike, FloatArray, IntArray

SYMBOLS = " abcdefghijklmnopqrstuvwxyz"  # alphabet of `alice`
ALICE = "03411053f5db6a23c6d3ba77156591fcc4d95611351dff961ac35e32924edf74"  # SHA-256 of its 5000 characters
SAMPLING_RATE = 1e6  # Hz, of `alamethicin` before subsampling


class Recording(NamedTuple):
    """A simulated series with its true states and parameters."""

    y: FloatArray  # (T,)
    states: IntArray  # (T,)
    means: FloatArray  # (K,)
    noise: float
    transition: FloatArray  # (K, K)


def four_state(length: int = 4000, seed: int = 0) -> Recording:
    """Four states with means −2, −0.5, 1 and 4, noise 0.5 and self-transition probability 0.75."""
    return _normal_chain(np.array([-2.0, -0.5, 1.0, 4.0]), length, seed)


def ten_state(length: int = 4000, seed: int = 0) -> Recording:
    """Ten states with means 2 apart, noise 0.5 and self-transition probability 0.75.

    The paper places the means "between −10 and 10", which would be eleven; here they are −9, −7, …, 9.
    """
    return _normal_chain(np.arange(-9.0, 10.0, 2.0), length, seed)


def ion_channel(length: int = 4000, seed: int = 0) -> Recording:
    """Current of a channel with one closed and three open levels: 0, 1.8, 3.1 and 5 pA, with white noise of 0.5 pA.

    Transitions are between neighbouring levels only; the mean dwell times are 17 to 50 samples.
    """
    transition = np.array([[0.98, 0.02, 0, 0], [0.02, 0.95, 0.03, 0], [0, 0.03, 0.94, 0.03], [0, 0, 0.02, 0.98]])
    means, noise = np.array([0.0, 1.8, 3.1, 5.0]), 0.5
    rng = np.random.default_rng(seed)
    reached = transition.cumsum(axis=1)
    states = np.zeros(length, np.int64)  # initially closed
    for t, u in enumerate(rng.random(length - 1), 1):
        states[t] = np.searchsorted(reached[states[t - 1]], u, side="right")
    return Recording(means[states] + noise * rng.standard_normal(length), states, means, noise, transition)


def alamethicin(length: int = 2000, seed: int = 0) -> Recording:
    """A simulated substitute for the recording of an alamethicin channel in T15 §4.2, which is not public.

    The pore gains or loses one monomer at a time. It has a leak level and three open levels with increasing
    differences, each with a dwell time of a few milliseconds. The current is sampled at 1 MHz, with white noise and
    with 1/f noise proportional to the current, after a four-pole Bessel filter at 100 kHz, and preprocessed by
    `prepare_current`. `means` are the means of the result by level.
    """
    from scipy import linalg, signal  # slow to import, and only needed here

    levels = np.array([60.0, 200.0, 420.0, 720.0])  # pA
    up, down = np.array([100.0, 160.0, 120.0, 0.0]), np.array([0.0, 120.0, 160.0, 200.0])  # per second
    rng = np.random.default_rng(seed)
    every = 100
    n = length * every
    states = _gating(rng, up, down, n)
    flicker = 0.03 * pink_noise(rng, n)
    current = levels[states] * (1 + flicker) + 30.0 * rng.standard_normal(n)
    current = signal.sosfilt(signal.bessel(4, 100e3, fs=SAMPLING_RATE, output="sos"), current - levels[0]) + levels[0]
    y, states = prepare_current(current, every, length), states[::every]
    means = np.array([y[states == k].mean() if np.any(states == k) else np.nan for k in range(len(levels))])
    rates = np.diag(up[:-1], 1) + np.diag(down[1:], -1)
    transition = linalg.expm((rates - np.diag(rates.sum(axis=1))) * every / SAMPLING_RATE)
    return Recording(y, states, means, float((y - means[states]).std()), transition)


def prepare_current(current: ArrayLike, every: int = 100, length: int = 2000) -> FloatArray:
    """Preprocess a current as in T15 §4.2: keep one value in `every`, the first `length`; take logs and standardise."""
    values = np.asarray(current, float)
    if values.ndim != 1:
        raise ValueError(f"current must be one series of shape (T,), got {values.shape}")
    every, length = (
        _checks.count("every (one value in this many is kept)", every),
        _checks.count("length", length, least=2),
    )
    values = values[::every][:length]
    invalid = np.flatnonzero(~(values > 0))
    if invalid.size:
        raise ValueError(
            f"the logarithm needs positive currents, got {values[invalid[0]]} at {invalid[0] * every} "
            f"({invalid.size} such values); change the sign, or add the baseline that was subtracted"
        )
    if len(values) < length:
        raise ValueError(f"one value in {every} leaves {len(values)} of {length}; use a smaller every or length")
    logs = np.log(values)
    return np.asarray((logs - logs.mean()) / logs.std())


class Text(NamedTuple):
    """A text as integers; i encodes the character `SYMBOLS[i]`."""

    train: IntArray
    test: IntArray


def alice(path: str | os.PathLike[str] | None = None) -> Text:
    """The text of T15 §4.3: *Alice's Adventures in Wonderland*, starting at "Alice was beginning".

    Letters are lower case and every run of other characters becomes one space, which gives 27 symbols. The first 1000
    characters are for training, the next 4000 for testing. The text is read from a file, or from the package arpabo
    (extra `paper`).
    """
    text = Path(path).read_text("utf-8") if path is not None else _packaged_alice()
    begin = text.find("Alice was beginning")
    plain = re.sub("[^a-z]+", " ", text[max(begin, 0) :].lower())[:5000]
    if begin < 0 or hashlib.sha256(plain.encode()).hexdigest() != ALICE:
        found = f"begins with {plain[:40]!r}" if begin >= 0 else 'does not contain "Alice was beginning"'
        raise ValueError(
            f"{path or 'the file of arpabo'} is not the expected text of Alice's Adventures in Wonderland: it {found}, "
            f"and its first 5000 letters and single spaces do not have the SHA-256 {ALICE[:12]}…; "
            "use the plain text of Project Gutenberg, number 11"
        )
    symbols = np.array([SYMBOLS.index(character) for character in plain])
    return Text(symbols[:1000], symbols[1000:])


def _packaged_alice() -> str:
    try:
        return resources.files("arpabo").joinpath("data", "alice.txt").read_text("utf-8")
    except ModuleNotFoundError as error:
        raise ImportError(
            "the text of Alice is in the package arpabo: pip install 'ihmm[paper]', or pass the path of a file"
        ) from error


def _gating(rng: np.random.Generator, up: FloatArray, down: FloatArray, n: int) -> IntArray:
    """n samples of the level of a channel with transition rates `up` and `down` per second, initially closed."""
    levels, dwells, level, total = [], [], 0, 0
    while total < n:
        rate = up[level] + down[level]
        levels.append(level)
        dwells.append(1 + int(rng.exponential(SAMPLING_RATE / rate)))
        total += dwells[-1]
        level += 1 if rng.random() < up[level] / rate else -1
    return np.repeat(levels, dwells)[:n]


def pink_noise(rng: np.random.Generator, n: int) -> FloatArray:
    """1/f noise with standard deviation 1."""
    spectrum = np.fft.rfft(rng.standard_normal(n))
    spectrum[1:] /= np.sqrt(np.arange(1, len(spectrum)))
    spectrum[0] = 0
    noise = np.fft.irfft(spectrum, n)
    return np.asarray(noise / noise.std())


def _normal_chain(means: FloatArray, length: int, seed: int, noise: float = 0.5, stay: float = 0.75) -> Recording:
    rng = np.random.default_rng(seed)
    n_states = len(means)
    transition = np.full((n_states, n_states), (1 - stay) / (n_states - 1))
    np.fill_diagonal(transition, stay)
    # a transition to another state, all equally likely, adds 1 … K − 1 modulo K
    jumps = np.where(rng.random(length) < stay, 0, rng.integers(1, n_states, length))
    jumps[0] = rng.integers(n_states)
    states = np.cumsum(jumps) % n_states
    return Recording(means[states] + noise * rng.standard_normal(length), states, means, noise, transition)
