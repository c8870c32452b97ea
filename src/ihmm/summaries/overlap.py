"""How much the emission laws of states overlap, for any family, and which states of a draw emit the same."""

from collections.abc import Callable

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.data import Data
from ihmm.emissions import NoisyLevels
from ihmm.emissions._parameters import fields, size
from ihmm.emissions._protocol import Emission, provides
from ihmm.model import Draw, Model

POINTS = 200  # of each state, at which densities are compared
MIN_POINTS, MAX_VALUES = 40, 200_000  # fewer points if there are many states: K² densities at each
TINY = 1e-300
SIMILAR_SPREAD, LEAST_IN_MEAN = 1.5, 0.5  # see `similar_spread` and `least_overlaps`
LONG_VISIT, LEAST_IN_LONG_VISITS = 40, 0.8  # steps; the laws of 1.6 times the spread overlap by as much


def densities_at_own_points(rng: np.random.Generator, model: Model, data: Data, draw: Draw) -> FloatArray:
    """(K, K, M): density of state i at M points typical of state j, relative to the largest of these densities.

    The points are simulated. If the density depends on past values, the marginal laws of the columns are compared, that
    of rows if columns are correlated, or where there is no such law, the densities of observed steps in state j.
    """
    n_states, emission = draw.n_states, model.emission
    n_points = int(np.clip(MAX_VALUES // n_states**2, MIN_POINTS, POINTS))
    states = np.repeat(np.arange(n_states), n_points)
    log_density: FloatArray
    laws = _marginal_laws(emission, data.y[0].size) if provides(emission, "with_past") else None
    if laws is not None:
        log_density = np.zeros((len(states), n_states))
        for law, select in laws:
            own = select(draw.phi)
            log_density += law.log_density(law.sample_observations(rng, states, own), own)
    elif provides(emission, "with_past"):
        steps = np.concatenate([_steps_in(k, draw.states, data, n_points) for k in range(n_states)])
        log_density = emission.log_density(data.observations[steps], draw.phi)
    else:
        log_density = emission.log_density(emission.sample_observations(rng, states, draw.phi), draw.phi)
    relative = np.exp(log_density - log_density.max(axis=1, keepdims=True))
    return np.ascontiguousarray(relative.T).reshape(n_states, n_states, n_points)


def _marginal_laws(emission: Emission, n_columns: int) -> list[tuple[Emission, Callable[[Phi], Phi]]] | None:
    """Independent laws, one for each column or, if these are correlated, one for all."""
    if isinstance(emission, NoisyLevels) and emission.correlated:
        return [emission.row()]
    if not provides(emission, "column"):
        return None
    laws = [emission.column(d) for d in range(n_columns)]
    return None if any(law is None for law in laws) else laws  # type: ignore[return-value]


def _steps_in(state: int, states: IntArray, data: Data, n_points: int) -> IntArray:
    """Informative steps in a state, evenly spaced, repeated if there are too few; any others if there is none."""
    here = np.flatnonzero((states == state) & data.informative)
    if not here.size:
        here = np.flatnonzero(states == state)
    return here[np.linspace(0, len(here) - 1, n_points).round().astype(np.int64)]


def group(
    density: FloatArray,
    weights: FloatArray,
    least: float | FloatArray,
    close: BoolArray | None = None,
) -> IntArray:
    """Group states whose laws overlap by at least `least`; returns the group of each state, from 0.

    The overlap of two laws is ∫ min(f, g) = 1 − their total variation distance. The two groups that overlap most are
    joined first; the law of a group is the mixture of those of its states, with `weights`. States that are `close` are
    joined in any case. `least` may be a matrix with a value for each pair of states.
    """
    n_states = len(weights)
    needed = np.array(np.broadcast_to(least, (n_states, n_states)), np.float64)
    label, law, weight = np.arange(n_states), density.copy(), weights / weights.sum() + TINY
    if close is not None:
        for i, j in np.argwhere(np.triu(close, 1)):
            if label[i] != label[j]:
                _join(label, law, weight, label[i], label[j])
    overlap = np.full((n_states, n_states), -1.0)
    own = law[label, np.arange(n_states)]
    for a in np.unique(label):
        _compare(overlap, label, law, own, weights, a)
    while True:
        a, b = divmod(int((overlap - needed).argmax()), n_states)
        if overlap[a, b] < needed[a, b]:
            return np.asarray(np.unique(label, return_inverse=True)[1])
        _join(label, law, weight, a, b)
        overlap[b], overlap[:, b] = -1, -1
        needed[a] = needed[:, a] = np.maximum(needed[a], needed[b])
        members = np.flatnonzero(label == a)
        own[members] = law[a, members]
        _compare(overlap, label, law, own, weights, a)


def _join(label: IntArray, law: FloatArray, weight: FloatArray, a: int, b: int) -> None:
    """Group b becomes part of group a."""
    law[a] = (weight[a] * law[a] + weight[b] * law[b]) / (weight[a] + weight[b])
    weight[a] += weight[b]
    label[label == b] = a


def _compare(
    overlap: FloatArray, label: IntArray, law: FloatArray, own: FloatArray, weights: FloatArray, a: int
) -> None:
    """Overlap of group a with all others: the average of E_f[min(1, g/f)] and E_g[min(1, f/g)]."""
    others = np.setdiff1d(label, [a])
    if not others.size:
        overlap[a] = overlap[:, a] = -1
        return
    inside = label == a
    share = weights[inside] / max(weights[inside].sum(), TINY)
    ratio = np.minimum(1, law[others][:, inside] / np.maximum(own[inside], TINY))
    from_a = ratio.mean(axis=2) @ share
    outside = np.minimum(1, law[a] / np.maximum(own, TINY)).mean(axis=1) * weights
    total = np.bincount(label, weights, len(label))
    from_others = np.bincount(label, outside, len(label)) / np.maximum(total, TINY)
    overlap[a, others] = overlap[others, a] = 0.5 * (from_a + from_others[others])


def is_whole(y: Array) -> bool:
    """Whether all values are whole numbers: symbols or counts."""
    return y.dtype.kind in "iub" or bool(np.all(y[np.isfinite(y)] == np.floor(y[np.isfinite(y)])))


def least_overlap(y: Array) -> float:
    """How much laws must overlap to count as one: less for measurements than for symbols and counts.

    The probabilities of symbols have no noise of their own, and small differences in them matter.
    """
    return 0.9 if is_whole(y) else 0.7


def least_overlaps(
    y: Array, phi: Phi, visit: FloatArray, *, by_mean: bool = True, dynamics: bool = False
) -> FloatArray:
    """(K, K): `least_overlap`, and for measurements less if spreads are the same, more if they differ in long visits.

    Means that differ by less than 1.35 standard deviations are rarely more than drift, and make no two peaks in a
    histogram; with ``by_mean=False`` something else decides about them. Drift does not change the spread, and a long
    visit shows a difference in spread, or in `dynamics`, that single values do not. `visit`, (K,), is the mean length
    of visits.
    """
    least = np.full((size(phi), size(phi)), least_overlap(y))
    long = np.minimum(visit[:, None], visit) >= LONG_VISIT
    if dynamics:
        return np.where(long, LEAST_IN_LONG_VISITS, least)
    similar = None if is_whole(y) else similar_spread(phi)
    if similar is None:
        return least
    least = np.where(long & ~similar, LEAST_IN_LONG_VISITS, least)
    return np.where(similar, LEAST_IN_MEAN, least) if by_mean else least


def similar_spread(phi: Phi) -> BoolArray | None:
    """(K, K): whether two states have about the same spread around their means; None if it is not among φ."""
    parameters = fields(phi)
    if not {"mean", "location"} & set(parameters):
        return None
    if "variance" in parameters:
        spread = np.sqrt(parameters["variance"])
    elif "scale2" in parameters:
        spread = np.sqrt(parameters["scale2"])
    elif "scale" in parameters:
        spread = parameters["scale"]
    elif set(parameters) == {"mean"}:
        spread = np.ones(size(phi))
    else:
        return None
    log_spread = np.log(np.maximum(spread.reshape(size(phi), -1), TINY))
    return np.asarray(np.abs(log_spread[:, None] - log_spread).max(axis=2) < np.log(SIMILAR_SPREAD))
