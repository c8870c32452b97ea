"""The levels of one draw: states grouped by overlap of their laws, without what is too brief or blurred to count."""

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.data import Data
from ihmm.emissions._parameters import fields
from ihmm.emissions._protocol import has_past, provides
from ihmm.model import Draw, Model
from ihmm.summaries.overlap import densities_at_own_points, group, least_overlaps
from ihmm.summaries.state_order import CENTERS
from ihmm.summaries.summary import dwell_times

MIN_SHARE, MIN_STEPS, BRIEF_VISIT = 0.01, 20, 2  # see `absorb_brief`
LASTING_STEPS, LASTING_VISIT = 8, 5
MIN_BLURRED, BLURRED_VISIT, BLURRED_SHARE = 5, 1.5, 0.7  # see `_blurred`
PASSING_VISIT, PASSING_SHARE = 1.4, 0.5  # the same in models in which a state lasts at least a few steps
LONGEST_CHAIN = 8 / 3  # resolutions between the ends of a chain: 4 standard deviations of the noise by default
COARSER = 0.1  # overlap by which less is enough, to see how much the number of levels depends on it


def draw_levels(
    rng: np.random.Generator,
    model: Model,
    data: Data,
    draw: Draw,
    overlap: float | None = None,
    resolution: float | tuple[float, ...] | None = None,
) -> tuple[IntArray, BoolArray, IntArray]:
    """(K,): level of each state of a draw, whether it is brief, and its level if larger differences are ignored.

    Laws of one level overlap by at least `overlap`, by default as `least_overlaps` says; a `resolution` decides instead
    which differences in the mean matter. Brief states, and blurred changes between two levels, are on the level that
    surrounds them.
    """
    if draw.n_states == 1:
        return np.zeros(1, np.int64), np.zeros(1, bool), np.zeros(1, np.int64)
    density = densities_at_own_points(rng, model, data, draw)
    size = np.bincount(draw.states, minlength=draw.n_states).astype(np.float64)
    parameters = fields(draw.phi)
    close = _within(parameters, resolution) if resolution is not None else None
    center = center_of_states(parameters)
    visited = dwell_times(draw.states, data.offsets)[1]
    visit = size / np.maximum(np.bincount(visited, minlength=draw.n_states), 1)
    dynamics = has_past(model.emission) and not provides(model.emission, "column")
    default = least_overlaps(data.y, draw.phi, visit, by_mean=close is None, dynamics=dynamics)
    least = default if overlap is None else np.asarray(overlap)
    minimum = shortest_visit(model)
    (fine, brief), (coarse, _) = (
        absorb_brief(group(density, size, each, close), draw.states, data.offsets, center, minimum)
        for each in (least, least - COARSER)
    )
    return fine, brief, coarse


def brief_states(draw: Draw, offsets: IntArray) -> BoolArray:
    """(K,): states of a draw that are brief by themselves, whatever level they are on."""
    return absorb_brief(np.arange(draw.n_states), draw.states, offsets)[1]


def shortest_visit(model: Model) -> int:
    """Steps that every state lasts."""
    return 1 if model.duration is None else model.duration.minimum


def center_of_states(parameters: dict[str, Array]) -> FloatArray | None:
    """(K, columns): where each state lies, if it is anywhere."""
    name = next((name for name in CENTERS if name in parameters), None)
    return None if name is None else parameters[name].reshape(len(parameters[name]), -1)


def _within(parameters: dict[str, Array], resolution: float | tuple[float, ...]) -> BoolArray | None:
    """(K, K): whether the means of two states differ by less than the resolution in every column, or those of states
    between them do.

    Such a chain is a level that drifts, unless its ends are as far apart as levels that are distinct in any case: then
    it is one only up to the widest of its gaps.
    """
    mean = center_of_states(parameters)
    if mean is None:
        return None
    gap = np.max(np.abs(mean[:, None] - mean) / np.asarray(resolution), axis=2)
    chain = np.arange(len(mean))
    pairs = np.argwhere((gap < 1) & np.triu(np.ones(gap.shape, bool), 1))
    for i, j in sorted(pairs.tolist(), key=lambda pair: float(gap[pair[0], pair[1]])):
        together = (chain == chain[i]) | (chain == chain[j])
        if gap[np.ix_(together, together)].max() < LONGEST_CHAIN:
            chain[together] = chain[i]
    return np.asarray(chain[:, None] == chain)


def absorb_brief(
    level: IntArray, states: IntArray, offsets: IntArray, center: FloatArray | None = None, minimum: int = 1
) -> tuple[IntArray, BoolArray]:
    """Put brief levels with the level that surrounds them most often; also which states are brief.

    A level is brief if it has less than 1% of the steps, and either fewer than 20 or usually for one or two at a time:
    outliers and blurred steps, not a level. A single visit of 8 steps is one, though, such as a deleted part of a
    genome. Brief is also one that is visited for a single step, or hardly longer than the `minimum`, on the way from
    one level to another between which it lies, given the `center` of the states: a blurred change. Levels are
    renumbered from 0.
    """
    lengths, of = dwell_times(level[states], offsets)
    n_levels = int(level.max()) + 1
    steps = np.bincount(of, lengths, n_levels)
    visit = np.array([np.median(lengths[of == j]) if np.any(of == j) else 0 for j in range(n_levels)])
    rare = (steps < MIN_SHARE * len(states)) | (steps < 3)
    lasting = (steps >= LASTING_STEPS) & (visit >= LASTING_VISIT)
    brief = rare & ~lasting & ((steps < MIN_STEPS) | (visit <= BRIEF_VISIT)) & (steps < steps.max())
    if center is not None:
        brief |= _blurred(level, states, lengths, of, center, offsets, minimum) & (steps < steps.max())
    joined = np.arange(n_levels)
    for j in np.flatnonzero(brief):
        runs = np.flatnonzero(of == j)
        around = of[np.concatenate([runs[runs > 0] - 1, runs[runs < len(of) - 1] + 1])]
        around = around[~brief[around]]
        joined[j] = np.bincount(around).argmax() if around.size else steps.argmax()
    return np.unique(joined[level], return_inverse=True)[1], brief[level]


def _blurred(
    level: IntArray,
    states: IntArray,
    lengths: IntArray,
    of: IntArray,
    center: FloatArray,
    offsets: IntArray,
    minimum: int,
) -> BoolArray:
    """(n_levels,): levels of visits as short as they can be, most of them between two others, in place and in time.

    A visit that must last a few steps contains some of a level, so that more of them return to where they came from.
    """
    longest, share = (BLURRED_VISIT, BLURRED_SHARE) if minimum == 1 else (PASSING_VISIT * minimum, PASSING_SHARE)
    n_levels = int(level.max()) + 1
    weight = np.bincount(states, minlength=len(level)).astype(np.float64) + 1e-9
    total = np.bincount(level, weight)
    mean = np.stack([np.bincount(level, weight * column) / total for column in center.T], axis=1)
    begins = np.cumsum(lengths) - lengths
    inner = np.flatnonzero(~np.isin(begins, offsets[:-1]) & ~np.isin(begins + lengths, offsets[1:]))
    before, here, after = mean[of[inner - 1]], mean[of[inner]], mean[of[inner + 1]]
    across = after - before
    length = np.maximum(np.square(across).sum(axis=1), 1e-300)
    place = np.sum((here - before) * across, axis=1) / length  # 0 at the level before, 1 at the one after
    between = (of[inner - 1] != of[inner + 1]) & (place > 0) & (place < 1)
    found = np.zeros(n_levels, bool)
    for j in range(n_levels):
        own = of[inner] == j
        if own.sum() >= MIN_BLURRED and lengths[inner][own].mean() < longest:
            found[j] = between[own].mean() > share
    return found
