"""Mixture emissions: every state emits from its own Dirichlet process mixture, without truncation.

    y_t | s_t = k  ~  Σ_c ψ_kc f(· | θ_kc),      ψ_k ~ GEM(σ),   θ_kc ~ H,   σ ~ Gamma or fixed

This is the model of Fox et al., for which T15 §5 leaves an exact sampler open. The chain carries z_t, the component of
step t within its state. Given z, slice variables u_t ~ U(0, min(1, ψ_{s_t z_t}/ε′)) are drawn, and given these

    f(y_t, u_t | state k) = Σ_{c : ψ_kc ≥ ε′} ψ_kc f(y_t|θ_kc)  +  ε′ Σ_{c : ε′u_t ≤ ψ_kc < ε′} f(y_t|θ_kc)

is a finite sum: any sampler draws the trajectory from it, with z summed out. Slices do not restrict components above
ε′, so that these mix freely. Then z is drawn given the trajectory and the slices, the slices are discarded, and σ, ψ
and θ are drawn given z.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import Array, BoolArray, FloatArray, IntArray
from ihmm.emissions import _protocol
from ihmm.emissions._angles import angle_fields
from ihmm.emissions._mixture_parameters import (
    LOG_ZERO,
    MixturePhi,
    append_components,
    choose,
    flat_index,
    log_sum,
    occupied_components,
    sample_weights,
    scatter,
    slice_height,
)
from ihmm.emissions._parameters import fields, rebuild, take
from ihmm.emissions._protocol import (
    REQUIRED,
    Emission,
    MixtureEmission,
    log_density_at,
    log_marginal,
    provides,
    shares_parameters,
)
from ihmm.priors import GammaPrior

MAX_REMAINDER = 1e-3  # of the sticks of states drawn from the prior
MAX_IGNORED = 1e-6  # mass of the components that are ignored when rows are completed
MIN_SIGMA = 1e-12
TAIL_BATCH = 32  # tail components scored together: some families score all of them at every step given
INITIAL_COMPONENTS = 10  # of all states together, assigned at random when a chain starts
NO_COMPONENT = -1  # of a time step without a value


@dataclass(frozen=True)
class DPMixture(MixtureEmission):
    """Every state emits from a Dirichlet process mixture: its density may have several modes, or any shape.

    Parameters
    ----------
    component
        The family of the components with its prior, such as ``ihmm.Normal()``.
    concentration
        σ of ψ_k ~ GEM(σ), shared by all states: small values, few components. A number fixes it, a `GammaPrior` lets
        it be resampled.
    threshold
        ε′: components with ψ_kc ≥ ε′ are summed over at every step, the others only where a slice allows it. Any
        value is exact.
    """

    component: Emission
    concentration: float | GammaPrior = field(default_factory=GammaPrior)
    threshold: float = 0.03

    def __post_init__(self) -> None:
        if isinstance(self.component, type):
            raise TypeError(f"component must be an instance, got the class; call it: {self.component.__name__}(…)")
        missing = [name for name in REQUIRED if not provides(self.component, name)]
        lacks = f", which does not define {', '.join(missing)}" if missing else ""
        lacks += ": a mixture of its own already" * provides(self.component, "sliced")
        lacks += ", whose density depends on the past" * provides(self.component, "with_past")
        if not lacks and shares_parameters(self.component):
            lacks = ", whose states share parameters: use numbers in place of priors on them"
        if lacks:
            raise TypeError(f"component must be an emission such as ihmm.Normal(), got {self.component!r}{lacks}")
        if not isinstance(self.concentration, GammaPrior):
            name = "DPMixture concentration (a number fixes it, a GammaPrior lets it be resampled)"
            _checks.positive(name, self.concentration)
        if _checks.positive("DPMixture threshold", self.threshold) >= 1:
            raise ValueError(f"DPMixture threshold must be below 1, got {self.threshold!r}")

    def validate(self, y: Array) -> Array:
        return self.component.validate(y)

    # Outside of sampling, components that are not instantiated have the marginal density, as if each visit met a new
    # one

    def log_density(self, y: Array, phi: MixturePhi) -> FloatArray:
        out = self._log_sums(y, phi, phi.weights > 0)
        rest = np.log(np.maximum(phi.rest, FLOOR))[:, None] + log_marginal(self.component, y)
        return np.logaddexp(out, rest, out=out).T

    def log_density_at(self, y: Array, states: IntArray, phi: MixturePhi) -> FloatArray:
        out = np.log(np.maximum(phi.rest, FLOOR))[states] + log_marginal(self.component, y)
        for k in np.unique(states):
            here, own = np.flatnonzero(states == k), take(phi, np.array([k]))
            out[here] = np.logaddexp(out[here], self._log_sums(y[here], own, own.weights > 0)[0])
        return out

    def log_marginal(self, y: Array) -> FloatArray:
        return log_marginal(self.component, y)

    def sample_prior(self, rng: np.random.Generator, n: int) -> MixturePhi:
        return self._sample_states(rng, n, self._sample_sigma(rng), MAX_REMAINDER)

    def sample_new(self, rng: np.random.Generator, n: int, phi: MixturePhi) -> MixturePhi:
        return self._sample_states(rng, n, float(phi.sigma[0]), MAX_REMAINDER)

    def sample_observations(self, rng: np.random.Generator, states: IntArray, phi: MixturePhi) -> Array:
        places, phi = self._place(rng, states, phi)
        return self.sample_given(rng, states, places, phi)

    def complete(self, rng: np.random.Generator, y: Array, states: IntArray, phi: MixturePhi) -> Array:
        phi = self._deepen(rng, phi, MAX_IGNORED)
        places = np.empty(len(y), np.int64)
        for k in np.unique(states):
            here, (_, place) = states == k, np.nonzero(phi.weights[[k]])
            log_odds = self.component.log_density(y[here], take(phi.component, (k, place)))
            places[here] = place[choose(rng, log_odds + np.log(phi.weights[k, place]))[0]]
        state, place = np.nonzero(phi.weights)
        return _protocol.complete(
            self.component, rng, y, flat_index(phi, states, places), take(phi.component, (state, place))
        )

    def log_prior(self, phi: MixturePhi) -> FloatArray:
        """Sticks in the order in which the components stand: σ^C (1−Σψ)^{σ−1} Π_c 1/(mass left before c)."""
        real = phi.weights > 0
        before = 1 - np.cumsum(phi.weights, axis=1) + phi.weights
        sticks = np.where(real, np.log(phi.sigma)[:, None] - np.log(np.maximum(before, FLOOR)), 0.0).sum(axis=1)
        components = np.zeros(phi.weights.shape)
        components[real] = self.component.log_prior(take(phi.component, np.nonzero(real)))
        return np.asarray(sticks + (phi.sigma - 1) * np.log(np.maximum(phi.rest, FLOOR)) + components.sum(axis=1))

    def resample(self, rng: np.random.Generator, y: Array, states: IntArray, n_states: int) -> MixturePhi:
        return self.resample_mixtures(rng, y, states, None, n_states, None)[0]

    # The chain carries z: see `ihmm.emissions._protocol.MixtureEmission`

    def sliced(
        self, rng: np.random.Generator, y: Array, states: IntArray, components: IntArray, phi: MixturePhi
    ) -> "tuple[SlicedMixture, MixturePhi]":
        seated = components != NO_COMPONENT
        height = np.where(seated, slice_height(phi.weights, self.threshold)[states, components], 1.0)
        slices = np.where(seated, height * (1 - rng.random(len(y))), 1.0)
        sigma = float(phi.sigma[0])
        sliced = SlicedMixture(self.component, sigma, self.threshold, y=y, slices=slices, seated=seated)
        return sliced, self._deepen(rng, phi, sliced.limit)

    def resample_mixtures(
        self,
        rng: np.random.Generator,
        y: Array,
        states: IntArray,
        components: IntArray | None,
        n_states: int,
        phi: MixturePhi | None,
    ) -> tuple[MixturePhi, IntArray]:
        sigma = self._mean_sigma() if phi is None else float(phi.sigma[0])
        if components is None:
            components = rng.integers(max(INITIAL_COMPONENTS // n_states, 1), size=len(y))
        seats = occupied_components(states, components, n_states)
        # ψ is integrated out in the law of σ, so it is drawn after it
        sigma = self._resample_sigma(rng, sigma, seats.counts)
        weights, rest = sample_weights(rng, seats.counts, sigma)
        labels = seats.number[states, seats.components]
        if phi is not None and provides(self.component, "update"):
            theta = self.component.update(rng, y, labels, take(phi.component, (seats.state, seats.before)))
        else:
            theta = self.component.resample(rng, y, labels, len(seats.state))
        component = scatter(theta, seats.state, seats.place, weights.shape)
        return MixturePhi(weights, rest, np.full(n_states, sigma), component), seats.components

    def sample_components(
        self, rng: np.random.Generator, states: IntArray, phi: MixturePhi
    ) -> tuple[MixturePhi, IntArray]:
        components, phi = self._place(rng, states, phi)
        seats = occupied_components(states, components, len(phi.rest))
        weights, rest = sample_weights(rng, seats.counts, float(phi.sigma[0]))
        theta = take(phi.component, (seats.state, seats.before))
        component = scatter(theta, seats.state, seats.place, weights.shape)
        return MixturePhi(weights, rest, phi.sigma, component), seats.components

    def sample_given(self, rng: np.random.Generator, states: IntArray, components: IntArray, phi: MixturePhi) -> Array:
        state, place = np.nonzero(phi.weights)
        labels = flat_index(phi, states, components)
        y = self.component.sample_observations(rng, labels, take(phi.component, (state, place)))
        unseated = components == NO_COMPONENT
        if unseated.any():
            y[unseated] = self.sample_observations(rng, states[unseated], phi)
        return y

    def describe(self, phi: MixturePhi) -> dict[str, FloatArray]:
        """Number of components, σ, and averages over the components; variances are those of the whole mixture, within
        and between components."""
        weights = phi.weights / np.maximum(phi.weights.sum(axis=1, keepdims=True), FLOOR)

        def average(array: Array) -> FloatArray:
            return np.asarray(np.einsum("kc,kc...->k...", weights, array))

        out = {name: average(array) for name, array in fields(phi.component).items()}
        for name in angle_fields(phi.component):
            out[name] = np.angle(average(np.exp(1j * fields(phi.component)[name])))
        if "mean" in out:
            off = fields(phi.component)["mean"] - out["mean"][:, None]
            if "variance" in out:
                out["variance"] += average(off**2)
            if "covariance" in out:
                out["covariance"] += average(off[..., None] * off[..., None, :])
        return {"n_components": np.count_nonzero(phi.weights, axis=1).astype(np.float64), "sigma": phi.sigma, **out}

    def pool(self, phi: MixturePhi) -> MixturePhi:
        def flat(array: Array) -> Array:
            return array.reshape(1, -1, *array.shape[2:])

        component = rebuild(phi.component, map(flat, fields(phi.component).values()))
        return MixturePhi(flat(phi.weights) / len(phi.rest), phi.rest.mean()[None], phi.sigma.mean()[None], component)

    def _log_sums(self, y: Array, phi: MixturePhi, chosen: BoolArray) -> FloatArray:
        """log Σ ψ_kc f(y_t|θ_kc) over the chosen components of each state: (K, T)."""
        state, place = np.nonzero(chosen)
        out = np.full((len(phi.rest), len(y)), -np.inf)
        if len(state) == 0:
            return out
        table = np.ascontiguousarray(self.component.log_density(y, take(phi.component, (state, place))).T)
        table += np.log(phi.weights[state, place])[:, None]
        ends = np.cumsum(np.count_nonzero(chosen, axis=1))
        for k, (begin, end) in enumerate(zip(np.append(0, ends[:-1]), ends, strict=True)):
            if end == begin + 1:
                out[k] = table[begin]
            elif end > begin:
                log_sum(table[begin:end], out[k])
        return out

    def _place(self, rng: np.random.Generator, states: IntArray, phi: MixturePhi) -> tuple[IntArray, MixturePhi]:
        """Components c ~ ψ_{s_t}; sticks are broken further until all of them are instantiated."""
        above = 1 - rng.random(len(states))  # upper bound of the mass of the components after the chosen one
        phi = self._deepen(rng, phi, 0.5 * above.min(initial=1.0))
        cumulative = np.cumsum(phi.weights, axis=1)
        places = np.empty(len(states), np.int64)
        for k in np.unique(states):
            here = states == k
            last = np.flatnonzero(phi.weights[k])[-1]
            places[here] = np.minimum(np.searchsorted(cumulative[k], 1 - above[here], side="right"), last)
        return places, phi

    def _sample_states(self, rng: np.random.Generator, n: int, sigma: float, limit: float) -> MixturePhi:
        nowhere = np.empty(0, np.int64)
        nothing = scatter(take(self.component.sample_prior(rng, 1), nowhere), nowhere, nowhere, (n, 0))
        return self._deepen(rng, MixturePhi(np.empty((n, 0)), np.ones(n), np.full(n, sigma), nothing), limit)

    def _deepen(self, rng: np.random.Generator, phi: MixturePhi, limit: float) -> MixturePhi:
        """Break the sticks of all states until at most `limit` is left of each."""
        limit = max(limit, FLOOR)
        while (phi.rest > limit).any():
            sigma = float(phi.sigma[0])
            n = 2 + int(1.2 * sigma * np.log(phi.rest.max() / limit))
            log_left = np.log(1 - rng.random((len(phi.rest), n))) / sigma  # 1 − b, b ~ Beta(1, σ)
            left = np.exp(np.log(phi.rest)[:, None] + np.cumsum(log_left, axis=1))
            before = np.column_stack([phi.rest, left[:, :-1]])
            broken = before > limit
            size = broken.sum(axis=1)
            weights = np.where(broken, -np.expm1(log_left) * before, 0.0)[:, : size.max()]
            rest = np.column_stack([phi.rest, left])[np.arange(len(size)), size]
            state, place = np.nonzero(weights)
            theta = self.component.sample_prior(rng, len(state))
            phi = MixturePhi(
                np.hstack([phi.weights, weights]),
                np.maximum(rest, FLOOR),
                phi.sigma,
                append_components(phi.component, scatter(theta, state, place, weights.shape)),
            )
        return phi

    def _mean_sigma(self) -> float:
        return self.concentration.mean if isinstance(self.concentration, GammaPrior) else float(self.concentration)

    def _sample_sigma(self, rng: np.random.Generator) -> float:
        if not isinstance(self.concentration, GammaPrior):
            return float(self.concentration)
        return max(float(rng.gamma(self.concentration.shape, 1 / self.concentration.rate)), MIN_SIGMA)

    def _resample_sigma(self, rng: np.random.Generator, sigma: float, counts: IntArray) -> float:
        """σ | z, ψ integrated out: r_k ~ Beta(σ+1, n_k), q_k ~ Bernoulli(n_k/(n_k+σ)), then Gamma."""
        prior = self.concentration
        if not isinstance(prior, GammaPrior):
            return float(prior)
        customers = counts.sum(axis=1)
        customers = customers[customers > 0]
        log_r = np.log(np.maximum(rng.beta(sigma + 1, customers), FLOOR))
        q = rng.random(len(customers)) * (customers + sigma) < customers
        shape = prior.shape + np.count_nonzero(counts) - np.count_nonzero(q)
        return max(float(rng.gamma(shape, 1 / (prior.rate - log_r.sum()))), MIN_SIGMA)


@dataclass(frozen=True, eq=False)
class SlicedMixture(DPMixture):
    """The mixture given slice variables and σ, as Step 1 uses it. Its observations are indices of time steps."""

    y: Array = field(kw_only=True)
    slices: FloatArray = field(kw_only=True)  # u_t
    seated: BoolArray = field(kw_only=True)  # time steps that have a component: those with a value

    @property
    def limit(self) -> float:
        """Components below this weight are in no slice."""
        return self.threshold * float(self.slices.min())

    def log_density(self, y: IntArray, phi: MixturePhi) -> FloatArray:
        out = self._log_sums(self.y[y], phi, phi.weights >= self.threshold)
        tail = self._tail(y, phi)
        # summed relative to the largest term at each time step
        top = np.maximum(out.max(axis=0), LOG_ZERO)
        larger = tail.log_density > top[tail.step]
        np.maximum.at(top, tail.step[larger], tail.log_density[larger])
        share = np.exp(tail.log_density - top[tail.step])
        rare = np.bincount(tail.state * len(y) + tail.step, share, out.size).reshape(out.shape)
        state, step = np.nonzero(rare)
        out[state, step] = np.logaddexp(out[state, step], np.log(rare[state, step]) + top[step])
        return out.T

    def sample_prior(self, rng: np.random.Generator, n: int) -> MixturePhi:
        return self._sample_states(rng, n, self._mean_sigma(), self.limit)

    def sample_new(self, rng: np.random.Generator, n: int, phi: MixturePhi) -> MixturePhi:
        return self.sample_prior(rng, n)

    def assign(self, rng: np.random.Generator, states: IntArray, phi: MixturePhi) -> IntArray:
        """z_t given the trajectory and the slice variables."""
        components = np.full(len(states), NO_COMPONENT)
        for k in np.unique(states[self.seated]):
            steps = np.flatnonzero((states == k) & self.seated)
            own = take(phi, np.array([k]))
            components[steps] = self._assign(rng, steps, own)
        return components

    def _assign(self, rng: np.random.Generator, steps: IntArray, own: MixturePhi) -> IntArray:
        """The largest of log density plus Gumbel noise, first among explicit components, then with the tail."""
        best, out = np.full(len(steps), -np.inf), np.zeros(len(steps), np.int64)
        (explicit,) = np.nonzero(own.weights[0] >= self.threshold)
        if len(explicit):
            log_odds = self.component.log_density(self.y[steps], take(own.component, (0, explicit)))
            chosen, best = choose(rng, log_odds + np.log(own.weights[0, explicit]))
            out = explicit[chosen]
        tail = self._tail(steps, own)
        score = tail.log_density + rng.gumbel(size=len(tail.step))
        order = np.argsort(score)
        order = order[score[order] > best[tail.step[order]]]
        out[tail.step[order]] = tail.place[order]  # the last one written is the largest
        return out

    def _tail(self, steps: IntArray, phi: MixturePhi) -> "_Tail":
        """Pairs of a time step and a component below ε′ that its slice allows, with log ε′ f(y_t|θ_kc)."""
        slices = self.slices[steps]
        height = slice_height(phi.weights, self.threshold)
        state, place = np.nonzero((height >= slices.min(initial=1.0)) & (phi.weights < self.threshold))
        height = height[state, place]
        order = np.flatnonzero(slices <= height.max(initial=0.0))
        order = order[np.argsort(slices[order])]
        size = np.searchsorted(slices[order], height, side="right")
        which = np.repeat(np.arange(len(state)), size)
        step = order[np.arange(len(which)) - np.repeat(np.cumsum(size) - size, size)]
        log_density = np.full(len(which), np.log(self.threshold))
        for begin in range(0, len(state), TAIL_BATCH):
            few = slice(begin, begin + TAIL_BATCH)
            pairs = slice(*np.searchsorted(which, [begin, begin + TAIL_BATCH]))
            theta = take(phi.component, (state[few], place[few]))
            y = self.y[steps[step[pairs]]]
            log_density[pairs] += log_density_at(self.component, y, which[pairs] - begin, theta)
        return _Tail(step, state[which], place[which], log_density)


class _Tail(NamedTuple):
    step: IntArray
    state: IntArray
    place: IntArray
    log_density: FloatArray
