"""Laws of how long a state lasts: one file each, all behind the same protocol.

    model = ihmm.Model(ihmm.Normal(), duration=ihmm.durations.NegativeBinomial(minimum=2))

With a duration the model is the infinite hidden semi-Markov model: a state lasts as long as its own duration law says,
and is then followed by another one.
"""

from typing import Any

from ihmm import _checks
from ihmm.durations._protocol import (
    REQUIRED,
    Duration,
    Omega,
    Runs,
    checked_hazard,
    complete,
    log_lengths,
    sample_residual,
)
from ihmm.durations._tails import residual_hazards
from ihmm.durations.geometric import Geometric
from ihmm.durations.negative_binomial import NegativeBinomial
from ihmm.durations.poisson import Poisson


def choose(duration: Any, min_dwell: int | None = None) -> Duration:
    """The duration law with this name and minimum, geometric if None; or the law given, which has its own minimum."""
    minimum = 1 if min_dwell is None else _checks.count("min_dwell (steps)", min_dwell)
    if duration is None or isinstance(duration, str):
        name = duration or _checks.DURATIONS[0]
        _checks.one_of("duration (or a law such as ihmm.durations.Geometric())", name, _checks.DURATIONS)
        laws: tuple[Any, ...] = Geometric, NegativeBinomial, Poisson
        chosen: Duration = laws[_checks.DURATIONS.index(name)](minimum=minimum)
        return chosen
    if min_dwell is not None:
        raise ValueError(f"give min_dwell as the minimum of the duration law: minimum={min_dwell}, in {duration!r}")
    return duration  # type: ignore[no-any-return]


__all__ = [
    "REQUIRED",
    "Duration",
    "Geometric",
    "NegativeBinomial",
    "Omega",
    "Poisson",
    "Runs",
    "checked_hazard",
    "choose",
    "complete",
    "log_lengths",
    "residual_hazards",
    "sample_residual",
]
