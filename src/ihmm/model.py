"""The model, the data as it sees them, and one draw of everything unknown."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray, Phi
from ihmm.emissions._base import Emission, log_marginal, provides
from ihmm.priors import FinitePrior, HDPPrior
from ihmm.sequences import Sequences

Prior = HDPPrior | FinitePrior


class Hyper(NamedTuple):
    """γ, c = α + κ and ρ = κ/(α + κ). γ is infinite where β is fixed to equal weights."""

    gamma: float
    concentration: float
    stickiness: float

    @property
    def alpha(self) -> float:
        return (1 - self.stickiness) * self.concentration

    @property
    def kappa(self) -> float:
        return self.stickiness * self.concentration


class Transitions(NamedTuple):
    """β, π_0 and π_j over the K states visited; the last entry of each is the mass not broken yet."""

    beta: FloatArray  # (K + 1,)
    initial: FloatArray  # (K + 1,)
    rows: FloatArray  # (K, K + 1)


class Draw(NamedTuple):
    """One state of the Markov chain: the path, the transitions, the emission parameters, the hyperparameters."""

    states: IntArray
    transitions: Transitions
    phi: Phi
    hyper: Hyper

    @property
    def n_states(self) -> int:
        return len(self.transitions.rows)


class Data(NamedTuple):
    """Observations in the form the emission expects, with log ∫ f(y_t|φ) H(dφ) computed once."""

    y: Array
    offsets: IntArray
    log_marginal: FloatArray

    @property
    def lengths(self) -> IntArray:
        return np.diff(self.offsets)


@dataclass(frozen=True)
class Model:
    """A hidden Markov model: a family of emissions and a prior on transitions, infinite or finite (T15 §2)."""

    emission: Emission
    prior: Prior = field(default_factory=HDPPrior)

    def __post_init__(self) -> None:
        if isinstance(self.emission, type):
            raise TypeError(f"emission must be an instance, got the class; call it: {self.emission.__name__}(…)")
        missing = [name for name in _EMISSION_METHODS if not provides(self.emission, name)]
        if missing:
            raise TypeError(
                f"emission must be an Emission such as ihmm.Normal(), got {self.emission!r}, "
                f"which does not define {', '.join(missing)}"
            )
        if not isinstance(self.prior, (HDPPrior, FinitePrior)):
            raise TypeError(f"prior must be an HDPPrior or a FinitePrior, got {self.prior!r}")

    def observe(self, y: Any) -> Data:
        """Check raw series against the emission; every error about data is raised here, before any sampling."""
        sequences = Sequences.of(y)
        parts = []
        for i, part in enumerate(np.split(sequences.values, sequences.offsets[1:-1])):
            try:
                parts.append(self.emission.validate(part))
            except ValueError as error:
                if len(sequences.lengths) > 1:
                    raise ValueError(f"sequence {i}: {error}") from error
                raise
        values = np.concatenate(parts)
        return Data(values, sequences.offsets, log_marginal(self.emission, values))


_EMISSION_METHODS = (
    "validate",
    "log_density",
    "sample_prior",
    "resample",
    "sample_observations",
    "log_prior",
)
