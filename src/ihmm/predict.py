"""New observations under the draws: likelihood, states, forecasts.

Given a draw, the model still has infinitely many states. Its stick is broken further until little is left of any row;
the fresh states have parameters from the prior. What is left then is one more state that stands for all others: an
observation there has the marginal density ∫ f(y|φ) H(dφ), as if each visit met a new one. So no mass is dropped, and a
held-out likelihood is that of a proper model.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ihmm._threads import in_threads
from ihmm._typing import Array, BoolArray, FloatArray, IntArray, Phi
from ihmm.emissions import DPMixture
from ihmm.emissions._angles import circular_mean, unwrap
from ihmm.emissions._base import Emission, complete, join, provides, sample_new, take
from ihmm.kernels.forward_backward import filter_forward, most_probable_path, smooth, walk
from ihmm.model import Data, Draw, Model
from ihmm.priors import FinitePrior
from ihmm.samplers._base import densities, sequence_starts
from ihmm.sticks import extend_phi, open_below

REST = 0.01  # sticks are broken until less than this is left of every row
MOST_FRESH = 100  # or, if γ is large, until about so many fresh states, γ log(1/left), are open
TASK = 8  # draws a thread takes at a time; sums are taken in this order, whatever the number of threads
UNSEEN = -1  # label of a state that no draw has met


class Labelled(NamedTuple):
    """A draw, the labels of its states, and a seed for the states it has not met."""

    draw: Draw
    label: IntArray  # (states of the draw,)
    seed: Sequence[int]


class Finite(NamedTuple):
    """A hidden Markov model with finitely many states that stands for a draw of the infinite one.

    The states of the draw come first, then fresh ones. `phi` has one entry a state, or one less: the last state then
    stands for all that are left.
    """

    initial: FloatArray  # (L,)
    rows: FloatArray  # (L, L)
    phi: Phi
    open_ended: bool
    label: IntArray  # (L,): as `Labelled.label`, UNSEEN for fresh states


def unfold(model: Model, item: Labelled) -> Finite:
    """Break the draw's stick until little is left, and make a state of the rest."""
    draw, label, seed = item
    stick_key, phi_key = np.random.default_rng(seed).integers(0, 2**63, 2, dtype=np.uint64)
    finite = isinstance(model.prior, FinitePrior)
    limit = 0.0 if finite else max(REST, math.exp(-MOST_FRESH / draw.hyper.gamma))
    theta = open_below(draw, model.prior, stick_key, limit)
    n_states = int(theta.size[0])
    phi = take(extend_phi(model.emission, phi_key, draw.phi, n_states), slice(n_states))
    rows = theta.rows[: n_states + 1, :n_states]
    if not finite:
        rest = theta.rest[: n_states + 1, None]
        beta = np.append(theta.beta[:n_states], theta.left[n_states - 1])
        # the rest's own row, on average: (1−ρ) β + ρ δ
        last = (1 - draw.hyper.stickiness) * beta / beta.sum()
        last[-1] += draw.hyper.stickiness
        rows = np.vstack([np.hstack([rows, rest]), last])
    rows = rows / rows.sum(axis=1, keepdims=True)
    labels = np.full(rows.shape[1], UNSEEN)
    labels[: len(label)] = label
    return Finite(rows[0], np.ascontiguousarray(rows[1:]), phi, not finite, labels)


def log_densities(model: Model, data: Data, hmm: Finite) -> FloatArray:
    """log f(y_t | φ_k), shape (T, L), as the transpose of a contiguous array."""
    known = model.log_density(data, hmm.phi)
    if not hmm.open_ended:
        return known
    table = np.empty((len(hmm.initial), len(data.y)))
    table[:-1] = known.T
    table[-1] = data.log_marginal
    return table.T


def run_filter(model: Model, data: Data, hmm: Finite) -> tuple[FloatArray, FloatArray]:
    """p(s_t = k | y_1 … y_t), shape (T, L), and log p(y_t | y_1 … y_{t−1}), shape (T,)."""
    by_state = np.ascontiguousarray(log_densities(model, data, hmm).T)
    top = by_state.max(axis=0)
    density = densities(by_state, top)
    filtered, log_predictive = np.empty_like(density), np.empty(len(top))
    filter_forward(density, sequence_starts(data.offsets), hmm.initial, hmm.rows, filtered, log_predictive)
    return filtered, log_predictive + top


# Over all draws


def log_likelihood(model: Model, data: Data, items: Iterable[Labelled]) -> FloatArray:
    """log p(y_i | draw) of every draw and sequence: (draws, sequences)."""

    def of(item: Labelled) -> FloatArray:
        _, log_predictive = run_filter(model, data, unfold(model, item))
        return np.add.reduceat(log_predictive, data.offsets[:-1])

    return np.array(list(in_threads(of, items)))


def state_probabilities(
    model: Model, data: Data, items: Sequence[Labelled], n_labels: int, *, causal: bool
) -> FloatArray:
    """P(label of s_t = l | y), averaged over the draws, from all of y or, if `causal`, from y_1 … y_t.

    Shape (T, labels + 1): the last column is for states that no draw has met.
    """

    def of(part: Sequence[Labelled]) -> FloatArray:
        total = np.zeros((len(data.y), n_labels + 1))
        for item in part:
            hmm = unfold(model, item)
            probabilities, _ = run_filter(model, data, hmm)
            if not causal:
                smooth(probabilities, sequence_starts(data.offsets), hmm.rows)
            to_label = np.zeros((len(hmm.label), n_labels + 1))
            to_label[np.arange(len(hmm.label)), hmm.label] = 1  # UNSEEN is the last one
            total += probabilities @ to_label
        return total

    parts = [items[i : i + TASK] for i in range(0, len(items), TASK)]
    total = sum(in_threads(of, parts), start=np.zeros((len(data.y), n_labels + 1)))
    return np.asarray(total / total.sum(axis=1, keepdims=True))


def decode(model: Model, data: Data, items: Iterable[Labelled]) -> IntArray:
    """The most probable path under each draw, as labels: (draws, T)."""

    def of(item: Labelled) -> IntArray:
        hmm = unfold(model, item)
        return hmm.label[viterbi(log_densities(model, data, hmm), data.offsets, hmm.initial, hmm.rows)[0]]

    return np.array(list(in_threads(of, items)))


def viterbi(
    log_density: FloatArray, offsets: IntArray, initial: FloatArray, rows: FloatArray
) -> tuple[IntArray, float]:
    """The path that maximises p(s, y), and the logarithm of that."""
    path = np.empty(len(log_density), np.int64)
    with np.errstate(divide="ignore"):
        log_initial, log_rows = np.log(initial), np.log(rows)
    score = most_probable_path(np.ascontiguousarray(log_density), sequence_starts(offsets), log_initial, log_rows, path)
    return path, float(score)


@dataclass(frozen=True, eq=False)
class Samples:
    """Posterior samples of unknown observations.

    Attributes
    ----------
    y
        (draws, …) or (draws, …, D): one sample per draw.
    circular
        (D,): which columns are angles. Their means and intervals are taken on the circle.
    """

    y: Array
    circular: BoolArray | bool = field(default=False, kw_only=True)

    @property
    def unwrapped(self) -> Array:
        """`y` with every angle within ±π of its mean direction, so that quantiles over the draws are meaningful."""
        return np.where(self.circular, unwrap(self.y), self.y) if np.any(self.circular) else self.y

    @property
    def mean(self) -> FloatArray:
        """Posterior mean; of angles, the mean direction."""
        linear = self.y.mean(axis=0)
        return np.asarray(np.where(self.circular, circular_mean(self.y), linear) if np.any(self.circular) else linear)

    def interval(self, probability: float = 0.95) -> FloatArray:
        """Lower and upper bounds of the central interval with that probability, (2, …).

        An interval of angles may extend beyond ±π, as in (3.0, 3.4).
        """
        return np.asarray(np.quantile(self.unwrapped, [(1 - probability) / 2, (1 + probability) / 2], axis=0))


@dataclass(frozen=True, eq=False)
class Forecast(Samples):
    """Futures of one sequence, one a draw.

    Attributes
    ----------
    y
        (draws, steps) or (draws, steps, D): observations.
    states
        (draws, steps): labels of the states, −1 for states not met so far.
    """

    states: IntArray

    def state_probabilities(self, n_states: int) -> FloatArray:
        """(steps, n_states + 1): the last column is for states not met so far."""
        labels = np.where(self.states == UNSEEN, n_states, self.states)
        return np.stack([np.mean(labels == k, axis=0) for k in range(n_states + 1)], axis=1)


def forecast(model: Model, fitted: Data, items: Iterable[Labelled], steps: int, data: Data | None) -> list[Forecast]:
    """Continue every sequence for some steps, once a draw: those of `data`, or those the draws were made from."""

    known = fitted if data is None else data
    pasts = np.split(known.values, known.offsets[1:-1])

    def of(item: Labelled) -> list[tuple[Array, IntArray]]:
        hmm = unfold(model, item)
        if data is None:
            first = hmm.rows[item.draw.states[fitted.offsets[1:] - 1]]
        else:
            first = run_filter(model, data, hmm)[0][data.offsets[1:] - 1] @ hmm.rows
        rng = np.random.default_rng([*item.seed, 1])
        return [follow(rng, model, hmm, weights, steps, past) for weights, past in zip(first, pasts, strict=True)]

    futures = list(in_threads(of, items))
    circular = angular_columns(model.emission, known.values[0].size)
    return [
        Forecast(np.stack([y for y, _ in draws]), np.stack([states for _, states in draws]), circular=circular)
        for draws in zip(*futures, strict=True)
    ]


def follow(
    rng: np.random.Generator, model: Model, hmm: Finite, first: FloatArray, steps: int, past: Array | None = None
) -> tuple[Array, IntArray]:
    """A series whose first state has the weights `first`, and the labels of its states; it goes on from `past`, for
    emissions that depend on it."""
    n_states = len(hmm.initial)
    path = np.empty(steps, np.int64)
    cumulative = np.cumsum(np.vstack([hmm.rows, first]), axis=1)
    walk(n_states, cumulative, rng.random(steps), path)
    phi, states = hmm.phi, path
    visits = path == n_states - 1
    if hmm.open_ended and visits.any():  # every visit to the rest meets a state of its own
        phi = join(phi, sample_new(model.emission, rng, int(visits.sum()), phi))
        states = path.copy()
        states[visits] = n_states - 1 + np.arange(visits.sum())
    before = (past,) if provides(model.emission, "with_past") else ()
    return model.emission.sample_observations(rng, states, phi, *before), hmm.label[path]


@dataclass(frozen=True, eq=False)
class Imputed(Samples):
    """Values for what was missing, one set a draw.

    Attributes
    ----------
    y
        (draws, missing) or (draws, missing, D): rows in which only some values were missing have the others as they
        were.
    steps
        (missing,): where the values belong, counted over all sequences end to end.
    """

    steps: IntArray


def impute(model: Model, data: Data, items: Iterable[Labelled]) -> Imputed:
    """Draw what is missing given the states and parameters of each draw."""
    missing = np.zeros(len(data.y), bool) if data.missing is None else data.missing
    partly = np.asarray(np.isnan(data.y.reshape(len(data.y), -1)).any(axis=1)) & ~missing
    steps = np.flatnonzero(missing | partly)
    if steps.size and provides(model.emission, "with_past"):
        raise ValueError(
            f"{type(model.emission).__name__} cannot impute: a value in a gap depends on those before it and those "
            f"after it, and here a gap ends the history. There are {steps.size} steps with missing values"
        )

    def of(item: Labelled) -> Array:
        draw, rng = item.draw, np.random.default_rng([*item.seed, 2])
        values = model.emission.sample_observations(rng, draw.states[steps], draw.phi)
        if partly.any():
            values[partly[steps]] = complete(model.emission, rng, data.y[partly], draw.states[partly], draw.phi)
        return values

    circular = angular_columns(model.emission, data.values[0].size)
    return Imputed(np.array(list(in_threads(of, items))), steps, circular=circular)


def angular_columns(emission: Emission, n_columns: int) -> BoolArray:
    """(n_columns,): which columns of the observations are angles, as emissions with `circular = True` say."""
    if isinstance(emission, DPMixture):
        emission = emission.component
    if getattr(emission, "circular", False) or not provides(emission, "column"):
        return np.full(n_columns, getattr(emission, "circular", False))
    marginals = [emission.column(d) for d in range(n_columns)]
    return np.array([found is not None and getattr(found[0], "circular", False) for found in marginals])
