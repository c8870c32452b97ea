"""ihmm: the estimator with its defaults; and a single chain, recorded sweep by sweep in its own process."""

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from common import SWEEPS, Problem, Stopwatch, Trace, run

import ihmm
from ihmm.model import model_for


def fit(problem: Problem) -> dict:
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # neither may use kernels loaded by the other
        watched = fresh.submit(watch_a_chain, problem).result()
    watch = Stopwatch()
    hmm = estimator(problem).fit(list(problem.train))
    spent = watch.read()
    held_out = hmm.posterior_.log_likelihood(list(problem.held_out))
    return watched | spent | {"n_states": int(hmm.n_states_), "held_out": held_out.tolist()}


def watch_a_chain(problem: Problem) -> dict:
    hmm, series = estimator(problem), list(problem.train)
    trace = Trace()
    model = model_for(problem.train.reshape(-1, 1), hmm.emission)
    chain = ihmm.iterate(model, series, tune=hmm.tune, init=hmm.init, seed=problem.seed)
    for _ in range(SWEEPS):
        trace.add(next(chain)[0].states)
    return trace.figures()


def estimator(problem: Problem) -> ihmm.InfiniteHMM:
    return ihmm.InfiniteHMM("categorical" if problem.symbols else "auto", random_state=problem.seed)


if __name__ == "__main__":
    run(fit)
