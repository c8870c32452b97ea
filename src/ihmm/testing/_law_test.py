"""Averages of a chain compared with their expectations."""

from dataclasses import dataclass

import numpy as np
from scipy import stats

from ihmm._typing import FloatArray

BATCHES = 50  # for the autocorrelation times of the averages


@dataclass(frozen=True)
class LawTest:
    """z-scores of the averages of a sampler against their expectations under the target distribution."""

    names: tuple[str, ...]
    expected: FloatArray
    observed: FloatArray
    z: FloatArray
    p_value: float
    """P-value of the largest absolute z, with Bonferroni correction for the number of averages."""

    def __repr__(self) -> str:
        order = np.argsort(-np.abs(self.z))[:8]
        rows = [
            f"  {self.names[i]:<40} expected {self.expected[i]:9.5f}  "
            f"observed {self.observed[i]:9.5f}  z {self.z[i]:+6.2f}"
            for i in order
        ]
        return "\n".join([f"LawTest: {len(self.z)} averages, p-value {self.p_value:.2g}; largest |z|:", *rows])


def compare(
    names: list[str], expected: FloatArray, variance: FloatArray, error: FloatArray, chain: FloatArray
) -> LawTest:
    """z-scores of the averages of a chain against expectations with standard error `error`.

    A chain that happens to visit a rare set too seldom also has too small a variance there, which would inflate the
    z-score. The variance is therefore that of the target distribution. Only the autocorrelation time is estimated from
    the chain, as the variance of batch means divided by that of single draws.
    """
    size = len(chain) // BATCHES
    chain = chain[: size * BATCHES]
    means = chain.reshape(BATCHES, size, -1).mean(axis=1)
    single = chain.var(axis=0)
    time = np.divide(size * means.var(axis=0, ddof=1), single, out=np.zeros_like(single), where=single > 0)
    time = np.maximum(time, np.median(time[single > 0]))  # the estimate of a rarely visited set is unreliable
    spread = np.sqrt(time * variance / len(chain) + error**2)
    gap = chain.mean(axis=0) - expected
    z = np.divide(gap, spread, out=np.where(np.abs(gap) < 1e-9, 0.0, np.inf), where=spread > 0)
    p_value = min(1.0, len(z) * 2 * float(stats.t.sf(np.abs(z).max(), BATCHES - 1)))
    return LawTest(tuple(names), expected, expected + gap, z, p_value)
