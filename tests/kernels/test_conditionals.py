"""`kernels.conditionals` against the conditional laws written down.

A count of one is one table, whatever the concentration: with such counts the tables are known.
"""

import numpy as np
import pytest
from arviz_stats.base import array_stats
from scipy import stats

from ihmm.gibbs import hyper_priors
from ihmm.kernels import conditionals, counts, draws
from ihmm.model import Hyper
from ihmm.priors import BetaPrior, FinitePrior, GammaPrior, HDPPrior
from reference import conditionals as twin
from reference.sticks import row_concentration
from reference.verdicts import assert_follows, assert_frequencies

pytestmark = pytest.mark.bounds

COUNTS = np.array([[2, 0, 1], [5, 3, 0], [2, 40, 1], [0, 0, 0]])  # nobody has left the third state
ONES = np.array([[1, 0, 1], [1, 1, 0], [0, 1, 1], [0, 0, 0]])
BETA = np.array([0.4, 0.3, 0.1, 0.2])
HYPER = Hyper(gamma=2.0, concentration=5.0, stickiness=0.3)
PLAIN = HYPER._replace(stickiness=0.0)
GAMMA, CONCENTRATION, STICKINESS = GammaPrior(1.5, 0.7), GammaPrior(2.0, 0.4), BetaPrior(3.0, 2.0)


def stream(number=0):
    words = np.empty(4, np.uint64)
    draws.seed_stream(words, np.uint64(11), number)
    return words


def priors(**free):
    """The priors as the kernel reads them: what is not named is fixed."""
    return hyper_priors(HDPPrior(**{"gamma": 1.0, "concentration": 1.0, "stickiness": 0.0} | free))


def resample(words, free, n_jk, hyper):
    """New (γ, c, ρ), β and rows."""
    gamma, concentration, stickiness, beta, rows = conditionals.resample_transitions(words, free, n_jk, BETA, *hyper)
    return Hyper(gamma, concentration, stickiness), beta, rows


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
        conditionals.remove_overrides(words, left, BETA, HYPER.stickiness)
        gone = tables - left
        assert gone.sum() == np.diagonal(gone[1:]).sum()
        removed.append(np.diagonal(gone[1:]))
    for j, drawn in enumerate(np.transpose(removed)):
        p = HYPER.stickiness / (HYPER.stickiness + BETA[j] * (1 - HYPER.stickiness))
        n = tables[j + 1, j]
        assert_frequencies(np.bincount(drawn, minlength=n + 1), stats.binom(n, p).pmf(np.arange(n + 1)))


def test_without_stickiness_nothing_is_overridden():
    tables = COUNTS.copy()
    conditionals.remove_overrides(stream(), tables, BETA, 0.0)
    np.testing.assert_array_equal(tables, COUNTS)


@pytest.mark.law
def test_the_update_of_c_leaves_its_law_given_the_tables_unchanged():
    customers = ONES.sum(axis=1)
    law = twin.concentration_law(CONCENTRATION, customers[customers > 0], ONES.sum())
    words, free = stream(2), priors(concentration=CONCENTRATION)
    before = law.sample(np.random.default_rng(2), 20_000)
    after = [resample(words, free, ONES, HYPER._replace(concentration=c))[0].concentration for c in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
def test_the_update_of_c_leaves_its_law_given_the_counts_unchanged():
    law = twin.law_given_counts(
        stats.gamma(CONCENTRATION.shape, scale=1 / CONCENTRATION.rate).logpdf,
        COUNTS,
        BETA,
        lambda c: (c, HYPER.stickiness),
    )
    words, free = stream(11), priors(concentration=CONCENTRATION)
    before = law.sample(np.random.default_rng(11), 20_000)
    after = [resample(words, free, COUNTS, HYPER._replace(concentration=c))[0].concentration for c in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
def test_the_update_of_rho_leaves_its_law_given_the_counts_unchanged():
    law = twin.law_given_counts(
        stats.beta(STICKINESS.a, STICKINESS.b).logpdf,
        COUNTS,
        BETA,
        lambda rho: (HYPER.concentration, rho),
        high=1 - 1e-9,
    )
    words, free = stream(12), priors(stickiness=STICKINESS)
    before = law.sample(np.random.default_rng(12), 20_000)
    after = [resample(words, free, COUNTS, HYPER._replace(stickiness=rho))[0].stickiness for rho in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
def test_c_finds_its_law_quickly_where_rows_are_nearly_alike():
    # what the tables would hold back: from c = 1 chains are at home in the law of c in a few steps
    alike = 40 * np.outer(np.ones(4, np.int64), [4, 3, 1])
    vague = GammaPrior(1.0, 0.001)
    law = twin.law_given_counts(lambda c: -vague.rate * c, alike, BETA, lambda c: (c, 0.0), high=1e6)
    words, free, drawn = stream(16), priors(concentration=vague), []
    for _ in range(4000):
        c = 1.0
        for _ in range(15):
            c, _ = conditionals.draw_masses(words, free, alike, BETA, c, 0.0)
        drawn.append(c)
    assert_follows(drawn, law.cdf)


@pytest.mark.law
def test_the_initial_row_has_no_say_in_rho():
    # nobody ever leaves a state: ρ keeps its prior, however many sequences begin
    begun = np.zeros((4, 3), np.int64)
    begun[0] = [9000, 50, 1]
    law = stats.beta(STICKINESS.a, STICKINESS.b)
    words, free = stream(10), priors(stickiness=STICKINESS)
    before = law.rvs(5000, random_state=10)
    after = [resample(words, free, begun, HYPER._replace(stickiness=rho))[0].stickiness for rho in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
@pytest.mark.parametrize("n_jk", [ONES, np.array([[1, 1, 1]] + [[0, 0, 0]] * 3)])
def test_the_update_of_gamma_leaves_its_law_given_the_tables_unchanged(n_jk):
    law = twin.gamma_law(GAMMA, n_states=3, n_tables=n_jk.sum())
    words, free = stream(3), priors(gamma=GAMMA)
    before = law.sample(np.random.default_rng(3), 20_000)
    after = [resample(words, free, n_jk, PLAIN._replace(gamma=gamma))[0].gamma for gamma in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
def test_the_update_of_gamma_leaves_its_law_in_a_finite_model_unchanged():
    law = twin.finite_gamma_law(GAMMA, 8, ONES.sum(axis=0))
    words, free = stream(13), hyper_priors(FinitePrior(8, GAMMA, 1.0))
    before = law.sample(np.random.default_rng(13), 20_000)
    after = [resample(words, free, ONES, PLAIN._replace(gamma=gamma))[0].gamma for gamma in before]
    assert_follows(after, law.cdf)


@pytest.mark.law
def test_beta_of_a_finite_model_is_dirichlet_of_the_tables_and_equal_parts_of_gamma():
    words, fixed = stream(14), hyper_priors(FinitePrior(8, 2.0, 1.0))
    drawn = np.array([resample(words, fixed, ONES, PLAIN)[1] for _ in range(10_000)])
    # five of the eight states are not visited, and stand together
    assert_dirichlet(drawn, np.append(ONES.sum(axis=0), 0) + PLAIN.gamma / 8 * np.array([1, 1, 1, 5]))


def test_equal_weights_stay_equal():
    fixed = hyper_priors(FinitePrior(8, None, 1.0))
    _, beta, _ = resample(stream(15), fixed, COUNTS, PLAIN._replace(gamma=np.inf))
    np.testing.assert_allclose(beta, [1 / 8, 1 / 8, 1 / 8, 5 / 8], rtol=1e-12)


@pytest.mark.law
def test_beta_is_dirichlet_of_the_tables_and_gamma():
    words, fixed = stream(5), priors()
    drawn = np.array([resample(words, fixed, ONES, PLAIN)[1] for _ in range(10_000)])
    assert_dirichlet(drawn, np.append(ONES.sum(axis=0), PLAIN.gamma))


@pytest.mark.law
@pytest.mark.parametrize("hyper", [HYPER, PLAIN])
def test_rows_are_dirichlet_of_the_counts_and_the_new_beta(hyper):
    words, fixed = stream(6), priors()
    results = [resample(words, fixed, COUNTS, hyper) for _ in range(10_000)]
    for j in range(4):
        concentration = np.array([row_concentration(beta, hyper, j - 1) for _, beta, _ in results])
        concentration[:, :-1] += COUNTS[j]
        assert_dirichlet(np.array([rows[j] for _, _, rows in results]), concentration)


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
    assert resample(stream(8), priors(), COUNTS, HYPER)[0] == HYPER
    free = priors(gamma=GAMMA, concentration=CONCENTRATION, stickiness=STICKINESS)
    moved = resample(stream(8), free, COUNTS, HYPER)[0]
    assert all(new != old for new, old in zip(moved, HYPER, strict=True))


@pytest.mark.law
def test_beta_follows_the_tables_that_the_self_bias_left():
    words, fixed = stream(9), priors()
    drawn = np.array([resample(words, fixed, COUNTS, HYPER)[1] for _ in range(10_000)])
    # E β_k = E[m̄_·k / (m̄_·· + γ)], by tables and overrides drawn one at a time with NumPy
    rng = np.random.default_rng(9)
    twins = np.array([mean_beta(rng) for _ in range(4000)])
    for one, other in zip(drawn.T, twins.T, strict=True):
        error = np.sqrt(one.var() / len(one) + other.var() / len(other))
        assert abs(one.mean() - other.mean()) < 5.5 * error


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
    """Any part of a Dirichlet vector is Beta. Parts too small to be told from the floor say nothing."""
    inside = np.random.default_rng(0).random(drawn.shape) < 0.5
    a, b = (inside * concentration).sum(axis=1), (~inside * concentration).sum(axis=1)
    part = np.minimum((inside * drawn).sum(axis=1), 1.0)
    proper = np.minimum(a, b) > 0.05
    assert_follows(stats.beta.cdf(part[proper], a[proper], b[proper]), stats.uniform.cdf)


@pytest.mark.law
def test_gamma_keeps_its_law_if_every_state_is_followed_by_another():
    # A new state follows the first one whatever γ is, so γ keeps its prior Exp(1), and x = −log(1 − β_1) given γ is
    # Exp(γ). One β_k is often so close to 1 that self-transitions, had they been possible, would be beyond counting.
    words, free = stream(17), priors(gamma=GammaPrior(1.0, 1.0), concentration=GammaPrior(1.0, 1.0))
    once = np.array([[1, 0], [0, 1], [0, 0]])
    rng = np.random.default_rng(17)
    gammas, distances = [], []
    for gamma, concentration in rng.exponential(size=(20_000, 2)):
        second, rest = np.exp(np.log(rng.random(2)) / gamma)
        beta = np.maximum([1 - second, second * (1 - rest), second * rest], draws.FLOOR)
        for _ in range(10):
            gamma, concentration, _, beta, _ = conditionals.resample_transitions(
                words, free, once, beta, gamma, concentration, 0.0, True
            )
        gammas.append(gamma)
        distances.append(-np.log(beta[1:].sum()))
    assert_follows(gammas, stats.expon.cdf)
    assert_follows(distances, lambda x: x / (1 + x))


def test_gamma_mixes_well_if_every_state_is_followed_by_another():
    words, free = stream(18), priors(gamma=GammaPrior(1.0, 1.0), concentration=GammaPrior(1.0, 1.0))
    once = np.array([[1, 0], [0, 1], [0, 0]])
    gamma, concentration, beta, drawn = 0.05, 1.0, np.array([1.0, 1e-15, 1e-20]), []
    for _ in range(4000):
        gamma, concentration, _, beta, _ = conditionals.resample_transitions(
            words, free, once, beta, gamma, concentration, 0.0, True
        )
        drawn.append(gamma)
    assert array_stats.ess(np.array([drawn]), chain_axis=0, draw_axis=1) > 200
