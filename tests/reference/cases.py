"""Models and tiny series that every sampler is tried on."""

import numpy as np

import ihmm

ALARM = 1e-4  # a p-value below this is a broken sampler: seeds are fixed, so a test that passes keeps passing

NORMAL_SERIES = [-1.0, -1.2, 1.5, 1.3, -0.8]
SYMBOL_SERIES = [0, 0, 2, 1, 2]
EMISSIONS = {
    "normal-mean": (ihmm.NormalMean(noise=0.7, mean=0.0, scale=1.5), NORMAL_SERIES),
    "normal": (ihmm.Normal(mean=0.0, strength=0.5, shape=2.0, rate=1.0), NORMAL_SERIES),
    "categorical": (ihmm.Categorical(n_symbols=3, concentration=0.5), SYMBOL_SERIES),
}
PRIORS = {
    "plain": ihmm.HDPPrior(gamma=1.5, concentration=1.0),
    "sticky": ihmm.HDPPrior(gamma=1.5, concentration=2.0, stickiness=0.4),
    "free": ihmm.HDPPrior(ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1)),
    "sticky-free": ihmm.HDPPrior(ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
}
FINITE_PRIORS = {
    "finite": ihmm.FinitePrior(3, gamma=1.5, concentration=1.0),
    "finite-sticky-free": ihmm.FinitePrior(3, ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
    "bayesian-hmm": ihmm.FinitePrior(3, gamma=None, concentration=2.0),
    "bayesian-hmm-sticky-free": ihmm.FinitePrior(3, None, ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
}
LAYOUTS = {"one sequence": [5], "several sequences": [3, 2]}


def split(series: list[float], lengths: list[int]) -> list[np.ndarray]:
    return np.split(np.array(series), np.cumsum(lengths)[:-1])
