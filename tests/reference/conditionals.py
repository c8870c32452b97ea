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


def concentration_law(shape, rate, customers, n_tables):
    """p(c | tables, counts) ∝ Gamma(c) c^m Π_j Γ(c) / Γ(c + n_j·), all rows."""

    def log_density(c):
        rows = sum(gammaln(c) - gammaln(c + n) for n in customers)
        return (shape - 1) * np.log(c) - rate * c + n_tables * np.log(c) + rows

    return GridLaw(log_density)


def gamma_law(shape, rate, n_states, n_tables):
    """p(γ | tables) ∝ Gamma(γ) γ^K Γ(γ) / Γ(γ + M)."""

    def log_density(g):
        return (shape - 1) * np.log(g) - rate * g + n_states * np.log(g) + gammaln(g) - gammaln(g + n_tables)

    return GridLaw(log_density)
