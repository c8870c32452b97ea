"""Splitting and merging states while tuning.

Sampling alone finds new states quickly, but two states that mean the same become one only after hundreds of sweeps.
Tuning sweeps are thrown away, so they may optimise instead of sample: this move makes the splits and merges that
raise the joint probability. It leaves nothing invariant, and never acts after tuning.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.emissions._base import join, take
from ihmm.emissions._base import size as len_phi
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.direct import gather_statistics
from ihmm.kernels.rows import CHOICE
from ihmm.kernels.split_merge import SCANS, keep_split, merge_best_first, try_splits
from ihmm.model import Data, Hyper, Model
from ihmm.samplers import Path
from ihmm.samplers.direct_assignment import FAMILIES
from ihmm.sticks import new_stream, total_states


@dataclass(frozen=True)
class GreedySplitMerge:
    """In the first tuning sweeps, make the splits and merges of states that raise the joint probability.

    One split of each state is tried, by how well its steps predict each other; then pairs are merged, best first, as
    long as that gains anything. Emissions whose parameter cannot be integrated out are left alone.

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

    def apply(self, rng: np.random.Generator, data: Data, model: Model, path: Path, hyper: Hyper) -> Path:
        n_states = len(path.beta) - 1
        states, beta = path.states.copy(), np.zeros(min(2 * n_states, total_states(model.prior)))
        beta[:n_states] = path.beta[:-1]
        gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0  # equal weights are judged as if γ were 1
        mass = (gamma, hyper.concentration, hyper.stickiness)

        collapsed = model.collapsed(data)
        phi = None
        if collapsed is not None:
            family, prior, size, values = FAMILIES[collapsed.family], collapsed.prior, collapsed.size, collapsed.values
            n_states = try_splits(
                new_stream(rng), family, prior, size, values, data.offsets, states, beta, *mass, n_states
            )
        else:
            moved, phi = propose_splits(rng, data, model, path)
            family, prior, size, values = CHOICE, np.zeros((1, 1)), 1 + len_phi(phi), by_choice(model, data, phi)
            for k in range(n_states):
                if n_states < len(beta):
                    states[moved & (path.states == k)] = n_states
                    n_states += keep_split(
                        family, prior, size, values, data.offsets, states, beta, *mass, k, n_states
                    )

        statistics = np.zeros((n_states, size))
        gather_statistics(family, statistics, values, states)
        counts = count_transitions(states, data.offsets, n_states)
        merge_best_first(
            family, prior, values, data.offsets, states, statistics, counts, beta[:n_states], *mass, self.careful
        )
        kept = compact(states, np.arange(n_states))
        if phi is not None:
            phi = take(phi, statistics[kept, 1:].argmax(axis=1))
        return Path(states, np.append(beta[kept], path.beta[-1]), phi)


def propose_splits(rng, data, model, path):
    n_states = len(path.beta) - 1
    states = path.states
    whole = model.resample_phi(rng, data, states, n_states, path.phi)
    observed = np.arange(len(states)) if data.missing is None else np.flatnonzero(~data.missing)
    order = rng.permutation(observed)
    # two steps of each state
    picked = np.repeat(np.arange(2 * n_states), 1)
    first = {}
    rank = np.argsort(states[order], kind="stable")
    order = order[rank]
    begin = np.searchsorted(states[order], np.arange(n_states))
    end = np.searchsorted(states[order], np.arange(n_states), side="right")
    pick = np.stack([begin, np.minimum(begin + 1, end - 1)], axis=1)
    has = end > begin
    steps = order[pick[has].ravel()]
    labels = (2 * np.flatnonzero(has)[:, None] + np.arange(2)).ravel()
    halves = model.emission.resample(rng, data.y[steps], labels, 2 * n_states)
    for _ in range(SCANS):
        lower, upper = (model.log_density_at(data, 2 * states + side, halves) for side in (0, 1))
        moved = upper > lower
        halves = model.resample_phi(rng, data, 2 * states + moved, 2 * n_states, halves)
    return moved, join(whole, halves)


def by_choice(model, data, phi):
    values = np.ascontiguousarray(np.maximum(model.log_density(data, phi), -1e10))
    if data.missing is not None:
        values[data.missing] = np.nan
    return values
