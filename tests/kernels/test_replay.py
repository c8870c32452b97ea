"""A pass that is interrupted, for room or for a density, goes on as if it had not been."""

from itertools import pairwise

import numpy as np
import pytest

import ihmm.sticks
from ihmm.emissions import NormalMean
from ihmm.gibbs import initial_draw
from ihmm.model import Model
from ihmm.priors import HDPPrior
from ihmm.samplers import ParticleGibbs, _densities, particle_gibbs, states
from ihmm.trajectory import Trajectory
from ihmm.workers import Threads

pytestmark = pytest.mark.bounds

MODEL = Model(NormalMean(noise=0.5, scale=3.0), HDPPrior(gamma=3.0, concentration=4.0, stickiness=0.2))
SAMPLERS = [
    ParticleGibbs(6, threshold=0.05),
    ParticleGibbs(2, threshold=0.5),
    ParticleGibbs(6, proposal="prior"),
    ParticleGibbs(20, threshold=0.2, block_size=9),
    ParticleGibbs(6, proposal="prior", block_size=4),
    ParticleGibbs(6, threshold=0.05, resampling="multinomial"),
    ParticleGibbs(6, proposal="prior", resampling="multinomial"),
    ParticleGibbs(4, threshold=0.2, ancestor_sampling=False, resampling="multinomial"),
    ParticleGibbs(6, threshold=0.2, block_size=9, resampling="multinomial"),
]
SEEDS = range(12)


def series(lengths=(40, 25, 35)):
    # far apart, so that the three states there are do not suffice and new ones are opened all the time
    return [np.random.default_rng(i).uniform(-8, 8, n) for i, n in enumerate(lengths)]


def pass_over(sampler, y, seed, n_states=3, threads=1):
    data = MODEL.observe(y)._replace(workers=Threads(threads))
    rng = np.random.default_rng(seed)
    draw = initial_draw(rng, data, MODEL, np.arange(len(data.y)) % n_states)
    return sampler.resample_states(rng, data, MODEL, draw)


def assert_identical(one, other):
    np.testing.assert_array_equal(one[0].states, other[0].states)
    np.testing.assert_array_equal(one[0].beta, other[0].beta)
    assert one[1] == other[1]


def count_calls(monkeypatch, name):
    """How often the sampler calls one of the helpers it imported."""
    calls = []
    original = getattr(states, name)

    def counted(*arguments):
        calls.append(name)
        return original(*arguments)

    monkeypatch.setattr(states, name, counted)
    return calls


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_pass_does_not_depend_on_the_room_it_starts_with(sampler, monkeypatch):
    results = {}
    grown = {}
    for spare in (1, 2, 7, 64, 1000):
        with monkeypatch.context() as patch:
            patch.setattr(ihmm.sticks, "SPARE", spare)
            grown[spare] = count_calls(patch, "grow")
            results[spare] = [pass_over(sampler, series(), seed) for seed in SEEDS]
    assert len(grown[1]) > len(grown[7]) > len(grown[1000]) == 0, "the test should meet passes that run out of room"
    for spare in (1, 2, 7, 64):
        for one, other in zip(results[spare], results[1000], strict=True):
            assert_identical(one, other)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_pass_does_not_depend_on_the_blocks_it_is_cut_into(sampler, monkeypatch):
    results = {}
    for block in (3, 7, 4096):
        monkeypatch.setattr(_densities, "MAX_BLOCK_STEPS", block)
        results[block] = [pass_over(sampler, series(), seed) for seed in SEEDS]
    assert sum(info.n_born for _, info in results[4096]) > 0, "the test should meet states born on the way"
    for block in (3, 7):
        for one, other in zip(results[block], results[4096], strict=True):
            assert_identical(one, other)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_pass_depends_on_neither_when_both_are_short(sampler, monkeypatch):
    expected = [pass_over(sampler, series(), seed) for seed in SEEDS]
    monkeypatch.setattr(ihmm.sticks, "SPARE", 1)
    monkeypatch.setattr(_densities, "MAX_BLOCK_STEPS", 2)
    for seed, other in zip(SEEDS, expected, strict=True):
        assert_identical(pass_over(sampler, series(), seed), other)


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("threads", [2, 3, 8])
def test_a_pass_does_not_depend_on_the_threads_that_make_it(sampler, threads):
    for seed in SEEDS:
        one, other = (pass_over(sampler, series(), seed, threads=n) for n in (1, threads))
        assert_identical(one, other)


def test_sequences_are_shared_among_threads_by_their_length():
    data = MODEL.observe(series([30, 2, 2, 30, 60, 4]))._replace(workers=Threads(3))
    segments = data.workers.segments(data.offsets)
    assert [(segment.begin, segment.end) for segment in segments] == [(0, 64), (64, 124), (124, 128)]
    assert np.concatenate([segment.begin + segment.starts for segment in segments]).tolist() == [
        0,
        30,
        32,
        34,
        64,
        124,
    ]
    assert np.concatenate([segment.streams for segment in segments]).tolist() == list(range(6))


def test_blocks_cover_every_step_once_and_those_of_a_round_do_not_touch():
    data = MODEL.observe(series([25, 10, 2, 33]))
    shifts = set()
    for seed in range(20):
        rounds = particle_gibbs.blocks(np.random.default_rng(seed), data, 10)
        every = sorted((block for blocks in rounds for block in blocks), key=lambda block: block.begin)
        assert [0, *(block.end for block in every)] == [*(block.begin for block in every), 70]
        shifts.add(every[0].end)
        for block in every:
            assert 1 <= block.end - block.begin <= 10
        for blocks in rounds:
            for left, right in pairwise(blocks):
                assert left.end < right.begin or right.begin in data.offsets
    assert len(shifts) > 5


def test_a_series_longer_than_a_block_is_passed_over():
    n_steps = _densities.MAX_BLOCK_STEPS + 100
    path, info = pass_over(ParticleGibbs(5, threshold=0.05), series([n_steps]), 1)
    assert len(path.states) == n_steps
    assert info.n_born > 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_the_path_of_a_sequence_does_not_depend_on_the_sequences_after_it(sampler):
    y = series()
    data = MODEL.observe(y)
    n_first = len(y[0])
    alone = data._replace(y=data.y[:n_first], offsets=data.offsets[:2], log_marginal=data.log_marginal[:n_first])
    for seed in SEEDS:
        draw = initial_draw(np.random.default_rng(seed), data, MODEL, np.arange(len(data.y)) % 3)
        path, _ = sampler.resample_states(np.random.default_rng(seed), data, MODEL, draw)
        other, _ = sampler.resample_states(
            np.random.default_rng(seed), alone, MODEL, draw._replace(trajectory=Trajectory(draw.states[:n_first]))
        )
        # states are named after those a path visits, their β stay the same
        np.testing.assert_array_equal(path.beta[path.states[:n_first]], other.beta[other.states])


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_a_pass_returns_a_path_over_states_named_without_gaps_and_a_beta_that_sums_to_one(sampler):
    for seed in SEEDS:
        path, info = pass_over(sampler, series(), seed)
        n_states = len(path.beta) - 1
        assert np.unique(path.states).tolist() == list(range(n_states))
        assert 0 <= info.n_born <= n_states
        assert 0 <= info.update_rate <= 1
        assert path.beta.min() > 0
        assert path.beta.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("block_size", [None, 200])
def test_a_path_that_outgrows_a_byte_a_step_on_its_way_arrives_as_it_was(block_size):
    arrived = {}

    class Watched(Threads):
        def map(self, function, data, tasks):
            results = super().map(function, data, tasks)
            states = [result[0] if block_size is None else result for result in results]
            arrived.update((task.begin, own) for task, own in zip(tasks, states, strict=True))
            return results

    model = Model(NormalMean(noise=5.0, scale=3.0), HDPPrior(gamma=100.0, concentration=100.0))
    data = model.observe(series([600, 700]))._replace(workers=Watched())
    rng = np.random.default_rng(1)
    draw = initial_draw(rng, data, model, np.arange(1300) % 250)
    sampler = ParticleGibbs(6, proposal="prior", block_size=block_size)  # which opens states only when it gets there
    path, _ = sampler.resample_states(rng, data, model, draw)
    sent = np.concatenate([arrived[begin] for begin in sorted(arrived)])
    assert sent.max() > 255
    pairs = np.unique(np.stack([sent.astype(np.int64), path.states]), axis=1)
    assert len(np.unique(sent)) == len(np.unique(path.states)) == pairs.shape[1]
