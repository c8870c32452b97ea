"""`kernels.draws` against Python integers, published numbers and the laws in scipy."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from scipy.special import betaln

from ihmm.kernels import draws
from reference import draws as twin
from reference.verdicts import assert_follows, assert_frequencies, assert_mean

pytestmark = pytest.mark.bounds

WORDS = st.integers(0, 2**64 - 1)
QUICK = settings(max_examples=50, deadline=None, derandomize=True)


def stream(number=0, key=20150401):
    words = np.empty(4, np.uint64)
    draws.seed_stream(words, np.uint64(key), number)
    return words


def sample(draw, n, *arguments, number=0):
    words = stream(number)
    return np.array([draw(words, *arguments) for _ in range(n)])


def test_uniform_repeats_the_published_outputs_of_xoshiro256pp():
    # from the state (1, 2, 3, 4), as in the tests of the reference implementation in Rust
    published = [41943041, 58720359, 3588806011781223, 3591011842654386, 9228616714210784205, 9973669472204895162]
    words = np.array([1, 2, 3, 4], np.uint64)
    assert [draws.uniform(words) for _ in published] == [(output >> 11) / 2**53 for output in published]


def test_the_twin_repeats_the_published_outputs_of_splitmix64():
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert [twin.splitmix64((1234567 + i * twin.GOLDEN) & twin.BITS) for i in range(4)] == published


@QUICK
@given(st.lists(WORDS, min_size=4, max_size=4))
def test_uniform_equals_xoshiro256pp_on_python_integers(words):
    own = np.array(words, np.uint64)
    assert [draws.uniform(own) for _ in range(8)] == twin.uniforms(words, 8).tolist()


@QUICK
@given(st.integers(0, 2**63 - 1), st.integers(0, 2**42))
def test_a_stream_depends_on_its_key_and_its_number_as_splitmix64_says(key, number):
    assert stream(number, key).tolist() == twin.seeded(key, number)


def test_streams_of_neighbouring_numbers_have_nothing_in_common():
    first = np.array([[draws.uniform(words) for _ in range(4)] for words in map(stream, range(4000))])
    assert_follows(first.ravel(), stats.uniform.cdf)
    table = np.histogram2d(first[:-1, 0], first[1:, 0], bins=8, range=[(0, 1), (0, 1)])[0]
    assert_frequencies(table.ravel(), np.full(64, 1 / 64))


def test_streams_of_neighbouring_keys_have_nothing_in_common():
    first = np.array([draws.uniform(stream(5, key)) for key in range(4000)])
    assert_follows(first, stats.uniform.cdf)
    table = np.histogram2d(first[:-1], first[1:], bins=8, range=[(0, 1), (0, 1)])[0]
    assert_frequencies(table.ravel(), np.full(64, 1 / 64))


@pytest.mark.law
def test_uniform_is_uniform_and_never_one():
    u = sample(draws.uniform, 50_000)
    assert u.min() >= 0
    assert u.max() < 1
    assert_follows(u, stats.uniform.cdf)


@pytest.mark.law
def test_normal_is_standard_normal_and_each_draw_is_new():
    x = sample(draws.normal, 50_000)
    assert_follows(x, stats.norm.cdf)
    assert_follows((x[::2] + x[1::2]) / np.sqrt(2), stats.norm.cdf)
    assert_follows((x[::2] - x[1::2]) / np.sqrt(2), stats.norm.cdf)


@pytest.mark.law
@pytest.mark.parametrize("shape", [1e-6, 1e-3, 0.05, 0.29, 0.5, 1.0, 2.5, 40.0, 1e5])
def test_log_gamma_is_the_logarithm_of_a_gamma_draw_at_every_shape(shape):
    assert_follows(sample(draws.log_gamma, 40_000, shape), twin.log_gamma_cdf(shape))


@pytest.mark.law
@pytest.mark.parametrize(("a", "b"), [(1.0, 3.0), (0.5, 0.5), (0.2, 4.0), (30.0, 2.0), (1e4, 2e4)])
def test_split_is_a_beta_draw(a, b):
    v = sample(draws.split, 30_000, a, b)
    assert_follows(v[:, 0], stats.beta(a, b).cdf)
    assert_follows(v[:, 1], stats.beta(b, a).cdf)


@pytest.mark.law
@pytest.mark.parametrize(("a", "b"), [(1e-3, 2e-3), (1e-3, 1.0), (0.02, 0.01), (1e-6, 3e-6), (1e-6, 5.0), (7.0, 1e-2)])
def test_split_by_tiny_parts_is_a_beta_draw_down_to_the_floor(a, b):
    v, rest = sample(draws.split, 30_000, a, b).T
    edges = 10.0 ** np.array([-299, -100, -30, -10, -3, -1])
    # below the smallest edge stands all that was raised to the floor
    for part, law in ((v, stats.beta(a, b)), (rest, stats.beta(b, a))):
        cdf = np.concatenate([[0], law.cdf(edges), [1]])
        assert_frequencies(np.bincount(np.searchsorted(edges, part), minlength=7), np.maximum(np.diff(cdf), 0))


@pytest.mark.law
@pytest.mark.parametrize(("a", "b"), [(1e-3, 2e-3), (0.02, 0.01), (1e-6, 3e-6)])
def test_split_by_tiny_parts_gives_each_its_share_on_average(a, b):
    assert_mean(sample(draws.split, 30_000, a, b)[:, 0], a / (a + b))


@pytest.mark.law
@pytest.mark.parametrize(("a", "b"), [(1.0, 3.0), (0.2, 40.0), (30.0, 2.0), (1e-6, 2.0), (3.0, 1e5)])
def test_log_beta_is_the_logarithm_of_a_beta_draw(a, b):
    log_v = sample(draws.log_beta, 30_000, a, b)
    if a < 1e-3:  # P(V ≤ v) → v^a / (a B(a, b)) as v → 0
        assert_follows(log_v, lambda x: np.exp(a * x - np.log(a) - betaln(a, b)))
    else:
        assert_follows(log_v, lambda x: stats.beta(a, b).cdf(np.exp(x)))


@QUICK
@given(*[st.one_of(st.just(0.0), st.floats(1e-308, 1e-3), st.floats(1e-3, 1e12))] * 2, st.integers(0, 1000))
def test_split_always_gives_two_positive_parts_of_one(a, b, number):
    part, rest = draws.split(stream(number), a, b)
    assert part >= draws.FLOOR
    assert rest >= draws.FLOOR
    assert part + rest == pytest.approx(1, abs=1e-15)


@pytest.mark.law
@pytest.mark.parametrize("weights", [[3.0], [1.0, 2.0, 0.0, 4.0, 3.0], [0.0, 5e-300, 15e-300, 0.0], [0.0, 0.0, 1.0]])
def test_an_index_is_drawn_in_proportion_to_its_weight(weights):
    drawn = sample(draws.draw_index, 10_000, np.array(weights))
    assert_frequencies(np.bincount(drawn, minlength=len(weights)), np.array(weights) / sum(weights))


@QUICK
@given(st.floats(1e-300, 1e12), st.integers(0, 1000))
def test_log_gamma_is_finite_at_every_shape(shape, number):
    assert np.isfinite(draws.log_gamma(stream(number), shape))


@pytest.mark.parametrize("rate", [0.3, 15.0, 200.0])
def test_poisson_numbers_follow_their_law(rate):
    drawn = sample(draws.draw_poisson, 20_000, rate)
    possible = np.arange(int(rate + 12 * np.sqrt(rate) + 12))
    law = stats.poisson(rate)
    assert_frequencies(
        np.bincount(drawn, minlength=len(possible)), np.append(law.pmf(possible[:-1]), law.sf(possible[-2]))
    )


@pytest.mark.parametrize(("n", "p"), [(0, 0.5), (5, 0.2), (300, 0.7)])
def test_binomial_numbers_follow_their_law(n, p):
    drawn = sample(draws.draw_binomial, 20_000, n, p)
    assert_frequencies(np.bincount(drawn, minlength=n + 1), stats.binom(n, p).pmf(np.arange(n + 1)))


def test_a_huge_poisson_number_takes_no_longer_than_a_small_one():
    drawn = sample(draws.draw_poisson, 2000, 1e12)
    assert_follows((drawn - 1e12) / 1e6, stats.norm.cdf)
