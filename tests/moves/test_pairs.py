"""Pairs of states that are divided anew: paths come as often as their probabilities say, term by term."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln

import ihmm
from ihmm.gibbs import initial_draw
from ihmm.kernels.conditionals import base_measure
from ihmm.kernels.counts import count_transitions
from ihmm.kernels.pairs import resample_pairs
from ihmm.samplers import Path
from ihmm.sticks import new_stream

N_STATES, N_STEPS, OFFSETS = 3, 8, np.array([0, 5, 8])
BETA, CONCENTRATION, STICKINESS = np.array([0.45, 0.3, 0.15, 0.1]), 2.5, 0.3
DENSITY = np.random.default_rng(1).uniform(0.2, 1.0, (N_STEPS, N_STATES))


def log_probability(states):
    """log p(s, y | β, φ), with π integrated out."""
    measure = base_measure(BETA, CONCENTRATION, STICKINESS)[:, :N_STATES]
    counts = count_transitions(states, OFFSETS, N_STATES)
    rows = (gammaln(measure + counts) - gammaln(measure)).sum() - gammaln(CONCENTRATION + counts.sum(axis=1)).sum()
    return rows + np.log(DENSITY[np.arange(N_STEPS), states]).sum()


def features(states):
    """Where every step is, and how often every transition comes."""
    at = np.eye(N_STATES)[states].ravel()
    return np.concatenate([at, count_transitions(states, OFFSETS, N_STATES).ravel()])


def test_paths_that_visit_the_same_states_come_as_often_as_they_should():
    every = np.array(list(itertools.product(range(N_STATES), repeat=N_STEPS)))
    every = every[[len(np.unique(path)) == N_STATES for path in every]]
    weight = np.array([log_probability(path) for path in every])
    weight = np.exp(weight - weight.max())
    expected = np.average([features(path) for path in every], axis=0, weights=weight)

    stream, states = new_stream(np.random.default_rng(2)), every[0].copy()
    seen = np.empty((40_000, len(expected)))
    for row in seen:
        resample_pairs(stream, DENSITY, OFFSETS, states, BETA, CONCENTRATION, STICKINESS, 4)
        row[:] = features(states)
    batches = seen.reshape(50, -1, len(expected)).mean(axis=1)
    z = (seen.mean(axis=0) - expected) / np.maximum(batches.std(axis=0, ddof=1) / np.sqrt(len(batches)), 1e-12)
    assert np.abs(z).max() < 4.5, z.round(1)
    assert np.ptp(batches, axis=0).min() > 0.0, "everything should move"


def test_states_that_do_not_overlap_are_left_alone():
    y = np.repeat([0.0, 50.0, 0.0], 20) + np.random.default_rng(3).normal(size=60)
    model, rng = ihmm.Model(ihmm.NormalMean(noise=1.0, mean=25.0, scale=30.0)), np.random.default_rng(4)
    data = model.observe(y)
    draw = initial_draw(rng, data, model, (y > 25).astype(np.int64))
    path = Path(draw.states, draw.transitions.beta, draw.phi)
    after, info = ihmm.PairGibbs().apply(rng, data, model, path, draw.hyper)
    np.testing.assert_array_equal(after.states, path.states)
    assert info == (0, 0)


@pytest.mark.parametrize("scans", [0, -1, 2.5])
def test_the_number_of_scans_is_checked(scans):
    with pytest.raises((ValueError, TypeError), match="PairGibbs scans"):
        ihmm.PairGibbs(scans)
