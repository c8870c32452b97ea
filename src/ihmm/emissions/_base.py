"""What a family of emissions f(y | φ) with base measure H must be able to do. NumPy only: no numba needed."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi, Statistics

Summed = TypeVar("Summed", bound=tuple[Any, ...])
MARGINAL_DRAWS = 256
LARGEST = 1e150  # of which the square is still a number
REQUIRED = ("validate", "log_density", "sample_prior", "resample", "sample_observations", "log_prior")  # of an emission


class Emission(Protocol):
    """The density f(y | φ) of one step and the prior H of its parameter.

    The parameters of K states travel as `phi`, a NamedTuple of arrays with leading axis K (or a single such array). If
    its class names some of them in a tuple `angles`, those are averaged round the circle when draws are summed up.
    Nothing needs to be subclassed. `with_past`, `update`, `column`, `sample_new`, `complete`, `log_marginal` and
    `log_density_at` may be left out; the last four are then as here. So may `statistics`, `combine`, `resample_given`
    and `log_likelihood_given`, all four together: pieces of the data can then be summed up by different processes.

    Steps without any value never reach an emission, except for `validate`, which sees another step's values in their
    place. A row with some of its values missing, NaN, does: refuse it in `validate`, or leave those values out of the
    density everywhere. While tuning, `resample` and `update` are also given some of the steps only, or steps more than
    once, for states that are tried out.
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

    def statistics(self, y: Array, states: IntArray, n_states: int) -> Statistics | None:
        """Optional: all that φ | y, s depends on, summed up by state, in a NamedTuple of arrays with leading axis
        n_states as φ is; of no steps, too. None if these data cannot be summed up."""
        return None

    def combine(self, parts: Sequence[Statistics]) -> Statistics:
        """Statistics of pieces of the data (same n_states), put together, in this order."""
        return None

    def resample_given(self, rng: np.random.Generator, statistics: Statistics) -> Phi:
        """One draw of φ_k | y, s for every state, as `resample` has it."""
        return None

    def log_likelihood_given(self, statistics: Statistics, phi: Phi) -> float:
        """log Π_t f(y_t | φ_{s_t})."""
        return 0.0

    def column(self, d: int) -> "tuple[Emission, Callable[[Phi], Phi]] | None":
        """Optional, for pictures: the law of one column alone, an emission of one number a step, and how its parameter
        is found in φ. None if there is no such law."""
        return None

    def sample_new(self, rng: np.random.Generator, n: int, phi: Phi) -> Phi:
        """n draws of φ for states beside those of `phi`. This default is for states that share nothing."""
        return self.sample_prior(rng, n)

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

    family: str  # a name in `ihmm.kernels.families.dispatch.NUMBERS`, or "product"
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


class MixtureEmission(Emission, Protocol):
    """An emission that is a mixture within each state: step t has a component z_t there, which the chain carries.

    Given slices the mixture has finitely many components, and any sampler draws the path with z summed out. A step
    without a value has no component: −1.
    """

    def sliced(
        self, rng: np.random.Generator, y: Array, states: IntArray, components: IntArray, phi: Phi
    ) -> "tuple[SlicedEmission, Phi]":
        """Draw slices given z: the emission that Step 1 sees, whose observations are the numbers of the steps, and φ
        with all the components that may be in a slice."""
        ...

    def resample_mixtures(
        self,
        rng: np.random.Generator,
        y: Array,
        states: IntArray,
        components: IntArray | None,
        n_states: int,
        phi: Phi | None,
    ) -> tuple[Phi, IntArray]:
        """φ | y, s, z, of the components that z has, and z in their numbers. Without z, a first guess."""
        ...

    def sample_components(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> tuple[Phi, IntArray]:
        """z | s from the prior, what its states share taken from `phi`, and φ given z as `resample_mixtures` has it."""
        ...

    def sample_given(self, rng: np.random.Generator, states: IntArray, components: IntArray, phi: Phi) -> Array:
        """y | s, z."""
        ...

    def describe(self, phi: Phi) -> dict[str, FloatArray]:
        """What a summary says of each state, by name, (K, …): numbers that do not depend on how components are
        numbered."""
        ...

    def pool(self, phi: Phi) -> Phi:
        """One state whose density is the average of those in `phi`."""
        ...


class SlicedEmission(Emission, Protocol):
    """A mixture given slices."""

    def assign(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> IntArray:
        """z | y, s and the slices."""
        ...


def provides(emission: object, method: str) -> bool:
    """Whether an emission has a method of its own, not just the empty one a protocol declares."""
    own = getattr(type(emission), method, None)
    return callable(own) and own is not _DECLARED.get(method)


def sums_up(emission: object) -> bool:
    """Whether an emission has statistics that say the same as its other methods: in a subclass that has some of these
    anew, and not the statistics, they are out of date."""
    if not provides(emission, "statistics"):
        return False
    place = {name: i for i, kind in reversed([*enumerate(type(emission).__mro__)]) for name in vars(kind)}
    others = "resample", "update", "log_density", "log_density_at"
    return place["resample_given"] <= min(place.get(name, len(place)) for name in others)


# Methods without a body; those that have a default are not among them.
_DECLARED = {
    name: vars(protocol)[name]
    for protocol in (Emission, ConjugateEmission, MixtureEmission)
    for name in vars(protocol)
    if not name.startswith("_") and name not in ("sample_new", "complete", "log_marginal", "log_density_at")
}


def log_marginal(emission: Emission, y: Array) -> FloatArray:
    """The emission's own log ∫ f(y_t | φ) H(dφ), or the default."""
    own = getattr(emission, "log_marginal", None)
    return np.ascontiguousarray(own(y) if own else Emission.log_marginal(emission, y))


def log_density_at(emission: Emission, y: Array, states: IntArray, phi: Phi) -> FloatArray:
    """The emission's own log f(y_t | φ_{s_t}), or the default."""
    own = getattr(emission, "log_density_at", None)
    return own(y, states, phi) if own else Emission.log_density_at(emission, y, states, phi)


def sample_new(emission: Emission, rng: np.random.Generator, n: int, phi: Phi) -> Phi:
    """The emission's own draws for states beside those of `phi`, or the default."""
    own = getattr(emission, "sample_new", None)
    return own(rng, n, phi) if own else emission.sample_prior(rng, n)


def complete(emission: Emission, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Array:
    """Rows without gaps, as the emission itself fills them, or the default."""
    own = getattr(emission, "complete", None)
    return own(rng, y, states, phi) if own else Emission.complete(emission, rng, y, states, phi)


def fields(phi: Phi) -> dict[str, Array]:
    """The arrays that φ is made of, by name; those of a part that is made of several itself have its place."""
    if isinstance(phi, np.ndarray):
        return {"phi": phi}
    names = getattr(phi, "_fields", None) or tuple(f"phi_{i}" for i in range(len(phi)))
    named: dict[str, Array] = {}
    for name, part in zip(names, phi, strict=True):
        named |= {name: part} if isinstance(part, np.ndarray) else fields(part)
    return named


def rebuild(like: Phi, arrays: Iterable[Array]) -> Phi:
    """φ of the same kind as `like`, made of other arrays."""
    left = iter(arrays)
    rebuilt = _rebuild(like, left)
    if next(left, None) is not None:
        raise ValueError(f"φ of the kind {type(like).__name__} is made of fewer arrays than were given")
    return rebuilt


def _rebuild(like: Phi, arrays: Iterator[Array]) -> Phi:
    if isinstance(like, np.ndarray):
        return next(arrays)
    parts = [_rebuild(part, arrays) for part in like]
    return like._make(parts) if hasattr(like, "_make") else tuple(parts)


def take(phi: Phi, index: Any) -> Phi:
    """The parameters of some of the states, by numbers, or by what else an array takes as an index."""
    return rebuild(phi, (array[index] for array in fields(phi).values()))


def join(*parts: Phi) -> Phi:
    """The parameters of several sets of states, one after the other; what is narrower than others ends in zeros."""
    return rebuild(parts[0], map(_concatenate, zip(*(fields(part).values() for part in parts), strict=True)))


def _concatenate(arrays: tuple[Array, ...]) -> Array:
    if len({array.shape[1:] for array in arrays}) == 1:
        return np.concatenate(arrays)
    shape = np.max([array.shape[1:] for array in arrays], axis=0)
    out = np.zeros((sum(map(len, arrays)), *shape), arrays[0].dtype)
    begin = 0
    for array in arrays:
        out[(slice(begin, begin + len(array)), *map(slice, array.shape[1:]))] = array
        begin += len(array)
    return out


def size(phi: Phi) -> int:
    """How many states φ is for."""
    return len(next(iter(fields(phi).values())))


def add(parts: Sequence[Summed]) -> Summed:
    """Statistics of pieces of the data put together, if they are plain sums."""
    arrays = zip(*(fields(part).values() for part in parts), strict=True)
    together: Summed = rebuild(parts[0], map(total, arrays))
    return together


def total(parts: Sequence[Array] | Array) -> Array:
    """Their sum, added up in order: NumPy's own order depends on their shape."""
    return np.asarray(np.cumsum(parts, axis=0)[-1])


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
