"""`kernels.counts` against plain loops, exact laws and sixty-digit logarithms."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import digamma, gammaln

from ihmm.kernels import counts, draws
from reference import counts as twin
from reference.verdicts import assert_frequencies, assert_mean

pytestmark = pytest.mark.bounds

QUICK = settings(max_examples=60, deadline=None, derandomize=True)
PATHS = st.lists(st.lists(st.integers(0, 4), min_size=1, max_size=12), min_size=1, max_size=5)


def stream(number=0):
    words = np.empty(4, np.uint64)
    draws.seed_stream(words, np.uint64(77), number)
    return words


@QUICK
@given(PATHS)
def test_transitions_are_counted_within_sequences_and_never_across(paths):
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in paths])])
    counted = counts.count_transitions(np.concatenate(paths).astype(np.int64), offsets, 5)
    np.testing.assert_array_equal(counted, twin.count_transitions(paths, 5))


@QUICK
@given(st.lists(st.tuples(st.integers(0, 4), st.floats(-1e6, 1e6)), max_size=20))
def test_values_and_squares_are_added_up_state_by_state_and_in_order(steps):
    states, values = np.array([k for k, _ in steps], np.int64), np.array([value for _, value in steps], np.float64)
    count, average, square = counts.moments(states, values, 5)
    np.testing.assert_array_equal(count, np.bincount(states, minlength=5))
    np.testing.assert_array_equal(average, np.bincount(states, weights=values, minlength=5) / np.maximum(count, 1))
    squares = np.square(values - average[states])
    np.testing.assert_array_equal(square, np.bincount(states, weights=squares, minlength=5))


def test_the_two_ways_to_write_the_law_of_tables_agree():
    for customers, concentration in [(1, 0.5), (7, 0.25), (60, 4.0), (60, 1e-8)]:
        np.testing.assert_allclose(
            twin.table_law(customers, concentration),
            twin.table_law_by_stirling(customers, concentration),
            rtol=1e-12,
            atol=1e-300,
        )


# At least 16 customers are seated one by one, 64 per unit of concentration; those after them by the gaps between tables
@pytest.mark.law
@pytest.mark.parametrize("concentration", [1e-8, 1e-2, 0.5, 3.0, 100.0, 1e4])
@pytest.mark.parametrize("customers", [1, 2, 5, 16, 17, 18, 40, 60])
def test_the_number_of_tables_follows_its_exact_law(customers, concentration):
    words = stream(customers)
    drawn = [counts.count_tables(words, customers, concentration) for _ in range(8000)]
    law = twin.table_law(customers, concentration)
    assert_frequencies(np.bincount(drawn, minlength=len(law)), law)


# 16366: the first bisection asks for 8192, whose fifth power is zero to sixty-four bits
@pytest.mark.law
@pytest.mark.parametrize(
    ("customers", "concentration"), [(5000, 0.3), (5000, 4.0), (20_000, 1e-3), (20_000, 20.0), (16_366, 0.5)]
)
def test_the_number_of_tables_of_many_customers_follows_its_exact_law(customers, concentration):
    words = stream(1)
    drawn = np.array([counts.count_tables(words, customers, concentration) for _ in range(8000)])
    law = twin.table_law(customers, concentration, most=400)
    assert_frequencies(np.bincount(drawn, minlength=len(law)), law)


@pytest.mark.law
@pytest.mark.parametrize("a", [1e-3, 0.1, 2.0])
def test_ten_million_customers_open_as_many_tables_as_they_should_on_average(a):
    # Σ_i a / (a + i) = a (ψ(a + n) − ψ(a))
    customers = 10_000_000
    words = stream(2)
    drawn = [counts.count_tables(words, customers, a) for _ in range(20_000)]
    assert_mean(drawn, a * (digamma(a + customers) - digamma(a)))


@QUICK
@given(st.integers(1, 10**9), st.floats(1e-300, 1e6), st.integers(0, 100))
def test_there_is_at_least_one_table_and_at_most_one_for_every_customer(customers, concentration, number):
    if concentration > 1e3:
        customers = min(customers, 10**4)
    assert 1 <= counts.count_tables(stream(number), customers, concentration) <= customers


# 2**13 and 2**22: their fifth and third powers are zero to sixty-four bits
@pytest.mark.parametrize("a", [1e-12, 1e-8, 1e-3, 0.3, 1.0, 17.5, 1e4])
@pytest.mark.parametrize("i", [16, 17, 40, 1000, 2**13, 10**6, 2**22, 10**9])
def test_log_ratio_equals_the_logarithms_of_gamma_functions(i, a):
    assert counts.log_gamma_ratio(i, a) == pytest.approx(twin.log_gamma_ratio(i, a), rel=5e-13, abs=1e-21)


@pytest.mark.parametrize("a", [1e-12, 1e-8, 1e-3, 0.3, 17.5, 1e4])
@pytest.mark.parametrize(("i", "later"), [(16, 17), (16, 60), (100, 5000)])
def test_differences_of_log_ratio_are_the_chance_of_no_new_table(i, later, a):
    # log Π_x x / (a + x)
    none = -math.fsum(math.log1p(a / x) for x in range(i, later))
    assert counts.log_gamma_ratio(later, a) - counts.log_gamma_ratio(i, a) == pytest.approx(none, rel=1e-9)


@QUICK
@given(st.lists(st.integers(0, 6), min_size=1, max_size=20), st.permutations(range(7)))
def test_compact_names_the_visited_states_in_order_of_their_rank(path, rank):
    renamed = np.empty(len(path), np.int64)
    kept = counts.compact(np.array(path), np.array(rank), renamed)
    assert kept.tolist() == sorted(set(path), key=lambda state: rank[state])
    assert kept[renamed].tolist() == path


@pytest.mark.parametrize("n", [1, 5, 16, 17, 1000])
def test_log_rise_grows_as_the_logarithms_of_gamma_functions_do(n):
    a = np.array([1e-300, 1e-8, 0.3, 1.0, 7.5, 1e3, 1e6])
    exact = gammaln(a + n) - gammaln(a)
    rise = np.array([counts.log_rise(x, n) for x in a])
    np.testing.assert_allclose(np.diff(rise), np.diff(exact), rtol=1e-7)
