"""Twins of `ihmm.kernels.conditionals`: the conditional densities themselves, on a grid."""

import numpy as np
from scipy.special import gammaln


class GridLaw:
    """The law on (0, ∞) with this log density up to a constant, tabulated on a fine grid of log x."""

    def __init__(self, log_density, low=1e-7, high=1e4, n=200_001):
        self.log_x = np.linspace(np.log(low), np.log(high), n)
        log_p = log_density(np.exp(self.log_x)) + self.log_x  # density of log x
        p = np.exp(log_p - log_p.max())
        self.cumulative = np.append(0, np.cumsum((p[1:] + p[:-1]) / 2))
        self.cumulative /= self.cumulative[-1]

    def cdf(self, x):
        return np.interp(np.log(x), self.log_x, self.cumulative)

    def sample(self, rng, n):
        return np.exp(np.interp(rng.random(n), self.cumulative, self.log_x))


def law_given_counts(log_prior, counts, beta, hyper_at, high=1e4):
    """p(x | counts, β) ∝ p(x) Π_j DirichletMultinomial(n_j | c((1−ρ)β + ρδ_j)), where `hyper_at(x)` is (c, ρ)."""
    n_states = len(beta) - 1

    def log_density(x):
        c, rho = np.broadcast_arrays(*hyper_at(x))
        total = log_prior(x)
        for j, row in enumerate(counts):
            total = total + gammaln(c) - gammaln(c + row.sum())
            for k in range(n_states):
                a = c * beta[k] if j == 0 else c * ((1 - rho) * beta[k] + rho * (k == j - 1))
                total = total + gammaln(a + row[k]) - gammaln(a)
        return total

    return GridLaw(log_density, high=high)


def concentration_law(prior, customers, n_tables):
    """p(c | tables, counts) ∝ Gamma(c) c^m Π_j Γ(c) / Γ(c + n_j·), all rows."""

    def log_density(c):
        rows = sum(gammaln(c) - gammaln(c + n) for n in customers)
        return (prior.shape - 1 + n_tables) * np.log(c) - prior.rate * c + rows

    return GridLaw(log_density)


def gamma_law(prior, n_states, n_tables):
    """p(γ | tables) ∝ Gamma(γ) γ^K Γ(γ) / Γ(γ + M)."""

    def log_density(g):
        return (prior.shape - 1 + n_states) * np.log(g) - prior.rate * g + gammaln(g) - gammaln(g + n_tables)

    return GridLaw(log_density)


def finite_gamma_law(prior, n_total, served):
    """p(γ | tables) ∝ Gamma(γ) Γ(γ) / Γ(γ + M) Π_k Γ(γ/L + m_k) / Γ(γ/L) among L states."""

    def log_density(g):
        each = sum(gammaln(g / n_total + m) - gammaln(g / n_total) for m in served)
        return (prior.shape - 1) * np.log(g) - prior.rate * g + gammaln(g) - gammaln(g + served.sum()) + each

    return GridLaw(log_density)
