"""What a family of emissions f(y | φ) with base measure H must be able to do. NumPy only: no numba needed."""

from collections.abc import Callable, Iterable
from typing import NamedTuple, Protocol

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi

MARGINAL_DRAWS = 256
LARGEST = 1e150  # of which the square is still a number
REQUIRED = ("validate", "log_density", "sample_prior", "resample", "sample_observations", "log_prior")  # of an emission


class Emission(Protocol):
    """The density f(y | φ) of one step and the prior H of its parameter.

    The parameters of K states travel as `phi`, a NamedTuple of arrays with leading axis K (or a single such array). If
    its class names some of them in a tuple `angles`, those are averaged round the circle when draws are summed up.
    Nothing needs to be subclassed. `with_past`, `update`, `column`, `complete`, `log_marginal` and `log_density_at` may
    be left out; the last three are then as here. Steps without any value never reach an emission, except for
    `validate`, which sees another step's values in their place. A row with some of its values missing, NaN, does:
    refuse it in `validate`, or leave those values out of the density everywhere. While tuning, `resample` and `update`
    are also given some of the steps only, or steps more than once, for states that are tried out.
    """

    def validate(self, y: Array) -> Array:
        """The values of one sequence, (T,) or (T, D), in the form the other methods expect, or a ValueError that says
        what is wrong."""
        ...

    def with_past(self, y: Array, offsets: IntArray, missing: BoolArray | None) -> tuple[Array, BoolArray]:
        """Optional: for densities f(y_t | φ, y_{t−1}, …). All sequences end to end, with what a density needs to know
        of the past beside each step: this is what the other methods then have as their `y`. Also the steps at which
        too little is known to say anything about the state; they do not reach the other methods.

        `sample_observations` takes a further argument then, `past`: None, or the values of the sequence so far.
        """
        return y, np.zeros(len(y), bool)  # a body, so that type checkers do not ask every emission for this method

    def log_density(self, y: Array, phi: Phi) -> FloatArray:
        """log f(y_t | φ_k), shape (T, K): a new array, which the caller may overwrite.

        Fastest when it is the transpose of a contiguous (K, T) array.
        """
        ...

    def sample_prior(self, rng: np.random.Generator, n: int) -> Phi:
        """n draws φ ~ H."""
        ...

    def resample(self, rng: np.random.Generator, y: Array, states: IntArray, n_states: int) -> Phi:
        """One draw of φ_k | {y_t : s_t = k} for every state k < n_states."""
        ...

    def update(self, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Phi:
        """Optional: a step from the present `phi` that leaves the law of φ | y, s invariant, such as Metropolis'.

        It then takes the place of `resample`, which only makes the first φ of a chain and need not be exact.
        """
        return None  # a body, so that type checkers do not ask every emission for this method

    def column(self, d: int) -> "tuple[Emission, Callable[[Phi], Phi]] | None":
        """Optional, for pictures: the law of one column alone, an emission of one number a step, and how its parameter
        is found in φ. None if there is no such law."""
        return None

    def complete(self, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Array:
        """Rows that have some of their values missing, with those drawn given the others. This default is for columns
        that are independent within a state."""
        return np.where(np.isnan(y), self.sample_observations(rng, states, phi), y)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> Array:
        """y_t ~ f(· | φ_{s_t})."""
        ...

    def log_prior(self, phi: Phi) -> FloatArray:
        """log H(φ_k), shape (K,)."""
        ...

    def log_marginal(self, y: Array) -> FloatArray:
        """log ∫ f(y_t | φ) H(dφ), shape (T,): how well a state never seen before explains y_t.

        This default averages over a fixed set of draws from H (T15 §3.2). Any positive value leaves the sampler
        exact; a good one makes it propose new states where they are needed.
        """
        phi = self.sample_prior(np.random.default_rng(0), MARGINAL_DRAWS)
        blocks = [y[i : i + 4096] for i in range(0, len(y), 4096)]
        log_mean = np.concatenate([np.logaddexp.reduce(self.log_density(block, phi), axis=1) for block in blocks])
        log_mean -= np.log(MARGINAL_DRAWS)
        finite = np.isfinite(log_mean)
        return np.where(finite, log_mean, log_mean[finite].min() if finite.any() else 0.0)

    def log_density_at(self, y: Array, states: IntArray, phi: Phi) -> FloatArray:
        """log f(y_t | φ_{s_t}), shape (T,). This default goes through the states one by one."""
        out = np.empty(len(states))
        for k in np.unique(states):
            here = states == k
            out[here] = self.log_density(y[here], take(phi, np.array([k])))[:, 0]
        return out


class Collapsed(NamedTuple):
    """Observations and prior of a conjugate family as compiled code reads them."""

    family: str  # a name that `ihmm.samplers.direct_assignment.FAMILIES` knows, or "product"
    prior: FloatArray
    values: FloatArray  # (T,), (T, D) for families of rows, (T, D, 1) for products
    size: int  # numbers that hold a state's sufficient statistics
    parts: "tuple[Part, ...]" = ()  # of a product


class Part(NamedTuple):
    """One family of a product, and where its values and a state's statistics are. The prior of the i-th part begins at
    prior[i, 0, 0]."""

    family: str
    rows: bool  # it is a family of rows, not of numbers
    columns: slice
    statistics: slice


class ConjugateEmission(Emission, Protocol):
    """An emission whose parameter can be integrated out."""

    def collapsed(self, y: Array) -> Collapsed | None:
        """What samplers that integrate φ out need to know; None if that cannot be done with these data."""
        ...

    def log_evidence(self, y: Array) -> float:
        """log ∫ Π_t f(y_t | φ) H(dφ): the probability of all of y coming from one state."""
        ...


def provides(emission: object, method: str) -> bool:
    """Whether an emission has a method of its own, not just the empty one a protocol declares."""
    own = getattr(type(emission), method, None)
    return callable(own) and own is not _DECLARED.get(method)


# Methods without a body; the two that have a default are not among them.
_DECLARED = {
    name: vars(protocol)[name]
    for protocol in (Emission, ConjugateEmission)
    for name in vars(protocol)
    if not name.startswith("_") and name not in ("complete", "log_marginal", "log_density_at")
}


def log_marginal(emission: Emission, y: Array) -> FloatArray:
    """The emission's own log ∫ f(y_t | φ) H(dφ), or the default."""
    own = getattr(emission, "log_marginal", None)
    return np.ascontiguousarray(own(y) if own else Emission.log_marginal(emission, y))


def log_density_at(emission: Emission, y: Array, states: IntArray, phi: Phi) -> FloatArray:
    """The emission's own log f(y_t | φ_{s_t}), or the default."""
    own = getattr(emission, "log_density_at", None)
    return own(y, states, phi) if own else Emission.log_density_at(emission, y, states, phi)


def complete(emission: Emission, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Array:
    """Rows without gaps, as the emission itself fills them, or the default."""
    own = getattr(emission, "complete", None)
    return own(rng, y, states, phi) if own else Emission.complete(emission, rng, y, states, phi)


def fields(phi: Phi) -> dict[str, Array]:
    """The arrays that φ is made of, by name."""
    if isinstance(phi, np.ndarray):
        return {"phi": phi}
    names = getattr(phi, "_fields", None) or tuple(f"phi_{i}" for i in range(len(phi)))
    return dict(zip(names, phi, strict=True))


def rebuild(like: Phi, arrays: Iterable[Array]) -> Phi:
    """φ of the same kind as `like`, made of other arrays."""
    if isinstance(like, np.ndarray):
        (array,) = arrays
        return array
    return like._make(arrays) if hasattr(like, "_make") else tuple(arrays)


def take(phi: Phi, index: IntArray | slice) -> Phi:
    """The parameters of some of the states."""
    return rebuild(phi, (array[index] for array in fields(phi).values()))


def join(*parts: Phi) -> Phi:
    """The parameters of several sets of states, one after the other."""
    return rebuild(parts[0], map(np.concatenate, zip(*(fields(part).values() for part in parts), strict=True)))


def size(phi: Phi) -> int:
    """How many states φ is for."""
    return len(next(iter(fields(phi).values())))


def sums_by_state(y: Array, states: IntArray, n_states: int) -> FloatArray:
    """The rows of y, (T, D), added up for every state: (n_states, D)."""
    out = np.zeros((n_states, y.shape[1]))
    order = np.argsort(states, kind="stable")
    visited, first = np.unique(states[order], return_index=True)
    if len(y):
        out[visited] = np.add.reduceat(y[order], first, axis=0, dtype=np.float64)
    return out


def real_values(y: Array, family: str) -> FloatArray:
    """The check that every family of real-valued univariate emissions shares."""
    if y.ndim != 1:
        raise ValueError(f"{family} takes one number a step, shape (T,); got {y.shape[1]} columns")
    values = y.astype(np.float64)
    bad = np.flatnonzero(~np.isfinite(values))
    if bad.size:
        raise ValueError(
            f"{family} expects finite values, got {bad.size} that are not (first at t = {bad[0]}); "
            "drop them, or write NaN for what is missing"
        )
    largest = float(np.abs(values).max())
    if largest > LARGEST:
        raise ValueError(f"{family} expects values within ±{LARGEST:g}, got {largest:g}; rescale the series")
    return values
