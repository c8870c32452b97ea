"""hmmlearn on one recording of the panel, told the number of states and by BIC: DATA.npz N_STATES RESULT.npz"""

import sys
import time

import numpy as np
from hmmlearn import hmm

RESTARTS, MOST = 5, 10


def model(y, n_states, seed):
    if y.dtype.kind == "f":
        return hmm.GaussianHMM(n_states, "full" if y.shape[1] > 1 else "diag", n_iter=200, tol=1e-3, random_state=seed)
    family = hmm.CategoricalHMM if y.max() < 10 else hmm.PoissonHMM
    return family(n_states, n_iter=200, tol=1e-3, random_state=seed)


def best(y, lengths, n_states):
    fitted = []
    for seed in range(RESTARTS if n_states > 1 else 1):
        try:
            one = model(y, n_states, seed).fit(y, lengths)
            fitted.append((one.score(y, lengths), seed, one))
        except ValueError:  # a covariance that is not positive definite
            continue
    return max(fitted)[2] if fitted else None


def main():
    data, n_states, result = sys.argv[1:]
    file = np.load(data)
    y, lengths = file["y"].reshape(len(file["y"]), -1), file["lengths"]
    begin = time.perf_counter()
    told = best(y, lengths, int(n_states))
    told_seconds = time.perf_counter() - begin
    by_bic, least, worse = told, np.inf, 0
    for k in range(1, MOST + 1):
        found = best(y, lengths, k)
        bic = found.bic(y, lengths) if found is not None else np.inf
        by_bic, least, worse = (found, bic, 0) if bic < least else (by_bic, least, worse + 1)
        if worse == 2:
            break
    seconds = time.perf_counter() - begin - told_seconds
    np.savez(result, told=told.predict(y, lengths), bic=by_bic.predict(y, lengths), seconds=[told_seconds, seconds])


if __name__ == "__main__":
    main()
