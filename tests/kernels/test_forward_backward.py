"""`kernels.forward_backward` against sums over all paths."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihmm.kernels import forward_backward
from reference import forward_backward as twin
from reference.verdicts import assert_frequencies, count_outcomes

QUICK = settings(max_examples=40, deadline=None, derandomize=True)
PROBLEMS = given(st.integers(1, 3), st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(0, 10**6))


def problem(n_states, lengths, seed=0):
    """A chain, and densities (total T, K) of sequences laid end to end."""
    rng = np.random.default_rng(seed)
    initial, rows = rng.dirichlet(np.ones(n_states)), rng.dirichlet(np.ones(n_states), n_states)
    return initial, rows, rng.gamma(0.5, 1.0, (sum(lengths), n_states)) + 1e-3


def starts(lengths):
    """The number of the sequence at its first step, −1 elsewhere."""
    out = np.full(sum(lengths), -1)
    out[np.cumsum([0, *lengths[:-1]])] = np.arange(len(lengths))
    return out


def by_sequence(array, lengths):
    return np.split(array, np.cumsum(lengths)[:-1])


def columns_of(density):
    return np.ascontiguousarray(density.T)


def run_filter(initial, rows, density, lengths):
    filtered = np.empty_like(density)
    log_likelihood = forward_backward.filter_forward(columns_of(density), starts(lengths), initial, rows, filtered)
    return filtered, log_likelihood


@QUICK
@PROBLEMS
def test_the_filter_sums_over_the_paths_so_far_and_its_likelihood_over_all(n_states, lengths, seed):
    initial, rows, density = problem(n_states, lengths, seed)
    filtered, log_likelihood = run_filter(initial, rows, density, lengths)
    parts = by_sequence(density, lengths)
    np.testing.assert_allclose(filtered, np.vstack([twin.filtered(part, initial, rows) for part in parts]), atol=1e-12)
    assert log_likelihood == pytest.approx(sum(np.log(twin.evidence(part, initial, rows)) for part in parts))


@QUICK
@PROBLEMS
def test_smoothing_sums_over_all_paths(n_states, lengths, seed):
    initial, rows, density = problem(n_states, lengths, seed)
    smoothed, _ = run_filter(initial, rows, density, lengths)
    forward_backward.smooth(smoothed, starts(lengths), rows)
    expected = [twin.smoothed(part, initial, rows) for part in by_sequence(density, lengths)]
    np.testing.assert_allclose(smoothed, np.vstack(expected), atol=1e-12)


@QUICK
@PROBLEMS
def test_no_path_is_more_probable_than_the_most_probable_one(n_states, lengths, seed):
    initial, rows, density = problem(n_states, lengths, seed)
    path = np.empty(sum(lengths), np.int64)
    log_probability = forward_backward.most_probable_path(
        np.log(columns_of(density)), starts(lengths), np.log(initial), np.log(rows), path
    )
    weights = [twin.path_weights(part, initial, rows) for part in by_sequence(density, lengths)]
    for found, weight in zip(by_sequence(path, lengths), weights, strict=True):
        assert tuple(found.tolist()) == max(weight, key=weight.get)
    assert log_probability == pytest.approx(sum(np.log(max(weight.values())) for weight in weights))


@pytest.mark.law
@pytest.mark.parametrize(("n_states", "n_steps"), [(2, 1), (2, 4), (3, 3)])
def test_backward_sampling_visits_every_path_as_often_as_enumeration_says(n_states, n_steps):
    n_copies = 30_000
    initial, rows, density = problem(n_states, [n_steps], seed=3)
    lengths = [n_steps] * n_copies
    filtered, _ = run_filter(initial, rows, np.tile(density, (n_copies, 1)), lengths)
    path = np.empty(n_steps * n_copies, np.int64)
    forward_backward.sample_backward(filtered, starts(lengths), columns_of(rows), np.uint64(1), path)
    assert_law(path.reshape(n_copies, n_steps), twin.path_weights(density, initial, rows))


@pytest.mark.law
@pytest.mark.parametrize("slices", [(0.0, 0.0, 0.0), (0.1, 0.2, 0.1), (0.3, 0.25, 0.2), (0.05, 0.35, 0.3)])
def test_the_beam_visits_every_path_above_the_slices_as_often_as_its_densities_say(slices):
    n_copies, n_states = 30_000, 3
    initial = np.array([0.4, 0.25, 0.35])
    rows = np.array([[0.5, 0.3, 0.2], [0.1, 0.3, 0.6], [0.4, 0.22, 0.38]])
    density = problem(n_states, [3], seed=4)[2]
    lengths = [3] * n_copies
    order = np.argsort(-np.vstack([rows, initial]), axis=1, kind="stable")
    falling = np.take_along_axis(np.vstack([rows, initial]), order, axis=1)
    filtered = np.empty((3 * n_copies, n_states))
    tiled = np.tile(slices, n_copies)
    log_density = np.log(columns_of(np.tile(density, (n_copies, 1))))
    n_allowed = forward_backward.filter_beam(
        log_density, starts(lengths), falling[-1], falling[:-1], order, tiled, filtered
    )
    path = np.empty(3 * n_copies, np.int64)
    forward_backward.sample_beam(filtered, starts(lengths), columns_of(rows), tiled, np.uint64(2), path)
    weights = twin.sliced_weights(density, initial, rows, slices)
    assert_law(path.reshape(n_copies, 3), weights)
    # every step of an allowed path so far counts once
    allowed = [path for path, weight in weights.items() if weight > 0]
    if slices == (0.0, 0.0, 0.0):
        assert n_allowed == n_copies * (3 + 9 + 9)
    assert n_allowed >= n_copies * max(len({path[t] for path in allowed}) for t in range(3))


def assert_law(paths, weights):
    total = sum(weights.values())
    assert_frequencies(count_outcomes(paths, weights), [weight / total for weight in weights.values()])


def test_sequences_are_drawn_from_streams_of_their_own():
    initial, rows, density = problem(3, [5], seed=5)
    paths = []
    for lengths in ([5], [5, 5]):
        filtered, _ = run_filter(initial, rows, np.tile(density, (len(lengths), 1)), lengths)
        path = np.empty(sum(lengths), np.int64)
        forward_backward.sample_backward(filtered, starts(lengths), columns_of(rows), np.uint64(7), path)
        paths.append(path)
    np.testing.assert_array_equal(paths[0], paths[1][:5])
