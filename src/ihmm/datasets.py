"""The paper's synthetic data (T15 §4.1), and a recording of an ion channel."""

from typing import NamedTuple

import numpy as np

from ihmm._typing import FloatArray, IntArray


class Recording(NamedTuple):
    """A simulated series with the truth behind it."""

    y: FloatArray  # (T,)
    states: IntArray  # (T,)
    means: FloatArray  # (K,)
    noise: float
    transition: FloatArray  # (K, K)


def four_state(length: int = 4000, seed: int = 0) -> Recording:
    """Four states of means −2, −0.5, 1 and 4, noise 0.5, that stay with probability 0.75."""
    return _normal_chain(np.array([-2.0, -0.5, 1.0, 4.0]), length, seed)


def ten_state(length: int = 4000, seed: int = 0) -> Recording:
    """Ten states 2 apart, noise 0.5, that stay with probability 0.75.

    The paper has them "between −10 and 10", which is eleven points; here they are −9, −7, …, 9.
    """
    return _normal_chain(np.arange(-9.0, 10.0, 2.0), length, seed)


def ion_channel(length: int = 4000, seed: int = 0) -> Recording:
    """The current through a channel that opens in three steps: 0, 1.8, 3.1 and 5 pA, white noise of 0.5 pA.

    It goes from a level to its neighbours only, and stays for 17 to 50 samples on average.
    """
    transition = np.array([[0.98, 0.02, 0, 0], [0.02, 0.95, 0.03, 0], [0, 0.03, 0.94, 0.03], [0, 0, 0.02, 0.98]])
    means, noise = np.array([0.0, 1.8, 3.1, 5.0]), 0.5
    rng = np.random.default_rng(seed)
    reached = transition.cumsum(axis=1)
    states = np.zeros(length, np.int64)  # closed at first
    for t, u in enumerate(rng.random(length - 1), 1):
        states[t] = np.searchsorted(reached[states[t - 1]], u, side="right")
    return Recording(means[states] + noise * rng.standard_normal(length), states, means, noise, transition)


def _normal_chain(means: FloatArray, length: int, seed: int, noise: float = 0.5, stay: float = 0.75) -> Recording:
    rng = np.random.default_rng(seed)
    n_states = len(means)
    transition = np.full((n_states, n_states), (1 - stay) / (n_states - 1))
    np.fill_diagonal(transition, stay)
    # a state that is left is left for one of the others, each as likely: a jump of 1 … K − 1 round the ring
    jumps = np.where(rng.random(length) < stay, 0, rng.integers(1, n_states, length))
    jumps[0] = rng.integers(n_states)
    states = np.cumsum(jumps) % n_states
    return Recording(means[states] + noise * rng.standard_normal(length), states, means, noise, transition)
