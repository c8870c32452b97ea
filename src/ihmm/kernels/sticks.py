"""The infinite θ = (β, π), of which only some has been looked at: breaking it open state by state and row by row.

States stand in columns. β and every row carry a random stream of their own and are broken in the order of the columns,
each as far as it is asked for, so what they hold does not depend on when that is. Row 0 is the initial row.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import FLOOR, seed_stream, split

STICK, INITIAL, FRESH = 1 << 40, (1 << 40) + 1, 1 << 41  # stream numbers: β, the initial row, rows opened on the way
ENDLESS = 1 << 62


class Theta(NamedTuple):
    """β and the opened rows of π. `size` holds how many states are broken off β, how many rows are open, and |V|.

    β, the rows and their columns have room for different numbers of each.
    """

    key: np.uint64
    n_total: int  # states there are: ENDLESS in the infinite model
    gamma: float
    alpha: float  # (1−ρ)c, what a row has of β
    kappa: float  # κ = ρc, its self bias; the initial row has c of β instead
    size: np.ndarray  # (3,): states, rows, explicit states
    beta: np.ndarray  # (states,)
    left: np.ndarray  # (states,): mass of β after each column
    stick: np.ndarray  # (4,): stream of β
    row_of: np.ndarray  # (states,): row of a state, −1 while it is not opened
    rows: np.ndarray  # (rows, columns)
    known: np.ndarray  # (rows,): how many columns of the row have been broken off
    own: np.ndarray  # (rows,): the column of the row's self bias, −1 if what is left has nothing of it
    rest: np.ndarray  # (rows,): mass of the row not broken yet
    tail: np.ndarray  # (rows,): mass of the row outside V, broken or not
    reach: np.ndarray  # (rows, columns): cumulative sum of the row over the tail's columns
    streams: np.ndarray  # (rows, 4)


@jit
def start(theta, beta, initial, rows):
    """Fill θ with what the last sweep drew: K states, their rows and the initial row."""
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
    """Break β's stick until what is left is below `threshold`, or nothing is. False: the arrays are full."""
    while theta.left[theta.size[0] - 1] >= threshold and theta.size[0] < theta.n_total:
        if theta.size[0] == len(theta.beta):
            return False
        break_stick(theta)
    return True


@jit
def break_stick(theta):
    """Open the next state: its β, and no more.

    b ~ Beta(1, γ) splits β's leftover. In a finite model of L states β is Dirichlet(γ/L, …): with n states to come,
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
    """Put the fresh states with β_k ≥ threshold before the other fresh ones, and break them off every row.

    Given β a row may be broken in any order that depends on β alone. The columns of the other fresh states, nearly all
    of them, wait until a draw reaches so far into the tail of a row. False: the arrays are full.
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

    It has the length of the rows, which are all known equally far.
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
    """The order of states in which those with β_k ≥ threshold come first; returns how many these are."""
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
    """values[order] in place of the first values."""
    before = values[: len(order)].copy()
    for k in range(len(order)):
        values[k] = before[order[k]]


@jit
def sum_left(theta, begin):
    """The mass of β after each column from `begin` on, summed from small positive terms."""
    for k in range(theta.size[0] - 1, begin, -1):
        theta.left[k - 1] = theta.left[k] + theta.beta[k]


@jit
def sum_tail(theta, r):
    """The row's mass outside V, summed from small positive terms (1 − Σ_V would cancel)."""
    total = 0.0
    for k in range(theta.size[2], theta.known[r]):
        total += theta.rows[r, k]
        theta.reach[r, k] = total
    theta.tail[r] = total + theta.rest[r]


@jit
def open_until(theta, limit):
    """Open every state's row, and break sticks until every row's leftover is below `limit`, or nothing is left.

    All states are then explicit, and all rows known. False: the arrays are full.
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
    """Begin the row of a state, π_j ~ DP(c, (1−ρ)β + ρδ_j), and draw its columns in V."""
    r = theta.size[1]
    theta.size[1] += 1
    theta.row_of[state] = r
    theta.known[r], theta.own[r], theta.rest[r] = 0, state, 1.0
    seed_stream(theta.streams[r], theta.key, FRESH + np.int64(state))
    extend_row(theta, r, theta.size[2], math.inf)
    theta.tail[r] = theta.rest[r]


@jit
def extend_row(theta, r, n_columns, limit):
    """Know the first columns of row r, and so many that its leftover is below `limit`. False: the arrays are full.

    Beta(α β_k, α β_rest) splits the leftover (initial row: c in place of α), the self bias κ added to the side that its
    column is on.
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
