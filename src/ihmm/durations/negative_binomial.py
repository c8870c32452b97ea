"""Negative binomial durations."""

from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.special import betaincc, gammaln

from ihmm import _checks
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations._protocol import Runs, complete
from ihmm.durations._tails import hazards, log_tail, mean_residual_life
from ihmm.emissions._gamma import log_density_of_log
from ihmm.emissions._slice import slice_step
from ihmm.priors import GammaPrior

LEAST = 1e-12  # of r, p and 1 − p
DEFAULT_SHAPE = GammaPrior(1.0, 0.2)  # r of about 5, geometric durations not excluded


class NegativeBinomialOmega(NamedTuple):
    r: FloatArray  # (K,)
    p: FloatArray  # (K,)


@dataclass(frozen=True)
class NegativeBinomial:
    """D = minimum + G with P(G = g) = Γ(g + r)/(Γ(r) g!) p^r (1 − p)^g, p ~ Beta(a, b).

    r = 1 is the geometric law; the larger r is, the more alike are the durations of a state.

    Parameters
    ----------
    shape
        r, or its prior.
    a, b
        Prior of p.
    minimum
        Least number of steps that a state lasts. A segment that the end of the data cuts off may be shorter.
    """

    shape: float | GammaPrior = DEFAULT_SHAPE
    a: float = 1.0
    b: float = 10.0
    minimum: int = 1

    def __post_init__(self) -> None:
        if not isinstance(self.shape, GammaPrior):
            _checks.positive("NegativeBinomial shape (a number, or a GammaPrior to resample it)", self.shape)
        _checks.positive("NegativeBinomial a", self.a)
        _checks.positive("NegativeBinomial b", self.b)
        _checks.count("NegativeBinomial minimum", self.minimum, most=_checks.MAX_SIZE)

    @property
    def constant_from(self) -> None:
        return None

    def sample_prior(self, rng: np.random.Generator, n: int) -> NegativeBinomialOmega:
        if isinstance(self.shape, GammaPrior):
            r = np.maximum(rng.gamma(self.shape.shape, 1 / self.shape.rate, n), LEAST)
        else:
            r = np.full(n, float(self.shape))
        return NegativeBinomialOmega(r, np.clip(rng.beta(self.a, self.b, n), LEAST, 1 - LEAST))

    def log_probability(self, d: Array, omega: NegativeBinomialOmega) -> FloatArray:
        r, p = omega
        g = np.maximum(d - self.minimum, 0)
        known = gammaln(g + r) - gammaln(r) - gammaln(g + 1) + r * np.log(p) + g * np.log1p(-p)
        return np.where(np.less(d, self.minimum), -np.inf, known)

    def log_survivor(self, d: Array, omega: NegativeBinomialOmega) -> FloatArray:
        r, p = omega
        g = np.maximum(d - self.minimum, 0)
        survivor = np.where(g > 0, betaincc(r, np.maximum(g, 1), p), 1.0)
        log_p = partial(self.log_probability, g + self.minimum, omega)
        return log_tail(g, survivor, log_p, lambda g: np.asarray((g + r) / (g + 1) * (1 - p)))

    def hazard(self, n_ages: int, omega: NegativeBinomialOmega) -> FloatArray:
        r, p = (field[:, None] for field in omega)

        def log_last(g: int) -> FloatArray:
            d = np.array(self.minimum + g)
            return np.asarray(self.log_survivor(d, omega) - self.log_probability(d, omega))

        return hazards(n_ages, self.minimum, lambda g: (g + r) / (g + 1) * (1 - p), log_last)

    def sample(self, rng: np.random.Generator, omega: NegativeBinomialOmega) -> IntArray:
        return np.asarray(self.minimum + rng.poisson(rng.standard_gamma(omega.r) * (1 - omega.p) / omega.p))

    def update(self, rng: np.random.Generator, runs: Runs, omega: NegativeBinomialOmega) -> NegativeBinomialOmega:
        """r by slice sampling with the mean of G fixed, then p, given the whole durations."""
        n_states, state = len(omega.r), runs.state
        excess = complete(rng, self, runs, omega) - self.minimum
        n, total = np.bincount(state, minlength=n_states), np.bincount(state, excess, n_states)
        r, p = omega
        if isinstance(self.shape, GammaPrior):
            prior, mean = self.shape, r * (1 - p) / p

            def log_density(log_r: FloatArray) -> FloatArray:
                r = np.exp(log_r)
                rise = np.bincount(state, gammaln(excess + r[state]) - gammaln(r[state]), n_states)
                log_p, log_q = -np.log1p(mean / r), -np.log1p(r / mean)
                likelihood = rise + (self.a + n * r) * log_p + (self.b + total) * log_q
                return np.asarray(log_density_of_log(log_r, prior.shape, prior.rate) + likelihood)

            r = np.maximum(np.exp(slice_step(rng, log_density, np.log(r))), LEAST)
            p = r / (r + mean)
        to_p, to_q = self._before_the_data(rng, runs, r, np.clip(p, LEAST, 1 - LEAST))
        p = rng.beta(self.a + n * r + to_p, self.b + total + to_q)
        return NegativeBinomialOmega(r, np.clip(p, LEAST, 1 - LEAST))

    def _before_the_data(
        self, rng: np.random.Generator, runs: Runs, r: FloatArray, p: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Auxiliary counts of p and 1 − p that stand for the factors 1/E[D] of left-censored runs.

        1/E[D] = p/(mp + r(1−p)), and with M = max(m, r) and x = p if r > m, else 1 − p, the denominator is
        M (1 − x |r − m|/M), whose inverse is a geometric series in x.
        """
        n, m = np.bincount(runs.state[runs.left_censored], minlength=len(r)), self.minimum
        x = np.where(r > m, p, 1 - p)
        more = rng.negative_binomial(np.maximum(n, 1), np.maximum(1 - x * np.abs(r - m) / np.maximum(m, r), LEAST))
        more = np.where(n > 0, more, 0)
        return np.asarray(n + np.where(r > m, more, 0.0)), np.asarray(np.where(r > m, 0.0, more))

    def mean(self, omega: NegativeBinomialOmega) -> FloatArray:
        return np.asarray(self.minimum + omega.r * (1 - omega.p) / omega.p)

    def mean_residual(self, d: Array, omega: NegativeBinomialOmega) -> FloatArray:
        """E[G; G ≥ g] = r (1−p)/p P(G' ≥ g − 1), where G' has r + 1 instead of r."""
        r, p = omega
        g = np.maximum(d - self.minimum, 0)
        log_ratio = self.log_survivor(g + self.minimum - 1, omega._replace(r=r + 1))
        log_ratio = log_ratio - self.log_survivor(g + self.minimum, omega)
        return mean_residual_life(d, self.minimum, r * (1 - p) / p * np.exp(log_ratio))
