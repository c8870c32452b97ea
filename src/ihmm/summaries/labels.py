"""State labels that mean the same in every draw.

Every draw numbers its states arbitrarily. The draws are therefore summarised by one segmentation, and the states of
each draw are matched to the states of that segmentation.
"""

from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.kernels.counts import count_overlap

MAX_CANDIDATES = 60  # draws considered as a segmentation
MAX_VOTERS = 200  # draws that a candidate is compared with
MAX_ROUNDS = 10  # of votes that improve the best candidate


def segmentation(states: Array) -> IntArray:
    """The segmentation that agrees best with the draws, one per row of `states`; labels are ordered by use.

    Two state sequences agree at a step if their states there are matched to each other, where the one-to-one matching
    maximises the number of such steps. The expected number of agreeing steps is maximised: the best draw is improved by
    matching the states of the other draws to its own and taking a majority vote at every step, until nothing changes. A
    state that occurs in few draws does not get a majority, nor does a state that is split off at random.
    """
    voters = states[evenly_spaced(len(states), MAX_VOTERS)]
    candidates = states[evenly_spaced(len(states), MAX_CANDIDATES)]
    agreement = [sum(_best_matching(voter, candidate)[2] for voter in voters) for candidate in candidates]
    best = order_by_use(candidates[int(np.argmax(agreement))])
    for _ in range(MAX_ROUNDS):
        improved = order_by_use(np.argmax(_votes(voters, best), axis=1))
        if np.array_equal(improved, best):
            break
        best = improved
    return best


def _votes(voters: Array, reference: IntArray) -> FloatArray:
    """(T, labels): number of voters that have each label at each step; unmatched states do not vote."""
    votes = np.zeros((len(reference), int(reference.max()) + 1))
    for voter in voters:
        matched, labels, _ = _best_matching(voter, reference)
        label_of = np.full(int(voter.max()) + 1, -1)
        label_of[matched] = labels
        label = label_of[voter]
        steps = np.flatnonzero(label >= 0)
        votes[steps, label[steps]] += 1
    return votes


def _best_matching(states: Array, reference: Array) -> tuple[IntArray, IntArray, int]:
    """One-to-one pairs of states of two sequences that agree at as many steps as possible, and how many these are."""
    counts = np.empty((int(states.max()) + 1, int(reference.max()) + 1), np.int64)
    count_overlap(states, reference, counts)
    rows, columns = one_to_one(counts)
    return rows, columns, int(counts[rows, columns].sum())


def one_to_one(counts: IntArray) -> tuple[IntArray, IntArray]:
    """Rows and columns of `counts`, each at most once, with the largest sum."""
    from scipy.optimize import linear_sum_assignment  # slow to import

    rows, columns = linear_sum_assignment(counts, maximize=True)
    return rows, columns


def order_by_use(states: Array) -> IntArray:
    """The same sequence with states numbered from the most to the least used; ties are broken by first appearance."""
    _, first, inverse, count = np.unique(states, return_index=True, return_inverse=True, return_counts=True)
    return _renumber(inverse, np.lexsort((first, -count)))


def align_labels(states: IntArray, reference: IntArray) -> IntArray:
    """The same sequence with states in the order of those they match in the reference, unmatched states last."""
    n_states = int(states.max()) + 1
    matched = match(states, n_states, reference, int(reference.max()) + 1).state
    matched = matched[matched >= 0]
    return _renumber(states, np.append(matched, np.setdiff1d(np.arange(n_states), matched)))


def _renumber(states: IntArray, order: IntArray) -> IntArray:
    """State order[i] becomes state i."""
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank[states]


def evenly_spaced(n: int, most: int) -> IntArray:
    """Indices of at most `most` of n draws, evenly spaced."""
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


class Match(NamedTuple):
    """How the states of a draw correspond to the states of a segmentation."""

    label: IntArray  # (states of the draw,): label of each state
    state: IntArray  # (labels,): the matching state of the draw, −1 if there is none


def match(states: Array, n_states: int, reference: IntArray, n_labels: int) -> Match:
    """Match the states of a draw one-to-one to the labels of the reference, so that as many steps as possible agree.

    A pair counts as matched only if most steps of one lie in the other. Unmatched states get the label in which most of
    their steps lie.
    """
    counts = np.empty((n_states, n_labels), np.int64)
    count_overlap(states, reference, counts)
    pairs = one_to_one(counts)
    state_size, label_size = counts.sum(axis=1), counts.sum(axis=0)
    state = np.full(n_labels, -1)
    label = np.argmax(counts, axis=1)
    for k, j in zip(*pairs, strict=True):
        if 2 * counts[k, j] > min(state_size[k], label_size[j]):
            state[j], label[k] = k, j
    return Match(label, state)


def match_all(states: Array, reference: IntArray) -> list[Match]:
    """Match every row of `states`."""
    n_labels = int(reference.max()) + 1
    return [match(row, int(row.max()) + 1, reference, n_labels) for row in states]


def count_labels(states: Array, matches: list[Match], n_labels: int) -> FloatArray:
    """(T, labels): number of rows of `states` in which each step has each label."""
    counts = np.zeros((states.shape[1], n_labels))
    steps = np.arange(states.shape[1])
    for row, found in zip(states, matches, strict=True):
        counts[steps, found.label[row]] += 1
    return counts
