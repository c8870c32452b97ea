"""Held-out log-likelihood on the paper's synthetic data (T15 §4.1): true model, ihmm, and hmmlearn with K by BIC.

    python benchmarks/held_out.py            needs hmmlearn

Models are fitted to 4000 time steps and evaluated on new series of 4000. Printed are the loss relative to the true
model, in per cent of its log-likelihood, and the time of the fit. "vague c" is particle Gibbs with the paper's
emission and a prior under which rows may be similar, as they are in these data.
"""

import time

import numpy as np
from convergence import best_by_bic

import ihmm
from ihmm.datasets import Recording
from ihmm.emissions.normal_mean import NormalMeanPhi
from ihmm.predictions import predict

FRESH = (77, 78, 79)  # seeds of the new series


def main() -> None:
    for name in ("four_state", "ten_state"):
        recording = getattr(ihmm.datasets, name)()
        fresh = [getattr(ihmm.datasets, name)(seed=seed).y for seed in FRESH]
        truth = np.array([true_log_likelihood(recording, y) for y in fresh])
        print(f"\n{name}: log-likelihood of the true model {np.array2string(truth, precision=1)}")
        for method, fit in {"InfiniteHMM": estimator, "vague c": vague, "hmmlearn, BIC": by_bic}.items():
            begin = time.perf_counter()
            n_states, score = fit(recording)
            seconds = time.perf_counter() - begin
            loss = 100 * (truth - [score(y) for y in fresh]) / -truth
            print(f"  {method:<14} {n_states:3d} states, loss {loss.round(2)}%, fitted in {seconds:6.1f} s")


def estimator(recording: Recording):
    hmm = ihmm.InfiniteHMM(random_state=1).fit(recording.y)
    return hmm.n_states_, hmm.score


def vague(recording: Recording):
    prior = ihmm.HDPPrior(concentration=ihmm.GammaPrior(1, 0.001), stickiness=ihmm.BetaPrior(1, 1))
    model = ihmm.Model(ihmm.NormalMean(recording.noise, scale=5.0), prior)
    posterior = ihmm.sample(model, recording.y, draws=500, tune=300, seed=1, init="auto", progress=False)
    return posterior.summary().n_states, lambda y: posterior.log_likelihood(y)[0]


def by_bic(recording: Recording):
    best = best_by_bic(recording.y, range(3))
    return best.n_components, lambda y: best.score(y.reshape(-1, 1))


def true_log_likelihood(recording: Recording, y: np.ndarray) -> float:
    n = len(recording.means)
    model = ihmm.Model(ihmm.NormalMean(recording.noise), ihmm.FinitePrior(n))
    phi = NormalMeanPhi(recording.means)
    hmm = predict.FiniteHMM(np.full(n, 1 / n), recording.transition, phi, open_ended=False, label=np.arange(n))
    return float(predict.run_filter(model, model.observe(y), hmm)[1].sum())


if __name__ == "__main__":
    main()
