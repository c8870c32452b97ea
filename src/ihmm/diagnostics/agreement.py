"""Whether the chains find the same levels: distances between their segmentations, and the modes they are in."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ihmm._typing import Array, FloatArray, IntArray
from ihmm.summaries.labels import one_to_one

MAX_STEPS = 20_000  # time steps compared
MAX_PATHS = 12  # draws of each chain that are compared
MAX_DISTANCE = 0.02  # by which two draws of different chains may differ more than two of the same chain
MIN_Z = 3.0  # and how many standard errors that must be
MAX_NUMBER = 0.8  # total variation distance between the numbers of levels of two chains


class Mode(NamedTuple):
    """Chains that find the same levels."""

    chains: tuple[int, ...]
    n_levels: int
    log_likelihood: float


@dataclass(frozen=True, eq=False)
class Agreement:
    """How far the chains agree.

    Attributes
    ----------
    distance
        (chains, chains): mean share of the steps whose level differs between two draws of different chains, beyond the
        share that differs between two draws of the same chain. Levels of one draw are matched one-to-one to those of
        the other; unmatched levels count in full.
    within
        (chains,): that share between two draws of the same chain.
    modes
        Groups of chains that agree, the largest first.
    """

    distance: FloatArray
    within: FloatArray
    modes: tuple[Mode, ...]

    @property
    def agree(self) -> bool:
        return len(self.modes) == 1


def compare(paths: Sequence[Array], n_levels: IntArray, log_likelihood: FloatArray) -> Agreement:
    """Compare chains.

    Parameters
    ----------
    paths
        For each chain, (draws, T): levels of some of its draws, in any numbering.
    n_levels
        (chains, draws): number of levels. Chains that hardly ever have the same number are in different modes.
    log_likelihood
        (chains,): mean of log p(y | θ).
    """
    n_chains = len(paths)
    step = max(1, paths[0].shape[1] // MAX_STEPS)
    thinned = [np.ascontiguousarray(path[:, ::step], np.int64) for path in paths]
    between = {(a, b): _differences(thinned[a], thinned[b]) for a in range(n_chains) for b in range(a, n_chains)}
    same = [_without_diagonal(between[a, a]) for a in range(n_chains)]  # (draws,): mean difference from the others
    distance, far = np.zeros((n_chains, n_chains)), np.zeros((n_chains, n_chains), bool)
    for a in range(n_chains):
        for b in range(a + 1, n_chains):
            from_a = between[a, b].mean(axis=1) - same[a]
            from_b = between[a, b].mean(axis=0) - same[b]
            excess = 0.5 * (from_a.mean() + from_b.mean())
            error = 0.5 * np.sqrt(from_a.var() / len(from_a) + from_b.var() / len(from_b))
            distance[a, b] = distance[b, a] = max(excess, 0.0)
            far[a, b] = far[b, a] = excess > max(MAX_DISTANCE, MIN_Z * error)
    within = np.array([each.mean() for each in same])
    number = np.stack([np.bincount(row, minlength=int(n_levels.max()) + 1) / len(row) for row in n_levels])
    far |= 0.5 * np.abs(number[:, None] - number).sum(axis=2) > MAX_NUMBER
    return Agreement(distance, within, _modes(far, number.argmax(axis=1), log_likelihood))


def _differences(left: IntArray, right: IntArray) -> FloatArray:
    """(draws, draws): share of the steps at which two paths differ after their levels are matched."""
    out = np.empty((len(left), len(right)))
    for i, a in enumerate(left):
        for j, b in enumerate(right):
            width = int(b.max()) + 1
            counts = np.bincount(a * width + b, minlength=(int(a.max()) + 1) * width).reshape(-1, width)
            out[i, j] = 1 - counts[one_to_one(counts)].sum() / len(a)
    return out


def _without_diagonal(differences: FloatArray) -> FloatArray:
    return np.asarray(differences.sum(axis=1) / max(len(differences) - 1, 1))


def _modes(far: Array, n_levels: IntArray, log_likelihood: FloatArray) -> tuple[Mode, ...]:
    """Groups of chains of which no two are far from each other."""
    if len(far) == 1:
        label = np.zeros(1, np.int64)
    else:
        from scipy.cluster.hierarchy import fcluster, linkage  # slow to import

        tree = linkage(far[np.triu_indices(len(far), 1)].astype(np.float64), "complete")
        label = fcluster(tree, 0.5, "distance").astype(np.int64)
    modes = []
    for k in np.unique(label):
        here = np.flatnonzero(label == k)
        usual = int(np.bincount(n_levels[here]).argmax())
        modes.append(Mode(tuple(here.tolist()), usual, float(log_likelihood[here].mean())))
    return tuple(sorted(modes, key=lambda mode: -len(mode.chains)))


def describe(modes: Sequence[Mode]) -> str:
    """'3 chains have 3 levels, 1 has 8; log p(y | θ) is 140 higher with 8 (chain 3).'"""
    numbers = [mode.n_levels for mode in modes]
    same = len(set(numbers)) == 1
    parts = []
    for i, (chains, n_levels, _) in enumerate(modes):
        chain = f" chain{'s' * (len(chains) > 1)}" if i == 0 else ""
        plural = "s" * (n_levels > 1)
        level = f" level{plural}" if i == 0 else f" other{plural}" * same
        parts.append(f"{len(chains)}{chain} {'have' if len(chains) > 1 else 'has'} {n_levels}{level}")
    best, other = sorted(modes, key=lambda mode: -mode.log_likelihood)[:2]
    gain = best.log_likelihood - other.log_likelihood
    if not np.isfinite(gain):
        return ", ".join(parts) + "."
    which = f"chain{'s' * (len(best.chains) > 1)} {', '.join(map(str, best.chains))}"
    where = f"with {best.n_levels} ({which})" if numbers.count(best.n_levels) == 1 else f"in {which}"
    return f"{', '.join(parts)}; log p(y | θ) is {gain:.0f} higher {where}."
