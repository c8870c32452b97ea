"""Splitting and merging states while tuning.

Sampling alone finds new states quickly, but two states that mean the same become one only after hundreds of sweeps.
Tuning sweeps are thrown away, so they may optimise instead of sample: this move makes the splits and merges that
raise the joint probability. It leaves nothing invariant, and never acts after tuning.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm._random import FLOOR
from ihmm._typing import BoolArray, FloatArray, IntArray, Phi
from ihmm.emissions._base import join, take
from ihmm.emissions._base import size as n_choices
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.families import CompiledFamily, gather_statistics
from ihmm.kernels.families.dispatch import CHOICE
from ihmm.kernels.greedy import SCANS, keep_split, merge_best_first, try_splits
from ihmm.model import Data, Hyper, Model
from ihmm.moves._base import MoveInfo
from ihmm.samplers import Path
from ihmm.samplers.direct_assignment import compiled_family
from ihmm.sticks import new_stream, total_states

LEAST = -1e10  # logarithm of a density that is zero, so that sums and differences stay numbers


@dataclass(frozen=True)
class GreedySplitMerge:
    """In the first tuning sweeps, make the splits and merges of states that raise the joint probability.

    One split of each state is tried, by how well its steps predict each other; then pairs are merged, best first, as
    long as that gains anything. φ is integrated out. Where that cannot be done, it is taken for one of a few values:
    draws given the steps of a state, of half of one, or of two that are alike. Mixtures are left to `GroupComponents`.

    Parameters
    ----------
    sweeps
        How many tuning sweeps it acts in.
    careful
        Judge a merge with the choice between the two states summed over, instead of along the path alone. The path
        alone is quick to do away with copies, and merges states that overlap too; this leaves them alone.
    """

    sweeps: int = 30
    careful: bool = False

    def __post_init__(self) -> None:
        _checks.count("GreedySplitMerge sweeps", self.sweeps, least=0)

    def acts(self, sweep: int, tune: int) -> bool:
        return sweep < min(self.sweeps, tune)

    def apply(
        self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper
    ) -> tuple[Path, MoveInfo]:
        if model.is_mixture:
            return path, MoveInfo()
        gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0  # equal weights are judged as if γ were 1
        concentrations = Concentrations(gamma, hyper.concentration, hyper.stickiness)
        n_states = len(path.beta) - 1
        states, beta = path.states.copy(), np.zeros(min(2 * n_states, total_states(model.prior)))
        beta[:n_states] = path.beta[:-1]

        collapsed, choices = model.collapsed(data), None
        if collapsed is not None:
            compiled = compiled_family(collapsed)
            n_states = try_splits(new_stream(rng), compiled, concentrations, data.offsets, states, beta, n_states)
        else:
            leaves, choices = propose(rng, data, model, path)
            table = log_densities(model, data, choices)
            compiled = CompiledFamily(CHOICE, np.zeros((1, 1)), table, 1 + n_choices(choices))
            for k in range(n_states):
                if n_states < len(beta):
                    states[leaves & (path.states == k)] = n_states
                    n_states += keep_split(compiled, concentrations, data.offsets, states, beta, k, n_states)

        statistics = np.zeros((n_states, compiled.size))
        gather_statistics(compiled.family, statistics, compiled.values, states)
        counts = count_transitions(states, data.offsets, n_states)
        merge_best_first(
            compiled, concentrations, data.offsets, states, statistics, counts, beta[:n_states], self.careful
        )
        kept = compact(states, np.arange(n_states), states)
        phi = None if choices is None else take(choices, statistics[kept, 1:].argmax(axis=1))
        info = MoveInfo(n_states - (len(path.beta) - 1), n_states - len(kept))
        return Path(states, np.append(beta[kept], path.beta[-1]), phi), info


def propose(rng: np.random.Generator, data: Data, model: Model, path: Path) -> tuple[BoolArray, Phi]:
    """A split of each state: the steps that would leave it. And parameters to choose from: those of the states, of
    their halves, and of the pairs that are most alike."""
    states, n_states = path.states, len(path.beta) - 1
    phi = model.resample_phi(rng, data, states, n_states, path.phi)
    leaves, halves = halve(rng, data, model, states, phi)
    return leaves, join(phi, halves, pair(rng, data, model, states, phi))


def halve(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> tuple[BoolArray, Phi]:
    """The steps of each state that go to its second half, and parameters of both halves.

    The second half begins as one step that the state's φ is likely to explain badly. All steps join the half under
    whose φ they are more likely; then φ is drawn anew and they choose again, a few times. Steps without a value go with
    the one before.
    """
    n_states = n_choices(phi)
    known = data.observed
    observed, last_known = np.flatnonzero(known), np.maximum.accumulate(np.where(known, np.arange(len(states)), 0))
    surprise = -np.maximum(model.log_density_at(data, states, phi)[observed], LEAST)
    first, k = one_of_each(rng, states[observed], surprise)
    halves = join(phi, model.emission.resample(rng, data.seen[observed[first]], k, n_states))
    for _ in range(SCANS):
        stays, goes = (model.log_density_at(data, states + side * n_states, halves) for side in (0, 1))
        leaves = (goes > stays)[last_known]
        halves = redraw(rng, data, model, states + leaves * n_states, halves)
    return leaves, halves


def redraw(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> Phi:
    """φ drawn anew for the states that have a step, and as it was for the others: not every emission of a user's own is
    ready for those."""
    found, steps = np.unique(states, return_inverse=True)
    fresh = model.resample_phi(rng, data, steps, len(found), take(phi, found))
    place = len(found) + np.arange(n_choices(phi))
    place[found] = np.arange(len(found))
    return take(join(fresh, phi), place)


def pair(rng: np.random.Generator, data: Data, model: Model, states: IntArray, phi: Phi) -> Phi:
    """Parameters of each state taken together with the one whose φ suits its steps best, after its own."""
    table = model.log_density(data, phi)
    own = [states == k for k in range(table.shape[1])]
    fit = np.array([table[steps].sum(axis=0) for steps in own])
    np.fill_diagonal(fit, -np.inf)
    partner = fit.argmax(axis=1)
    pairs = [np.flatnonzero(steps | own[k]) for steps, k in zip(own, partner, strict=True)]
    steps, label = np.concatenate(pairs), np.repeat(np.arange(len(pairs)), [len(both) for both in pairs])
    return model.resample_phi(rng, data.take(steps), label, len(pairs), take(phi, partner))


def one_of_each(rng: np.random.Generator, states: IntArray, weight: FloatArray) -> tuple[IntArray, IntArray]:
    """A step of every state, with probability proportional to its weight less the least one there; and these states."""
    least = np.full(states.max(initial=0) + 1, np.inf)
    np.minimum.at(least, states, weight)
    # the first of exponential clocks of these rates
    clock = rng.standard_exponential(len(states)) / np.maximum(weight - least[states], FLOOR)
    order = np.lexsort((clock, states))
    found, first = np.unique(states[order], return_index=True)
    return order[first], found


def log_densities(model: Model, data: Data, phi: Phi) -> FloatArray:
    """log f(y_t | φ_m) as compiled code reads it: finite, and NaN where there is no value."""
    table = np.maximum(model.log_density(data, phi), LEAST)
    if data.silent is not None:
        table[data.silent] = np.nan
    return np.ascontiguousarray(table)
