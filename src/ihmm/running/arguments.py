"""Checks of the arguments of `sample`, `resume` and `iterate`."""

from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._typing import IntArray
from ihmm.data import Data
from ihmm.model import Model
from ihmm.moves import Move
from ihmm.running.start import InitialStates
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.sticks import total_states
from ihmm.workers import Workers

MIXTURE_STATES = 10  # what init="auto" means if emissions are mixtures, which cannot be split greedily


def check_model(model: Any) -> Model:
    if not isinstance(model, Model):
        got = f"the class {model.__name__}" if isinstance(model, type) else f"a {type(model).__name__}"
        raise TypeError(f"model must be an ihmm.Model such as ihmm.Model(ihmm.Normal()), got {got}; sample(model, y)")
    return model


def check_seed(seed: Any) -> int:
    if seed is None:
        return int(np.random.SeedSequence().generate_state(1, np.uint64)[0] >> 1)
    return _checks.count("seed (None chooses one)", seed, least=0)


def check_sampler(sampler: Any, model: Model, data: Data) -> Sampler:
    if sampler is None:
        return ParticleGibbs()
    if isinstance(sampler, type):
        raise TypeError(f"sampler must be an instance, got the class; call it: {sampler.__name__}(…)")
    if not callable(getattr(sampler, "resample_states", None)):
        raise TypeError(f"sampler must have a method resample_states, like ihmm.ParticleGibbs(), got {sampler!r}")
    if callable(getattr(sampler, "check", None)):
        sampler.check(model, data)
    return sampler  # type: ignore[no-any-return]


def check_resolution(resolution: Any, data: Data) -> float | tuple[float, ...] | None:
    """One positive number, or one for each column."""
    if resolution is None:
        return None
    if np.ndim(resolution) == 0:
        return _checks.positive("resolution", resolution)
    n_columns = data.y[0].size
    if np.shape(resolution) != (n_columns,):
        raise ValueError(f"resolution must be a number, or one for each column, {n_columns}, got {resolution!r}")
    return tuple(_checks.positive("resolution of a column", value) for value in resolution)


def check_moves(moves: Any) -> tuple[Move, ...]:
    try:
        checked: tuple[Move, ...] = tuple(moves)
    except TypeError as error:
        expected = "a sequence such as (ihmm.GreedySplitMerge(),), or () for none"
        raise TypeError(f"moves must be {expected}, got {moves!r}") from error
    for move in checked:
        if isinstance(move, type) or not callable(getattr(move, "apply", None)):
            raise TypeError(f"a move must have methods acts and apply, like ihmm.GreedySplitMerge(), got {move!r}")
    return checked


def check_executor(executor: Any, workers: Workers | None) -> None:
    if executor is None:
        return
    if not callable(getattr(executor, "submit", None)):
        example = "concurrent.futures.ProcessPoolExecutor()"
        raise TypeError(f"executor must be an Executor such as {example}, got {executor!r}")
    if workers is not None:
        raise ValueError("give an executor, which runs chains, or workers, which share their sequences, not both")


def check_init(init: Any, data: Data, model: Model) -> InitialStates:
    """A number of states, a trajectory, or "auto" if states are to be split and merged."""
    if any(np.ma.is_masked(part) for part in (init if isinstance(init, (list, tuple)) else [init])):
        raise ValueError("init must have a state for every time step, but some are masked; fill them in")
    if isinstance(init, str):
        if init != "auto":
            raise ValueError(f'init must be a number of states, a trajectory of states, or "auto", got {init!r}')
        return min(MIXTURE_STATES, total_states(model.prior)) if model.is_mixture else init
    if isinstance(init, np.ndarray) and init.ndim == 2 and len(init):  # a trajectory for each chain
        return np.stack([_check_trajectory([row], False, data, model) for row in init])
    several = isinstance(init, (list, tuple)) and any(np.ndim(part) > 0 for part in init)
    if not several and np.ndim(init) == 0:
        n_states = _checks.count("init (a number of states, or a trajectory of states)", init)
        return min(n_states, total_states(model.prior))
    return _check_trajectory([np.asarray(part) for part in (init if several else [init])], several, data, model)


def _check_trajectory(parts: list[Any], several: bool, data: Data, model: Model) -> IntArray:
    """`parts` has one trajectory per sequence if `several`, else a single one for all sequences."""
    shapes, lengths = [part.shape for part in parts], data.lengths if several else [len(data.y)]
    if shapes != [(n,) for n in lengths]:
        whole = " in total" if not several and len(data.lengths) > 1 else ""
        expected = f"shape {_join_shapes((n,) for n in lengths)}{whole}"
        raise ValueError(f"init must have one state per time step, {expected}, got {_join_shapes(shapes)}")
    trajectory = np.concatenate(parts)
    if trajectory.dtype.kind not in "iu":
        raise ValueError(f"init must hold whole numbers, got dtype {trajectory.dtype}; convert it with .astype(int)")
    if trajectory.min() < 0:
        first = trajectory.argmin()
        raise ValueError(f"init must hold states numbered from 0, got {trajectory[first]} at t = {first}")
    visited = len(np.unique(trajectory))
    if visited > total_states(model.prior):
        raise ValueError(f"init visits {visited} states, more than the prior has: {model.prior}")
    return trajectory.astype(np.int64)


def _join_shapes(shapes: Any) -> str:
    return ", ".join(str(tuple(map(int, shape))) for shape in shapes)
