"""Kernels of the pilot against enumeration of all paths."""

import itertools

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from ihmm.kernels import pilot

LEVEL, SCALE = np.array([[-1.0, 0.5], [0.8, -0.5]]), np.array([[0.7, 0.9], [0.5, 1.1]])
COEFFICIENTS = np.array([[0.5, 0.2], [-0.2, 0.3]])
INITIAL, EXIT = np.array([0.3, 0.7]), np.array([0.2, 0.4])
JUMP = np.array([[0.0, 1.0], [1.0, 0.0]])
OFFSETS = np.array([0, 7, 11])
DWELL = 2


def series(order):
    y = np.random.default_rng(1).standard_normal((11, 2))
    z = y.copy()
    for lag in range(1, order + 1):
        z[lag:] -= COEFFICIENTS[lag - 1] * y[:-lag]
    for begin in OFFSETS[:-1]:
        z[begin : begin + order] = np.nan
    return y, z


def log_density(y, path, order, sharp, dof):
    """log p(y | path) of one sequence, given its first values."""
    total = 0.0
    for t in range(order, len(y)):
        center = LEVEL[path[t]].copy()
        for lag in range(1, order + 1):
            center += COEFFICIENTS[lag - 1] * (y[t - lag] - LEVEL[path[t - lag] if sharp else path[t]])
        residual = (y[t] - center) / SCALE[path[t]]
        law = stats.norm if np.isinf(dof) else stats.t(dof)
        total += (law.logpdf(residual) - np.log(SCALE[path[t]])).sum()
    return total


def log_prior(path):
    """Visits last two steps or more; the last may be cut off."""
    lengths = [(k, len(list(steps))) for k, steps in itertools.groupby(path)]
    total = np.log(INITIAL[path[0]])
    for k, length in lengths[:-1]:
        total += np.log(EXIT[k]) + (length - DWELL) * np.log1p(-EXIT[k]) if length >= DWELL else -np.inf
    k, length = lengths[-1]
    return total + max(length - DWELL, 0) * np.log1p(-EXIT[k])


def enumerate_paths(y, order, sharp, dof):
    paths = list(itertools.product(range(2), repeat=len(y)))
    with np.errstate(divide="ignore"):
        joint = [log_prior(path) + log_density(y, path, order, sharp, dof) for path in paths]
    return np.array(paths), np.array(joint)


@pytest.mark.parametrize(("order", "sharp", "dof"), [(0, True, np.inf), (2, True, 5.0), (2, False, np.inf)])
def test_likelihood_weights_and_best_path_are_those_of_all_paths(order, sharp, dof):
    y, z = series(order)
    recalled = order if sharp else 0
    settled, change = np.zeros((len(z), 2)), np.full((len(z), 2, 2), -np.inf)
    pilot.score(z, OFFSETS, LEVEL, SCALE, COEFFICIENTS[:order], dof, DWELL, recalled, settled, change)
    with np.errstate(divide="ignore"):
        logs = np.log(INITIAL), np.log1p(-EXIT), np.log(EXIT[:, None] * JUMP)
    weight, moves, best = np.zeros_like(settled), np.zeros_like(change), np.empty(len(z), np.int64)
    total = pilot.smooth(settled, change, OFFSETS, *logs, DWELL, weight, moves)
    pilot.decode(settled, change, OFFSETS, *logs, DWELL, best)
    expected = 0.0
    for begin, end in itertools.pairwise(OFFSETS):
        paths, joint = enumerate_paths(y[begin:end], order, sharp, dof)
        evidence = logsumexp(joint)
        expected += evidence
        np.testing.assert_array_equal(best[begin:end], paths[joint.argmax()])
        probability = np.exp(joint - evidence)
        for t in range(1, end - begin):
            left = (paths[:, t - 1] == 0) & (paths[:, t] == 1)
            assert moves[begin + t, 0, 1] == pytest.approx(probability @ left, abs=1e-10)
        occupied = weight[begin:end].copy()
        for t in range(begin, end):
            occupied[t - begin :][:DWELL] += moves[t].sum(axis=0)
        np.testing.assert_allclose(occupied[:, 1], probability @ paths, atol=1e-10)
    assert total == pytest.approx(expected, rel=1e-12)
