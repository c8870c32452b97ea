"""bayesian-hmm: an infinite hidden Markov model for symbols with a beam sampler. It cannot score new series."""

import random

import numpy as np
from bayesian_hmm import HDPHMM
from common import Problem, Stopwatch, Trace, run

START = 10  # initial states


def fit(problem: Problem) -> dict:
    random.seed(problem.seed)
    np.random.seed(problem.seed)  # noqa: NPY002, its own generator
    watch = Stopwatch()
    hmm = HDPHMM(problem.train.tolist(), sticky=True)
    hmm.initialise(k=START)
    trace = Trace()
    while trace.unfinished:
        hmm.mcmc(n=1, burn_in=1, ncores=1, verbose=False)
        names = [state for chain in hmm.chains for state in chain.latent_sequence]
        trace.add(np.unique(names, return_inverse=True)[1])
    return trace.figures() | watch.read() | {"held_out": None}


if __name__ == "__main__":
    run(fit)
