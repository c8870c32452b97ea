"""Data and colours shared by `ihmm.plots` and `ihmm.report`: traces, densities and dwell times as plain arrays."""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from ihmm._random import FLOOR
from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions import DPMixture, Emission, LogScale, Normal
from ihmm.emissions._parameters import fields, rebuild, take
from ihmm.emissions._protocol import has_past, provides
from ihmm.emissions.normal import NormalPhi
from ihmm.model import Draw
from ihmm.posterior import Posterior
from ihmm.summaries import summary as summaries
from ihmm.summaries.labels import evenly_spaced

# The colour-blind-safe palette of Okabe and Ito, without black
PALETTE = ("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442")
GREY, PALE = "#8A8A8A", "#D9D9D9"
COLUMNS = 6  # at most this many columns of a series are shown
LANE = 0.36  # half the height of the lane of a symbol
MAX_DRAWS = 200  # at most this many draws enter a density or a dwell time distribution
WRITTEN = 12  # up to this many states, values are written into bars and cells
LONGEST = 0.003  # the share of longest runs that is cut off
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
    """Colours of n states: seven hues, then darker and lighter shades of them, then the same again."""
    shades = [PALETTE, [mix(hue, "#000000", 0.45) for hue in PALETTE], [mix(hue, "#FFFFFF", 0.55) for hue in PALETTE]]
    every = [hue for shade in shades for hue in shade]
    return [every[k % len(every)] for k in range(n)]


def mix(colour: str, other: str, share: float) -> str:
    """Blend two colours '#rrggbb'; `share` is the weight of the second."""
    one, two = (np.array([int(hue[i : i + 2], 16) for i in (1, 3, 5)]) for hue in (colour, other))
    return "#" + "".join(f"{round(x):02x}" for x in (1 - share) * one + share * two)


def alphabet(posterior: Posterior) -> int | None:
    """Number of symbols, or None if observations are not symbols."""
    return getattr(posterior.model.emission, "n_symbols", None)


def axis_type(posterior: Posterior) -> str:
    """``"log"`` if the logarithms of the values are modelled, else ``"linear"``."""
    return "log" if isinstance(posterior.model.emission, LogScale) else "linear"


def letters(posterior: Posterior) -> list[str]:
    """The name of each symbol, or its number."""
    names = posterior.data.symbols or ()
    return [*names, *map(str, range(len(names), alphabet(posterior) or 0))]


def column_names(posterior: Posterior) -> list[str]:
    """The name of each column, or its number."""
    if posterior.data.columns is not None:
        return list(posterior.data.columns)
    n_columns = int(posterior.data.y[0].size)
    return ["observation"] if n_columns == 1 else [f"column {c}" for c in range(n_columns)]


def sweeps(posterior: Posterior, name: str) -> tuple[dict[int, FloatArray], int]:
    """Trace of each chain, with saved tuning sweeps first, and the number of tuning sweeps."""
    tuned = {draws.chain: draws.traces[name] for draws in posterior.warmup.draws} if posterior.warmup else {}
    by_chain = {
        draws.chain: np.concatenate([tuned.get(draws.chain, ()), draws.traces[name]]) for draws in posterior.draws
    }
    return by_chain, max(map(len, tuned.values()), default=0)


# Densities


class Observed(NamedTuple):
    """Observed values of one column and their log density."""

    values: Array
    density: Density
    n_symbols: int | None  # None unless the values are symbols


def observations(posterior: Posterior, column: int | None = None) -> Observed:
    """Observed values of a column, the first one by default, without missing values."""
    data, emission = posterior.data, posterior.model.emission
    n_columns = 1 if data.y.ndim == 1 else data.y.shape[1]
    if column is not None and not 0 <= column < n_columns:
        raise ValueError(f"column must be from 0 to {n_columns - 1}, got {column!r}")
    if not has_density(posterior, column or 0):
        raise ValueError(
            f"cannot plot the density of this column of {type(emission).__name__}: it must have observed values and a "
            "density that does not depend on past values, and the emission must have a method `column` or parameters "
            "named mean and variance or covariance"
        )
    if data.y.ndim == 1 and not has_past(emission):
        known = data.y if data.missing is None else data.y[~data.missing]
        return Observed(known, emission.log_density, alphabet(posterior))
    found = _column_emission(posterior, column or 0)
    assert found is not None  # has_density is true
    marginal, select = found
    values = data.values.reshape(len(data.y), -1)[:, column or 0]
    return Observed(
        marginal.validate(values[~np.isnan(values)]),
        partial(_log_mixture_density if posterior.model.is_mixture else _log_density, marginal, select),
        getattr(marginal, "n_symbols", None),
    )


def has_density(posterior: Posterior, column: int = 0) -> bool:
    """Whether a column has observed values and a known density that does not depend on past values."""
    emission = posterior.model.emission
    if not has_past(emission) and posterior.data.y.ndim == 1:
        return True
    if has_past(emission) and not provides(emission, "column"):
        return False
    return _column_emission(posterior, column) is not None


def _column_emission(posterior: Posterior, column: int) -> tuple[Emission, Callable[[Phi], Phi]] | None:
    """Emission of one column and a function that selects its parameters, or None if they are unknown.

    The emission's own `column` is used if there is one, otherwise a normal density if φ has a mean and a variance or
    covariance. For a mixture they are those of the components.
    """
    emission, names = posterior.model.emission, set(posterior.summary().parameters)
    if isinstance(emission, DPMixture):
        emission = emission.component
    if np.isnan(posterior.data.values.reshape(len(posterior.data.y), -1)[:, column]).all():
        return None
    if provides(emission, "column"):
        return emission.column(column)
    normal = "mean" in names and names & {"variance", "covariance"}
    return (Normal(), partial(_normal_phi, column)) if normal else None


def _log_density(marginal: Emission, select: Callable[[Phi], Phi], y: Array, phi: Phi) -> FloatArray:
    return marginal.log_density(y, select(phi))


def _log_mixture_density(marginal: Emission, select: Callable[[Phi], Phi], y: Array, phi: Phi) -> FloatArray:
    state, place = np.nonzero(phi.weights)
    density = np.exp(marginal.log_density(y, select(take(phi.component, (state, place)))))
    weights = np.zeros((len(state), len(phi.weights)))
    weights[np.arange(len(state)), state] = phi.weights[state, place]
    return np.asarray(np.log(np.maximum(density @ (weights / np.maximum(weights.sum(axis=0), FLOOR)), FLOOR)))


def _normal_phi(column: int, phi: Phi) -> NormalPhi:
    named = fields(phi)
    variance = named["variance" if "variance" in named else "covariance"][:, column]
    return NormalPhi(named["mean"][:, column], variance[:, column] if variance.ndim == 2 else variance)


class Densities(NamedTuple):
    """Density of each state weighted by its share of the time steps, and a histogram of the data.

    On a logarithmic axis they are densities of the natural logarithm.
    """

    edges: FloatArray  # (bins + 1,)
    heights: FloatArray  # (bins,)
    grid: Array  # (points,)
    curves: FloatArray  # (draws, points, states)
    whole: bool  # a probability mass function on whole numbers


def densities(posterior: Posterior, observed: Array, density: Density) -> Densities:
    """Densities on a grid over the range of the observed values."""
    if axis_type(posterior) == "log":
        heights, ends = np.histogram(np.log(observed), _n_bins(observed), density=True)
        grid = np.exp(np.linspace(ends[0], ends[-1], 400))
        # the density of log y is y times that of y
        return Densities(np.exp(ends), heights, grid, by_state(posterior, grid, density) * grid[:, None], False)
    whole = _are_counts(posterior, observed)
    if whole:
        low, high = int(observed.min()), int(observed.max())
        width = 1 + (high - low) // 200
        grid = np.arange(low, high + 1).astype(observed.dtype)
        edges: FloatArray = np.arange(low, high + 1 + width, width) - 0.5
    else:
        edges = np.histogram_bin_edges(observed, _n_bins(observed))
        grid = np.linspace(edges[0], edges[-1], 400)
    heights = np.histogram(observed, edges, density=True)[0]
    return Densities(edges, heights, grid, by_state(posterior, grid, density), whole)


def _n_bins(observed: Array) -> int:
    return int(np.clip(2 * np.sqrt(len(observed)), 10, 100))


def by_state(posterior: Posterior, y: Array, density: Density) -> FloatArray:
    """Density of each state weighted by its share of the time steps: (draws, points, states)."""
    n_labels = posterior.summary().n_states
    curves = []
    for draw, match in _subset_of_draws(posterior):
        share = np.bincount(draw.states, minlength=draw.n_states) / len(draw.states)
        to_label = np.zeros((draw.n_states, n_labels))
        to_label[np.arange(draw.n_states), match.label] = share
        curves.append(np.exp(density(y, draw.phi)) @ to_label)
    return np.array(curves)


def _are_counts(posterior: Posterior, y: Array) -> bool:
    """Whether values are counts: the emission stores integers, or its only parameter is a rate."""
    return y.dtype.kind in "iu" or (set(posterior.summary().parameters) == {"rate"} and bool(np.all(y == np.floor(y))))


def _subset_of_draws(posterior: Posterior) -> list[tuple[Draw, summaries.Match]]:
    """At most MAX_DRAWS evenly spaced draws, each with the labels of its states."""
    place = [(c, d) for c, draws in enumerate(posterior.draws) for d in range(len(draws))]
    chosen = np.unique(np.linspace(0, len(place) - 1, MAX_DRAWS).round().astype(np.int64))
    matches, draws = posterior.summary().matches, posterior.draws
    return [(draws[place[i][0]][place[i][1]], matches[i]) for i in chosen]


# Dwell times


def runs(posterior: Posterior) -> list[IntArray]:
    """Dwell times of each state in time steps, pooled over a subset of the draws."""
    found = [
        summaries.dwell_times(match.label[draw.states], posterior.data.offsets)
        for draw, match in _subset_of_draws(posterior)
    ]
    lengths, states = (np.concatenate(parts) for parts in zip(*found, strict=True))
    return [lengths[states == k] for k in range(posterior.summary().n_states)]


def law_at_least(posterior: Posterior, state: int, steps: IntArray) -> FloatArray:
    """P(D ≥ n) for n in `steps` under the fitted law of a state: median over the draws and a 95% band, (3, steps).

    The law is the duration law of the model, or the geometric law implied by the transition probabilities.
    """
    found, duration = posterior.summary(), posterior.model.duration
    present = np.flatnonzero(np.isfinite(found.dwell[:, state]))
    chosen = present[evenly_spaced(len(present), MAX_DRAWS)]
    if duration is None:
        log_survivor = (steps[:, None] - 1.0) * np.log(np.maximum(1 - 1 / found.dwell[chosen, state], FLOOR))
    else:
        omega = rebuild(found.durations, (values[chosen, state] for values in found.dwell_law.values()))
        log_survivor = duration.log_survivor(steps[:, None], omega)
    return np.asarray(np.quantile(np.exp(log_survivor), summaries.QUANTILES, axis=1))


def at_least(lengths: IntArray) -> FloatArray:
    """Survival function P(L ≥ n) of dwell times, for n = 1, 2, … up to the longest."""
    return np.asarray(np.cumsum(np.bincount(lengths)[:0:-1])[::-1] / len(lengths))
