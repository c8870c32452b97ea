"""Instantiating states of (β, π, φ) before and during a pass over the trajectory, and dropping unvisited ones after."""

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.durations import Duration, Omega
from ihmm.emissions._parameters import join, size
from ihmm.emissions._protocol import Emission, sample_new
from ihmm.kernels import counts
from ihmm.kernels import sticks as kernels
from ihmm.kernels.draws import seed_stream
from ihmm.kernels.sticks import ENDLESS, Sticks
from ihmm.model import Draw, Prior
from ihmm.priors import FinitePrior

SPARE = 48  # minimum number of states, rows and columns that fit before the arrays must grow
MAX_STATES, MAX_CELLS = 2**21, 2**28  # of θ: at most about 4 GB, most of which is never touched
MAX_OPEN = 2**12  # states that all have a row: with the copies that a beam makes of the rows, less than 1 GB
MIN_PHI_BATCH = 16  # new states whose φ is drawn together
MAX_WORD = 2**32 - 1


def open_sticks(draw: Draw, prior: Prior, key: np.uint64, threshold: float) -> tuple[Sticks, IntArray]:
    """θ with β's stick broken until the leftover is below `threshold`, and V = {k : β_k ≥ threshold} in front.

    Also returns the order of the columns: which state of the draw, or new state of V after those, is in each. Other new
    states follow in the order in which they are instantiated.
    """
    sticks = start_sticks(draw, prior, key)
    while not kernels.break_until(sticks, threshold):
        sticks = grow(sticks)
    while not kernels.bring_forward(sticks, threshold):
        sticks = grow(sticks)
    order = np.empty(sticks.known[0], np.int64)
    kernels.arrange(sticks, threshold, order)
    return sticks, order


def open_below(draw: Draw, prior: Prior, key: np.uint64, limit: float) -> Sticks:
    """θ with all rows instantiated and broken until the leftover of each is below `limit`; state k has row k + 1."""
    sticks = start_sticks(draw, prior, key)
    while not kernels.open_until(sticks, limit):
        if sticks.size[0] > MAX_OPEN:
            raise too_many_states(sticks)
        sticks = grow(sticks)
    return sticks


def start_sticks(draw: Draw, prior: Prior, key: np.uint64) -> Sticks:
    """θ as drawn in the last sweep, with spare capacity."""
    transitions, hyper = draw.transitions, draw.hyper
    n_states = len(transitions.rows)
    room = room_for(n_states), n_states + SPARE, n_states + SPARE
    sticks = empty_sticks(key, total_states(prior), hyper.gamma, hyper.alpha, hyper.kappa, *room)
    kernels.start(sticks, transitions.beta, transitions.initial, transitions.rows)
    return sticks


def empty_sticks(
    key: np.uint64, n_total: int, gamma: float, alpha: float, kappa: float, states: int, rows: int, columns: int
) -> Sticks:
    """θ with room for so many states, rows and columns, none of which is instantiated."""
    return Sticks(
        key,
        n_total,
        gamma,
        alpha,
        kappa,
        size=np.zeros(3, np.int64),
        beta=np.empty(states),
        left=np.empty(states),
        stick=np.empty(4, np.uint64),
        row_of=np.empty(states, np.int64),
        rows=np.empty((rows, columns)),
        known=np.empty(rows, np.int64),
        own=np.empty(rows, np.int64),
        rest=np.empty(rows),
        tail=np.empty(rows),
        reach=np.empty((rows, columns)),
        streams=np.empty((rows, 4), np.uint64),
    )


def total_states(prior: Prior) -> int:
    """Total number of states, in the form that compiled code reads."""
    return prior.n_states if isinstance(prior, FinitePrior) else ENDLESS


def room_for(n: int) -> int:
    """Capacity for n items; memory that is never touched costs nothing."""
    return 2 * n + SPARE


def copy_sticks(sticks: Sticks) -> Sticks:
    """A copy of θ with spare capacity. Both instantiate the same states later."""
    n_states, n_rows, _ = sticks.size.tolist()
    columns = n_columns(sticks)
    return resize(sticks, columns, room_for(n_states), room_for(n_rows), room_for(columns))


def grow(sticks: Sticks) -> Sticks:
    """The same θ in larger arrays, for whichever of states, rows and columns has run out."""
    used = (*sticks.size.tolist()[:2], n_columns(sticks))
    room = (len(sticks.beta), *sticks.rows.shape)
    sizes = (room_for(n) if n == most else most for n, most in zip(used, room, strict=True))
    return resize(sticks, used[2], *sizes)


def resize(sticks: Sticks, used_columns: int, states: int, rows: int, columns: int) -> Sticks:
    """The same θ in arrays of the given sizes."""
    if states > MAX_STATES or rows * columns > MAX_CELLS:
        raise too_many_states(sticks)
    used_states, used_rows, _ = sticks.size.tolist()
    larger = empty_sticks(*sticks[:5], states, rows, columns)
    larger.size[:], larger.stick[:] = sticks.size, sticks.stick
    for name in ("beta", "left", "row_of"):
        getattr(larger, name)[:used_states] = getattr(sticks, name)[:used_states]
    for name in ("known", "own", "rest", "tail", "streams"):
        getattr(larger, name)[:used_rows] = getattr(sticks, name)[:used_rows]
    for name in ("rows", "reach"):
        getattr(larger, name)[:used_rows, :used_columns] = getattr(sticks, name)[:used_rows, :used_columns]
    return larger


def too_many_states(sticks: Sticks) -> ValueError:
    return ValueError(
        f"γ = {sticks.gamma:g} and c = {sticks.alpha + sticks.kappa:g} call for more states than fit into memory "
        f"({sticks.size[0]} so far); use a smaller gamma, or a GammaPrior with a larger rate"
    )


def n_columns(sticks: Sticks) -> int:
    """Number of columns of the longest row."""
    known: list[int] = sticks.known[: sticks.size[1]].tolist()
    return max(known)


def open_state(sticks: Sticks, state: int) -> Sticks:
    """θ with this state and its row instantiated."""
    while not kernels.extend_row(sticks, 0, state + 1, np.inf):
        sticks = grow(sticks)
    if sticks.row_of[state] < 0:
        if sticks.size[1] == len(sticks.rest):
            sticks = grow(sticks)
        kernels.open_row(sticks, state)
    return sticks


def extend_phi(emission: Emission, key: np.uint64, phi: Phi, n_states: int) -> Phi:
    """φ for at least `n_states` states; new ones are drawn from H in batches that depend on the key alone."""
    while (known := size(phi)) < n_states:
        phi = join(phi, sample_new(emission, generator(key, known), max(known, MIN_PHI_BATCH), phi))
    return phi


def extend_omega(duration: Duration, key: np.uint64, omega: Omega, n_states: int) -> Omega:
    """The same for the parameters of durations."""
    while (known := size(omega)) < n_states:
        omega = join(omega, duration.sample_prior(generator(key, known), max(known, MIN_PHI_BATCH)))
    return omega


def generator(key: np.uint64, number: int) -> np.random.Generator:
    """``default_rng([key, number])``, with the words of the seed written out, which takes less time."""
    low, high = int(key) & MAX_WORD, int(key) >> 32
    if high == 0 or number > MAX_WORD:
        return np.random.default_rng([int(key), number])
    return np.random.Generator(np.random.PCG64(np.array([low, high, number], np.uint32)))


def new_stream(rng: np.random.Generator) -> Array:
    """A random stream for compiled code, seeded from the generator of the chain."""
    stream = np.empty(4, np.uint64)
    seed_stream(stream, rng.integers(0, 2**63, dtype=np.uint64), 0)
    return stream


def compact(path: IntArray, sticks: Sticks, rank: IntArray) -> tuple[IntArray, FloatArray, IntArray]:
    """Keep the visited states, in order of `rank`, and add the mass of the others to the leftover.

    Returns the path in the new labels, β over them, and the old labels.
    """
    states = np.empty(len(path), np.int64)
    kept = counts.compact(path, rank, states)
    beta = np.empty(len(kept) + 1)
    beta[:-1] = sticks.beta[kept]
    beta[-1] = max(1 - beta[:-1].sum(), sticks.left[sticks.size[0] - 1])
    return states, beta, kept
