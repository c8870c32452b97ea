"""The draws in the format of ArviZ: groups of arrays with named axes, with states that mean the same in every draw."""

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.emissions._parameters import fields, take
from ihmm.emissions._protocol import provides, shared_parameters
from ihmm.model import Draw
from ihmm.predictions import averages, forecasts, predict
from ihmm.predictions.side_by_side import Underflow
from ihmm.store.draw_storage import HYPER
from ihmm.summaries.labels import Match, evenly_spaced
from ihmm.summaries.summary import MIN_EXIT, Summary

if TYPE_CHECKING:
    from ihmm.posterior import Posterior

Variables = dict[str, tuple[tuple[str, ...], Array]]

SAMPLE = ("chain", "draw")
UNKNOWN = (*HYPER, "sigma")  # traces of unknown quantities
MAX_CELLS = 20_000_000  # log-likelihoods, or replicated values: 160 MB
LEAST_DRAWS = 50  # of each chain, however long the series are


class Group(NamedTuple):
    """Variables, by name with the names of their axes, coordinates of the axes, and attributes of the whole."""

    variables: Variables
    coordinates: dict[str, Any]
    attributes: dict[str, str] | None = None


def groups(
    posterior: "Posterior", *, states: bool, log_likelihood: bool, posterior_predictive: bool
) -> dict[str, Group]:
    """All groups by name."""
    time = _time(posterior.lengths)
    axes, columns = _columns(posterior)
    by_state = _by_state(posterior, posterior.summary())
    found = {
        "posterior": _posterior(posterior, by_state, states=states),
        "sample_stats": _statistics(posterior, share=by_state["share"]),
        "observed_data": Group({"y": (("time", *axes), posterior.data.values)}, {**time, **columns}),
    }
    if log_likelihood:
        found["log_likelihood"] = _log_likelihood(posterior, time)
    if posterior_predictive:
        chosen, items = some_draws(posterior, posterior.data.y.size)
        y, _ = forecasts.replicate(posterior.model, posterior.data, items)
        replicated = y.reshape(len(posterior.draws), -1, *y.shape[1:])
        coordinates = {**_sample(posterior, chosen), **time, **columns}
        found["posterior_predictive"] = Group({"y": ((*SAMPLE, "time", *axes), replicated)}, coordinates)
    if posterior.warmup is not None:
        found["warmup_posterior"] = _traced(posterior.warmup, states=states)
        found["warmup_sample_stats"] = _statistics(posterior.warmup)
    return found


def _posterior(posterior: "Posterior", by_state: dict[str, FloatArray], *, states: bool) -> Group:
    """Unknown quantities: hyperparameters, and the parameters of the states of the summary."""
    variables, coordinates, _ = _traced(posterior, states=states)
    shared = shared_parameters(posterior.model.emission, posterior.draws[0][0].phi)
    known = {"dwell": ("state",), "transitions": ("state", "to_state")}
    for name, values in by_state.items():
        if name == "share":
            continue
        if name == "dwell":
            values = posterior.clock.duration(values)
        axes = known.get(name) or ("state", *_axes(name, values.shape[3:], posterior.data.y.shape[1:]))
        if name in shared:
            axes, values = axes[1:], values[:, :, 0]
        if _varies(values):
            variables[name if name not in variables else f"emission_{name}"] = ((*SAMPLE, *axes), values)
    used = {axis for axes, _ in variables.values() for axis in axes}
    labels = _states(posterior)
    named = {"state": labels, "to_state": labels, **_columns(posterior)[1]}
    return Group(variables, coordinates | {name: value for name, value in named.items() if name in used})


def _traced(posterior: "Posterior", *, states: bool) -> Group:
    """Hyperparameters that are not fixed and, if asked for, the states of each draw."""
    traces = {name: posterior.traces[name] for name in UNKNOWN if name in posterior.traces}
    if "concentration" in traces and np.array_equal(traces["alpha"], traces["concentration"]):
        del traces["alpha"]  # without stickiness they are the same
    variables: Variables = {name: (SAMPLE, trace) for name, trace in traces.items() if _varies(trace)}
    coordinates = _sample(posterior)
    if states:
        variables["states"] = ((*SAMPLE, "time"), posterior.states)
        coordinates |= _time(posterior.lengths)
    return Group(variables, coordinates)


def _varies(values: Array) -> bool:
    """Whether a quantity is unknown: a constant has no diagnostics."""
    return bool(np.any(np.ptp(values, axis=(0, 1)) > 0))


def _by_state(posterior: "Posterior", found: Summary) -> dict[str, FloatArray]:
    """Name → (chains, draws, n_states, …): share of the steps, dwell time, transitions and emission parameters.

    In a draw that does not have a state of the summary, the values are those of the state with most of its steps.
    """
    n_draws, n_labels = posterior.n_states.shape[1], found.n_states
    steps_of = [np.flatnonzero(found.states == j) for j in range(n_labels)]
    out: dict[str, FloatArray] = {}
    index = 0
    for c, chain in enumerate(posterior.draws):
        for d, draw in enumerate(chain):
            if d < n_draws:
                for name, values in _of_draw(posterior, draw, found.matches[index], steps_of).items():
                    if name not in out:
                        out[name] = np.empty((len(posterior.draws), n_draws, *values.shape))
                    out[name][c, d] = values
            index += 1
    return out


def _of_draw(posterior: "Posterior", draw: Draw, match: Match, steps_of: Sequence[IntArray]) -> dict[str, FloatArray]:
    """Name → (n_states, …), of one draw."""
    emission, duration = posterior.model.emission, posterior.model.duration
    n_labels = len(steps_of)
    own = match.state.copy()
    for j in np.flatnonzero(own < 0).tolist():
        own[j] = np.bincount(draw.states[steps_of[j]]).argmax()
    every = np.arange(n_labels)
    share = np.bincount(match.label, np.bincount(draw.states, minlength=draw.n_states), n_labels) / len(draw.states)
    rows = np.array([np.bincount(match.label, row[:-1], n_labels) for row in draw.transitions.rows[own]])
    if duration is None:
        dwell = 1 / np.maximum(1 - rows[every, match.label[own]], MIN_EXIT)
    else:
        dwell = duration.mean(take(draw.durations, own))
        rows[every, match.label[own]] = 0.0
        leave = 1 / np.maximum(dwell, 1.0)
        rows *= leave[:, None] / np.maximum(rows.sum(axis=1, keepdims=True), MIN_EXIT)
        rows[every, match.label[own]] += 1 - leave
    describe = emission.describe if provides(emission, "describe") else fields  # type: ignore[attr-defined]
    return {"share": share, "dwell": dwell, "transitions": rows} | {
        name: values[own] for name, values in describe(draw.phi).items()
    }


def _log_likelihood(posterior: "Posterior", time: dict[str, Any]) -> Group:
    """The log density of each informative step given all others or, failing that, given those before it.

    The states are summed out.
    """
    chosen, items = some_draws(posterior, len(posterior.data.y))
    given, scores = "all other steps", None
    if averages.can_leave_one_out(posterior.model):
        with suppress(Underflow):
            scores = averages.leave_one_out(posterior.model, posterior.data, items)
    if scores is None:
        given, scores = "previous steps", averages.log_scores(posterior.model, posterior.data, items)
    kept = np.flatnonzero(posterior.data.informative)
    values = scores.reshape(len(posterior.draws), -1, scores.shape[1])[:, :, kept]
    coordinates = {name: (at[0], at[1][kept]) if isinstance(at, tuple) else at[kept] for name, at in time.items()}
    return Group({"y": ((*SAMPLE, "time"), values)}, {**_sample(posterior, chosen), **coordinates}, {"given": given})


def _statistics(posterior: "Posterior", share: FloatArray | None = None) -> Group:
    """What is counted or computed in every draw: the number of states, their shares, the log joint, the sampler."""
    stats: Variables = {name: (SAMPLE, trace) for name, trace in posterior.traces.items() if name not in UNKNOWN}
    stats["lp"] = stats.pop("log_joint")
    if share is None:
        return Group(stats, _sample(posterior))
    return Group({**stats, "share": ((*SAMPLE, "state"), share)}, {**_sample(posterior), "state": _states(posterior)})


# Axes


def some_draws(posterior: "Posterior", size: int) -> tuple[IntArray, list[predict.LabelledDraw]]:
    """Evenly spaced draws of each chain, as many as fit, and the items of all chains."""
    lengths = [len(chain) for chain in posterior.draws]
    most = max(MAX_CELLS // (size * len(lengths)), LEAST_DRAWS)
    chosen = evenly_spaced(posterior.n_states.shape[1], most)
    begins = np.cumsum([0, *lengths[:-1]])
    return chosen, [posterior.labelled_draws[i] for i in (begins[:, None] + chosen).ravel()]


def _sample(posterior: "Posterior", draws: IntArray | None = None) -> dict[str, Any]:
    number = np.arange(posterior.n_states.shape[1]) if draws is None else draws
    return {"chain": [chain.chain for chain in posterior.draws], "draw": number}


def _states(posterior: "Posterior") -> Array:
    """The name of each state, or its number if none has a name."""
    found = posterior.summary()
    return np.array(found.labels) if found.names else np.arange(found.n_states)


def _time(lengths: IntArray) -> dict[str, Any]:
    """Coordinates of the time axis: the position; for several sequences also the sequence and the step within it."""
    time: dict[str, Any] = {"time": np.arange(lengths.sum())}
    if len(lengths) > 1:
        time["sequence"] = ("time", np.repeat(np.arange(len(lengths)), lengths))
        time["step"] = ("time", np.concatenate([np.arange(length) for length in lengths]))
    return time


def _columns(posterior: "Posterior") -> tuple[tuple[str, ...], dict[str, Any]]:
    """The name of the axis of columns, if there is one, and its coordinates, also for matrices."""
    if posterior.data.y.ndim == 1:
        return (), {}
    names = posterior.data.columns or np.arange(posterior.data.y.shape[1])
    return ("column",), {"column": np.asarray(names)}


def _axes(name: str, shape: tuple[int, ...], columns: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the further axes of a parameter: columns, symbols, or a number."""
    if shape and shape == columns:
        return ("column",)
    if name == "probs" and len(shape) == 1:
        return ("symbol",)
    return tuple(f"{name}_{i}" for i in range(len(shape)))
