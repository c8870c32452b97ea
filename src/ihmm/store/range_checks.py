"""Checks of arrays that were read from a file, before compiled code, which trusts its input, sees them."""

from typing import Any, cast

import numpy as np

from ihmm._typing import Array, Phi
from ihmm.durations import Omega
from ihmm.emissions import Emission
from ihmm.emissions._mixture_parameters import MixturePhi
from ihmm.emissions._parameters import fields
from ihmm.store._base import Checkpoint
from ihmm.store.draw_storage import HYPER, PackedDraws


def check_data(y: Array, offsets: Array, missing: Array | None, init: Array | None, emission: Emission) -> None:
    """Offsets divide the steps into sequences, and an emission of ihmm would accept the observations again."""
    _require(y.ndim in (1, 2) and len(y) > 0 and y.dtype.kind in "biuf", "y is not a series of numbers")
    _require(_is_whole(offsets) and len(offsets) > 1, "offsets are not whole numbers")
    ends = offsets[0] == 0 and offsets[-1] == len(y)
    _require(bool(ends and (np.diff(offsets) > 0).all()), "offsets do not divide the series")
    if missing is not None:
        _require(missing.dtype == np.bool_ and missing.shape == (len(y),), "missing is not a mask of the series")
    if init is not None:
        _require(_is_path(init, len(y)) and init.min() >= 0, "init is not a trajectory")
    if is_own(emission):
        for part in np.split(y, offsets[1:-1]):
            validated = emission.validate(part)
            same = validated.dtype == y.dtype and validated.shape[1:] == y.shape[1:]
            _require(same, f"y has dtype {y.dtype} and shape {y.shape}, which the emission would not store")


def check_baseline(baseline: Array | None, y: Array) -> None:
    if baseline is not None:
        same = baseline.dtype == np.float64 and baseline.shape == (len(y), y[0].size)
        _require(same and bool(np.isfinite(baseline).all()), "baseline is not a series like y")


def check_draws(states: Array, packed: PackedDraws, n_steps: int, like: Phi, emission: Emission) -> None:
    """Sizes agree, states exist, probabilities are probabilities. `like` has the structure of φ."""
    n_states, n_draws = packed.n_states, len(packed.n_states)
    _require(_is_whole(n_states) and bool((n_states >= 1).all()), "n_states are not whole numbers from 1")
    _require(bool((n_states <= n_steps).all()), "there are more states than time steps")
    _require(
        states.dtype.kind in "iu" and states.shape == (n_draws, n_steps), "states have another shape than the data"
    )
    in_range = (states.min(axis=1) >= 0) & (states.max(axis=1) < n_states)
    _require(bool(in_range.all()), "states are not below n_states")
    total = int(n_states.sum())
    for name, size in {
        "beta": total + n_draws,
        "initial": total + n_draws,
        "rows": total + int((n_states**2).sum()),
    }.items():
        _require_probabilities(name, getattr(packed, name), (size,))
    _check_phi(packed.phi, total, like, emission)
    for name in ("log_joint", "n_states", *HYPER):
        _require(name in packed.traces, f"the trace of {name} is missing")
    for name, trace in packed.traces.items():
        _require(trace.dtype.kind in "iuf" and trace.shape == (n_draws,), f"the trace of {name} has another length")
    _require(np.array_equal(packed.traces["n_states"], n_states), "n_states and their trace differ")


def check_checkpoint(after: Checkpoint, begin: Any, n_steps: int, like: Phi, emission: Emission) -> None:
    """The state of a chain fits the data, and its generator is one that NumPy can continue."""
    sweeps, draw, generator = after
    _require(type(begin) is int and type(sweeps) is int and 0 <= begin <= sweeps, "the numbers of sweeps are wrong")
    states, n_states = draw.states, len(draw.transitions.rows)
    _require(_is_whole(states) and states.shape == (n_steps,), "the trajectory has another length than the data")
    _require(states.min() >= 0 and states.max() < n_states, "the trajectory visits states that do not exist")
    _require_probabilities("beta", draw.transitions.beta, (n_states + 1,))
    _require_probabilities("initial", draw.transitions.initial, (n_states + 1,))
    _require_probabilities("rows", draw.transitions.rows, (n_states, n_states + 1))
    gamma, concentration, stickiness = draw.hyper
    _require(gamma > 0 and 0 < concentration < np.inf and 0 <= stickiness <= 1, "the hyperparameters are out of range")
    _check_phi(draw.phi, n_states, like, emission)
    if isinstance(draw.phi, MixturePhi):
        components = np.zeros(0) if draw.components is None else draw.components
        _require(_is_whole(components) and components.shape == (n_steps,), "the components have another length")
        in_range = components.min() >= -1 and components.max() < draw.phi.weights.shape[1]
        _require(bool(in_range), "there are components that do not exist")
    np.random.PCG64(0).state = cast(Any, generator)


def check_durations(omega: Omega | None, n_states: int, like: Omega | None) -> None:
    """The parameters of the duration laws, of which `like` has the structure, are those of the states."""
    for (name, array), pattern in zip(fields(omega or ()).items(), fields(like or ()).values(), strict=True):
        same = array.shape == (n_states, *pattern.shape[1:]) and array.dtype == pattern.dtype
        _require(same, f"the parameter {name} of the durations has another shape")


def is_own(emission: Emission) -> bool:
    """Whether an emission, with its parts, is one of ihmm, whose arrays are known and may be read by compiled code."""
    parts = (*getattr(emission, "parts", ()), getattr(emission, "component", None), getattr(emission, "emission", None))
    return all(type(part).__module__.startswith("ihmm.") for part in (emission, *parts) if part is not None)


def _check_phi(phi: Phi, n_states: int, like: Phi, emission: Emission) -> None:
    shapes = [array.shape for array in fields(phi).values()]
    _require(all(shape[:1] == (n_states,) for shape in shapes), "the parameters have another number of states")
    if not is_own(emission):
        return
    for (name, array), pattern in zip(fields(phi).items(), fields(like).values(), strict=True):
        fixed = 2 if isinstance(like, MixturePhi) else 1  # the number of components differs between draws
        same = array.ndim == pattern.ndim and array.shape[fixed:] == pattern.shape[fixed:]
        _require(same and array.dtype == pattern.dtype, f"the parameter {name} has another shape than the emission's")
    if isinstance(phi, MixturePhi):
        widths = {array.shape[1] for array in (phi.weights, *fields(phi.component).values())}
        _require(len(widths) == 1, "the mixtures have different numbers of components")


def _is_path(init: Array, n_steps: int) -> bool:
    """Whether it is a trajectory of all chains, or has one for each of some chains in its rows."""
    return init.ndim in (1, 2) and init.size > 0 and _is_whole(init.ravel()) and init.shape[-1] == n_steps


def _is_whole(array: Array) -> bool:
    return array.ndim == 1 and array.dtype == np.int64


def _require_probabilities(name: str, array: Array, shape: tuple[int, ...]) -> None:
    _require(array.shape == shape and array.dtype == np.float64, f"{name} has another shape")
    _require(bool(((array >= 0) & (array <= 1 + 1e-6)).all()), f"{name} are not probabilities")


def _require(condition: bool, otherwise: str) -> None:
    if not condition:
        raise ValueError(otherwise)
