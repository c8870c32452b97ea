"""hmmlearn: maximum likelihood by EM, best of several restarts, the number of states by BIC."""

import logging

from common import RESTARTS, Problem, Stopwatch, choose_by_bic, run
from hmmlearn.hmm import CategoricalHMM, GaussianHMM


def fit(problem: Problem) -> dict:
    logging.getLogger("hmmlearn").setLevel(logging.ERROR)  # it warns about every fit that has not converged
    kind = CategoricalHMM if problem.symbols else GaussianHMM
    X, lengths = problem.train.reshape(-1, 1), [problem.train.shape[1]] * len(problem.train)

    def best_of_restarts(n_states: int):
        seeds = range(RESTARTS * problem.seed, RESTARTS * (problem.seed + 1))
        fits = [kind(n_states, n_iter=100, random_state=seed).fit(X, lengths) for seed in seeds]
        return min(((hmm.bic(X, lengths), hmm) for hmm in fits), key=lambda pair: pair[0])

    watch = Stopwatch()
    n_states, hmm = choose_by_bic(best_of_restarts)
    spent = watch.read()
    return spent | {"n_states": n_states, "held_out": [hmm.score(y.reshape(-1, 1)) for y in problem.held_out]}


if __name__ == "__main__":
    run(fit)
