"""How chains start: a random stream for each, and an initial trajectory."""

from dataclasses import replace

import numpy as np

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Draw, Model
from ihmm.moves import GreedySplitMerge, SplitMerge
from ihmm.samplers import ParticleGibbs, StateUpdate
from ihmm.trajectory import runs

AUTO_ROUNDS = 10  # rounds of splits and merges
MARKOV_SWEEPS = 50  # of the hidden Markov model, before states have durations
GREEDY_STICKINESS = 0.9

InitialStates = int | str | IntArray  # number of states, "auto", or trajectory


def streams(seed: int, chains: int) -> list[np.random.SeedSequence]:
    """One independent seed per chain."""
    return np.random.SeedSequence(seed).spawn(chains)


def first_draw(rng: np.random.Generator, data: Data, model: Model, init: InitialStates) -> Draw:
    """State of a chain before its first sweep."""
    if isinstance(init, np.ndarray):
        trajectory = init
    elif isinstance(init, int):
        trajectory = _random_trajectory(rng, data, model, init)
    else:
        trajectory = _greedy_trajectory(rng, data, model)
    if model.duration is not None:
        trajectory = absorb_short_runs(trajectory, data.offsets, model.duration.minimum)
    return initial_draw(rng, data, model, trajectory)


def _random_trajectory(rng: np.random.Generator, data: Data, model: Model, n_states: int) -> IntArray:
    """Uniformly random states, which last for the minimum duration at least."""
    if model.duration is None or model.duration.minimum == 1:
        return rng.integers(n_states, size=len(data.y))
    least = model.duration.minimum
    return np.concatenate([np.repeat(rng.integers(n_states, size=-(-n // least)), least)[:n] for n in data.lengths])


def absorb_short_runs(states: IntArray, offsets: IntArray, minimum: int) -> IntArray:
    """The trajectory with every run that is shorter than the minimum given to the run before it, or if it is the first
    of its sequence to the next one. The last run of a sequence may be shorter: it is cut off by the end of the data."""
    length, state, censored, _ = runs(states, offsets)
    kept: list[tuple[int, int]] = []  # state and length
    before = 0  # runs of earlier sequences
    for d, k, is_last in zip(length.tolist(), state.tolist(), censored.tolist(), strict=True):
        if len(kept) > before and kept[-1][0] != k and kept[-1][1] < minimum:
            _, short = kept.pop()
            if len(kept) > before:
                kept[-1] = kept[-1][0], kept[-1][1] + short
            else:
                d += short
        if len(kept) > before and kept[-1][0] == k:
            kept[-1] = k, kept[-1][1] + d
        else:
            kept.append((k, d))
        if is_last:
            before = len(kept)
    return np.repeat([k for k, _ in kept], [d for _, d in kept]).astype(np.int64)


def _greedy_trajectory(rng: np.random.Generator, data: Data, model: Model) -> IntArray:
    """The trajectory for ``init="auto"``: a single state, split and merged greedily a few times.

    Noise with a memory is taken for white at first: with a single state it would explain every change by itself. States
    with durations start from a trajectory of the sticky hidden Markov model, in which states are split more easily.
    """
    if model.memory > 0:
        model = replace(model, emission=model.emission.without_memory())
        data = model.describe(data.y, data.offsets, data.missing)
    has_durations = model.duration is not None
    if has_durations:
        prior = replace(model.prior, stickiness=GREEDY_STICKINESS)
        model = replace(model, prior=prior, duration=None, left_censored=False)
    draw = initial_draw(rng, data, model, np.zeros(len(data.y), np.int64))
    update = StateUpdate(draw.trajectory, draw.transitions.beta, draw.phi)
    for _ in range(AUTO_ROUNDS):
        update, _ = GreedySplitMerge().apply(rng, data, model, update, draw.hyper)
    if has_durations and data.conjugate is not None:
        draw = initial_draw(rng, data, model, update.states)
        for _ in range(MARKOV_SWEEPS):
            draw, _ = sweep(rng, data, model, draw, ParticleGibbs(), (SplitMerge(),))
        return draw.states
    return update.states
