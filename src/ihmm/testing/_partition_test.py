"""A chain on a tiny series compared with the exact posterior."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Model
from ihmm.moves import Move
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.testing._exact_posterior import exact_posterior
from ihmm.testing._law_test import LawTest, compare
from ihmm.testing._partitions import canonical

BURN_IN = 200  # sweeps for the hyperparameters; the states start in the exact posterior


def partition_test(
    model: Model,
    y: Any,
    sampler: Sampler | None = None,
    *,
    moves: Sequence[Move] = (),
    sweeps: int = 20_000,
    seed: int = 0,
) -> LawTest:
    """Compare how often a chain visits each set partition of a tiny series with the exact posterior."""
    _checks.count("sweeps", sweeps, least=1000)
    exact = exact_posterior(model, y)
    partitions, probability = list(exact), np.array(list(exact.values()))
    index = {partition: i for i, partition in enumerate(partitions)}
    rng = np.random.default_rng(seed)
    data = model.observe(y)
    draw = initial_draw(rng, data, model, np.array(partitions[rng.choice(len(exact), p=probability)]))
    visits = np.empty(sweeps, np.int64)
    for i in range(-BURN_IN, sweeps):
        draw, _ = sweep(rng, data, model, draw, sampler or ParticleGibbs(), moves)
        if i >= 0:
            visits[i] = index[canonical(draw.states)]

    # the number of states, and the indicator of each partition that is frequent enough to test
    frequent = np.flatnonzero(probability * sweeps >= 100)
    functionals = np.zeros((len(exact), 1 + len(frequent)))
    functionals[:, 0] = [max(partition) + 1 for partition in partitions]
    functionals[frequent, 1 + np.arange(len(frequent))] = 1
    names = ["number of states", *("".join(map(str, partitions[i])) for i in frequent)]
    expected = probability @ functionals
    variance = probability @ (functionals - expected) ** 2
    return compare(names, expected, variance, np.zeros(len(names)), functionals[visits])
