"""Priors on the transitions: frozen values, checked when they are made.

T15 §2.2 with the parametrisation of Fox et al.: γ, the total mass c = α + κ of every row, and ρ = κ/(α+κ).
A number fixes a quantity, a prior lets it be resampled.
"""

from dataclasses import dataclass

from ihmm import _checks


@dataclass(frozen=True)
class GammaPrior:
    """Gamma(shape, rate): mean shape/rate."""

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
    """Beta(a, b): mean a/(a+b)."""

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
    """The hierarchical Dirichlet process over transitions: infinitely many states.

    Parameters
    ----------
    gamma
        Concentration γ of the shared weights β ~ GEM(γ): large values, many states.
    concentration
        Total mass c = α + κ of every row: large values, rows alike.
    stickiness
        ρ = κ/(α + κ), the share of a row's mass tied to its own state. 0 is the plain iHMM; a
        `BetaPrior` makes it the sticky iHMM with ρ resampled.
    """

    gamma: float | GammaPrior = GammaPrior()
    concentration: float | GammaPrior = GammaPrior()
    stickiness: float | BetaPrior = 0.0

    def __post_init__(self) -> None:
        for name in ("gamma", "concentration"):
            value = getattr(self, name)
            if not isinstance(value, GammaPrior):
                _checks.positive(f"{name} (a number fixes it, a GammaPrior lets it be resampled)", value)
        if not isinstance(self.stickiness, BetaPrior):
            _checks.fraction("stickiness (a number fixes it, a BetaPrior lets it be resampled)", self.stickiness)
