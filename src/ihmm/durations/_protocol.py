"""What a family of duration laws P(D = d | ω) provides. NumPy only: no compiled code is needed."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.emissions._parameters import take

REQUIRED = ("sample_prior", "log_probability", "log_survivor", "hazard", "sample", "update", "mean")

ROUNDING = 1e-9

# Parameters of the duration laws of K states: a NamedTuple of arrays, each with leading axis K.
Omega = Any


class Runs(NamedTuple):
    """The segments of a trajectory."""

    length: IntArray  # (n,): steps
    state: IntArray  # (n,)
    censored: BoolArray  # (n,): cut off by the end of the data, so that the whole duration is at least `length`
    left_censored: BoolArray  # (n,): may have begun before the data


class Duration(Protocol):
    """The law of how many steps a state lasts, and the prior of its parameter.

    The parameters of K states are passed as `omega`, a NamedTuple of arrays with leading axis K. The functions of a
    duration `d` work entry by entry: `d` and the arrays of `omega` are broadcast against each other.

    `minimum` is the least possible duration. `constant_from` is an age from which on the hazard is the same, at least
    `minimum`, or None if it always depends on the age. Ages beyond it need not be told apart, so that such a law costs
    no more than a hidden Markov model.

    If the model is left-censored, the law also needs ``mean_residual(d, omega)``: E[D − d + 1 | D ≥ d, ω], the expected
    number of steps that are left, this one included, of a state in its d-th step. With S(d) = P(D ≥ d), a segment that
    had begun before the data lasts R more steps with P(R = d) = S(d) / E[D], so that the hazard of R is
    1 / mean_residual(d) and P(R ≥ d) = S(d) mean_residual(d) / E[D].
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

        Of a censored run only P(D ≥ length) is known; `complete` draws the whole duration given that. A run that is
        left-censored has one more factor, 1 / E[D | ω].
        """
        ...

    def mean(self, omega: Omega) -> FloatArray:
        """E[D | ω_k], (K,)."""
        ...


def checked_hazard(law: Duration, n_ages: int, omega: Omega) -> FloatArray:
    """P(D = a | D ≥ a) for a = 1 … n_ages, (K, n_ages); a law of the user's own may return anything."""
    found: FloatArray = np.asarray(law.hazard(n_ages, omega), np.float64)
    if found.ndim != 2 or found.shape[1] != n_ages:
        raise ValueError(f"{type(law).__name__}.hazard must have a column for each of {n_ages} ages, got {found.shape}")
    if not (found.min(initial=0.0) >= 0 and found.max(initial=0.0) <= 1 + ROUNDING):
        state, age = np.argwhere(~((found >= 0) & (found <= 1 + ROUNDING)))[0].tolist()
        raise ValueError(
            f"{type(law).__name__}.hazard must return probabilities, got {found[state, age]} at age {age + 1} of the "
            f"parameter {take(omega, np.array([state]))}"
        )
    return found


def log_lengths(law: Duration, runs: Runs, omega: Omega) -> FloatArray:
    """log p of how long every run lasts, given ω.

    The last one of a sequence is cut off by the end of the data, and one that is left-censored by their beginning.
    """
    log_p = np.array(law.log_probability(runs.length, take(omega, runs.state)))
    cut = np.flatnonzero(runs.censored | runs.left_censored)
    length, own = runs.length[cut], take(omega, runs.state[cut])
    log_p[cut] = law.log_survivor(length, own)
    _refuse_nan(law, "log_probability or log_survivor", log_p, runs, omega)
    if runs.left_censored.any():
        residual = np.where(runs.censored[cut], law.mean_residual(length, own), 1.0)  # type: ignore[attr-defined]
        log_p[cut] += np.where(runs.left_censored[cut], np.log(residual / law.mean(own)), 0.0)
        _refuse_nan(law, "mean or mean_residual", log_p, runs, omega)
    return log_p


def _refuse_nan(law: Duration, methods: str, log_p: FloatArray, runs: Runs, omega: Omega) -> None:
    """A law of the user's own may return anything; with NaN or +inf the trajectory would never change again."""
    if log_p.max(initial=-np.inf) < np.inf:
        return
    i = int(np.flatnonzero(~(log_p < np.inf))[0])
    raise ValueError(
        f"{type(law).__name__}.{methods} gives {log_p[i]} as the log probability that a state lasts {runs.length[i]} "
        f"steps, for the parameter {take(omega, runs.state[i : i + 1])}; it must be finite, or -inf if that is "
        "impossible"
    )


def complete(rng: np.random.Generator, law: Duration, runs: Runs, omega: Omega) -> IntArray:
    """Lengths of the runs, with the whole duration drawn for those that are censored.

    The likelihood of the result is P(D = length) for every run, and P(D = length) / E[D] for one that is left-censored.
    """
    length = runs.length.copy()
    both = np.flatnonzero(runs.censored & runs.left_censored)
    if both.size:
        length[both] = sample_residual(rng, law, length[both], take(omega, runs.state[both]))
    cut = np.flatnonzero(runs.censored | runs.left_censored)
    own = take(omega, runs.state[cut])
    length[cut] = _sample_from(rng, lambda d: law.log_survivor(d, own), np.maximum(length[cut], law.minimum))
    return length


def sample_residual(rng: np.random.Generator, law: Duration, least: IntArray, omega: Omega) -> IntArray:
    """Steps R ≥ `least` that a segment lasts which began before the data: P(R = d) ∝ P(D ≥ d)."""

    def log_survivor(d: IntArray) -> FloatArray:
        return np.asarray(law.log_survivor(d, omega) + np.log(law.mean_residual(d, omega)))  # type: ignore[attr-defined]

    return _sample_from(rng, log_survivor, least)


def _sample_from(rng: np.random.Generator, log_survivor: Callable[[IntArray], FloatArray], least: IntArray) -> IntArray:
    """D | D ≥ least. The inverse of the survivor function is found by doubling and bisection."""
    low = least
    level = log_survivor(low) - rng.standard_exponential(len(low))
    # P(D > d) = P(D ≥ d + 1): the draw is the least d with log P(D ≥ d + 1) ≤ level
    step = np.ones(len(low), np.int64)
    high = low + step
    while (short := log_survivor(high) > level).any():
        low, step = np.where(short, high, low), 2 * step
        high = np.where(short, high + step, high)
    while (high - low > 1).any():
        middle = (low + high) // 2
        beyond = log_survivor(middle) > level
        low, high = np.where(beyond, middle, low), np.where(beyond, high, middle)
    return low
