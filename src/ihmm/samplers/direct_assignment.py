"""Direct-assignment Gibbs: one state at a time with π and φ integrated out (Teh et al. 2006; sticky: Fox et al.)."""

from dataclasses import dataclass

import numpy as np

from ihmm._typing import IntArray
from ihmm.emissions._base import Collapsed, provides
from ihmm.kernels import direct
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.families import CompiledFamily, gather_statistics
from ihmm.kernels.families.dispatch import NUMBERS
from ihmm.model import Data, Draw, Model
from ihmm.samplers._base import PassInfo, Path, sequence_starts
from ihmm.sticks import new_stream, total_states

SPARE = 16  # new states that fit before the arrays must grow


def compiled_family(collapsed: Collapsed) -> CompiledFamily:
    """A conjugate family and the observations, as described in `ihmm.kernels.families`."""
    family: int | IntArray
    if not collapsed.parts:
        family = NUMBERS[collapsed.family]
    else:
        family = np.array(
            [
                [NUMBERS[name], of_rows, columns.start, columns.stop, statistics.start, statistics.stop]
                for name, of_rows, columns, statistics in collapsed.parts
            ]
        )
    return CompiledFamily(family, collapsed.prior, collapsed.values, collapsed.size)


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
        compiled = compiled_family(collapsed)
        sequence = sequence_starts(data.offsets)
        concentrations, n_total = Concentrations(*draw.hyper), total_states(model.prior)
        stream = new_stream(rng)

        states, beta, n_states = draw.states.copy(), draw.transitions.beta, draw.n_states
        t = 0
        while t < len(states):
            capacity = n_states + SPARE
            beta = np.concatenate([beta[:-1], np.zeros(capacity + 1 - len(beta)), beta[-1:]])
            counts = count_transitions(states, data.offsets, capacity)
            visits = counts.sum(axis=0)
            statistics = np.zeros((capacity, compiled.size))
            gather_statistics(compiled.family, statistics, compiled.values, states)
            t = direct.reassign(
                t, stream, compiled, concentrations, n_total, sequence, states, counts, visits, statistics, beta
            )
            n_states = capacity

        update_rate = float(np.mean(states != draw.states))
        kept = compact(states, np.arange(n_states), states)
        born = int((kept >= draw.n_states).sum())
        return Path(states, np.append(beta[kept], beta[-1])), PassInfo(len(kept) + 1, born, update_rate)
