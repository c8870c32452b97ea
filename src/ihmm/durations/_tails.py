"""Survivor functions that stay accurate where they underflow, and hazards, of laws on {0, 1, …}."""

from collections.abc import Callable

import numpy as np

from ihmm._typing import Array, FloatArray
from ihmm.durations._protocol import Duration, Omega
from ihmm.kernels.hazards import fill_hazards, fill_residual_hazards

UNDERFLOW = 1e-290
Ratio = Callable[[Array], FloatArray]  # p(g + 1) / p(g)


def log_tail(g: Array, survivor: FloatArray, log_p: Callable[[], FloatArray], ratio: Ratio) -> FloatArray:
    """log P(G ≥ g) given its value in floating point; where that underflows, p(g) times the sum of the ratios to it."""
    faint = survivor < UNDERFLOW
    if not faint.any():
        return np.asarray(np.log(survivor))
    with np.errstate(divide="ignore"):
        out = np.log(survivor)
    total = term = np.ones_like(out)
    i = 0
    while (term > 1e-17 * total)[faint].any():
        term = np.where(faint, term * ratio(g + i), 0.0)
        total, i = total + term, i + 1
    return np.where(faint, log_p() + np.log(total), out)


def hazards(n_ages: int, minimum: int, ratio: Ratio, log_last: Callable[[int], FloatArray]) -> FloatArray:
    """P(D = a | D ≥ a) for D = minimum + G and a = 1 … n_ages, (K, n_ages).

    `ratio` maps g to (K, ages), and `log_last` gives log S(g)/p(g) at the last g, (K,).
    """
    beyond = n_ages - minimum + 1
    if beyond <= 0:
        return np.zeros((len(log_last(0)), n_ages))
    last = np.exp(np.minimum(log_last(beyond - 1), 700.0))
    out = np.zeros((len(last), n_ages))
    fill_hazards(np.ascontiguousarray(ratio(np.arange(beyond))), last, out[:, minimum - 1 :])
    return out


def mean_residual_life(d: Array, minimum: int, mean_beyond: FloatArray) -> FloatArray:
    """E[D − d + 1 | D ≥ d] for D = minimum + G, given E[G | G ≥ d − minimum]. It is 1 at least."""
    return np.asarray(np.maximum(minimum + mean_beyond - d + 1, 1.0))


def residual_hazards(law: Duration, hazard: FloatArray, omega: Omega) -> FloatArray:
    """P(R = a | R ≥ a) of the rest R of a segment that began before the data, given the hazards of whole ones."""
    last = law.mean_residual(np.array(hazard.shape[1]), omega)  # type: ignore[attr-defined]
    out = np.empty_like(hazard)
    fill_residual_hazards(hazard, np.ascontiguousarray(last), out)
    return out
