"""Prior probability of the segments of a hidden semi-Markov model, with everything but the segments integrated out."""

import numpy as np
from scipy.special import gammaln, logsumexp

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations import Duration, Runs
from ihmm.model import Model, Prior
from ihmm.priors import FinitePrior, GammaPrior
from ihmm.testing._partitions import Partition
from ihmm.trajectory import runs

N_DRAWS = 200_000  # of the hyperparameters and β, and of ω


class SegmentPrior:
    """log p(s) of a path, by Monte Carlo over (γ, c, β) and over ω. The same draws serve all paths."""

    def __init__(self, model: Model) -> None:
        assert model.duration is not None
        self._duration: Duration = model.duration
        self._prior = model.prior
        self._omega = self._duration.sample_prior(np.random.default_rng(2), N_DRAWS)
        self._lasts: dict[Partition, float] = {}
        self._weights: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}

    def log_probability(self, states: IntArray, offsets: IntArray) -> float:
        segments = runs(states, offsets)
        return self._log_followers(segments) + sum(self._log_lasts(segments, k) for k in range(int(states.max()) + 1))

    def _log_lasts(self, segments: Runs, k: int) -> float:
        """log ∫ Π P(D = d | ω) prior(dω) over the runs of one state, P(D ≥ d | ω) for those that are censored."""
        own = segments.state == k
        key = tuple(sorted((-d if cut else d) for d, _, cut in zip(*(a[own] for a in segments), strict=True)))
        if key not in self._lasts:
            total: Array = np.zeros(N_DRAWS)
            for d in key:
                law = self._duration.log_survivor if d < 0 else self._duration.log_probability
                total = total + law(np.array(abs(d)), self._omega)
            self._lasts[key] = float(logsumexp(total) - np.log(N_DRAWS))
        return self._lasts[key]

    def _log_followers(self, segments: Runs) -> float:
        """log of the probability that the states follow each other as they do.

        Given β, row j without j itself is a Pólya urn of mass c(1−β_j): a rising factorial of c β_k for every cell,
        over one of c(1−β_j) for the row.
        """
        n_states = int(segments.state.max()) + 1
        log_weight, c, beta = self._draws(n_states)
        counts = np.zeros((n_states + 1, n_states), np.int64)
        first = np.append(True, segments.censored[:-1])
        np.add.at(counts[0], segments.state[first], 1)
        np.add.at(counts, (segments.state[:-1][~first[1:]] + 1, segments.state[1:][~first[1:]]), 1)
        log_p = log_weight - _log_rise(c, counts[0].sum())
        for j in range(n_states + 1):
            for k in np.flatnonzero(counts[j]):
                log_p = log_p + _log_rise(c * beta[:, k], counts[j, k])
            if j > 0:
                log_p = log_p - _log_rise(c * (1 - beta[:, j - 1]), counts[j].sum())
        return float(logsumexp(log_p) - np.log(N_DRAWS))

    def _draws(self, n_states: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Log weights, c, and the weights β of n_states states, summed over which states these are."""
        if n_states not in self._weights:
            rng = np.random.default_rng(3)
            c = _draw(rng, self._prior.concentration)
            self._weights[n_states] = _draw_beta(rng, self._prior, n_states, c)
        return self._weights[n_states]


def _draw_beta(
    rng: np.random.Generator, prior: Prior, n_states: int, c: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Log weights, c, and β of K states, from a Dirichlet with one more at each: a factor β_k is in every likelihood.

    Σ over labellings of E[F(β)] is ∫ F(β) γ^K Π β_k^{−1} (1 − Σβ)^{γ−1} dβ for β ~ GEM(γ). For L states it is L!/(L−K)!
    times the integral with the density of a Dirichlet, and β is constant if it is fixed to equal weights.
    """
    if prior.gamma is None:
        assert isinstance(prior, FinitePrior)
        beta = np.full((len(c), n_states), 1 / prior.n_states)
        return np.full(len(c), _log_labellings(prior, n_states)), c, beta
    gamma = _draw(rng, prior.gamma)
    if not isinstance(prior, FinitePrior):
        alpha, rest = np.ones((len(c), n_states)), gamma
        log_weight = n_states * np.log(gamma) + gammaln(gamma) - gammaln(gamma + n_states)
    else:
        each = gamma / prior.n_states
        alpha, rest = np.tile(1 + each[:, None], n_states), (prior.n_states - n_states) * each
        log_weight = n_states * np.log(each) + gammaln(gamma) - gammaln(gamma + n_states)
        log_weight += _log_labellings(prior, n_states)
        if n_states > prior.n_states:
            return np.full(len(c), -np.inf), c, np.full((len(c), n_states), 1 / n_states)
    parts = rng.standard_gamma(np.column_stack([alpha, rest]))
    beta = (parts / parts.sum(axis=1, keepdims=True))[:, :-1]
    return log_weight - np.log(beta).sum(axis=1), c, beta


def _draw(rng: np.random.Generator, quantity: float | GammaPrior) -> FloatArray:
    if isinstance(quantity, GammaPrior):
        return rng.gamma(quantity.shape, 1 / quantity.rate, N_DRAWS)
    return np.full(N_DRAWS, float(quantity))


def _log_labellings(prior: FinitePrior, n_states: int) -> float:
    if n_states > prior.n_states:
        return -np.inf
    return float(gammaln(prior.n_states + 1) - gammaln(prior.n_states - n_states + 1))


def _log_rise(x: FloatArray, n: int) -> FloatArray:
    """Logarithm of the rising factorial x(x + 1)…(x + n − 1)."""
    return np.asarray(sum((np.log(np.maximum(x + i, 1e-300)) for i in range(n)), start=np.zeros_like(x)))
