"""Emissions whose parameters are renewed step by step."""

import numpy as np


def after_steps(emission, y, n=20_000, *, rounds):
    """The parameters of n states, each with the observations y, after many steps."""
    rng = np.random.default_rng(1)
    every, states = np.tile(y, n), np.repeat(np.arange(n), len(y))
    phi = emission.resample(rng, every, states, n)
    for _ in range(rounds):
        phi = emission.update(rng, every, states, phi)
    return phi
