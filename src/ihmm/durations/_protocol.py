"""What a family of duration laws P(D = d | ω) provides. NumPy only: no compiled code is needed."""

from typing import Any, NamedTuple, Protocol

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray

REQUIRED = ("sample_prior", "log_probability", "log_survivor", "hazard", "sample", "update", "mean")

# Parameters of the duration laws of K states: a NamedTuple of arrays, each with leading axis K.
Omega = Any


class Runs(NamedTuple):
    """The segments of a trajectory."""

    length: IntArray  # (n,): steps
    state: IntArray  # (n,)
    censored: BoolArray  # (n,): cut off by the end of the data, so that the whole duration is at least `length`


class Duration(Protocol):
    """The law of how many steps a state lasts, and the prior of its parameter.

    The parameters of K states are passed as `omega`, a NamedTuple of arrays with leading axis K. The functions of a
    duration `d` work entry by entry: `d` and the arrays of `omega` are broadcast against each other.

    `minimum` is the least possible duration. `constant_from` is an age from which on the hazard is the same, at least
    `minimum`, or None if it always depends on the age. Ages beyond it need not be told apart, so that such a law costs
    no more than a hidden Markov model.
    """

    @property
    def minimum(self) -> int: ...

    @property
    def constant_from(self) -> int | None: ...

    def sample_prior(self, rng: np.random.Generator, n: int) -> Omega:
        """n draws of ω from its prior."""
        ...

    def log_probability(self, d: Array, omega: Omega) -> FloatArray:
        """log P(D = d | ω)."""
        ...

    def log_survivor(self, d: Array, omega: Omega) -> FloatArray:
        """log P(D ≥ d | ω); 0 up to `minimum`, finite for every d that is possible."""
        ...

    def hazard(self, n_ages: int, omega: Omega) -> FloatArray:
        """P(D = a | D ≥ a, ω_k) for a = 1 … n_ages, shape (K, n_ages)."""
        ...

    def sample(self, rng: np.random.Generator, omega: Omega) -> IntArray:
        """One duration for every entry of `omega`, (K,)."""
        ...

    def update(self, rng: np.random.Generator, runs: Runs, omega: Omega) -> Omega:
        """A transition from the current `omega` that leaves ω | runs invariant, such as an exact draw.

        Of a censored run only P(D ≥ length) is known; `complete` draws the whole duration given that.
        """
        ...

    def mean(self, omega: Omega) -> FloatArray:
        """E[D | ω_k], (K,)."""
        ...


def complete(rng: np.random.Generator, law: Duration, runs: Runs, omega: Omega) -> IntArray:
    """Lengths of the runs, with the whole duration drawn for those that are censored: D | D ≥ length.

    The inverse of the survivor function is found by doubling and bisection.
    """
    length = runs.length.copy()
    where = np.flatnonzero(runs.censored)
    own = type(omega)(*(field[runs.state[where]] for field in omega))
    low = np.maximum(length[where], law.minimum)
    level = law.log_survivor(low, own) - rng.standard_exponential(len(where))
    # P(D > d) = P(D ≥ d + 1): the draw is the least d with log P(D ≥ d + 1) ≤ level
    step = np.ones(len(where), np.int64)
    high = low + step
    while (short := law.log_survivor(high, own) > level).any():
        low, step = np.where(short, high, low), 2 * step
        high = np.where(short, high + step, high)
    while (high - low > 1).any():
        middle = (low + high) // 2
        beyond = law.log_survivor(middle, own) > level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    length[where] = low
    return length
