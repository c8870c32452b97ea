"""Splitting and merging states while tuning.

Sampling alone finds new states quickly, but two states that mean the same become one only after hundreds of sweeps.
Tuning sweeps are thrown away, so they may optimise instead of sample: this move makes the splits and merges that
raise the joint probability. It leaves nothing invariant, and never acts after tuning.
"""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.direct import gather_statistics
from ihmm.kernels.split_merge import merge_best_first, try_splits
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
        collapsed = model.collapsed(data)
        if collapsed is None:
            return path
        family, prior, size = FAMILIES[collapsed.family], collapsed.prior, collapsed.size
        gamma = hyper.gamma if np.isfinite(hyper.gamma) else 1.0  # equal weights are judged as if γ were 1
        mass = (gamma, hyper.concentration, hyper.stickiness)

        n_states = len(path.beta) - 1
        states, beta = path.states.copy(), np.zeros(min(2 * n_states, total_states(model.prior)))
        beta[:n_states] = path.beta[:-1]
        n_states = try_splits(
            new_stream(rng), family, prior, size, collapsed.values, data.offsets, states, beta, *mass, n_states
        )

        statistics = np.zeros((n_states, size))
        gather_statistics(family, statistics, collapsed.values, states)
        counts = count_transitions(states, data.offsets, n_states)
        merge_best_first(
            family, prior, collapsed.values, data.offsets, states, statistics, counts, beta[:n_states], *mass,
            self.careful,
        )  # fmt: skip
        kept = compact(states, np.arange(n_states))
        return Path(states, np.append(beta[kept], path.beta[-1]))
