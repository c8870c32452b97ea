"""Small finite problems, as the twins of the passes see them and as the sampler does.

Given θ the sequences of a data set are independent, so many copies of one short sequence are many passes at once.
"""

from typing import NamedTuple

import numpy as np

from ihmm.data import Data
from ihmm.emissions import Categorical
from ihmm.emissions.categorical import CategoricalPhi
from ihmm.model import Draw, Hyper, Model, Transitions
from ihmm.priors import HDPPrior
from ihmm.trajectory import Trajectory
from reference import csmc as twin

NOTHING_LEFT = 1e-14  # mass of all other states together: never drawn


class Problem(NamedTuple):
    """A finite θ and a short series of symbols."""

    beta: tuple
    initial: tuple
    rows: tuple
    probs: tuple  # f(symbol | state)
    y: tuple
    marginal: tuple  # g_t: any positive numbers will do


THREE_STATES = Problem(
    beta=(0.3, 0.5, 0.2),
    initial=(0.3, 0.3, 0.4),
    rows=((0.6, 0.3, 0.1), (0.2, 0.5, 0.3), (0.35, 0.05, 0.6)),
    probs=((0.7, 0.2, 0.1), (0.1, 0.2, 0.7), (0.15, 0.6, 0.25)),
    y=(0, 1, 2),
    marginal=(0.5, 0.1, 0.3),
)
TWO_STATES = Problem(
    beta=(0.35, 0.65),
    initial=(0.8, 0.2),
    rows=((0.7, 0.3), (0.1, 0.9)),
    probs=((0.5, 0.3, 0.2), (0.2, 0.2, 0.6)),
    y=(2, 0, 2, 1),
    marginal=(0.2, 0.6, 0.3, 0.1),
)

# V = {k : β_k ≥ ε}: all three states, two, one, none
THRESHOLDS = [0.1, 0.25, 0.4, 1.0]


def chain_of(problem, threshold=0.1, proposal="posterior"):
    """The problem as the twin sees it."""
    density = np.array(problem.probs)[:, list(problem.y)].T
    explicit = tuple(k for k, weight in enumerate(problem.beta) if weight >= threshold)
    if proposal == "prior":
        return twin.Chain(problem.initial, problem.rows, density, (1.0,) * len(problem.y), ())
    return twin.Chain(problem.initial, problem.rows, density, problem.marginal, explicit)


def passes(sampler, problem, references, seed=0):
    """One pass of the sampler over every one of the reference paths: the new paths, one a row."""
    references = np.asarray(references)
    n_paths, n_steps = references.shape
    n_states = len(problem.beta)

    def with_rest(row):
        return np.append(row, NOTHING_LEFT)

    transitions = Transitions(
        with_rest(problem.beta), with_rest(problem.initial), np.array([with_rest(row) for row in problem.rows])
    )
    draw = Draw(
        Trajectory(references.ravel()), transitions, CategoricalPhi(np.array(problem.probs)), Hyper(1.0, 1.0, 0.0)
    )
    data = Data(
        np.tile(problem.y, n_paths),
        np.arange(0, n_paths * n_steps + 1, n_steps),
        np.log(np.tile(problem.marginal, n_paths)),
    )
    model = Model(Categorical(len(problem.probs[0])), HDPPrior(1.0, 1.0, 0.0))
    path, _ = sampler.resample_states(np.random.default_rng(seed), data, model, draw)
    assert len(path.beta) == n_states + 1, "every state should be visited somewhere, and no other"
    return path.states.reshape(n_paths, n_steps)
