"""Statistics of a trajectory do not depend on who computes them."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ihmm
from ihmm import trajectory
from ihmm.kernels.counts import count_transitions
from ihmm.trajectory import Trajectory
from ihmm.workers import Threads

K = 4
EMISSIONS = {
    "normal": ihmm.Normal(),
    "rows": ihmm.MultivariateNormal(2),
    "symbols": ihmm.Categorical(3),
    "no statistics": ihmm.StudentT(),
}


@pytest.fixture(autouse=True)
def short_pieces(monkeypatch):
    monkeypatch.setattr(trajectory, "PIECE_STEPS", 10)


def problem(name, lengths):
    rng = np.random.default_rng(len(lengths))
    total = sum(lengths)
    y = rng.standard_normal((total, 2) if name == "rows" else total)
    if name == "symbols":
        y = rng.integers(3, size=total)
    model = ihmm.Model(EMISSIONS[name])
    return model, model.observe(np.split(y, np.cumsum(lengths)[:-1])), rng.integers(K, size=total)


def numbers(found):
    return [found.counts, *(found.emission if found.emission is not None else ())]


LENGTHS = [3, 2, 38, 5, 5, 11, 2, 64, 2, 2]


@given(st.lists(st.integers(2, 60), min_size=1, max_size=12))
def test_pieces_cover_the_steps_and_are_the_same_after_a_cut(lengths):
    offsets = np.cumsum([0, *lengths])
    borders = trajectory.piece_borders(offsets)
    assert (borders[0], borders[-1]) == (0, offsets[-1])
    for begin, end in pairwise(borders):
        assert end in offsets or end - begin == 10
        assert 0 < end - begin <= 15
    for i, cut in enumerate(offsets):
        if cut in borders[1:-1]:
            rest = trajectory.piece_borders(offsets[i:] - cut)
            assert [cut + border for border in rest] == borders[borders.index(cut) :]


@pytest.mark.parametrize("name", EMISSIONS)
@pytest.mark.parametrize("lengths", [[2], [10], [9, 2], [200], LENGTHS], ids=str)
def test_sums_are_those_of_the_whole_path(name, lengths):
    _, data, states = problem(name, lengths)
    found = Trajectory(states).statistics(data, K)
    np.testing.assert_array_equal(found.counts, count_transitions(states, data.offsets, K))
    assert (found.emission is None) == (name == "no statistics")
    if found.emission is not None:
        for one, whole in zip(found.emission, data.conjugate.statistics(data.y, states, K), strict=True):
            np.testing.assert_allclose(one, whole, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", EMISSIONS)
@pytest.mark.parametrize("threads", [2, 5])
def test_sums_do_not_depend_on_threads(name, threads):
    _, data, states = problem(name, LENGTHS)
    one = Trajectory(states).statistics(data, K)
    many = Trajectory(states).statistics(data._replace(workers=Threads(threads)), K)
    for a, b in zip(numbers(one), numbers(many), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", EMISSIONS)
def test_sums_do_not_depend_on_how_the_data_are_shared(name):
    _, data, states = problem(name, LENGTHS)
    states[: data.offsets[2]] = 0  # so that the first part knows of one state only
    whole = Trajectory(states).statistics(data, K)
    cuts = np.intersect1d(trajectory.piece_borders(data.offsets), data.offsets)
    assert len(cuts) > 3
    for some in (cuts, cuts[[0, 1, -1]], cuts[[0, -2, -1]]):
        parts = [
            trajectory.piece_statistics(data.part(i, j), states[i:j], int(states[i:j].max()) + 1)
            for i, j in pairwise(some.tolist())
        ]
        for a, b in zip(numbers(whole), numbers(trajectory.combine(data.conjugate, parts)), strict=True):
            np.testing.assert_array_equal(a, b)


def test_missing_values_are_left_out_of_statistics_and_not_of_counts():
    model = ihmm.Model(ihmm.Normal())
    data = model.observe([1.0, np.nan, 3.0, 5.0])
    counts, statistics = Trajectory(np.array([0, 0, 0, 1])).statistics(data, 2)
    assert counts.tolist() == [[1, 0], [2, 1], [0, 0]]
    assert statistics.number.tolist() == [2, 1]
    assert statistics.average.tolist() == [2.0, 5.0]


@pytest.mark.parametrize("name", EMISSIONS)
def test_sums_do_not_depend_on_how_many_states_there_are_beside(name):
    _, data, _ = problem(name, [300])
    one, *more = (numbers(Trajectory(np.zeros(300, np.int64)).statistics(data, n)) for n in (1, 2, 5))
    for other in more:
        for a, b in zip(one[1:], other[1:], strict=True):
            np.testing.assert_array_equal(a, b[:1])


def test_a_subclass_with_another_law_is_not_conjugate():
    class Wider(ihmm.Normal):
        def resample(self, rng, y, states, n_states):
            return super().resample(rng, y[::2], states[::2], n_states)

    class Explicit(Wider):
        def conjugate(self, y):
            return super().conjugate(y)

    y = np.arange(5.0)
    kinds = (ihmm.Normal, Wider, Explicit)
    assert [ihmm.Model(kind()).observe(y).conjugate is not None for kind in kinds] == [True, False, True]
    rows = np.stack([y, y], axis=1)
    parts = [ihmm.Independent(ihmm.Normal(), kind()) for kind in kinds]
    assert [ihmm.Model(each).observe(rows).conjugate is not None for each in parts] == [True, False, True]
