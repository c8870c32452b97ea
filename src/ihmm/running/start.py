"""How chains start: a random stream for each, and an initial trajectory."""

from dataclasses import replace

import numpy as np

from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.gibbs import initial_draw, sweep
from ihmm.model import Draw, Model
from ihmm.moves import GreedySplitMerge, SplitMerge
from ihmm.pilot._fit import Series
from ihmm.pilot._search import clusters
from ihmm.samplers import ParticleGibbs, StateUpdate
from ihmm.series.sequences import Sequences
from ihmm.sticks import total_states
from ihmm.trajectory import runs

AUTO_ROUNDS = 10  # rounds of splits and merges
MARKOV_SWEEPS = 50  # of the hidden Markov model, before states have durations
GREEDY_STICKINESS = 0.9

MORE_STATES = (2, 1)  # than the path that is given, in the starts of every second chain

InitialStates = int | str | IntArray  # number of states, "auto", or trajectory; (chains, T) for one of each chain


def streams(seed: int, chains: int) -> list[np.random.SeedSequence]:
    """One independent seed per chain."""
    return np.random.SeedSequence(seed).spawn(chains)


def start_of_chain(init: InitialStates, chain: int) -> InitialStates:
    """Where one of the chains starts. With fewer trajectories than chains these are used again."""
    return init[chain % len(init)] if isinstance(init, np.ndarray) and init.ndim == 2 else init


def dispersed(init: InitialStates, data: Sequences, model: Model) -> InitialStates:
    """Starts for the chains of a run, (4, T), if `init` is a path: itself, and more states in every second row.

    Chains that agree although some of them started elsewhere have found the same answer; chains that all start from one
    path may only not have left it. States are added, not taken away: tuning merges superfluous states within a few
    sweeps, whereas a missing one can take hundreds. They are clusters of the values of the `data`.
    """
    if not isinstance(init, np.ndarray) or init.ndim > 1:
        return init
    values = data.values.reshape(len(data.values), -1).astype(np.float64)
    spread = np.nanstd(values, axis=0)
    offsets = np.concatenate([[0], np.cumsum(data.lengths)])
    whole = Series((values - np.nanmean(values, axis=0)) / np.where(spread > 0, spread, 1.0), offsets)
    n_states, most, rng = int(init.max()) + 1, total_states(model.prior), np.random.default_rng(0)
    lasting = model.duration is not None and model.duration.minimum > 1
    more = [clusters(whole, min(n_states + n, most), rng, lasting=lasting) for n in MORE_STATES]
    return np.stack([row for other in more for row in (init, other)])


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
