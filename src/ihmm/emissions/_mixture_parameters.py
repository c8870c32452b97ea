"""Parameters of a mixture in every state, and the bookkeeping of their components."""

from typing import NamedTuple

import numpy as np

from ihmm._random import dirichlet
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._parameters import fields, rebuild, take

LOG_ZERO = -1e300  # stands for log 0 where it must be subtracted


class MixturePhi(NamedTuple):
    """The instantiated components of every state; weight zero where a state has fewer than others."""

    weights: FloatArray  # (K, C)
    rest: FloatArray  # (K,): the mass of all other components
    sigma: FloatArray  # (K,): σ, the same for all states
    component: Phi  # (K, C, …)


def rearrange(phi: MixturePhi, before: tuple[IntArray, IntArray], after: tuple[IntArray, IntArray]) -> MixturePhi:
    """Move components to other states and places, each given as (states, places); the remaining mass is dropped."""
    state, place = after
    shape = (int(state.max()) + 1, int(place.max()) + 1)
    weights, component = (scatter(take(part, before), state, place, shape) for part in (phi.weights, phi.component))
    return MixturePhi(weights, np.zeros(shape[0]), np.full(shape[0], phi.sigma[0]), component)


class OccupiedComponents(NamedTuple):
    """Occupied components of each state, in order of first appearance."""

    counts: IntArray  # (K, C): steps
    components: IntArray  # (T,): z in the new order
    state: IntArray  # (occupied,)
    place: IntArray  # (occupied,): the new component
    before: IntArray  # (occupied,): the old one
    number: IntArray  # (K, C): index among the occupied ones


def occupied_components(states: IntArray, components: IntArray, n_states: int) -> OccupiedComponents:
    size = int(components.max(initial=0)) + 1
    code = states * size + components
    first = np.full(n_states * size, len(code))
    first[code[::-1]] = np.arange(len(code))[::-1]  # the last one written is the first
    occupied = np.flatnonzero(first < len(code))
    occupied = occupied[np.lexsort((first[occupied], occupied // size))]
    state = occupied // size
    begins = np.searchsorted(state, np.arange(n_states))
    place = np.arange(len(state)) - begins[state]
    renamed = np.zeros(n_states * size, np.int64)
    renamed[occupied] = place
    components = renamed[code]
    number = np.zeros((n_states, int(place.max(initial=0)) + 1), np.int64)
    number[state, place] = np.arange(len(state))
    counts = np.bincount(states * number.shape[1] + components, minlength=number.size).reshape(number.shape)
    return OccupiedComponents(counts, components, state, place, occupied % size, number)


def sample_weights(rng: np.random.Generator, counts: IntArray, sigma: float) -> tuple[FloatArray, FloatArray]:
    """ψ_k ~ Dir(n_k1, …, n_kC, σ), of each state."""
    weights = dirichlet(rng, np.column_stack([counts, np.full(len(counts), sigma)]))
    return np.where(counts > 0, weights[:, :-1], 0.0), weights[:, -1]


def slice_height(weights: FloatArray, threshold: float) -> FloatArray:
    """Upper limit of a component's slice variables: min(1, ψ/ε′)."""
    return np.asarray(np.minimum(weights / threshold, 1.0))


def log_sum(table: FloatArray, out: FloatArray) -> None:
    """log Σ exp over the rows, which are overwritten."""
    np.max(table, axis=0, out=out)
    np.maximum(out, LOG_ZERO, out=out)
    table -= out
    np.exp(table, out=table)
    with np.errstate(divide="ignore"):
        out += np.log(table.sum(axis=0))


def choose(rng: np.random.Generator, log_odds: FloatArray) -> tuple[IntArray, FloatArray]:
    """One column of each row in proportion to its odds, by Gumbel noise; and the maximum."""
    score = log_odds + rng.gumbel(size=log_odds.shape)
    chosen = np.argmax(score, axis=1)
    return chosen, score[np.arange(len(score)), chosen]


def flat_index(phi: MixturePhi, states: IntArray, components: IntArray) -> IntArray:
    """Index of components among all that have a weight, state by state."""
    index = np.zeros(phi.weights.shape, np.int64)
    real = phi.weights > 0
    index[real] = np.arange(np.count_nonzero(real))
    return np.asarray(index[states, components])


def scatter(theta: Phi, state: IntArray, place: IntArray, shape: tuple[int, ...]) -> Phi:
    """A list of parameters, scattered into arrays (K, C, …)."""

    def spread(array: Array) -> Array:
        out = np.zeros((*shape, *array.shape[1:]), array.dtype)
        out[state, place] = array
        return out

    return rebuild(theta, map(spread, fields(theta).values()))


def append_components(left: Phi, right: Phi) -> Phi:
    """More components of the same states, appended."""
    pairs = zip(fields(left).values(), fields(right).values(), strict=True)
    return rebuild(left, (np.concatenate(pair, axis=1) for pair in pairs))
