"""A draw of the hidden semi-Markov model as a finite chain over states and ages."""

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import Duration, Omega
from ihmm.emissions._parameters import size, take
from ihmm.kernels.segment_chain import SegmentChain
from ihmm.model import Model

MAX_TAIL = 1e-10  # ages are told apart up to one that is reached less often; from there on the hazard is constant
FIRST_AGES = 64


def build_chain(
    model: Model, initial: FloatArray, rows: FloatArray, omega: Omega, n_steps: int, open_ended: bool
) -> tuple[SegmentChain, IntArray]:
    """The chain for sequences of at most `n_steps` steps. `rows` say who follows whom; `omega` has all L states.

    While the noise remembers the previous state, there is a node for every one of them, and one for the beginning of a
    sequence. The second array has state, age and previous state of these nodes: their densities follow those of the L
    states in the table of log densities.
    """
    duration, memory, n_states = model.duration, model.memory, len(initial)
    assert duration is not None
    hazards = [hazards_of(duration, take(omega, np.array([k])), n_steps, memory) for k in range(n_states)]
    nodes: list[tuple[int, int, int]] = []  # state, age, previous state (−1: none that counts)
    for k, hazard in enumerate(hazards):
        others = [-1, *(j for j in range(n_states) if j != k or open_ended)] if memory else [-1]
        nodes += [(k, a, j) for a in range(1, memory + 1) for j in others]
        nodes += [(k, a, -1) for a in range(memory + 1, len(hazard) + 1)]
    index = {node: i for i, node in enumerate(nodes)}
    state, age, previous = map(np.ascontiguousarray, np.array(nodes).T)

    def older(k: int, a: int, j: int) -> int:
        a = min(a + 1, len(hazards[k]))
        return index[k, a, j if a <= memory else -1]

    entry = np.zeros((n_states, n_states), np.int64)
    for j in range(n_states):
        for k in range(n_states):
            entry[j, k] = index.get((k, 1, j if memory else -1), index[k, 1, -1])
    remembered = (age <= memory) & (previous >= 0)
    column = state.copy()
    column[remembered] = n_states + np.arange(remembered.sum())
    chain = SegmentChain(
        state=state,
        column=column,
        older=np.array([older(*node) for node in nodes]),
        stay=1 - np.array([hazards[k][a - 1] for k, a, _ in nodes]),
        entry=entry,
        start=np.array([index[k, 1, -1] for k in range(n_states)]),
        initial=initial,
        rows=rows,
    )
    return chain, np.array(nodes)[remembered]


def log_densities_of_nodes(model: Model, data: Data, settled: FloatArray, phi: Phi, remembered: IntArray) -> FloatArray:
    """The table of log densities that the chain reads: those of settled states, (T, L), and of remembered nodes.

    Of the state that represents all others no parameters are known: its own density, and that of the states entered
    from it, are the settled ones.
    """
    table = np.empty((len(settled), settled.shape[1] + len(remembered)))
    table[:, : settled.shape[1]] = settled
    for i, (k, a, j) in enumerate(remembered.tolist(), start=settled.shape[1]):
        if max(j, k) >= size(phi):
            table[:, i] = settled[:, k]
        else:
            states = np.tile([k] * a + [j] * (model.memory + 1 - a), (len(settled), 1))
            table[:, i] = model.log_density_at(data, states, phi)
    return table


def node_of(chain: SegmentChain, state: int, age: int) -> int:
    """The node of a state of this age, whatever the state before it."""
    node = int(chain.start[state])
    for _ in range(age - 1):
        if chain.older[node] == node:
            break
        node = int(chain.older[node])
    return node


def hazards_of(duration: Duration, omega: Omega, n_steps: int, memory: int) -> FloatArray:
    """Hazards of one state at all ages that are told apart."""
    if duration.constant_from is not None:
        return np.asarray(duration.hazard(max(duration.constant_from, memory + 1), omega)[0])
    n_ages = FIRST_AGES
    while True:
        hazard = duration.hazard(n_ages, omega)[0]
        beyond = np.flatnonzero(np.cumprod(1 - hazard) < MAX_TAIL)
        if beyond.size or n_ages > n_steps:
            least = max(memory + 1, duration.minimum)
            return np.asarray(hazard[: max(beyond[0] + 1 if beyond.size else n_steps, least)])
        n_ages *= 2
