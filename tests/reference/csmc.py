"""Twin of `ihmm.kernels.csmc`: the same conditional SMC with N particles written out, each with its own parent.

Every random choice goes through `choose(probabilities)`, so one and the same text can be run with a generator, or by
`law_of`, which walks through all that could happen and adds the probabilities up.
"""

import itertools
from typing import NamedTuple

import numpy as np


class Chain(NamedTuple):
    """A finite hidden Markov model and what a pass over it may use."""

    initial: tuple  # (K,)
    rows: tuple  # (K, K)
    density: np.ndarray  # (T, K): f(y_t | φ_k)
    marginal: tuple  # (T,): g_t
    explicit: tuple  # V


def path_law(chain):
    """p(s_1 … s_T | y) for every one of the K^T paths."""
    n_steps, n_states = chain.density.shape
    paths = list(itertools.product(range(n_states), repeat=n_steps))
    weights = []
    for path in paths:
        weight = chain.initial[path[0]] * chain.density[0, path[0]]
        for t in range(1, n_steps):
            weight *= chain.rows[path[t - 1]][path[t]] * chain.density[t, path[t]]
        weights.append(weight)
    return dict(zip(paths, np.array(weights) / sum(weights), strict=True))


def one_pass(choose, chain, reference, n_particles, ancestor_sampling=True):
    """The new path, given the old one (math: conditional SMC with ancestor sampling, look-ahead form)."""
    n_steps = len(chain.density)
    states, parents, weights = [], [], []
    for t in range(n_steps):
        # Rows from which the particles of this step are drawn: at the first there is one, the initial row
        rows = [chain.initial] if t == 0 else [chain.rows[s] for s in states[-1]]
        before = [1.0] if t == 0 else weights[-1]
        ahead = [w * normaliser(chain, t, row) for w, row in zip(before, rows, strict=True)]
        now, parent = [], []
        for _ in range(n_particles - 1):
            i = choose(ahead)
            parent.append(i)
            now.append(propose(choose, chain, t, rows[i]))
        now.append(reference[t])
        if t > 0 and ancestor_sampling:
            # P(a = i) ∝ w_i π(s'_t | s^i_{t−1})
            parent.append(choose([w * row[reference[t]] for w, row in zip(before, rows, strict=True)]))
        else:
            parent.append(len(rows) - 1)
        states.append(now)
        parents.append(parent)
        # What the proposal left out: nothing in V, f/g in the tail
        weights.append([1.0 if k in chain.explicit else chain.density[t, k] / chain.marginal[t] for k in now])
    i = choose(weights[-1])
    path = []
    for t in reversed(range(n_steps)):
        path.append(states[t][i])
        i = parents[t][i]
    return tuple(reversed(path))


def normaliser(chain, t, row):
    """Z_j(t) = Σ_{k∈V} π_jk f(y_t | φ_k) + r_j g_t."""
    explicit = sum(row[k] * chain.density[t, k] for k in chain.explicit)
    return explicit + sum(row[k] for k in tail(chain)) * chain.marginal[t]


def propose(choose, chain, t, row):
    """k ∈ V with probability π_jk f / Z_j, or the tail with probability r_j g_t / Z_j and there k by π_jk / r_j."""
    rest = tail(chain)
    scores = [row[k] * chain.density[t, k] for k in chain.explicit]
    i = choose([*scores, sum(row[k] for k in rest) * chain.marginal[t]])
    return chain.explicit[i] if i < len(scores) else rest[choose([row[k] for k in rest])]


def tail(chain):
    return [k for k in range(len(chain.initial)) if k not in chain.explicit]


def chooser(rng):
    """Choose at random, in proportion to the weights given."""

    def choose(weights):
        return int(np.searchsorted(np.cumsum(weights), rng.random() * sum(weights), side="right"))

    return choose


def law_of(program):
    """P(outcome) of `program(choose)` for every outcome, by running it once for every way its choices can fall."""
    law = {}
    waiting = [[]]  # beginnings: choices made so far by runs that have still to be done
    while waiting:
        run = Run(waiting.pop())
        outcome = program(run.choose)
        law[outcome] = law.get(outcome, 0.0) + run.probability
        waiting.extend(run.others)
    return law


class Run:
    """One run: it repeats the choices of its beginning, then takes the first way open and notes down the others."""

    def __init__(self, beginning):
        self.beginning, self.made, self.others, self.probability = beginning, [], [], 1.0

    def choose(self, weights):
        step = len(self.made)
        if step < len(self.beginning):
            answer = self.beginning[step]
        else:
            answer, *others = [i for i, weight in enumerate(weights) if weight > 0]
            self.others += [[*self.made, other] for other in others]
        self.made.append(answer)
        self.probability *= weights[answer] / sum(weights)
        return answer
