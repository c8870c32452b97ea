"""Direct-assignment Gibbs: one state at a time with π and φ integrated out (Teh et al. 2006; sticky: Fox et al.)."""

from dataclasses import dataclass

import numpy as np

from ihmm._typing import IntArray
from ihmm.emissions._base import Collapsed, provides
from ihmm.kernels import direct, rows
from ihmm.kernels.counts import compact, count_transitions
from ihmm.model import Data, Draw, Model
from ihmm.samplers._base import PassInfo, Path, sequence_starts
from ihmm.sticks import new_stream, total_states

FAMILIES = {
    "normal_mean": direct.NORMAL_MEAN,
    "normal": direct.NORMAL,
    "categorical": direct.CATEGORICAL,
    "poisson": direct.POISSON,
    "diagonal_normal": rows.DIAGONAL,
    "full_normal": rows.FULL,
    "bernoulli": rows.BERNOULLI,
    "multinomial": rows.MULTINOMIAL,
}
SPARE = 16  # new states that fit before the arrays must grow


def compiled_family(collapsed: Collapsed) -> int | IntArray:
    """The number of a family, or the table of a product, as described in `ihmm.kernels.direct`."""
    if not collapsed.parts:
        return FAMILIES[collapsed.family]
    return np.array(
        [
            [FAMILIES[name], of_rows, columns.start, columns.stop, statistics.start, statistics.stop]
            for name, of_rows, columns, statistics in collapsed.parts
        ]
    )


@dataclass(frozen=True)
class DirectAssignment:
    """Collapsed Gibbs, O(T·K) a pass. Simple and slow to mix: neighbours in time hold each other in place."""

    def check(self, model: Model, data: Data) -> None:
        for part in getattr(model.emission, "parts", (model.emission,)):
            if not provides(part, "collapsed"):
                name = type(part).__name__
                raise TypeError(
                    f"DirectAssignment integrates φ out, which {name} does not offer (it has no method `collapsed`); "
                    "use ParticleGibbs or Beam"
                )
        if model.collapsed(data) is None:
            name = type(model.emission).__name__
            raise ValueError(
                f"DirectAssignment integrates φ out, which {name} cannot do when single values of a row are missing; "
                "use ParticleGibbs or Beam"
            )

    def resample_states(self, rng: np.random.Generator, data: Data, model: Model, draw: Draw) -> tuple[Path, PassInfo]:
        collapsed = model.collapsed(data)
        assert collapsed is not None  # see `check`
        family = compiled_family(collapsed)
        sequence = sequence_starts(data.offsets)
        hyper = draw.hyper
        mass = (hyper.concentration, hyper.alpha, hyper.kappa)
        stream = new_stream(rng)

        states, beta, n_states = draw.states.copy(), draw.transitions.beta, draw.n_states
        t = 0
        while t < len(states):
            capacity = n_states + SPARE
            beta = np.concatenate([beta[:-1], np.zeros(capacity + 1 - len(beta)), beta[-1:]])
            counts = count_transitions(states, data.offsets, capacity)
            visits = counts.sum(axis=0)
            statistics = np.zeros((capacity, collapsed.size))
            direct.gather_statistics(family, statistics, collapsed.values, states)
            t = direct.reassign(
                t,
                stream,
                family,
                collapsed.prior,
                collapsed.values,
                sequence,
                states,
                counts,
                visits,
                statistics,
                beta,
                hyper.gamma,
                mass,
                total_states(model.prior),
            )
            n_states = capacity

        update_rate = float(np.mean(states != draw.states))
        kept = compact(states, np.arange(n_states), states)
        born = int((kept >= draw.n_states).sum())
        return Path(states, np.append(beta[kept], beta[-1])), PassInfo(len(kept) + 1, born, update_rate)
