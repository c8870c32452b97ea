"""The infinite θ = (β, π), of which only some has been looked at: breaking it open state by state and row by row.

States stand in columns. Every row carries its own random stream and is broken in the order of the columns, so what a
row holds does not depend on when it was opened. Row 0 is the initial row.
"""

import math
from typing import NamedTuple

import numpy as np

from ihmm.kernels._jit import jit
from ihmm.kernels.draws import FLOOR, seed_stream, split

STICK, INITIAL, FRESH = 1 << 40, (1 << 40) + 1, 1 << 41  # stream numbers: β, the initial row, rows opened on the way
ENDLESS = 1 << 62


class Theta(NamedTuple):
    """β and the opened rows of π. `size` holds how many columns and rows are in use, and |V|."""

    key: np.uint64
    n_total: int  # states there are: ENDLESS in the infinite model
    gamma: float
    kappa: float  # κ = ρc, the self bias
    size: np.ndarray  # (3,): states, rows, explicit states
    beta: np.ndarray  # (capacity,)
    left: np.ndarray  # (capacity,): mass of β after each column
    stick: np.ndarray  # (4,): stream of β
    row_of: np.ndarray  # (capacity,): row of a state, −1 while it is not opened
    mass: np.ndarray  # (row capacity,): α = (1−ρ)c, for the initial row c
    rows: np.ndarray  # (row capacity, capacity)
    rest: np.ndarray  # (row capacity,): mass of the row not broken yet
    tail: np.ndarray  # (row capacity,): mass of the row outside V, opened or not
    reach: np.ndarray  # (row capacity, capacity): cumulative sum of the row over the tail's columns
    streams: np.ndarray  # (row capacity, 4)


@jit
def start(theta, beta, initial, rows):
    """Fill θ with what the last sweep drew: K states, their rows and the initial row."""
    n_states = len(beta) - 1
    theta.size[0], theta.size[1], theta.size[2] = n_states, n_states + 1, 0
    remaining = beta[n_states]
    for k in range(n_states - 1, -1, -1):
        theta.beta[k] = beta[k]
        theta.left[k] = remaining
        remaining += beta[k]
    for r in range(n_states + 1):
        source = initial if r == 0 else rows[r - 1]
        for k in range(n_states):
            theta.rows[r, k] = source[k]
        theta.rest[r] = source[n_states]
        seed_stream(theta.streams[r], theta.key, INITIAL if r == 0 else r - 1)
    for k in range(n_states):
        theta.row_of[k] = k + 1
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
def open_until(theta, limit):
    """Open every state's row, and break sticks until every row's leftover is below `limit`, or nothing is left.

    All states are then explicit. False: the arrays are full.
    """
    while True:
        if theta.size[0] >= len(theta.rest):
            return False
        while theta.size[1] <= theta.size[0]:
            open_row(theta, theta.size[1] - 1)
        if theta.size[0] == theta.n_total or theta.rest[: theta.size[1]].max() < limit:
            theta.size[2] = theta.size[0]
            return True
        if theta.size[0] == len(theta.beta):
            return False
        break_stick(theta)


@jit
def break_stick(theta):
    """Open the next state: its β, and its column in every opened row.

    b ~ Beta(1, γ) splits β's leftover, Beta(α β_k, α β_rest) that of a row (initial row: c in place of α). In a finite
    model of L states β is Dirichlet(γ/L, …): with n states to come, b ~ Beta(γ/L, (n−1)γ/L).
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
    for r in range(theta.size[1]):
        part, remainder = split(theta.streams[r], theta.mass[r] * theta.beta[k], theta.mass[r] * theta.left[k])
        theta.rows[r, k] = max(theta.rest[r] * part, FLOOR)
        theta.rest[r] = max(theta.rest[r] * remainder, FLOOR)
        theta.reach[r, k] = theta.reach[r, k - 1] + theta.rows[r, k]


@jit
def open_row(theta, state):
    """Draw the row of a state, π_j ~ DP(c, (1−ρ)β + ρδ_j), over all columns so far."""
    r = theta.size[1]
    theta.size[1] += 1
    theta.row_of[state] = r
    alpha = theta.mass[r]
    stream = theta.streams[r]
    seed_stream(stream, theta.key, FRESH + np.int64(state))
    remaining = 1.0
    for k in range(theta.size[0]):
        own = theta.kappa if k == state else 0.0
        later = theta.kappa if k < state else 0.0
        part, remainder = split(stream, alpha * theta.beta[k] + own, alpha * theta.left[k] + later)
        theta.rows[r, k] = max(remaining * part, FLOOR)
        remaining = max(remaining * remainder, FLOOR)
    theta.rest[r] = remaining
    sum_tail(theta, r)
    return r


@jit
def arrange(theta, threshold, order):
    """Put the explicit set V = {k : β_k ≥ threshold} into the first columns; `order` receives the old columns."""
    n_states, n_rows = theta.size[0], theta.size[1]
    n_explicit = 0
    for k in range(n_states):
        if theta.beta[k] >= threshold:
            order[n_explicit] = k
            n_explicit += 1
    theta.size[2] = n_explicit
    last = n_explicit
    for k in range(n_states):
        if theta.beta[k] < threshold:
            order[last] = k
            last += 1
    remaining = theta.left[n_states - 1]
    permute(theta.beta, order)
    permute(theta.row_of, order)
    for k in range(n_states - 1, -1, -1):
        theta.left[k] = remaining
        remaining += theta.beta[k]
    for r in range(n_rows):
        permute(theta.rows[r], order)
        sum_tail(theta, r)


@jit
def permute(values, order):
    """values[order] in place of the first values."""
    before = values[: len(order)].copy()
    for k in range(len(order)):
        values[k] = before[order[k]]


@jit
def sum_tail(theta, r):
    """The row's mass outside V, summed from small positive terms (1 − Σ_V would cancel)."""
    total = 0.0
    for k in range(theta.size[2], theta.size[0]):
        total += theta.rows[r, k]
        theta.reach[r, k] = total
    if theta.size[2] == theta.size[0]:
        theta.reach[r, theta.size[0] - 1] = 0.0
    theta.tail[r] = total + theta.rest[r]
