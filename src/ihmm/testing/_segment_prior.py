"""Prior probability of the segments of a hidden semi-Markov model, with everything but the segments integrated out."""

import numpy as np
from scipy.special import gammaln

from ihmm._typing import FloatArray, IntArray
from ihmm.durations import Duration, Runs
from ihmm.model import Model, Prior
from ihmm.priors import FinitePrior, GammaPrior
from ihmm.trajectory import runs

N_DRAWS = 200_000  # of the hyperparameters and β, and of ω


class SegmentPrior:
    """log p(s) of a path, by Monte Carlo over (γ, c, β) and over ω. The same draws serve all paths."""

    def __init__(self, model: Model) -> None:
        assert model.duration is not None
        self._duration: Duration = model.duration
        self._prior = model.prior
        self._left_censored = model.left_censored
        self._omega = self._duration.sample_prior(np.random.default_rng(2), N_DRAWS)
        # What many paths have in common
        self._laws: dict[tuple[int, bool, bool], FloatArray] = {}
        self._lasts: dict[tuple[tuple[int, bool, bool], ...], float] = {}
        self._weights: dict[int, tuple[FloatArray, FloatArray, FloatArray]] = {}
        self._rises: dict[tuple[int, str, int, int], FloatArray] = {}

    def log_probability(self, states: IntArray, offsets: IntArray) -> float:
        segments = runs(states, offsets, self._left_censored)
        return self._log_followers(segments) + sum(self._log_lasts(segments, k) for k in range(int(states.max()) + 1))

    def _log_lasts(self, segments: Runs, k: int) -> float:
        """log ∫ Π P(D = d | ω) prior(dω) over the runs of one state, P(D ≥ d | ω) for those that are censored.

        Left-censored runs have the law of R, P(R = d) = P(D ≥ d) / Σ_i P(D ≥ i).
        """
        own = segments.state == k
        lasts, _, cut, cut_left = (field[own].tolist() for field in segments)
        key = tuple(sorted(zip(lasts, cut, cut_left, strict=True)))
        if key not in self._lasts:
            self._lasts[key] = _log_mean(sum((self._log_law(*run) for run in key), np.zeros(N_DRAWS)))
        return self._lasts[key]

    def _log_law(self, d: int, cut: bool, cut_left: bool) -> FloatArray:
        """The law of one run, given each ω."""
        if (d, cut, cut_left) not in self._laws:
            if cut_left:
                found = self._log_residual(d, cut)
            else:
                law = self._duration.log_survivor if cut else self._duration.log_probability
                found = law(np.array(d), self._omega)
            self._laws[d, cut, cut_left] = found
        return self._laws[d, cut, cut_left]

    def _log_residual(self, d: int, cut: bool) -> FloatArray:
        """log P(R = d), or log P(R ≥ d) = log(1 − Σ_{i<d} P(R = i)), by summing the survivor function."""
        survivor = [np.exp(self._duration.log_survivor(np.array(i), self._omega)) for i in range(1, d + 1)]
        mean = self._duration.mean(self._omega)
        return np.log(np.maximum(mean - sum(survivor[:-1]), 1e-300) if cut else survivor[-1]) - np.log(mean)

    def _log_followers(self, segments: Runs) -> float:
        """log of the probability that the states follow each other as they do.

        Given β, row j without j itself is a Pólya urn of mass c(1−β_j): a rising factorial of c β_k for every cell,
        over one of c(1−β_j) for the row.
        """
        n_states = int(segments.state.max()) + 1
        log_weight, _, _ = self._draws(n_states)
        counts = np.zeros((n_states + 1, n_states), np.int64)
        first = np.append(True, segments.censored[:-1])
        np.add.at(counts[0], segments.state[first], 1)
        np.add.at(counts, (segments.state[:-1][~first[1:]] + 1, segments.state[1:][~first[1:]]), 1)
        log_p = log_weight - self._rise(n_states, "all", 0, int(counts[0].sum()))
        for j in range(n_states + 1):
            for k in np.flatnonzero(counts[j]):
                log_p += self._rise(n_states, "one", int(k), int(counts[j, k]))
            if j > 0:
                log_p -= self._rise(n_states, "others", j - 1, int(counts[j].sum()))
        return _log_mean(log_p)

    def _rise(self, n_states: int, mass: str, k: int, n: int) -> FloatArray:
        """Logarithm of the rising factorial of c, c β_k or c (1 − β_k), given each (c, β)."""
        key = n_states, mass, k, n
        if key not in self._rises:
            _, c, beta = self._draws(n_states)
            x = {"all": c, "one": c * beta[:, k], "others": c * (1 - beta[:, k])}[mass]
            self._rises[key] = _log_rise(x, n)
        return self._rises[key]

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


def _log_mean(log_values: FloatArray) -> float:
    """Logarithm of the mean of their exponentials."""
    top = log_values.max()
    return float(top + np.log(np.exp(log_values - top).mean())) if np.isfinite(top) else -np.inf
