"""What a family of emissions f(y | φ) with base measure H provides. NumPy only: no compiled code is needed."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.emissions._parameters import fields, take

if TYPE_CHECKING:
    from ihmm.emissions._conjugate import Conjugate
    from ihmm.kernels.memory import AfterChange

REQUIRED = ("validate", "log_density", "sample_prior", "resample", "sample_observations", "log_prior")
MARGINAL_DRAWS = 256
MARGINAL_BLOCK = 4096


class Emission(Protocol):
    """The density f(y | φ) of one time step and the prior H of its parameter.

    The parameters of K states are passed as `phi`, a NamedTuple of arrays with leading axis K, or a single such array.
    Parameters that all states share are repeated for each, and `sample_new` copies them.
    Fields that its class lists in a tuple `angles` are averaged on the circle in summaries; an emission whose
    observations are angles has a class attribute `circular = True`. Subclassing is not required: any class with the six
    required methods is an emission. The optional methods and what each unlocks are listed in
    docs/how-to/add_an_emission.md.

    A time step with no value at all is never passed to an emission, except to `validate`, which receives the values of
    another step in its place. A row in which some values are missing (NaN) is passed on: either refuse it in
    `validate`, or leave the missing values out of the density. During tuning `resample` and `update` are also called
    with a subset of the steps, or with some steps repeated, for candidate states.
    """

    # Required

    def validate(self, y: Array) -> Array:
        """One sequence, (T,) or (T, D), in the form the other methods expect; ValueError if it cannot be used."""
        ...

    def log_density(self, y: Array, phi: Phi) -> FloatArray:
        """log f(y_t | φ_k), shape (T, K), as a new array that the caller may overwrite.

        The transpose of a contiguous (K, T) array is fastest.
        """
        ...

    def sample_prior(self, rng: np.random.Generator, n: int) -> Phi:
        """n draws φ ~ H."""
        ...

    def resample(self, rng: np.random.Generator, y: Array, states: IntArray, n_states: int) -> Phi:
        """One draw of φ_k | {y_t : s_t = k} for every state k < n_states."""
        ...

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> Array:
        """y_t ~ f(· | φ_{s_t})."""
        ...

    def log_prior(self, phi: Phi) -> FloatArray:
        """log H(φ_k), shape (K,)."""
        ...

    # Optional. These have a body so that type checkers do not require them of every emission.

    def conjugate(self, y: Array) -> "Conjugate | None":
        """φ integrated out for data like these; None if that is not possible."""
        return None

    def update(self, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Phi:
        """A transition from the current `phi` that leaves φ | y, s invariant, such as a Metropolis step.

        It then replaces `resample`, which only initialises φ and need not be exact.
        """
        return None

    def with_past(self, y: Array, offsets: IntArray, missing: BoolArray | None) -> tuple[Array, BoolArray]:
        """For densities f(y_t | φ, y_{t−1}, …): all sequences end to end, each step with the past values it depends on.

        The other methods then receive these rows as `y`. The second array marks the steps whose past is not known well
        enough to be informative; they are not passed to the other methods. `sample_observations` takes a further
        argument `past`: None, or the values of the sequence so far.

        If the density depends on the last p states, too, the emission has an integer attribute `memory` = p; 0 means
        that it does not depend on the past at all. With p > 0 the `states` passed to `update`, `resample` and
        `log_density_at` are (n, p + 1), those of steps t, t − 1, …, t − p. `log_density` then is the density after more
        than p steps in a state, and `after_change` what compiled code needs for earlier ones. Every state must last at
        least p steps, see `ihmm.Model`.
        """
        return y, np.zeros(len(y), bool)

    def after_change(self, y: Array, phi: Phi) -> "AfterChange | None":
        """For densities that depend on the last p states: the density in the first p steps of a state."""
        return None

    def without_memory(self) -> "Emission":
        """For densities that depend on the last p states: the same family with p = 0, for which starts are found."""
        return self

    def column(self, d: int) -> "tuple[Emission, Callable[[Phi], Phi]] | None":
        """For plots: the marginal law of one column, as an emission of one number, and a function that maps φ to its
        parameter. None if there is no such law."""
        return None

    # Optional, with these defaults

    def sample_new(self, rng: np.random.Generator, n: int, phi: Phi) -> Phi:
        """n draws of φ for new states beside those of `phi`. The default assumes that states share no parameters."""
        return self.sample_prior(rng, n)

    def complete(self, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Array:
        """Rows with their missing values drawn given the observed ones. The default assumes independent columns."""
        return np.where(np.isnan(y), self.sample_observations(rng, states, phi), y)

    def log_marginal(self, y: Array) -> FloatArray:
        """log ∫ f(y_t | φ) H(dφ), shape (T,): how well a new state explains y_t.

        The default averages over a fixed set of draws from H (T15 §3.2). Any positive value keeps the sampler exact; a
        good one proposes new states where they are needed.
        """
        phi = self.sample_prior(np.random.default_rng(0), MARGINAL_DRAWS)
        blocks = [y[i : i + MARGINAL_BLOCK] for i in range(0, len(y), MARGINAL_BLOCK)]
        log_mean = np.concatenate([np.logaddexp.reduce(self.log_density(block, phi), axis=1) for block in blocks])
        log_mean -= np.log(MARGINAL_DRAWS)
        finite = np.isfinite(log_mean)
        return np.where(finite, log_mean, log_mean[finite].min() if finite.any() else 0.0)

    def log_density_at(self, y: Array, states: IntArray, phi: Phi) -> FloatArray:
        """log f(y_t | φ_{s_t}), shape (T,). The default loops over the states."""
        out = np.empty(len(states))
        for k in np.unique(states):
            here = states == k
            out[here] = self.log_density(y[here], take(phi, np.array([k])))[:, 0]
        return out


class ConjugateEmission(Emission, Protocol):
    """An emission whose parameter can be integrated out: it implements `conjugate`, and a marginal likelihood."""

    def log_evidence(self, y: Array) -> float:
        """log ∫ Π_t f(y_t | φ) H(dφ): the marginal likelihood of all of y under a single state."""
        ...


class MixtureEmission(Emission, Protocol):
    """An emission that is a mixture within each state; the chain carries the component z_t of every time step.

    Given slice variables the mixture has finitely many components, and any sampler draws the trajectory with z summed
    out. A step without a value has no component: −1.
    """

    def sliced(
        self, rng: np.random.Generator, y: Array, states: IntArray, components: IntArray, phi: Phi
    ) -> "tuple[SlicedEmission, Phi]":
        """Draw slice variables given z. Returns the emission that Step 1 uses, whose observations are indices of time
        steps, and φ with every component that a slice may contain."""
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
        """φ | y, s, z for the occupied components, and z relabelled to match. Without z, an initial value."""
        ...

    def sample_components(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> tuple[Phi, IntArray]:
        """z | s from the prior, with shared parameters taken from `phi`, and φ given z as in `resample_mixtures`."""
        ...

    def sample_given(self, rng: np.random.Generator, states: IntArray, components: IntArray, phi: Phi) -> Array:
        """y | s, z."""
        ...

    def describe(self, phi: Phi) -> dict[str, FloatArray]:
        """What a summary reports of each state, by name, (K, …): quantities that do not depend on component labels."""
        ...

    def pool(self, phi: Phi) -> Phi:
        """One state whose density is the average of the densities in `phi`."""
        ...


class SlicedEmission(Emission, Protocol):
    """A mixture given slice variables."""

    def assign(self, rng: np.random.Generator, states: IntArray, phi: Phi) -> IntArray:
        """z | y, s and the slice variables."""
        ...


def provides(emission: object, method: str) -> bool:
    """Whether an emission implements a method, rather than inheriting the placeholder of a protocol."""
    own = getattr(type(emission), method, None)
    return callable(own) and own is not _PLACEHOLDERS.get(method)


def has_past(emission: object) -> bool:
    """Whether the density of a step depends on past values."""
    return provides(emission, "with_past") and memory(emission) != 0


def memory(emission: object) -> int | None:
    """Number of past states that the density depends on; None if the emission does not say."""
    return getattr(emission, "memory", None)


def shared_parameters(emission: Emission, phi: Phi) -> set[str]:
    """Names of the parameters that all states have in common: those that a new state copies."""
    new = fields(sample_new(emission, np.random.default_rng(0), 2, phi))
    return {name for name, old in fields(phi).items() if old.size and np.array_equal(new[name][0], old[0])}


def shares_parameters(emission: Emission) -> bool:
    """Whether states have parameters in common that are drawn from H, rather than constants."""
    if getattr(type(emission), "sample_new", Emission.sample_new) is Emission.sample_new:
        return False
    first, second = (emission.sample_prior(np.random.default_rng(seed), 1) for seed in (1, 2))
    other = fields(second)
    return any(not np.array_equal(fields(first)[name], other[name]) for name in shared_parameters(emission, first))


_DEFAULTS = ("sample_new", "complete", "log_marginal", "log_density_at")
_PLACEHOLDERS = {
    name: vars(protocol)[name]
    for protocol in (Emission, ConjugateEmission, MixtureEmission)
    for name in vars(protocol)
    if not name.startswith("_") and name not in _DEFAULTS
}


def log_marginal(emission: Emission, y: Array) -> FloatArray:
    """log ∫ f(y_t | φ) H(dφ), by the emission's own method or the default."""
    own = getattr(emission, "log_marginal", None)
    return np.ascontiguousarray(own(y) if own else Emission.log_marginal(emission, y))


def log_density_at(emission: Emission, y: Array, states: IntArray, phi: Phi) -> FloatArray:
    """log f(y_t | φ_{s_t}), by the emission's own method or the default."""
    own = getattr(emission, "log_density_at", None)
    return own(y, states, phi) if own else Emission.log_density_at(emission, y, states, phi)


def sample_new(emission: Emission, rng: np.random.Generator, n: int, phi: Phi) -> Phi:
    """φ for new states beside those of `phi`, by the emission's own method or the default."""
    own = getattr(emission, "sample_new", None)
    return own(rng, n, phi) if own else emission.sample_prior(rng, n)


def complete(emission: Emission, rng: np.random.Generator, y: Array, states: IntArray, phi: Phi) -> Array:
    """Rows with missing values drawn, by the emission's own method or the default."""
    own = getattr(emission, "complete", None)
    return own(rng, y, states, phi) if own else Emission.complete(emission, rng, y, states, phi)
