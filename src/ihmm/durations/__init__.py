"""Laws of how long a state lasts: one file each, all behind the same protocol.

    model = ihmm.Model(ihmm.Normal(), duration=ihmm.durations.NegativeBinomial(minimum=2))

With a duration the model is the infinite hidden semi-Markov model: a state lasts as long as its own duration law says,
and is then followed by another one.
"""

from ihmm.durations._protocol import REQUIRED, Duration, Omega, Runs, complete
from ihmm.durations.geometric import Geometric
from ihmm.durations.negative_binomial import NegativeBinomial
from ihmm.durations.poisson import Poisson

__all__ = ["REQUIRED", "Duration", "Geometric", "NegativeBinomial", "Omega", "Poisson", "Runs", "complete"]
