"""R-hat and effective sample sizes of chains, after Vehtari, Gelman, Simpson, Carpenter and Bürkner (2021).

Here rather than imported from ArviZ, which takes a second and 100 MB; the tests compare the two.
"""

import numpy as np
from scipy.special import ndtri

from ihmm._typing import Array, FloatArray

TAILS = 0.05, 0.95  # quantiles of the tails


def rhat(x: FloatArray) -> float:
    """Rank-normalised split R-hat of (chains, draws): the larger of those for the location and for the scale."""
    halves = split(x)
    folded = np.abs(halves - np.median(halves))
    return float(np.fmax(_plain_rhat(normal_scores(halves)), _plain_rhat(normal_scores(folded))))


def ess_bulk(x: FloatArray) -> float:
    """Effective sample size of (chains, draws) for the location."""
    return _ess(normal_scores(split(x)))


def ess_tail(x: FloatArray) -> float:
    """Effective sample size of (chains, draws) for the rarer of the two tails."""
    return min(_ess(split(x <= np.quantile(x, level)).astype(np.float64)) for level in TAILS)


def ess_mean(x: FloatArray) -> float:
    """Effective sample size of (chains, draws) for the mean."""
    return _ess(split(x))


def split(x: Array) -> Array:
    """(2 chains, draws / 2): the halves of the chains, without the draw in the middle of an odd number."""
    half = x.shape[1] // 2
    return np.concatenate([x[:, :half], x[:, -half:]])


def normal_scores(x: FloatArray) -> FloatArray:
    """Normal quantiles of the ranks among all values; equal values have the mean of their ranks."""
    _, place, count = np.unique(x, return_inverse=True, return_counts=True)
    rank = np.cumsum(count) - 0.5 * (count - 1)
    return np.asarray(ndtri((rank - 0.375) / (x.size + 0.25))[place].reshape(x.shape))


def _plain_rhat(x: FloatArray) -> float:
    """√(var⁺ / W): W is the variance within chains, var⁺ = W (n − 1)/n + the variance between their means."""
    n = x.shape[1]
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.sqrt((n - 1) / n + x.mean(axis=1).var(ddof=1) / x.var(axis=1, ddof=1).mean()))


def _ess(x: FloatArray) -> float:
    """Number of draws divided by τ = −1 + 2 Σ ρ_t, the sum over the lags t before the noise of ρ_t takes over.

    Sums of two neighbouring ρ_t are positive and fall with t (Geyer): the first that is not ends the sum, and none is
    taken to be larger than the one before.
    """
    n_chains, n = x.shape
    if np.ptp(x) < 1e-15:
        return float(x.size)
    covariance = autocovariance(x).mean(axis=0)
    within = covariance[0] * n / (n - 1)
    total = covariance[0] + (x.mean(axis=1).var(ddof=1) if n_chains > 1 else 0.0)
    rho = 1 - (within - covariance) / total
    rho[0] = 1.0
    n_pairs = max((n - 3) // 2, 0) + 1
    pairs = rho[: 2 * n_pairs].reshape(n_pairs, 2).sum(axis=1)
    end = int(np.argmax(np.append(pairs[:-1] <= 0, True)))
    last = rho[2 * end] if pairs[end] >= 0 else max(rho[2 * end], 0.0)
    tau = -1 + 2 * np.minimum.accumulate(pairs[:end]).sum() + last
    return float(x.size / max(tau, 1 / np.log10(x.size)))


def autocovariance(x: FloatArray) -> FloatArray:
    """(chains, draws): autocovariance of each chain at every lag."""
    n = x.shape[1]
    spectrum = np.fft.rfft(x - x.mean(axis=1, keepdims=True), 2 * n)
    return np.asarray(np.fft.irfft(np.square(np.abs(spectrum)), 2 * n)[:, :n] / n)
