"""Geweke's joint distribution test."""

from collections.abc import Callable, Hashable, Mapping, Sequence
from itertools import accumulate
from math import atan, isnan
from typing import Any, NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, BoolArray, FloatArray
from ihmm.data import Data
from ihmm.emissions._parameters import fields
from ihmm.gibbs import sweep
from ihmm.model import Draw, Model
from ihmm.moves import Move
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.simulation import draw_observations, draw_prior
from ihmm.testing._law_test import LawTest, compare

MAX_SAMPLES = 32  # of direct draws, kept for the next test of the same model


def geweke(
    model: Model,
    lengths: list[int],
    sampler: Sampler | None = None,
    *,
    moves: Sequence[Move] = (),
    sweeps: int = 20_000,
    seed: int = 0,
    missing: BoolArray | None = None,
    functionals: Callable[[Model, Data, Draw], dict[str, float]] | None = None,
) -> LawTest:
    """Geweke's joint distribution test of a whole sweep.

    Direct draws, (θ, s) from the prior and y given (θ, s), have the same distribution as a chain that alternates a
    sweep of (θ, s) given y with new y given (θ, s). The test compares the averages of standardised label-invariant
    quantities and of all their pairwise products, which reveal errors of order and dependence that means do not.
    `missing` marks values that are hidden from the sweep, shape (total T,) or (total T, D). Values that an emission
    conditions on, such as the first values of an autoregression, are the same in all draws. Tests of several samplers
    with the same model, sizes and seed share the direct draws.
    """
    _checks.count("sweeps", sweeps, least=1000)
    evaluate = functionals or standard_functionals
    names, left, state = _direct_sample(Setting(model, tuple(lengths), sweeps, seed, missing, evaluate))
    rng = np.random.default_rng(seed)
    rng.bit_generator.state = state

    data, draw = _direct_draw(rng, model, lengths, missing)
    successive = []
    for _ in range(sweeps):
        data = model.describe(data.y, data.offsets, data.missing)
        draw, _ = sweep(rng, data, model, draw, sampler or ParticleGibbs(), moves)
        data = _simulate_data(rng, model, draw, lengths, missing)
        successive.append(list(evaluate(model, data, draw).values()))

    right = np.array(successive)
    center, scale = left.mean(axis=0), left.std(axis=0)
    varying = scale > 1e-9 * (1 + np.abs(center))
    names = [name for name, keep in zip(names, varying, strict=True) if keep]
    left, right = (_with_products((values - center)[:, varying] / scale[varying]) for values in (left, right))
    names += [f"{a} × {b}" for i, a in enumerate(names) for b in names[i:]]
    return compare(names, left.mean(axis=0), left.var(axis=0), left.std(axis=0) / np.sqrt(sweeps), right)


def standard_functionals(model: Model, data: Data, draw: Draw) -> dict[str, float]:
    """Label-invariant quantities with finite variance that together depend on every part of a draw."""
    (beta, initial, rows), phi, hyper, states = draw.transitions, draw.phi, draw.hyper, draw.states
    first, last = states[0], states[-1]
    fit = model.log_density_at(data, states, phi)
    values = {
        "n_states": draw.n_states,
        "log gamma": np.log(hyper.gamma) if np.isfinite(hyper.gamma) else 0.0,
        "log concentration": np.log(hyper.concentration),
        "stickiness": hyper.stickiness,
        "max beta": beta[:-1].max(),
        "beta of first": beta[first],
        "initial of first": initial[first],
        "initial rest": initial[-1],
        "max pi": rows[:, :-1].max(),
        "self transition": rows[first, first],
        "first to last": rows[first, last],
        "row rest": rows[last, -1],
        "stays": np.count_nonzero(states[1:] == states[:-1]) / max(len(states) - 1, 1),
        "fit": atan(fit.sum() / len(fit)),
        "y first": atan(_total(data.y[0])),
        "y last": atan(_total(data.y[-1])),
    }
    for name, field in fields(phi).items():
        values[f"{name} of first"] = atan(field[first].flat[0])
        values[f"{name} of last"] = atan(field[last].flat[0])
        # an off-diagonal entry of a covariance; the second component of a mixture, if there is one
        values[f"second {name} of first"] = atan(field[first].flat[1]) if field[first].size > 1 else 0.0
    if draw.durations is not None:
        for name, field in fields(draw.durations).items():
            values[f"duration {name} of first"] = atan(field[first])
            values[f"duration {name} of last"] = atan(field[last])
    return {name: float(value) for name, value in values.items()}


def _total(y: Array) -> float:
    """The sum of the values of one step that are not missing."""
    return float(sum(value for value in np.ravel(y).tolist() if not isnan(value)))


class Setting(NamedTuple):
    """What direct draws depend on."""

    model: Model
    lengths: tuple[int, ...]
    sweeps: int
    seed: int
    missing: BoolArray | None
    evaluate: Callable[[Model, Data, Draw], dict[str, float]]


class DirectSample(NamedTuple):
    """Names and values of the quantities in direct draws, (draws, names), and the state of the generator after them."""

    names: list[str]
    values: FloatArray
    state: Mapping[str, Any]


def _direct_sample(setting: Setting) -> DirectSample:
    """Direct draws. The last few samples of models that are hashable, with the standard quantities, are reused."""
    if setting.evaluate is not standard_functionals or not isinstance(setting.model.emission, Hashable):
        return _draw_sample(setting)
    missing = None if setting.missing is None else (setting.missing.shape, setting.missing.tobytes())
    key = setting._replace(missing=None), missing
    if key not in _samples:
        while len(_samples) >= MAX_SAMPLES:
            _samples.pop(next(iter(_samples)))
        _samples[key] = _draw_sample(setting)
    return _samples[key]


_samples: dict[Hashable, DirectSample] = {}


def _draw_sample(setting: Setting) -> DirectSample:
    model, lengths, sweeps, seed, missing, evaluate = setting
    rng = np.random.default_rng(seed)
    rows = [evaluate(model, *_direct_draw(rng, model, [*lengths], missing)) for _ in range(sweeps)]
    return DirectSample([*rows[0]], np.array([list(row.values()) for row in rows]), rng.bit_generator.state)


def _direct_draw(
    rng: np.random.Generator, model: Model, lengths: list[int], missing: BoolArray | None
) -> tuple[Data, Draw]:
    """Data and everything else from the joint distribution."""
    draw = draw_prior(rng, model, lengths)
    if model.is_mixture:
        draw = _with_components(rng, model, draw, missing)
    return _simulate_data(rng, model, draw, lengths, missing), draw


def _with_components(rng: np.random.Generator, model: Model, draw: Draw, missing: BoolArray | None) -> Draw:
    """A draw from the prior with a component for every step that is not missing."""
    observed = np.ones(len(draw.states), bool) if missing is None else ~missing.reshape(len(missing), -1).all(axis=1)
    components = np.full(len(draw.states), -1)
    phi, components[observed] = model.emission.sample_components(rng, draw.states[observed], draw.phi)  # type: ignore[attr-defined]
    return draw._replace(phi=phi, components=components)


def _simulate_data(
    rng: np.random.Generator, model: Model, draw: Draw, lengths: list[int], missing: BoolArray | None
) -> Data:
    """New observations given everything else, some of them hidden; enough to score them, not for a sweep."""
    offsets = np.array([0, *accumulate(lengths)])
    if missing is None:
        return model.arrange(draw_observations(rng, model, draw, offsets[1:-1]), offsets)
    gaps = np.flatnonzero(missing.reshape(offsets[-1], -1).any(axis=1))
    y = draw_observations(rng, model, draw, np.union1d(offsets[1:-1], gaps + 1))
    steps: BoolArray = np.asarray(missing.reshape(len(y), -1).all(axis=1))
    if missing.ndim == 2:
        y = np.where(missing & ~steps[:, None], np.nan, y)
    return model.arrange(y, offsets, steps)


def _with_products(values: FloatArray) -> FloatArray:
    """The functionals, followed by the products of all pairs of them."""
    i, j = np.triu_indices(values.shape[1])
    return np.hstack([values, values[:, i] * values[:, j]])
