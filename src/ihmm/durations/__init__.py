"""Laws of how long a state lasts: one file each, all behind the same protocol.

    model = ihmm.Model(ihmm.Normal(), duration=ihmm.durations.NegativeBinomial(minimum=2))

With a duration the model is the infinite hidden semi-Markov model: a state lasts as long as its own duration law says, and
is then followed by another one.
"""

from ihmm.durations._protocol import REQUIRED, Duration, Omega, Runs, complete
from ihmm.durations.geometric import Geometric

__all__ = ["REQUIRED", "Duration", "Geometric", "Omega", "Runs", "complete"]
