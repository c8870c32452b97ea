"""Direct-assignment Gibbs: one state at a time with π and φ integrated out (Teh et al. 2006; sticky: Fox et al.)."""

from dataclasses import dataclass

import numpy as np

from ihmm.data import Data
from ihmm.emissions._protocol import provides
from ihmm.kernels import direct
from ihmm.kernels.conditionals import Concentrations
from ihmm.kernels.counts import compact, count_transitions
from ihmm.kernels.families import gather_statistics
from ihmm.model import Draw, Model
from ihmm.samplers._base import PassInfo, StateUpdate, refuse_durations, sequence_starts
from ihmm.sticks import new_stream, total_states
from ihmm.trajectory import Trajectory

SPARE_STATES = 16  # new states that fit before the arrays must grow


@dataclass(frozen=True)
class DirectAssignment:
    """Collapsed Gibbs, O(T·K) per pass. Simple, but it mixes slowly: neighbouring states are strongly correlated."""

    def check(self, model: Model, data: Data) -> None:
        refuse_durations(self, model)
        if data.conjugate is not None and data.conjugate.compiled is not None:
            return
        for part in getattr(model.emission, "parts", (model.emission,)):
            if not provides(part, "conjugate"):
                raise TypeError(
                    f"DirectAssignment integrates φ out, which {type(part).__name__} does not support "
                    "(it has no method `conjugate`); use ParticleGibbs or Beam"
                )
        name = type(model.emission).__name__
        raise ValueError(
            f"DirectAssignment integrates φ out, which {name} does not support in compiled code for these data (single "
            "values of a row are missing, or a subclass changes its density); use ParticleGibbs or Beam"
        )

    def resample_states(
        self, rng: np.random.Generator, data: Data, model: Model, draw: Draw
    ) -> tuple[StateUpdate, PassInfo]:
        assert data.conjugate is not None  # see `check`
        compiled = data.conjugate.compiled
        assert compiled is not None
        sequence = sequence_starts(data.offsets)
        concentrations, n_total = Concentrations(*draw.hyper), total_states(model.prior)
        stream = new_stream(rng)

        states, beta, n_states = draw.states.copy(), draw.transitions.beta, draw.n_states
        t = 0
        while t < len(states):
            capacity = n_states + SPARE_STATES
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
        n_born = int((kept >= draw.n_states).sum())
        update = StateUpdate(Trajectory(states), np.append(beta[kept], beta[-1]))
        return update, PassInfo(len(kept) + 1, n_born, update_rate)
