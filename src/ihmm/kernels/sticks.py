"""Lazy stick breaking of the infinite θ = (β, π): states and rows are drawn when they are first needed.

Each state has one column. β and every row have their own random stream and are broken in the order of the columns, as
far as needed, so their values do not depend on when that happens. Row 0 is the initial row. A row is open once it has
been started; its columns are known as far as they have been broken off.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import in_place, jit
from ihmm.kernels.draws import FLOOR, seed_stream, split

STICK, INITIAL, FRESH = 1 << 40, (1 << 40) + 1, 1 << 41  # stream numbers: β, the initial row, rows of new states
ENDLESS = 1 << 62


class Sticks(NamedTuple):
    """β and the open rows of π. `size` has the number of states broken off β, the number of open rows, and |V|.

    The arrays have spare room; states, rows and columns may have different amounts of it.
    """

    key: np.uint64
    n_total: int  # number of states; ENDLESS in the infinite model
    gamma: float
    alpha: float  # α = (1−ρ)c, the weight of β in a row
    kappa: float  # κ = ρc, the self-transition bias; the initial row has c β alone
    size: np.ndarray  # (3,): states, rows, explicit states
    beta: np.ndarray  # (states,)
    left: np.ndarray  # (states,): mass of β after each column
    stick: np.ndarray  # (4,): stream of β
    row_of: np.ndarray  # (states,): row of a state, −1 if it is not open
    rows: np.ndarray  # (rows, columns)
    known: np.ndarray  # (rows,): number of columns broken off the row
    own: np.ndarray  # (rows,): column of the self-transition bias, −1 if none of it is in the rest of the row
    rest: np.ndarray  # (rows,): mass of the row not broken off yet
    tail: np.ndarray  # (rows,): mass of the row outside V, including the rest
    reach: np.ndarray  # (rows, columns): cumulative sum of the row over the columns of the tail
    streams: np.ndarray  # (rows, 4)


@in_place
def start(sticks, beta, initial, rows):
    """Fill θ with the draws of the last sweep: K states, their rows and the initial row."""
    n_states = len(beta) - 1
    sticks.size[0], sticks.size[1], sticks.size[2] = n_states, n_states + 1, 0
    for k in range(n_states):
        sticks.beta[k] = beta[k]
        sticks.row_of[k] = k + 1
    sticks.left[n_states - 1] = beta[n_states]
    sum_left(sticks, 0)
    for r in range(n_states + 1):
        source = initial if r == 0 else rows[r - 1]
        for k in range(n_states):
            sticks.rows[r, k] = source[k]
        sticks.known[r], sticks.own[r], sticks.rest[r] = n_states, -1, source[n_states]
        seed_stream(sticks.streams[r], sticks.key, INITIAL if r == 0 else r - 1)
    seed_stream(sticks.stick, sticks.key, STICK)


@in_place
def break_until(sticks, threshold):
    """Break sticks off β until the rest is below `threshold` or no states remain. False: the arrays are full."""
    while sticks.left[sticks.size[0] - 1] >= threshold and sticks.size[0] < sticks.n_total:
        if sticks.size[0] == len(sticks.beta):
            return False
        break_stick(sticks)
    return True


@in_place
def break_stick(sticks):
    """Break the next state off β, without opening its row.

    b ~ Beta(1, γ) splits the rest of β. In a finite model of L states β is Dirichlet(γ/L, …): with n states to come,
    b ~ Beta(γ/L, (n−1)γ/L).
    """
    k = sticks.size[0]
    sticks.size[0] += 1
    to_come = sticks.n_total - k
    if sticks.n_total == ENDLESS:
        part, remainder = split(sticks.stick, 1.0, sticks.gamma)
    elif to_come == 1:
        part, remainder = 1.0, FLOOR
    elif sticks.gamma == math.inf:
        part, remainder = 1.0 / to_come, 1.0 - 1.0 / to_come
    else:
        each = sticks.gamma / sticks.n_total
        part, remainder = split(sticks.stick, each, each * (to_come - 1))
    sticks.beta[k] = max(sticks.left[k - 1] * part, FLOOR)
    sticks.left[k] = max(sticks.left[k - 1] * remainder, FLOOR)
    sticks.row_of[k] = -1


@jit
def bring_forward(sticks, threshold):
    """Put the new states with β_k ≥ threshold before the other new ones, and break them off every row.

    Given β, a row may be broken in any order that depends on β alone. The columns of the other new states, nearly all
    of them, are broken off when a draw first reaches that far into the tail of a row. False: the arrays are full.
    """
    n_old, n_states = sticks.known[0], sticks.size[0]
    fresh = sticks.beta[n_old:n_states]
    order = np.empty(len(fresh), np.int64)
    n_known = n_old + explicit_first(fresh, threshold, order)
    permute(fresh, order)
    sum_left(sticks, n_old)
    has_room = True
    for r in range(sticks.size[1]):
        has_room &= extend_row(sticks, r, n_known, math.inf)
    return has_room


@jit
def arrange(sticks, threshold, order):
    """Put the explicit set V = {k : β_k ≥ threshold} into the first columns; `order` receives the old columns.

    Its length is the number of known columns, which is the same for all rows.
    """
    sticks.size[2] = explicit_first(sticks.beta[: len(order)], threshold, order)
    permute(sticks.beta, order)
    permute(sticks.row_of, order)
    sum_left(sticks, 0)
    for r in range(sticks.size[1]):
        permute(sticks.rows[r], order)
        sum_tail(sticks, r)


@in_place
def explicit_first(beta, threshold, order):
    """An order of the states in which those with β_k ≥ threshold come first; returns the number of these."""
    n_explicit = 0
    for k in range(len(order)):
        if beta[k] >= threshold:
            order[n_explicit] = k
            n_explicit += 1
    last = n_explicit
    for k in range(len(order)):
        if beta[k] < threshold:
            order[last] = k
            last += 1
    return n_explicit


@jit
def permute(values, order):
    """Replace the first values by values[order]."""
    before = values[: len(order)].copy()
    for k in range(len(order)):
        values[k] = before[order[k]]


@in_place
def sum_left(sticks, begin):
    """The mass of β after each column from `begin` on, as a sum of small positive terms."""
    for k in range(sticks.size[0] - 1, begin, -1):
        sticks.left[k - 1] = sticks.left[k] + sticks.beta[k]


@in_place
def sum_tail(sticks, r):
    """The mass of a row outside V, as a sum of small positive terms (1 − Σ_V would cancel)."""
    total = 0.0
    for k in range(sticks.size[2], sticks.known[r]):
        total += sticks.rows[r, k]
        sticks.reach[r, k] = total
    sticks.tail[r] = total + sticks.rest[r]


@in_place
def open_until(sticks, limit):
    """Open the rows of all states, and break sticks until the rest of every row is below `limit` or there are no more
    states. All states are then explicit, and all columns known. False: the arrays are full.
    """
    r = 0
    while r <= sticks.size[0]:
        if r == sticks.size[1]:
            if r == len(sticks.rest):
                return False
            open_row(sticks, r - 1)
        if not extend_row(sticks, r, 0, limit):
            return False
        r += 1
    for r in range(sticks.size[1]):
        if not extend_row(sticks, r, sticks.size[0], math.inf):
            return False
    sticks.size[2] = sticks.size[0]
    return True


@in_place
def open_row(sticks, state):
    """Start the row of a state, π_j ~ DP(c, (1−ρ)β + ρδ_j), and draw its columns in V."""
    r = sticks.size[1]
    sticks.size[1] += 1
    sticks.row_of[state] = r
    sticks.known[r], sticks.own[r], sticks.rest[r] = 0, state, 1.0
    seed_stream(sticks.streams[r], sticks.key, FRESH + np.int64(state))
    extend_row(sticks, r, sticks.size[2], math.inf)
    sticks.tail[r] = sticks.rest[r]


@in_place
def extend_row(sticks, r, n_columns, limit):
    """Break off the first `n_columns` columns of row r, and more until its rest is below `limit`. False: the arrays are
    full.

    Beta(α β_k, α β_rest) splits the rest (initial row: c in place of α); κ is added to the side that has the column of
    the self-transition bias.
    """
    own, stream = sticks.own[r], sticks.streams[r]
    mass = sticks.alpha + sticks.kappa if r == 0 else sticks.alpha
    while sticks.known[r] < n_columns or (sticks.rest[r] >= limit and sticks.known[r] < sticks.n_total):
        k = sticks.known[r]
        if k == sticks.rows.shape[1] or k == sticks.size[0] == len(sticks.beta):
            return False
        if k == sticks.size[0]:
            break_stick(sticks)
        here = sticks.kappa if k == own else 0.0
        later = sticks.kappa if k < own else 0.0
        part, remainder = split(stream, mass * sticks.beta[k] + here, mass * sticks.left[k] + later)
        sticks.rows[r, k] = max(sticks.rest[r] * part, FLOOR)
        sticks.rest[r] = max(sticks.rest[r] * remainder, FLOOR)
        sticks.reach[r, k] = sticks.rows[r, k] + (sticks.reach[r, k - 1] if k > sticks.size[2] else 0.0)
        sticks.known[r] += 1
    return True
