"""Priors on the transitions, validated on construction.

T15 §2.2 with the parametrisation of Fox et al.: γ, the total mass c = α + κ of every row, and ρ = κ/(α+κ).
A number fixes a hyperparameter; a prior means that it is resampled.
"""

from dataclasses import dataclass
from typing import Any

from ihmm import _checks


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate), with mean shape/rate."""

    shape: float = 1.0
    rate: float = 1.0

    def __post_init__(self) -> None:
        _checks.positive("GammaPrior shape", self.shape)
        _checks.positive("GammaPrior rate", self.rate)

    @property
    def mean(self) -> float:
        return self.shape / self.rate


@dataclass(frozen=True)
class BetaPrior:
    """Beta(a, b), with mean a/(a+b)."""

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        _checks.positive("BetaPrior a", self.a)
        _checks.positive("BetaPrior b", self.b)

    @property
    def mean(self) -> float:
        return self.a / (self.a + self.b)


@dataclass(frozen=True)
class HDPPrior:
    """Hierarchical Dirichlet process prior on the transitions, with infinitely many states.

    Parameters
    ----------
    gamma
        Concentration γ of the shared weights β ~ GEM(γ). Large values favour many states.
    concentration
        Total mass c = α + κ of every row. Large values favour similar rows.
    stickiness
        ρ = κ/(α + κ), the share of the mass of a row on self-transitions. 0 gives the iHMM without stickiness, a
        `BetaPrior` the sticky iHMM with ρ resampled.
    """

    gamma: float | GammaPrior = GammaPrior()
    concentration: float | GammaPrior = GammaPrior()
    stickiness: float | BetaPrior = 0.0

    def __post_init__(self) -> None:
        _check_quantities(self.gamma, self.concentration, self.stickiness)


@dataclass(frozen=True)
class FinitePrior:
    """Finite hierarchical prior (T15 §2.1): at most `n_states` states, some of which may be unused.

    β ~ Dirichlet(γ/L, …, γ/L) with L = `n_states`, rows as in `HDPPrior`. The limit L → ∞ is the infinite model.

    Parameters
    ----------
    n_states
        L, the number of states.
    gamma
        Concentration of β. None fixes β = (1/L, …, 1/L): the standard Bayesian hidden Markov model, whose rows are
        Dirichlet(c/L, …, c/L) if `stickiness` is 0.
    concentration, stickiness
        As in `HDPPrior`.
    """

    n_states: int
    gamma: float | GammaPrior | None = GammaPrior()
    concentration: float | GammaPrior = GammaPrior()
    stickiness: float | BetaPrior = 0.0

    def __post_init__(self) -> None:
        _checks.count("FinitePrior n_states", self.n_states, most=_checks.MAX_SIZE)
        _check_quantities(self.gamma if self.gamma is not None else 1.0, self.concentration, self.stickiness)


def _check_quantities(gamma: Any, concentration: Any, stickiness: Any) -> None:
    for name, value in (("gamma", gamma), ("concentration", concentration)):
        if not isinstance(value, GammaPrior):
            _checks.positive(f"{name} (a number, or a GammaPrior to resample it)", value)
    if not isinstance(stickiness, BetaPrior):
        _checks.fraction("stickiness (a number, or a BetaPrior to resample it)", stickiness)
