"""A draw of the hidden semi-Markov model as a finite chain over states and ages."""

import numpy as np

from ihmm._typing import FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.durations import Duration, Omega, checked_hazard, residual_hazards
from ihmm.emissions._parameters import size, take
from ihmm.kernels.long_durations import Laws
from ihmm.kernels.segment_chain import SegmentChain
from ihmm.model import Model

MAX_TAIL = 1e-10  # ages are told apart up to one that is reached less often; from there on the hazard is constant
FIRST_AGES = 64
NONE, FIRST = -1, -2  # in place of the previous state: none that counts, none as the segment may have begun before


def build_chain(
    model: Model, initial: FloatArray, rows: FloatArray, omega: Omega, n_steps: int, open_ended: bool
) -> tuple[SegmentChain, IntArray]:
    """The chain for sequences of at most `n_steps` steps. `rows` say who follows whom; `omega` has all L states.

    While the noise remembers the previous state, there is a node for every one of them, and one for the beginning of a
    sequence. If the first segment may have begun before the data, it has nodes of its own. The second array has state,
    age and previous state of the nodes that remember: their densities follow those of the L states in the table of log
    densities.
    """
    duration, memory, n_states = model.duration, model.memory, len(initial)
    assert duration is not None
    each = [take(omega, np.array([k])) for k in range(n_states)]
    hazards = [hazards_of(duration, own, n_steps, memory) for own in each]
    first, residual = NONE, hazards
    if model.left_censored and duration.constant_from != 1:
        first = FIRST
        residual = [residual_hazards(duration, h[None], own)[0] for h, own in zip(hazards, each, strict=True)]
    nodes: list[tuple[int, int, int]] = []  # state, age, previous state
    for k, hazard in enumerate(hazards):
        others = [NONE, *(j for j in range(n_states) if j != k or open_ended)] if memory else [NONE]
        nodes += [(k, a, j) for a in range(1, memory + 1) for j in others]
        nodes += [(k, a, NONE) for a in range(memory + 1, len(hazard) + 1)]
        if first == FIRST:
            nodes += [(k, a, FIRST) for a in range(1, len(hazard) + 1)]
    index = {node: i for i, node in enumerate(nodes)}
    state, age, previous = map(np.ascontiguousarray, np.array(nodes).T)

    def older(k: int, a: int, j: int) -> int:
        a = min(a + 1, len(hazards[k]))
        return index[k, a, j if a <= memory or j == FIRST else NONE]

    def hazard_of(k: int, a: int, j: int) -> float:
        return float((residual if j == FIRST else hazards)[k][a - 1])

    entry = np.zeros((n_states, n_states), np.int64)
    for j in range(n_states):
        for k in range(n_states):
            entry[j, k] = index.get((k, 1, j if memory else NONE), index[k, 1, NONE])
    remembered = (age <= memory) & (previous >= 0)
    column = state.copy()
    column[remembered] = n_states + np.arange(remembered.sum())
    leave = np.array([hazard_of(*node) for node in nodes])
    chain = SegmentChain(
        state=state,
        column=column,
        older=np.array([older(*node) for node in nodes]),
        stay=1 - leave,
        leave=leave,
        entry=entry,
        start=np.array([index[k, 1, first] for k in range(n_states)]),
        initial=initial,
        rows=rows,
    )
    return chain, np.array(nodes)[remembered]


def build_laws(model: Model, omega: Omega, n_steps: int) -> Laws:
    """The duration laws of all states, with the same ages as in `build_chain`."""
    assert model.duration is not None
    each = [hazards_of(model.duration, take(omega, np.array([k])), n_steps, 1) for k in range(size(omega))]
    n_ages = np.array([len(hazard) for hazard in each])
    room = int(n_ages.max())
    ends, goes_on, first = np.zeros((3, len(each), room))
    for k, hazard in enumerate(each):
        survives = np.cumprod(1 - hazard[:-1])  # beyond ages 1, 2, …
        goes_on[k, 1 + room - len(hazard) :] = survives[::-1]
        ends[k, 1 + room - len(hazard) :] = (hazard[:-1] * np.append(1.0, survives[:-1]))[::-1]
        own = take(omega, np.array([k]))
        first[k, : len(hazard)] = residual_hazards(model.duration, hazard[None], own) if model.left_censored else hazard
    return Laws(n_ages, ends, goes_on, first, np.array([hazard[-1] for hazard in each]))


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


def node_of(chain: SegmentChain, state: int, age: int, is_first: bool) -> int:
    """The node of a state of this age, in the first segment of a sequence or after whatever state."""
    node = int(chain.start[state] if is_first else chain.entry[state, state])
    for _ in range(age - 1):
        if chain.older[node] == node:
            break
        node = int(chain.older[node])
    return node


def hazards_of(duration: Duration, omega: Omega, n_steps: int, memory: int) -> FloatArray:
    """Hazards of one state at all ages that are told apart."""
    if duration.constant_from is not None:
        return np.asarray(checked_hazard(duration, max(duration.constant_from, memory + 1), omega)[0])
    n_ages = FIRST_AGES
    while True:
        hazard = checked_hazard(duration, n_ages, omega)[0]
        beyond = np.flatnonzero(np.cumprod(1 - hazard) < MAX_TAIL)
        if beyond.size or n_ages > n_steps:
            least = max(memory + 1, duration.minimum)
            return np.asarray(hazard[: max(beyond[0] + 1 if beyond.size else n_steps, least)])
        n_ages *= 2
