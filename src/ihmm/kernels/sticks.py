"""Lazy stick breaking of the infinite θ = (β, π): states and rows are drawn when they are first needed.

Each state has one column. β and every row have their own random stream and are broken in the order of the columns, as
far as needed, so their values do not depend on when that happens. Row 0 is the initial row. A row is open once it has
been started; its columns are known as far as they have been broken off.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import FLOOR, seed_stream, split

STICK, INITIAL, FRESH = 1 << 40, (1 << 40) + 1, 1 << 41  # stream numbers: β, the initial row, rows of new states
ENDLESS = 1 << 62


class Theta(NamedTuple):
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


@jit
def start(theta, beta, initial, rows):
    """Fill θ with the draws of the last sweep: K states, their rows and the initial row."""
    n_states = len(beta) - 1
    theta.size[0], theta.size[1], theta.size[2] = n_states, n_states + 1, 0
    for k in range(n_states):
        theta.beta[k] = beta[k]
        theta.row_of[k] = k + 1
    theta.left[n_states - 1] = beta[n_states]
    sum_left(theta, 0)
    for r in range(n_states + 1):
        source = initial if r == 0 else rows[r - 1]
        for k in range(n_states):
            theta.rows[r, k] = source[k]
        theta.known[r], theta.own[r], theta.rest[r] = n_states, -1, source[n_states]
        seed_stream(theta.streams[r], theta.key, INITIAL if r == 0 else r - 1)
    seed_stream(theta.stick, theta.key, STICK)


@jit
def break_until(theta, threshold):
    """Break sticks off β until the rest is below `threshold` or no states remain. False: the arrays are full."""
    while theta.left[theta.size[0] - 1] >= threshold and theta.size[0] < theta.n_total:
        if theta.size[0] == len(theta.beta):
            return False
        break_stick(theta)
    return True


@jit
def break_stick(theta):
    """Break the next state off β, without opening its row.

    b ~ Beta(1, γ) splits the rest of β. In a finite model of L states β is Dirichlet(γ/L, …): with n states to come,
    b ~ Beta(γ/L, (n−1)γ/L).
    """
    k = theta.size[0]
    theta.size[0] += 1
    to_come = theta.n_total - k
    if theta.n_total == ENDLESS:
        part, remainder = split(theta.stick, 1.0, theta.gamma)
    elif to_come == 1:
        part, remainder = 1.0, FLOOR
    elif theta.gamma == math.inf:
        part, remainder = 1.0 / to_come, 1.0 - 1.0 / to_come
    else:
        each = theta.gamma / theta.n_total
        part, remainder = split(theta.stick, each, each * (to_come - 1))
    theta.beta[k] = max(theta.left[k - 1] * part, FLOOR)
    theta.left[k] = max(theta.left[k - 1] * remainder, FLOOR)
    theta.row_of[k] = -1


@jit
def bring_forward(theta, threshold):
    """Put the new states with β_k ≥ threshold before the other new ones, and break them off every row.

    Given β, a row may be broken in any order that depends on β alone. The columns of the other new states, nearly all
    of them, are broken off when a draw first reaches that far into the tail of a row. False: the arrays are full.
    """
    n_old, n_states = theta.known[0], theta.size[0]
    fresh = theta.beta[n_old:n_states]
    order = np.empty(len(fresh), np.int64)
    n_known = n_old + explicit_first(fresh, threshold, order)
    permute(fresh, order)
    sum_left(theta, n_old)
    has_room = True
    for r in range(theta.size[1]):
        has_room &= extend_row(theta, r, n_known, math.inf)
    return has_room


@jit
def arrange(theta, threshold, order):
    """Put the explicit set V = {k : β_k ≥ threshold} into the first columns; `order` receives the old columns.

    Its length is the number of known columns, which is the same for all rows.
    """
    theta.size[2] = explicit_first(theta.beta[: len(order)], threshold, order)
    permute(theta.beta, order)
    permute(theta.row_of, order)
    sum_left(theta, 0)
    for r in range(theta.size[1]):
        permute(theta.rows[r], order)
        sum_tail(theta, r)


@jit
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


@jit
def sum_left(theta, begin):
    """The mass of β after each column from `begin` on, as a sum of small positive terms."""
    for k in range(theta.size[0] - 1, begin, -1):
        theta.left[k - 1] = theta.left[k] + theta.beta[k]


@jit
def sum_tail(theta, r):
    """The mass of a row outside V, as a sum of small positive terms (1 − Σ_V would cancel)."""
    total = 0.0
    for k in range(theta.size[2], theta.known[r]):
        total += theta.rows[r, k]
        theta.reach[r, k] = total
    theta.tail[r] = total + theta.rest[r]


@jit
def open_until(theta, limit):
    """Open the rows of all states, and break sticks until the rest of every row is below `limit` or there are no more
    states. All states are then explicit, and all columns known. False: the arrays are full.
    """
    r = 0
    while r <= theta.size[0]:
        if r == theta.size[1]:
            if r == len(theta.rest):
                return False
            open_row(theta, r - 1)
        if not extend_row(theta, r, 0, limit):
            return False
        r += 1
    for r in range(theta.size[1]):
        if not extend_row(theta, r, theta.size[0], math.inf):
            return False
    theta.size[2] = theta.size[0]
    return True


@jit
def open_row(theta, state):
    """Start the row of a state, π_j ~ DP(c, (1−ρ)β + ρδ_j), and draw its columns in V."""
    r = theta.size[1]
    theta.size[1] += 1
    theta.row_of[state] = r
    theta.known[r], theta.own[r], theta.rest[r] = 0, state, 1.0
    seed_stream(theta.streams[r], theta.key, FRESH + np.int64(state))
    extend_row(theta, r, theta.size[2], math.inf)
    theta.tail[r] = theta.rest[r]


@jit
def extend_row(theta, r, n_columns, limit):
    """Break off the first `n_columns` columns of row r, and more until its rest is below `limit`. False: the arrays are
    full.

    Beta(α β_k, α β_rest) splits the rest (initial row: c in place of α); κ is added to the side that has the column of
    the self-transition bias.
    """
    own, stream = theta.own[r], theta.streams[r]
    mass = theta.alpha + theta.kappa if r == 0 else theta.alpha
    while theta.known[r] < n_columns or (theta.rest[r] >= limit and theta.known[r] < theta.n_total):
        k = theta.known[r]
        if k == theta.rows.shape[1] or k == theta.size[0] == len(theta.beta):
            return False
        if k == theta.size[0]:
            break_stick(theta)
        here = theta.kappa if k == own else 0.0
        later = theta.kappa if k < own else 0.0
        part, remainder = split(stream, mass * theta.beta[k] + here, mass * theta.left[k] + later)
        theta.rows[r, k] = max(theta.rest[r] * part, FLOOR)
        theta.rest[r] = max(theta.rest[r] * remainder, FLOOR)
        theta.reach[r, k] = theta.rows[r, k] + (theta.reach[r, k - 1] if k > theta.size[2] else 0.0)
        theta.known[r] += 1
    return True
