"""`kernels.conditionals` against the conditional laws written down."""

import numpy as np
import pytest
from scipy import stats

from ihmm.kernels import conditionals, counts, draws
from ihmm.kernels.conditionals import HyperPriors
from ihmm.model import Hyper
from reference import conditionals as twin
from reference.sticks import row_concentration
from reference.verdicts import assert_follows, assert_frequencies, assert_mean

COUNTS = np.array([[2, 0, 1], [5, 3, 0], [2, 40, 1], [0, 0, 0]])  # nobody has left the third state
BETA = np.array([0.4, 0.3, 0.1, 0.2])
HYPER = Hyper(gamma=2.0, concentration=5.0, stickiness=0.3)
PRIORS = HyperPriors(1.5, 0.7, 2.0, 0.4, 3.0, 2.0)
FIXED = HyperPriors(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def stream(number=0):
    words = np.empty(4, np.uint64)
    draws.seed_stream(words, np.uint64(11), number)
    return words


def test_the_base_measure_has_the_mass_of_every_row_and_its_self_bias():
    measure = conditionals.base_measure(BETA, HYPER.concentration, HYPER.stickiness)
    for j in range(4):
        np.testing.assert_allclose(measure[j], row_concentration(BETA, HYPER, j - 1), rtol=1e-14)
    np.testing.assert_allclose(measure.sum(axis=1), HYPER.concentration)


def test_every_cell_has_its_own_tables_and_an_empty_cell_has_none():
    measure = conditionals.base_measure(BETA, HYPER.concentration, HYPER.stickiness)
    tables = conditionals.draw_tables(stream(), COUNTS, measure)
    words = stream()
    for (j, k), n in np.ndenumerate(COUNTS):
        assert tables[j, k] == (counts.count_tables(words, n, measure[j, k]) if n else 0)


@pytest.mark.law
def test_overrides_are_binomial_on_the_diagonal_of_the_state_rows():
    tables = np.array([[4, 2, 1], [5, 2, 1], [3, 2, 4], [1, 1, 1]])
    words, removed = stream(1), []
    for _ in range(20_000):
        left = tables.copy()
        total = conditionals.remove_overrides(words, left, BETA, HYPER.stickiness)
        gone = tables - left
        assert gone.sum() == total == np.diagonal(gone[1:]).sum()
        removed.append(np.diagonal(gone[1:]))
    for j, drawn in enumerate(np.transpose(removed)):
        p = HYPER.stickiness / (HYPER.stickiness + BETA[j] * (1 - HYPER.stickiness))
        n = tables[j + 1, j]
        assert_frequencies(np.bincount(drawn, minlength=n + 1), stats.binom(n, p).pmf(np.arange(n + 1)))


def test_without_stickiness_nothing_is_overridden():
    tables = COUNTS.copy()
    assert conditionals.remove_overrides(stream(), tables, BETA, 0.0) == 0
    np.testing.assert_array_equal(tables, COUNTS)


@pytest.mark.law
@pytest.mark.parametrize("n_tables", [6, 30])
def test_the_update_of_c_leaves_its_conditional_law_unchanged(n_tables):
    customers = COUNTS.sum(axis=1)
    law = twin.concentration_law(
        PRIORS.concentration_shape, PRIORS.concentration_rate, customers[customers > 0], n_tables
    )
    words = stream(2)
    before = law.sample(np.random.default_rng(2), 20_000)
    after = [conditionals.draw_concentration(words, PRIORS, COUNTS, n_tables, c) for c in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
@pytest.mark.parametrize("served", [[6, 3, 2], [1], [1, 1, 1, 40]])
def test_the_update_of_gamma_leaves_its_conditional_law_unchanged(served):
    served = np.array(served)
    law = twin.gamma_law(PRIORS.gamma_shape, PRIORS.gamma_rate, len(served), served.sum())
    words = stream(3)
    before = law.sample(np.random.default_rng(3), 20_000)
    assert_follows([conditionals.draw_gamma(words, PRIORS, served, gamma) for gamma in before], law.cdf)


@pytest.mark.law
def test_rho_is_a_beta_draw_of_tables_overridden_and_not():
    words = stream(4)
    drawn = [conditionals.draw_stickiness(words, PRIORS, 5, 4) for _ in range(20_000)]
    assert_follows(drawn, stats.beta(PRIORS.stickiness_a + 4, PRIORS.stickiness_b + 5).cdf)


@pytest.mark.law
def test_the_initial_row_has_no_say_in_rho():
    # nobody ever leaves a state: ρ keeps its prior, however many sequences begin
    begun = np.array([[9000, 50], [0, 0], [0, 0]])
    beta = np.array([0.5, 0.3, 0.2])
    words = stream(10)
    drawn = [conditionals.resample_transitions(words, PRIORS, begun, beta, *HYPER)[2] for _ in range(5000)]
    assert_follows(drawn, stats.beta(PRIORS.stickiness_a, PRIORS.stickiness_b).cdf)


@pytest.mark.law
def test_beta_is_dirichlet_of_the_tables_and_gamma():
    words, served = stream(5), COUNTS.sum(axis=0)
    drawn = np.array([conditionals.draw_beta(words, served, 2.5) for _ in range(10_000)])
    assert_dirichlet(drawn, np.append(served, 2.5))


@pytest.mark.law
def test_rows_are_dirichlet_of_the_counts_and_the_base_measure():
    words = stream(6)
    measure = conditionals.base_measure(BETA, HYPER.concentration, HYPER.stickiness)
    drawn = np.array([conditionals.draw_rows(words, COUNTS, measure.copy()) for _ in range(10_000)])
    for j in range(4):
        assert_dirichlet(drawn[:, j], np.append(COUNTS[j], 0) + row_concentration(BETA, HYPER, j - 1))


@pytest.mark.law
def test_a_dirichlet_of_tiny_concentrations_still_gives_each_its_share():
    words, drawn = stream(7), []
    for _ in range(20_000):
        weights = np.array([1e-8, 3e-8, 0.0, 6e-8])
        conditionals.draw_dirichlet(words, weights)
        drawn.append(weights)
    drawn = np.array(drawn)
    assert drawn.min() > 0
    np.testing.assert_allclose(drawn.sum(axis=1), 1, atol=1e-12)
    # all of the mass is in one place
    assert_frequencies(np.bincount(drawn.argmax(axis=1), minlength=4), [0.1, 0.3, 0, 0.6])


def test_a_fixed_hyperparameter_stays_and_a_free_one_moves():
    fixed = conditionals.resample_transitions(stream(8), FIXED, COUNTS, BETA, *HYPER)
    assert fixed[:3] == tuple(HYPER)
    free = conditionals.resample_transitions(stream(8), PRIORS, COUNTS, BETA, *HYPER)
    assert all(new != old for new, old in zip(free[:3], HYPER, strict=True))


@pytest.mark.law
def test_with_everything_fixed_beta_follows_the_tables_and_the_rows_follow_beta():
    words = stream(9)
    results = [conditionals.resample_transitions(words, FIXED, COUNTS, BETA, *HYPER) for _ in range(10_000)]
    # E β_k = E[m̄_·k / (m̄_·· + γ)], by tables and overrides drawn one at a time with NumPy
    rng = np.random.default_rng(9)
    twins = np.array([mean_beta(rng) for _ in range(4000)])
    for k in range(4):
        difference = np.array([result[3][k] for result in results]).mean() - twins[:, k].mean()
        error = np.sqrt(np.var([result[3][k] for result in results]) / 10_000 + np.var(twins[:, k]) / 4000)
        assert abs(difference) < 5.5 * error
    for j in range(4):
        excess = []
        for *_, beta, rows in results:
            concentration = np.append(COUNTS[j], 0) + row_concentration(beta, HYPER, j - 1)
            excess.append(rows[j] - concentration / concentration.sum())
        for column in np.transpose(excess):
            assert_mean(column, 0.0)


def mean_beta(rng):
    """m̄_·k and γ, normalised: tables of every cell by seating every customer, overrides by tossing for every table."""
    total = np.append(np.zeros(3), HYPER.gamma)
    for (j, k), n in np.ndenumerate(COUNTS):
        concentration = row_concentration(BETA, HYPER, j - 1)[k]
        tables = sum(rng.random() < concentration / (concentration + i) for i in range(n))
        if k == j - 1:
            override = HYPER.stickiness / (HYPER.stickiness + BETA[k] * (1 - HYPER.stickiness))
            tables -= rng.binomial(tables, override)
        total[k] += tables
    return total / total.sum()


def assert_dirichlet(drawn, concentration):
    """Any part of a Dirichlet vector is Beta."""
    rng = np.random.default_rng(0)
    inside = rng.random(drawn.shape) < 0.5
    a = (inside * concentration).sum(axis=1)
    part, rest = (inside * drawn).sum(axis=1), concentration.sum() - a
    proper = np.minimum(a, rest) > 0
    assert_follows(stats.beta.cdf(part[proper], a[proper], rest[proper]), stats.uniform.cdf)
