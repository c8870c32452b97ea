"""Simulation from the model: parameters and states from the prior, and observations given them."""

from bisect import bisect_right
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ihmm._checks import count
from ihmm._random import FLOOR, dirichlet
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations import Duration, Omega, sample_residual
from ihmm.emissions._parameters import join, take
from ihmm.emissions._protocol import has_past
from ihmm.model import Draw, Hyper, Model, Prior, Transitions
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior
from ihmm.trajectory import Trajectory

if TYPE_CHECKING:
    import xarray


class Simulated(NamedTuple):
    """A draw from the prior and simulated observations, one array per sequence."""

    y: list[Array]
    draw: Draw


def simulate(model: Model, lengths: int | list[int], seed: int | np.random.Generator | None = None) -> Simulated:
    """Simulate hyperparameters, transitions, emission parameters, states and observations.

    States are numbered in order of appearance; the draw has only those that are visited.
    """
    rng = np.random.default_rng(seed)
    sizes = [count("length", n) for n in ([lengths] if isinstance(lengths, int) else lengths)]
    draw = draw_prior(rng, model, sizes)
    ends = np.cumsum(sizes)[:-1]
    return Simulated(np.split(draw_observations(rng, model, draw, ends), ends), draw)


class PriorPredictive(NamedTuple):
    """Series simulated from the prior, each with unknowns of its own.

    Attributes
    ----------
    y
        (draws, total T) or (draws, total T, D): the sequences end to end.
    draws
        What the series were simulated from.
    lengths
        Length of each sequence.
    """

    y: Array
    draws: list[Draw]
    lengths: list[int]

    @property
    def states(self) -> IntArray:
        """(draws, total T): states in order of appearance."""
        return np.array([draw.states for draw in self.draws])

    @property
    def n_states(self) -> IntArray:
        """(draws,): number of states visited."""
        return np.array([draw.n_states for draw in self.draws])

    def to_datatree(self) -> "xarray.DataTree":
        """Convert to the format of ArviZ: groups prior, with the hyperparameters, and prior_predictive."""
        import xarray

        hyper = np.array([draw.hyper for draw in self.draws]).T
        prior = {name: (("chain", "draw"), values[None]) for name, values in zip(Hyper._fields, hyper, strict=True)}
        prior["n_states"] = (("chain", "draw"), self.n_states[None])
        axes = ("chain", "draw", "time", "column")[: self.y.ndim + 1]
        groups = {"prior": xarray.Dataset(prior), "prior_predictive": xarray.Dataset({"y": (axes, self.y[None])})}
        return xarray.DataTree.from_dict(groups)


def prior_predictive(
    model: Model, lengths: int | list[int], draws: int = 100, seed: int | np.random.Generator | None = None
) -> PriorPredictive:
    """Simulate from the prior again and again: what does the model expect before it has seen any data?"""
    rng = np.random.default_rng(seed)
    found = [simulate(model, lengths, rng) for _ in range(count("draws", draws))]
    sizes = [len(part) for part in found[0].y]
    return PriorPredictive(np.array([np.concatenate(one.y) for one in found]), [one.draw for one in found], sizes)


def draw_observations(rng: np.random.Generator, model: Model, draw: Draw, begin: IntArray) -> Array:
    """Simulate y given everything else. Emissions that depend on the past start anew at the steps `begin`."""
    emission, states, phi = model.emission, draw.states, draw.phi
    if draw.components is not None:
        return emission.sample_given(rng, states, draw.components, phi)  # type: ignore[attr-defined, no-any-return]
    if not has_past(emission):
        return emission.sample_observations(rng, states, phi)
    return np.concatenate([emission.sample_observations(rng, part, phi) for part in np.split(states, begin)])


def draw_prior(rng: np.random.Generator, model: Model, lengths: list[int]) -> Draw:
    """A draw of everything except the observations."""
    hyper = draw_hyper(rng, model)
    if model.duration is None:
        beta, states = draw_states(rng, model.prior, hyper, lengths)
        omega = None
    else:
        beta, states, omega = draw_segments(rng, model, model.duration, hyper, lengths)
    n_states = len(beta) - 1
    # Given states, β and hyperparameters, the rows of π are Dirichlet; φ does not depend on the states
    origin = np.append(0, states[:-1] + 1)  # row of each transition; sequences begin in row 0
    origin[[*accumulate(lengths)][:-1]] = 0
    counts = np.bincount(origin * n_states + states, minlength=(n_states + 1) * n_states)
    own = np.arange(1, n_states + 1), np.arange(n_states)
    concentration = np.empty((n_states + 1, n_states + 1))
    concentration[0], concentration[1:] = hyper.concentration * beta, hyper.alpha * beta
    concentration[own] += hyper.kappa
    concentration[:, :-1] += counts.reshape(n_states + 1, n_states)
    if omega is not None:
        concentration[own] = FLOOR  # no state follows itself
    rows = dirichlet(rng, concentration)
    phi = model.emission.sample_prior(rng, n_states)
    return Draw(Trajectory(states), Transitions(beta, rows[0], rows[1:]), phi, hyper, durations=omega)


def draw_hyper(rng: np.random.Generator, model: Model) -> Hyper:
    """Hyperparameters from their priors."""
    prior = model.prior

    def value(quantity: float | GammaPrior | BetaPrior | None) -> float:
        if quantity is None:
            return np.inf
        if isinstance(quantity, GammaPrior):
            return max(float(rng.gamma(quantity.shape, 1 / quantity.rate)), 1e-12)
        if isinstance(quantity, BetaPrior):
            return float(rng.beta(quantity.a, quantity.b))
        return float(quantity)

    return Hyper(value(prior.gamma), value(prior.concentration), value(prior.stickiness))


def draw_states(
    rng: np.random.Generator, prior: Prior, hyper: Hyper, lengths: list[int]
) -> tuple[FloatArray, IntArray]:
    """β and the states with π integrated out: every row is a Pólya urn over β, whose stick is broken as needed.

    A transition from state j repeats an earlier one in proportion to its count, is a self-transition with mass κ, or is
    drawn from β with mass α. If it falls into the remainder of β, the new state gets a size-biased share of that.
    """
    beta: list[float] = []
    remainder = 1.0
    urns: dict[int, list[int]] = {}
    states = []
    for length in lengths:
        previous = -1
        for _ in range(length):
            urn = urns.setdefault(previous, [])
            u = rng.random() * (len(urn) + hyper.concentration)
            kappa = hyper.kappa if previous >= 0 else 0.0
            if u < len(urn):
                state = urn[int(u)]
            elif u < len(urn) + kappa:
                state = previous
            else:
                state = bisect_right([*accumulate(beta)], rng.random()) if beta else 0
                if state == len(beta) and (not isinstance(prior, FinitePrior) or state < prior.n_states):
                    share = draw_share(rng, prior, hyper.gamma, len(beta))
                    beta.append(remainder * share)
                    remainder *= 1 - share
                state = min(state, len(beta) - 1)
            urn.append(state)
            states.append(state)
            previous = state
    return np.maximum(np.append(beta, remainder), FLOOR), np.array(states, dtype=np.int64)


def draw_segments(
    rng: np.random.Generator, model: Model, duration: Duration, hyper: Hyper, lengths: list[int]
) -> tuple[FloatArray, IntArray, Omega]:
    """β, the states, and the parameters of their durations, with π integrated out.

    A state is followed by another one: row j without j itself is an urn of mass c(1−β_j) over the rest of β.
    """
    finite = isinstance(model.prior, FinitePrior)
    beta: list[float] = []
    remainder = 1.0
    urns: dict[int, list[int]] = {}
    states: list[int] = []
    omega = duration.sample_prior(rng, 0)
    for length in lengths:
        end, previous = len(states) + length, -1
        while len(states) < end:
            urn = urns.setdefault(previous, [])
            weights = np.append(beta, remainder)
            if previous >= 0:
                weights[previous] = 0.0
            u = rng.random() * (len(urn) + hyper.concentration * weights.sum())
            if u < len(urn):
                state = urn[int(u)]
            else:
                state = int(np.searchsorted(np.cumsum(weights), rng.random() * weights.sum(), side="right"))
                state = min(state, int(np.flatnonzero(weights)[-1]))
                if state == len(beta):
                    share = draw_share(rng, model.prior, hyper.gamma, len(beta))
                    beta.append(remainder * share)
                    # A share can round to 1 while there are other states; every state is followed by one of them
                    last = finite and len(beta) == model.prior.n_states  # type: ignore[union-attr]
                    remainder = 0.0 if last else max(remainder * (1 - share), FLOOR)
                    omega = join(omega, duration.sample_prior(rng, 1))
            urn.append(state)
            own = take(omega, np.array([state]))
            if previous < 0 and model.left_censored:
                lasts = int(sample_residual(rng, duration, np.ones(1, np.int64), own)[0])
            else:
                lasts = int(duration.sample(rng, own)[0])
            states += [state] * min(lasts, end - len(states))
            previous = state
    return np.maximum(np.append(beta, remainder), FLOOR), np.array(states, dtype=np.int64), omega


def draw_share(rng: np.random.Generator, prior: Prior, gamma: float, n_visited: int) -> float:
    """Share of the remainder of β that a new state gets: Beta(1, γ), or its counterpart for finitely many states."""
    if not isinstance(prior, FinitePrior):
        return float(rng.beta(1, gamma))
    others = prior.n_states - n_visited - 1
    if others == 0 or np.isinf(gamma):
        return 1 / (others + 1)
    return float(rng.beta(1 + gamma / prior.n_states, others * gamma / prior.n_states))
