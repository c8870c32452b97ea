"""Prior probability of a state sequence, with transitions and hyperparameters integrated out."""

from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from ihmm._typing import FloatArray, IntArray
from ihmm.model import Prior
from ihmm.priors import FinitePrior
from ihmm.testing._quadrature import quadrature


def log_path_probability(prior: Prior, states: IntArray, offsets: IntArray) -> float:
    """log p(partition) with β, π and the hyperparameters integrated out.

    Given (c, ρ), every cell of the transition counts contributes a rising factorial Π_i (a β_k + b + i), a polynomial
    in β_k. The expectation of a monomial Π β_k^{m_k} over β and all labellings is, with M = Σ m_k,

        Γ(γ)/Γ(γ+M) · Π γ Γ(m_k)                              β ~ GEM(γ)
        Γ(γ)/Γ(γ+M) · Π Γ(γ/L+m_k)/Γ(γ/L) · L!/(L−K)!         β ~ Dirichlet(γ/L, …)
        Π L^{−m_k} · L!/(L−K)!                                β = (1/L, …)
    """
    n_states = int(states.max()) + 1
    counts = np.zeros((n_states + 1, n_states), np.int64)
    for begin, end in pairwise(offsets):
        np.add.at(counts, (np.append(0, states[begin : end - 1] + 1), states[begin:end]), 1)

    c, weight_c = quadrature(prior.concentration)
    rho, weight_rho = quadrature(prior.stickiness)
    c, rho = (grid.ravel() for grid in np.meshgrid(c, rho))
    weight = np.outer(weight_rho, weight_c).ravel()

    columns = []  # of each state: coefficients of β_k^m at every node of (c, ρ)
    for k in range(n_states):
        column: FloatArray = np.ones((len(c), 1))
        for j in range(n_states + 1):
            slope = c if j == 0 else c * (1 - rho)
            bias = c * rho if j == k + 1 else np.zeros_like(c)
            for i in range(counts[j, k]):
                column = _times(column, np.stack([bias + i, slope], axis=1))
        columns.append(column)
    customers = counts.sum(axis=1)
    weight = weight * np.exp((gammaln(c)[:, None] - gammaln(c[:, None] + customers)).sum(axis=1))

    total = 0.0
    for gamma, weight_gamma in zip(*quadrature(prior.gamma), strict=True):
        power_sum: FloatArray = np.ones((len(c), 1))  # coefficients by total degree M at every node of (c, ρ)
        for column in columns:
            power_sum = _times(power_sum, column * _stick_moments(prior, gamma, column.shape[1]))
        powers = np.arange(power_sum.shape[1])
        normaliser = np.exp(gammaln(gamma) - gammaln(gamma + powers)) if np.isfinite(gamma) else np.ones(len(powers))
        total += weight_gamma * float(weight @ power_sum @ normaliser)
    return float(np.log(total) + _log_labellings(prior, n_states))


def _stick_moments(prior: Prior, gamma: float, n: int) -> FloatArray:
    """The factor of one state in E[Π β_k^{m_k}], m = 0 … n − 1; it is 0 for m = 0, as β is drawn from at least once."""
    powers = np.arange(1, n)
    if not isinstance(prior, FinitePrior):
        moments: FloatArray = gamma * np.exp(gammaln(powers))
    elif np.isinf(gamma):
        moments = float(prior.n_states) ** -powers
    else:
        moments = np.exp(gammaln(gamma / prior.n_states + powers) - gammaln(gamma / prior.n_states))
    return np.append(0.0, moments)


def _log_labellings(prior: Prior, n_states: int) -> float:
    """log of the number of ways to label the blocks of a partition; the infinite model has summed over them already."""
    if not isinstance(prior, FinitePrior):
        return 0.0
    if n_states > prior.n_states:
        return -np.inf
    return float(gammaln(prior.n_states + 1) - gammaln(prior.n_states - n_states + 1))


def _times(left: FloatArray, right: FloatArray) -> FloatArray:
    """Products of polynomials, row by row."""
    out = np.zeros((len(left), left.shape[1] + right.shape[1] - 1))
    for i in range(right.shape[1]):
        out[:, i : i + left.shape[1]] += left * right[:, i : i + 1]
    return out
