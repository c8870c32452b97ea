"""Answers that do not depend on labels, and labels that mean the same in every draw.

A state's number means nothing: every draw numbers its states anew. What can be said without numbers (how many states,
which steps belong together, where the state changes) is read off the draws directly. For everything else the draws are
summed up by one segmentation, and the states of each draw are matched to its states.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy.optimize import linear_sum_assignment

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._angles import angle_fields, unwrap
from ihmm.emissions._base import Emission, fields, join, provides, rebuild, take
from ihmm.kernels.counts import count_overlap
from ihmm.model import Draw

if TYPE_CHECKING:
    import pandas

CANDIDATES, JUDGES = 60, 200  # draws that may become the segmentation, and draws it is compared with
POOLED = 20  # draws whose mixtures make the average one
ROUNDS = 10  # of votes that may improve it
QUANTILES = (0.5, 0.025, 0.975)
TINY = 1e-12  # probability of leaving a state that never is left
WIDEST = 3  # numbers of a parameter shown in a line of text


def change_probability(states: Array, offsets: IntArray) -> FloatArray:
    """P(s_t ≠ s_{t−1}) of every step, over the rows of `states`; 0 where a sequence begins."""
    changes = np.zeros(states.shape[1])
    for row in states:
        changes[1:] += row[1:] != row[:-1]
    changes[offsets[:-1]] = 0
    return np.asarray(changes / len(states))


def co_assignment(states: Array, steps: IntArray) -> FloatArray:
    """P(s_t = s_u) for all pairs of the given steps, over the rows of `states`."""
    together = np.zeros((len(steps), len(steps)))
    for row in states[:, steps]:
        together += row[:, None] == row
    return np.asarray(together / len(states))


def dwell_times(states: Array, offsets: IntArray) -> tuple[IntArray, IntArray]:
    """The runs of one path: their lengths, and the state each is spent in. Runs end where a sequence ends."""
    begins = np.union1d(np.flatnonzero(states[1:] != states[:-1]) + 1, offsets[:-1])
    return np.diff(begins, append=len(states)), states[begins]


# One segmentation


def segmentation(states: Array) -> IntArray:
    """The segmentation that agrees best with the draws, states ordered by use.

    Two paths agree at a step if their states there are matched, one to one, so that as many steps as possible agree.
    The expected number of such steps is maximised: the draws themselves are candidates, and the best of them is
    improved by matching the draws' states to its own and letting every step take the state it has most often, until
    nothing changes. A state that only a few draws know gets no majority, nor does half of one that is split at random.
    """
    judges = states[_spread(len(states), JUDGES)]
    candidates = states[_spread(len(states), CANDIDATES)]
    agreement = [sum(_assign(judge, candidate)[2] for judge in judges) for candidate in candidates]
    best = by_use(candidates[int(np.argmax(agreement))])
    for _ in range(ROUNDS):
        votes = np.zeros((len(best), int(best.max()) + 1))
        for judge in judges:
            own, theirs, _ = _assign(judge, best)
            named = np.full(int(judge.max()) + 1, -1)
            named[own] = theirs
            label = named[judge]
            here = np.flatnonzero(label >= 0)
            votes[here, label[here]] += 1
        voted = by_use(np.argmax(votes, axis=1))
        if np.array_equal(voted, best):
            break
        best = voted
    return best


def _assign(states: Array, reference: Array) -> tuple[IntArray, IntArray, int]:
    """Pairs of states of two paths, one to one, that agree at as many steps as possible, and at how many."""
    counts = np.empty((int(states.max()) + 1, int(reference.max()) + 1), np.int64)
    count_overlap(states, reference, counts)
    own, theirs = linear_sum_assignment(counts, maximize=True)
    return own, theirs, int(counts[own, theirs].sum())


def by_use(states: Array) -> IntArray:
    """The same path with states numbered from the most used to the least, the earlier one first if used alike."""
    _, first, inverse, count = np.unique(states, return_index=True, return_inverse=True, return_counts=True)
    return _renumber(inverse, np.lexsort((first, -count)))


def named_after(states: IntArray, other: IntArray) -> IntArray:
    """The same path with states in the order of those they match on another path; those that match none come last."""
    n_states = int(states.max()) + 1
    matched = match(states, n_states, other, int(other.max()) + 1).state
    matched = matched[matched >= 0]
    return _renumber(states, np.append(matched, np.setdiff1d(np.arange(n_states), matched)))


def _renumber(states: IntArray, order: IntArray) -> IntArray:
    """State order[i] becomes state i."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[states]


def _spread(n: int, most: int) -> IntArray:
    """At most `most` of n draws, evenly spread."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


# Labels


class Match(NamedTuple):
    """How the states of one draw go with those of a segmentation."""

    label: IntArray  # (states of the draw,): the state in which most of its steps lie
    state: IntArray  # (states of the segmentation,): the draw's state that stands for it, −1 if none does


def match(states: Array, n_states: int, reference: IntArray, n_labels: int) -> Match:
    """Match the states of a draw to those of the reference, one to one, so that as many steps as possible agree.

    A pair counts as matched only if most of the steps of one of the two lie in the other. States left over take
    the label of the reference's state in which most of their steps lie.
    """
    counts = np.empty((n_states, n_labels), np.int64)
    count_overlap(states, reference, counts)
    pairs = linear_sum_assignment(counts, maximize=True)
    own, theirs = counts.sum(axis=1), counts.sum(axis=0)
    state = np.full(n_labels, -1)
    label = np.argmax(counts, axis=1)
    for k, j in zip(*pairs, strict=True):
        if 2 * counts[k, j] > min(own[k], theirs[j]):
            state[j], label[k] = k, j
    return Match(label, state)


def match_all(states: Array, reference: IntArray) -> list[Match]:
    """Match every row of `states`."""
    n_labels = int(reference.max()) + 1
    return [match(row, int(row.max()) + 1, reference, n_labels) for row in states]


def vote(states: Array, matches: list[Match], n_labels: int) -> FloatArray:
    """In how many rows of `states` each step has each label: (T, labels)."""
    votes = np.zeros((states.shape[1], n_labels))
    steps = np.arange(states.shape[1])
    for row, found in zip(states, matches, strict=True):
        votes[steps, found.label[row]] += 1
    return votes


@dataclass(frozen=True, eq=False)
class Summary:
    """The posterior in one segmentation, its states numbered from the most used to the least (or as in another).

    Quantities by draw have one row a draw, chains one after the other, and NaN where a draw does not have the state.

    Attributes
    ----------
    states
        (total T,): the segmentation that agrees best with the draws.
    probabilities
        (total T, n_states): in what share of the draws, labels matched, a step is in a state.
    matches
        For every draw, how its states go with those of the segmentation.
    sizes
        (draws,): the number of states each draw visits.
    initial, transitions
        Posterior means of π_0, (n_states,), and of the rows, (n_states, n_states), unseen states left out.
    dwell
        (draws, n_states): expected steps until a state is left, 1/(1 − π_kk).
    parameters
        Name of an emission parameter → (draws, n_states, …); of mixtures, moments and the number of components.
    phi
        Posterior mean of the emission parameters; of mixtures, the components of some of the draws together.
    """

    states: IntArray
    probabilities: FloatArray
    matches: list[Match]
    sizes: IntArray
    initial: FloatArray
    transitions: FloatArray
    dwell: FloatArray
    parameters: dict[str, FloatArray]
    phi: Phi

    @property
    def n_states(self) -> int:
        return len(self.initial)

    @property
    def shares(self) -> FloatArray:
        """(n_states,): expected share of the steps."""
        return np.asarray(self.probabilities.mean(axis=0))

    @property
    def support(self) -> FloatArray:
        """(n_states,): in what share of the draws the state is there."""
        return np.asarray(np.isfinite(self.dwell).mean(axis=0))

    def table(self) -> "pandas.DataFrame":
        """One row a state: share of the steps, dwell time, every emission parameter with its 95 % interval."""
        import pandas

        columns: dict[str, Any] = {"share": self.shares, "support": self.support}
        for name, values in {"dwell": self.dwell, **self.parameters}.items():
            for index in np.ndindex(values.shape[2:]):
                full = name + "".join(f"[{i}]" for i in index)
                quantiles = np.nanquantile(values[:, :, *index], QUANTILES, axis=0)
                columns |= dict(zip((full, f"{full}_low", f"{full}_high"), quantiles, strict=True))
        return pandas.DataFrame(columns, index=pandas.RangeIndex(self.n_states, name="state"))

    def __repr__(self) -> str:
        low, high = np.quantile(self.sizes, QUANTILES[1:], method="inverted_cdf")
        narrow = {name: values for name, values in self.parameters.items() if values[0, 0].size <= WIDEST}
        rows = [["state", "share", "dwell", *narrow]]
        for k in range(self.n_states):
            cells = [_interval(values[:, k]) for values in (self.dwell, *narrow.values())]
            rows.append([str(k), f"{self.shares[k]:.1%}", *cells])
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        found = f"{self.n_states} state{'s' * (self.n_states > 1)}; 95 % of the draws visit {low} to {high}"
        return "\n  ".join([found + "; medians and 95 % intervals:", *lines])


def summarise(
    draws: Iterable[Draw], states: Array, like: "Summary | None" = None, emission: Emission | None = None
) -> Summary:
    """Sum up `draws`, of which `states` are the paths, one a row; states named after those of `like` if given.

    The emission is asked what there is to say of a state if that is not just its φ.
    """
    describe = emission.describe if provides(emission, "describe") else fields  # type: ignore[union-attr]
    reference = segmentation(states)
    if like is not None:
        reference = named_after(reference, like.states)
    matches = match_all(states, reference)
    n_draws, n_labels = len(matches), int(reference.max()) + 1
    initial, rows = np.zeros(n_labels), np.zeros((n_labels, n_labels))
    dwell = np.full((n_draws, n_labels), np.nan)
    parameters: dict[str, FloatArray] = {}
    pooled: list[list[Phi]] = [[] for _ in range(n_labels)]
    some = set(_spread(n_draws, POOLED).tolist())
    for d, (draw, found) in enumerate(zip(draws, matches, strict=True)):
        _, first, row = draw.transitions
        here = np.flatnonzero(found.state >= 0)
        initial += np.bincount(found.label, first[:-1], n_labels)
        for j in here:
            to = np.bincount(found.label, row[found.state[j], :-1], n_labels)
            rows[j] += to
            dwell[d, j] = 1 / max(1 - to[j], TINY)
        for name, values in describe(draw.phi).items():
            if d == 0:
                parameters[name] = np.full((n_draws, n_labels, *values.shape[1:]), np.nan)
            parameters[name][d, here] = values[found.state[here]]
        for j in here:
            if d in some or not pooled[j]:
                pooled[j].append(take(draw.phi, found.state[[j]]))
    for name in angle_fields(draw.phi):
        parameters[name] = unwrap(parameters[name])
    if provides(emission, "pool"):
        phi = join(*(emission.pool(join(*parts)) for parts in pooled))  # type: ignore[union-attr]
    else:
        phi = rebuild(draw.phi, (np.nanmean(values, axis=0) for values in parameters.values()))
    return Summary(
        states=reference,
        probabilities=vote(states, matches, n_labels) / n_draws,
        matches=matches,
        sizes=np.array([len(found.label) for found in matches]),
        initial=initial / initial.sum(),
        transitions=rows / rows.sum(axis=1, keepdims=True),
        dwell=dwell,
        parameters=parameters,
        phi=phi,
    )


def _interval(values: FloatArray) -> str:
    """'1.2 [1.1, 1.31]', or several of them for a vector."""
    quantiles = np.nanquantile(values, QUANTILES, axis=0).reshape(3, -1).T
    cells = [f"{m:.3g} [{low:.3g}, {high:.3g}]" for m, low, high in quantiles]
    return ", ".join(cells).replace("-", "−")
