"""Prior probability of a state sequence, with transitions and hyperparameters integrated out."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from scipy.special import gammaln

from ihmm._typing import FloatArray, IntArray
from ihmm.model import Prior
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior
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

    c, _, weight = _transition_nodes(prior.concentration, prior.stickiness)
    customers = counts.sum(axis=1)
    weight = weight * np.exp((gammaln(c)[:, None] - gammaln(c[:, None] + customers)).sum(axis=1))
    columns = [
        _column(prior.concentration, prior.stickiness, counts[0, k], counts[k + 1, k], _others(counts, k))
        for k in range(n_states)
    ]
    coefficients = weight @ _outer(columns)  # of every Π β_k^{m_k}, c and ρ integrated out

    gamma, weight_gamma = quadrature(prior.gamma)
    powers = [np.arange(1, column.shape[1] + 1) for column in columns]
    moments = _outer([_stick_moments(prior, gamma, m) for m in powers])
    if np.isfinite(gamma).all():
        total = _outer([m[None] for m in powers], np.add)
        moments = moments * np.exp(gammaln(gamma)[:, None] - gammaln(gamma[:, None] + total))
    return float(np.log(coefficients @ (weight_gamma @ moments)) + _log_labellings(prior, n_states))


@lru_cache(maxsize=64)
def _transition_nodes(
    concentration: float | GammaPrior, stickiness: float | BetaPrior
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Quadrature nodes of (c, ρ) and their weights."""
    c, weight_c = quadrature(concentration)
    rho, weight_rho = quadrature(stickiness)
    return np.tile(c, len(rho)), np.repeat(rho, len(c)), np.outer(weight_rho, weight_c).ravel()


@lru_cache(maxsize=1024)
def _column(
    concentration: float | GammaPrior,
    stickiness: float | BetaPrior,
    initial: int,
    own: int,
    others: tuple[int, ...],
) -> FloatArray:
    """Coefficients of β_k^m, m = 1, 2, …, in the product of the cells of one column, at every node of (c, ρ).

    The column has the counts of the initial row, of the state's own row and of all other rows. The coefficient of β_k^0
    is left out: every visited state is entered through β at least once.
    """
    c, rho, _ = _transition_nodes(concentration, stickiness)
    free, zero = c * (1 - rho), np.zeros_like(c)
    column: FloatArray = np.ones((len(c), 1))
    for slope, bias, count in [(c, zero, initial), (free, c * rho, own), *((free, zero, n) for n in others)]:
        for i in range(count):
            column = _times(column, np.stack([bias + i, slope], axis=1))
    return column[:, 1:]


def _others(counts: IntArray, k: int) -> tuple[int, ...]:
    """Transitions into state k from other states, in any order."""
    return tuple(sorted(int(n) for j, n in enumerate(counts[1:, k]) if n and j != k))


def _stick_moments(prior: Prior, gamma: FloatArray, powers: IntArray) -> FloatArray:
    """The factor of one state in E[Π β_k^{m_k}], for every node of γ and every m in `powers`."""
    if not isinstance(prior, FinitePrior):
        return np.asarray(gamma[:, None] * np.exp(gammaln(powers)))
    each = gamma[:, None] / prior.n_states
    if np.isinf(gamma).all():
        return np.full_like(each, float(prior.n_states)) ** -powers
    return np.asarray(np.exp(gammaln(each + powers) - gammaln(each)))


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


def _outer(tables: list[FloatArray], combine: np.ufunc = np.multiply) -> FloatArray:
    """All combinations of one entry from each table, row by row."""
    out = tables[0]
    for table in tables[1:]:
        out = combine(out[:, :, None], table[:, None, :]).reshape(len(out), -1)
    return out
