"""What pictures of a posterior show, whoever draws them: colours, traces, densities and runs, as plain arrays."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ihmm import summaries
from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions import DPMixture, Emission, Normal
from ihmm.emissions._parameters import fields, take
from ihmm.emissions._protocol import provides
from ihmm.emissions.normal import NormalPhi
from ihmm.model import Draw
from ihmm.posterior import Posterior

# Okabe and Ito's colours, which all kinds of colour vision tell apart, without black
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442")
GREY, PALE = "#8A8A8A", "#D9D9D9"
COLUMNS = 6  # of a series that are shown
LANE = 0.36  # half the height of a symbol's lane
SOME = 200  # draws that are enough for a curve with a band
WRITTEN = 12  # states up to which a matrix has its numbers written into it
LONGEST = 0.003  # share of the longest runs that is not shown
NAMES = {
    "n_states": "states",
    "log_joint": "log joint",
    "gamma": "γ",
    "alpha": "α",
    "kappa": "κ",
    "concentration": "c = α + κ",
    "stickiness": "ρ = κ/(α + κ)",
    "sigma": "σ",
}

Density = Callable[[Array, Phi], FloatArray]  # log f(y_t | φ_k), (T, K)


def colours(n: int) -> list[str]:
    """The colours of n states: seven hues, then the same darker, then lighter, then again from the start."""
    shades = [PALETTE, [mix(hue, "#000000", 0.45) for hue in PALETTE], [mix(hue, "#FFFFFF", 0.55) for hue in PALETTE]]
    every = [hue for shade in shades for hue in shade]
    return [every[k % len(every)] for k in range(n)]


def mix(colour: str, other: str, share: float) -> str:
    """Of two colours '#rrggbb'."""
    one, two = (np.array([int(hue[i : i + 2], 16) for i in (1, 3, 5)]) for hue in (colour, other))
    return "#" + "".join(f"{round(x):02x}" for x in (1 - share) * one + share * two)


def alphabet(posterior: Posterior) -> int | None:
    """How many symbols there are, if observations are symbols."""
    return getattr(posterior.model.emission, "n_symbols", None)


def sweeps(posterior: Posterior, name: str) -> tuple[dict[int, FloatArray], int]:
    """Chain → the trace by sweep, tuning included if it was saved, and how many sweeps that was."""
    tuned = {draws.chain: draws.traces[name] for draws in posterior.warmup.draws} if posterior.warmup else {}
    by_chain = {
        draws.chain: np.concatenate([tuned.get(draws.chain, ()), draws.traces[name]]) for draws in posterior.draws
    }
    return by_chain, max(map(len, tuned.values()), default=0)


# Densities


class Observed(NamedTuple):
    """The values of a column, those that are missing left out, and the density that is theirs."""

    values: Array
    density: Density
    n_symbols: int | None  # if they are symbols


def observations(posterior: Posterior, column: int | None = None) -> Observed:
    data, emission = posterior.data, posterior.model.emission
    n_columns = 1 if data.y.ndim == 1 else data.y.shape[1]
    if column is not None and not 0 <= column < n_columns:
        raise ValueError(f"column must be from 0 to {n_columns - 1}, got {column!r}")
    if not has_density(posterior, column or 0):
        raise ValueError(
            f"a column of {type(emission).__name__} cannot be drawn: φ needs the fields mean and variance or "
            "covariance, or the emission a method `column`, and a density that does not depend on the past"
        )
    if data.y.ndim == 1:
        known = data.y if data.missing is None else data.y[~data.missing]
        return Observed(known, emission.log_density, alphabet(posterior))
    found = _law(posterior, column or 0)
    assert found is not None  # it has a density
    law, pick = found
    values = data.values[:, column or 0]
    return Observed(
        law.validate(values[~np.isnan(values)]),
        partial(_mixed if posterior.model.is_mixture else _plain, law, pick),
        getattr(law, "n_symbols", None),
    )


def has_density(posterior: Posterior, column: int = 0) -> bool:
    """Whether a column has values, and its density is known and does not depend on the past."""
    if provides(posterior.model.emission, "with_past"):
        return False
    return posterior.data.y.ndim == 1 or _law(posterior, column) is not None


def _law(posterior: Posterior, column: int) -> tuple[Emission, Callable[[Phi], Phi]] | None:
    """The emission's own law of one of several columns, or a normal one if its φ looks like that; of a mixture, that of
    its components."""
    emission, names = posterior.model.emission, set(posterior.summary().parameters)
    if isinstance(emission, DPMixture):
        emission = emission.component
    if np.isnan(posterior.data.values[:, column]).all():
        return None
    if provides(emission, "column"):
        return emission.column(column)
    normal = "mean" in names and names & {"variance", "covariance"}
    return (Normal(), partial(_normal, column)) if normal else None


def _plain(law: Emission, pick: Callable[[Phi], Phi], y: Array, phi: Phi) -> FloatArray:
    return law.log_density(y, pick(phi))


def _mixed(law: Emission, pick: Callable[[Phi], Phi], y: Array, phi: Phi) -> FloatArray:
    state, place = np.nonzero(phi.weights)
    density = np.exp(law.log_density(y, pick(take(phi.component, (state, place)))))
    weights = np.zeros((len(state), len(phi.weights)))
    weights[np.arange(len(state)), state] = phi.weights[state, place]
    return np.asarray(np.log(np.maximum(density @ (weights / np.maximum(weights.sum(axis=0), FLOOR)), FLOOR)))


def _normal(column: int, phi: Phi) -> NormalPhi:
    named = fields(phi)
    variance = named["variance" if "variance" in named else "covariance"][:, column]
    return NormalPhi(named["mean"][:, column], variance[:, column] if variance.ndim == 2 else variance)


class Densities(NamedTuple):
    """Densities of the states, each times its share of the steps, and the bins of a histogram to go with them."""

    edges: FloatArray  # (bins + 1,)
    grid: Array  # (points,)
    curves: FloatArray  # (draws, points, states)
    whole: bool  # the density is one on whole numbers


def densities(posterior: Posterior, observed: Array, density: Density) -> Densities:
    whole = _counted(posterior, observed)
    if whole:
        low, high = int(observed.min()), int(observed.max())
        width = 1 + (high - low) // 200
        grid = np.arange(low, high + 1).astype(observed.dtype)
        edges: FloatArray = np.arange(low, high + 1 + width, width) - 0.5
    else:
        edges = np.histogram_bin_edges(observed, int(np.clip(2 * np.sqrt(len(observed)), 10, 100)))
        grid = np.linspace(edges[0], edges[-1], 400)
    return Densities(edges, grid, by_state(posterior, grid, density), whole)


def by_state(posterior: Posterior, y: Array, density: Density) -> FloatArray:
    """Density of every state times its share of the steps, by draw: (draws, points, states)."""
    n_labels = posterior.summary().n_states
    curves = []
    for draw, match in _some_draws(posterior):
        share = np.bincount(draw.states, minlength=draw.n_states) / len(draw.states)
        to_label = np.zeros((draw.n_states, n_labels))
        to_label[np.arange(draw.n_states), match.label] = share
        curves.append(np.exp(density(y, draw.phi)) @ to_label)
    return np.array(curves)


def _counted(posterior: Posterior, y: Array) -> bool:
    """Whether the density is one on whole numbers: the emission keeps them as integers, or has a rate as its φ."""
    return y.dtype.kind in "iu" or (set(posterior.summary().parameters) == {"rate"} and bool(np.all(y == np.floor(y))))


def _some_draws(posterior: Posterior) -> list[tuple[Draw, summaries.Match]]:
    """At most SOME draws, evenly spread, each with the labels of its states."""
    place = [(c, d) for c, draws in enumerate(posterior.draws) for d in range(len(draws))]
    chosen = np.unique(np.linspace(0, len(place) - 1, SOME).round().astype(np.int64))
    matches, draws = posterior.summary().matches, posterior.draws
    return [(draws[place[i][0]][place[i][1]], matches[i]) for i in chosen]


# Runs


def runs(posterior: Posterior) -> list[IntArray]:
    """How many steps the runs of each state last, over some of the draws."""
    found = [
        summaries.dwell_times(match.label[draw.states], posterior.data.offsets)
        for draw, match in _some_draws(posterior)
    ]
    lengths, states = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return [lengths[states == k] for k in range(posterior.summary().n_states)]


def at_least(lengths: IntArray) -> FloatArray:
    """P(L ≥ n) for n = 1, 2, …, up to the longest."""
    return np.asarray(np.cumsum(np.bincount(lengths)[:0:-1])[::-1] / len(lengths))
