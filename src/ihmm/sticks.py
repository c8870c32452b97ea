"""Growing and pruning the part of (β, π, φ) that has been looked at, around one pass over the trajectory."""

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._base import Emission, join, sample_new, size
from ihmm.kernels import counts, sticks
from ihmm.kernels.draws import seed_stream
from ihmm.kernels.sticks import ENDLESS, Theta
from ihmm.model import Draw, Prior
from ihmm.priors import FinitePrior

SPARE = 16  # states and rows that fit before the arrays must grow
FRESH = 16  # states whose φ is drawn together, at least


def open_theta(draw: Draw, prior: Prior, key: np.uint64, threshold: float) -> tuple[Theta, IntArray]:
    """θ with β's stick broken until the leftover is below `threshold`, and V = {k : β_k ≥ threshold} in front.

    Also returns which column (a state of the draw, or a fresh one after those) stands where.
    """
    theta = start_theta(draw, prior, key)
    while not sticks.break_until(theta, threshold):
        theta = grow(theta)
    order = np.empty(theta.size[0], np.int64)
    sticks.arrange(theta, threshold, order)
    return theta, order


def open_below(draw: Draw, prior: Prior, key: np.uint64, limit: float) -> Theta:
    """θ with all rows open and sticks broken until every row's leftover is below `limit`; state k has row k + 1."""
    theta = start_theta(draw, prior, key)
    while not sticks.open_until(theta, limit):
        theta = grow(theta)
    return theta


def start_theta(draw: Draw, prior: Prior, key: np.uint64) -> Theta:
    """θ as the last sweep drew it, with some room to grow."""
    transitions, hyper = draw.transitions, draw.hyper
    n_states = len(transitions.rows)
    capacity = n_states + SPARE
    theta = Theta(
        key=key,
        n_total=total_states(prior),
        gamma=hyper.gamma,
        kappa=hyper.kappa,
        size=np.zeros(3, np.int64),
        beta=np.empty(capacity),
        left=np.empty(capacity),
        stick=np.empty(4, np.uint64),
        row_of=np.empty(capacity, np.int64),
        mass=np.full(capacity + 1, hyper.alpha),
        rows=np.empty((capacity + 1, capacity)),
        rest=np.empty(capacity + 1),
        tail=np.empty(capacity + 1),
        reach=np.zeros((capacity + 1, capacity)),
        streams=np.empty((capacity + 1, 4), np.uint64),
    )
    theta.mass[0] = hyper.concentration
    sticks.start(theta, transitions.beta, transitions.initial, transitions.rows)
    return theta


def total_states(prior: Prior) -> int:
    """States there are, in the form compiled code reads."""
    return prior.n_states if isinstance(prior, FinitePrior) else ENDLESS


def grow(theta: Theta) -> Theta:
    """The same θ in arrays with more room: for columns, rows, or both, whichever is short."""
    n_rows, n_columns = theta.rows.shape
    more_rows = n_rows if theta.size[1] > n_rows // 2 else 0
    more_columns = n_columns if theta.size[0] > n_columns // 2 else 0

    def pad(array: FloatArray, rows: int, columns: int = 0) -> FloatArray:
        out = np.zeros((len(array) + rows, *(size + columns for size in array.shape[1:])), array.dtype)
        out[tuple(slice(size) for size in array.shape)] = array
        return out

    mass = np.full(n_rows + more_rows, theta.mass[1])
    mass[0] = theta.mass[0]
    return theta._replace(
        beta=pad(theta.beta, more_columns),
        left=pad(theta.left, more_columns),
        row_of=pad(theta.row_of, more_columns),
        mass=mass,
        rows=pad(theta.rows, more_rows, more_columns),
        rest=pad(theta.rest, more_rows),
        tail=pad(theta.tail, more_rows),
        reach=pad(theta.reach, more_rows, more_columns),
        streams=pad(theta.streams, more_rows),
    )


def copy_theta(theta: Theta) -> Theta:
    """A θ that can be opened without changing this one; both will find the same states."""
    arrays = {name: value.copy() for name, value in theta._asdict().items() if isinstance(value, np.ndarray)}
    return theta._replace(**arrays)  # type: ignore[arg-type]  # of the right fields


def open_state(theta: Theta, state: int) -> Theta:
    """θ with this state and its row opened."""
    while theta.size[0] <= state:
        if theta.size[0] == len(theta.beta):
            theta = grow(theta)
        sticks.break_stick(theta)
    if theta.row_of[state] < 0:
        if theta.size[1] == len(theta.rest):
            theta = grow(theta)
        sticks.open_row(theta, state)
    return theta


def extend_phi(emission: Emission, key: np.uint64, phi: Phi, n_states: int) -> Phi:
    """φ for at least `n_states` states, fresh ones drawn from H in batches that depend on the key alone."""
    while (known := size(phi)) < n_states:
        phi = join(phi, sample_new(emission, np.random.default_rng([int(key), known]), max(known, FRESH), phi))
    return phi


def new_stream(rng: np.random.Generator) -> Array:
    """A random stream for compiled code, seeded by the chain's generator."""
    stream = np.empty(4, np.uint64)
    seed_stream(stream, rng.integers(0, 2**63, dtype=np.uint64), 0)
    return stream


def compact(path: IntArray, theta: Theta, rank: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Keep the states the path visits, in order of `rank`, and fold the others into the leftover.

    Returns the path in the new labels, β over them, and the old labels.
    """
    kept = counts.compact(path, rank)
    beta = np.empty(len(kept) + 1)
    beta[:-1] = theta.beta[kept]
    beta[-1] = max(1 - beta[:-1].sum(), theta.left[theta.size[0] - 1])
    return path, beta, kept
