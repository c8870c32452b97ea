"""Statistics of pieces of the data, put together, stand for the data."""

import pickle

import numpy as np
import pytest

import ihmm
from ihmm.emissions._parameters import fields, rebuild, take
from ihmm.emissions._protocol import REQUIRED, provides
from ihmm.emissions.normal import Moments, NormalPhi
from ihmm.model import Model
from reference.cases import COLUMNS, EMISSIONS

FULL = ihmm.MultivariateNormal(3, [1.0, -2.0, 0.0], 2.0, 5.5, [[2.0, 0.5, 0.0], [0.5, 1.0, -0.3], [0.0, -0.3, 0.7]])
DIAGONAL = ihmm.MultivariateNormal(2, strength=1.0, dof=6.0, covariance="diagonal")
FAMILIES = {name: emission for name, (emission, _) in (EMISSIONS | COLUMNS).items()} | {
    "one symbol": ihmm.Categorical(1),
    "one column": ihmm.Bernoulli(),
    "three columns": FULL,
    "autoregressive": ihmm.Autoregressive(1, strength=1.0, precision=10.0),
    "autoregressive rows": ihmm.Autoregressive(2, 2, [1.0, -2.0], 2.0, 0.4, 20.0, 6.0, [[2.0, 0.5], [0.5, 1.0]]),
    "two alike": ihmm.Independent(ihmm.Normal(), ihmm.Normal(3.0)),
    "all kinds": ihmm.Independent(ihmm.Poisson(2.0), FULL, DIAGONAL, ihmm.Bernoulli(2), ihmm.Multinomial(3, total=4)),
}
WITHOUT = [ihmm.StudentT(), ihmm.VonMises(), ihmm.DPMixture(ihmm.Normal())]
every_family = pytest.mark.parametrize("emission", FAMILIES.values(), ids=FAMILIES)
N_STATES, VISITED = 6, [0, 1, 3, 4]


def some_data(emission, n=120):
    """Parameters of six states, two of which the path never visits, and observations as the emission sees them."""
    rng = np.random.default_rng(0)
    phi = emission.sample_prior(rng, N_STATES)
    states = np.repeat(rng.choice(VISITED, n // 4 + 1), 4)[: n + 2]
    y = emission.sample_observations(rng, states, phi)
    return phi, states[2:], Model(emission).describe(y, np.array([0, n + 2])).observations[2:]


def some_pieces(n, seed):
    """Numbers of consecutive steps, some of none, most of them of few states."""
    cuts = np.sort(np.random.default_rng(seed).integers(0, n + 1, 7))
    return np.split(np.arange(n), [0, *cuts, cuts[-1], n])


def by_pieces(emission, y, states, seed=0):
    pieces = [
        emission.conjugate(y).statistics(y[piece], states[piece], N_STATES) for piece in some_pieces(len(y), seed)
    ]
    return emission.conjugate(y).combine(pieces)


def assert_same(one, other):
    """Up to rounding; of roots, the products."""
    assert type(one) is type(other)
    for name, left, right in zip(fields(one), fields(one).values(), fields(other).values(), strict=True):
        if name.endswith("root"):
            left, right = products(left), products(right)
        assert left.dtype == right.dtype
        np.testing.assert_allclose(left, right, rtol=1e-11, atol=1e-12 * np.abs(right).max(), err_msg=name)


def assert_identical(one, other):
    assert type(one) is type(other)
    for left, right in zip(fields(one).values(), fields(other).values(), strict=True):
        np.testing.assert_array_equal(left, right)


def products(root):
    return root.swapaxes(1, 2) @ root


@every_family
def test_pieces_put_together_are_the_whole(emission):
    _, states, y = some_data(emission)
    whole = emission.conjugate(y).statistics(y, states, N_STATES)
    for seed in range(5):
        assert_same(by_pieces(emission, y, states, seed), whole)
    assert_same(emission.conjugate(y).combine([whole]), whole)


@every_family
def test_pieces_of_pieces_are_the_whole_too(emission):
    _, states, y = some_data(emission)
    each = [emission.conjugate(y).statistics(y[t : t + 1], states[t : t + 1], N_STATES) for t in range(len(y))]
    together = emission.conjugate(y).combine(
        [emission.conjugate(y).combine(each[:7]), emission.conjugate(y).combine(each[7:])]
    )
    assert_same(together, emission.conjugate(y).statistics(y, states, N_STATES))


@every_family
def test_their_likelihood_is_that_of_the_steps(emission):
    phi, states, y = some_data(emission)
    drawn = emission.resample(np.random.default_rng(1), y, states, N_STATES)
    for parameters in (phi, drawn):
        expected = emission.log_density_at(y, states, parameters).sum()
        for statistics in (emission.conjugate(y).statistics(y, states, N_STATES), by_pieces(emission, y, states)):
            found = emission.conjugate(y).log_likelihood(statistics, parameters)
            assert isinstance(found, float)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12)


@every_family
def test_parameters_drawn_given_them_are_those_given_the_steps(emission):
    _, states, y = some_data(emission)
    drawn = emission.resample(np.random.default_rng(2), y, states, N_STATES)
    statistics = emission.conjugate(y).statistics(y, states, N_STATES)
    assert_identical(emission.conjugate(y).draw(np.random.default_rng(2), statistics), drawn)
    again = emission.conjugate(y).draw(np.random.default_rng(2), by_pieces(emission, y, states))
    for left, right in zip(fields(again).values(), fields(drawn).values(), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-8, atol=1e-8 * np.abs(right).max())


@every_family
def test_without_steps_parameters_are_drawn_from_the_prior_and_the_likelihood_is_one(emission):
    phi, states, y = some_data(emission)
    empty = emission.conjugate(y).statistics(y[:0], states[:0], N_STATES)
    assert emission.conjugate(y).log_likelihood(empty, phi) == 0
    drawn = emission.conjugate(y).draw(np.random.default_rng(3), empty)
    for left, right in zip(drawn, emission.sample_prior(np.random.default_rng(3), N_STATES), strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-10)


@every_family
def test_states_without_steps_have_no_say(emission):
    phi, states, y = some_data(emission)
    statistics = emission.conjugate(y).statistics(y, states, N_STATES)
    for array in fields(statistics).values():
        assert len(array) == N_STATES
        np.testing.assert_array_equal(array[[2, 5]], 0)
    likelihood = emission.conjugate(y).log_likelihood(statistics, phi)
    others = take(phi, np.array([0, 1, 4, 3, 4, 0]))
    assert emission.conjugate(y).log_likelihood(statistics, others) == likelihood
    left = emission.conjugate(y).log_likelihood(take(statistics, np.array(VISITED)), take(phi, np.array(VISITED)))
    assert left == pytest.approx(likelihood, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("emission", [ihmm.Normal(), DIAGONAL, FULL, FAMILIES["autoregressive rows"]], ids=repr)
@pytest.mark.parametrize("value", [1e200, np.inf])
def test_nor_have_their_parameters_if_they_are_too_large_to_be_squared(emission, value):
    phi, states, y = some_data(emission)
    statistics = emission.conjugate(y).statistics(y, states, N_STATES)
    likelihood = emission.conjugate(y).log_likelihood(statistics, phi)
    for array in phi:
        array[[2, 5]] = value
    assert emission.conjugate(y).log_likelihood(statistics, phi) == likelihood


@every_family
def test_states_in_another_order_have_theirs_in_that_order(emission):
    phi, states, y = some_data(emission)
    order = np.array([3, 5, 0, 4, 2, 1])
    renamed = np.argsort(order)[states]
    pieces = some_pieces(len(y), 1)
    before = [emission.conjugate(y).statistics(y[piece], states[piece], N_STATES) for piece in pieces]
    after = [emission.conjugate(y).statistics(y[piece], renamed[piece], N_STATES) for piece in pieces]
    for one, other in zip(before, after, strict=True):
        assert_identical(take(one, order), other)
    assert_identical(take(emission.conjugate(y).combine(before), order), emission.conjugate(y).combine(after))
    likelihood = emission.conjugate(y).log_likelihood(emission.conjugate(y).combine(after), take(phi, order))
    assert likelihood == pytest.approx(
        emission.conjugate(y).log_likelihood(emission.conjugate(y).combine(before), phi), rel=1e-12
    )


@every_family
def test_they_can_be_sent_and_taken_apart(emission):
    _, states, y = some_data(emission)
    statistics = emission.conjugate(y).statistics(y, states, N_STATES)
    assert_identical(pickle.loads(pickle.dumps(statistics)), statistics)
    assert_identical(rebuild(statistics, fields(statistics).values()), statistics)


@every_family
def test_families_of_which_the_parameter_can_be_integrated_out_provide_them(emission):
    _, _, y = some_data(emission)
    assert emission.conjugate(y) is not None


@pytest.mark.parametrize("emission", WITHOUT, ids=repr)
def test_others_do_not(emission):
    assert not provides(emission, "conjugate")


class Bare:
    """An emission with the methods that it must have, and no others."""


for name in REQUIRED:
    setattr(Bare, name, lambda self, *arguments, name=name: getattr(ihmm.Normal(), name)(*arguments))


@pytest.mark.parametrize("part", [*WITHOUT[:2], Bare()], ids=["StudentT", "VonMises", "Bare"])
def test_one_part_without_them_leaves_all_without(part):
    emission = ihmm.Independent(ihmm.Normal(), part)
    assert emission.conjugate(np.zeros((4, 2))) is None


# Values far from 0


def near_a_hundred_million(n_columns, n=400):
    """Rows of 10⁸ ± 1, a path through two states, and the exact sums of squares about the averages."""
    rng = np.random.default_rng(4)
    signs, states = rng.choice([-1, 1], (n, n_columns)), rng.integers(0, 2, n)
    number = np.bincount(states)
    total = np.array([signs[states == k].sum(axis=0) for k in (0, 1)])
    return 1e8 + signs, states, number[:, None] - total**2 / number[:, None]


@pytest.mark.parametrize(
    ("emission", "n_columns"),
    [
        (ihmm.Normal(), 1),
        (ihmm.NormalMean(), 1),
        (DIAGONAL, 2),
        (FULL, 3),
        (ihmm.Autoregressive(1), 2),
        (ihmm.Independent(ihmm.Normal(), ihmm.NormalMean()), 2),
    ],
    ids=repr,
)
def test_values_far_from_zero_keep_their_spread(emission, n_columns):
    y, states, exact = near_a_hundred_million(n_columns)
    y = y if n_columns > 1 else y[:, 0]
    each = [emission.conjugate(y).statistics(y[t : t + 40], states[t : t + 40], 2) for t in range(0, 400, 40)]
    for statistics in (emission.conjugate(y).statistics(y, states, 2), emission.conjugate(y).combine(each)):
        np.testing.assert_allclose(squares(statistics), exact, rtol=1e-6)


def squares(statistics):
    """Sums of squares about the averages, (K, D)."""
    columns = []
    for name, array in fields(statistics).items():
        if name.endswith("root"):
            columns.append(np.diagonal(products(array), axis1=1, axis2=2))
        elif name.endswith("square"):
            columns.append(array.reshape(len(array), -1))
    return np.hstack(columns)


def test_directions_in_which_rows_hardly_vary_are_kept():
    # the two columns differ by 10⁻⁶ only: of products, 10⁻¹² would be left
    rng = np.random.default_rng(5)
    x, difference = rng.normal(size=300), 1e-6 * rng.normal(size=300)
    emission, y = ihmm.MultivariateNormal(2), np.column_stack([x, x + difference])
    states = rng.choice(VISITED, 300)
    for statistics in (emission.conjugate(y).statistics(y, states, N_STATES), by_pieces(emission, y, states)):
        for k in VISITED:
            along, across = x[states == k], difference[states == k]
            slope = np.polyfit(along, across, 1)
            rest = np.linalg.norm(across - np.polyval(slope, along))
            assert statistics.root[k, 1, 1] == pytest.approx(rest, rel=1e-7)


# Missing values


def with_gaps(emission):
    phi, states, y = some_data(emission)
    y = y.astype(np.float64)
    y[np.random.default_rng(6).random(y.shape) < 0.3] = np.nan
    some = ~np.isnan(y).all(axis=1)
    return phi, states[some], y[some]


@pytest.mark.parametrize(
    "emission",
    [
        DIAGONAL,
        ihmm.Bernoulli(3),
        ihmm.Independent(ihmm.Categorical(3), ihmm.Normal(), ihmm.Poisson(2.0)),
        ihmm.Independent(DIAGONAL, ihmm.Bernoulli(2), ihmm.MultivariateNormal(1)),
    ],
    ids=repr,
)
def test_missing_values_are_left_out(emission):
    phi, states, y = with_gaps(emission)
    whole = emission.conjugate(y).statistics(y, states, N_STATES)
    assert_same(by_pieces(emission, y, states), whole)
    expected = emission.log_density_at(y, states, phi).sum()
    assert emission.conjugate(y).log_likelihood(whole, phi) == pytest.approx(expected, rel=1e-9)
    drawn = emission.resample(np.random.default_rng(7), y, states, N_STATES)
    assert_identical(emission.conjugate(y).draw(np.random.default_rng(7), whole), drawn)


def test_missing_values_are_left_out_of_their_column_only():
    _, states, y = with_gaps(DIAGONAL)
    found = DIAGONAL.conjugate(y).statistics(y, states, N_STATES)
    for d in (0, 1):
        known = ~np.isnan(y[:, d])
        assert_identical(
            take(found, np.s_[:, d]),
            ihmm.Normal().conjugate(y[known, d]).statistics(y[known, d], states[known], N_STATES),
        )
    assert (found.number[:, 0] != found.number[:, 1]).any()


def test_a_part_of_which_nothing_is_known_is_drawn_from_its_prior():
    emission = FAMILIES["two alike"]
    phi, states, y = some_data(emission)
    y[:, 1] = np.nan
    statistics = emission.conjugate(y).statistics(y, states, N_STATES)
    first, own = ihmm.Normal(), ihmm.Normal().conjugate(y[:, 0]).statistics(y[:, 0].copy(), states, N_STATES)
    assert_identical(Moments(*statistics[:3]), own)
    assert not any(array.any() for array in statistics[3:])
    alone = first.conjugate(y[:, 0]).log_likelihood(own, NormalPhi(*phi[:2]))
    assert emission.conjugate(y).log_likelihood(statistics, phi) == alone
    drawn = emission.resample(np.random.default_rng(8), y, states, N_STATES)
    for left, right in zip(emission.conjugate(y).draw(np.random.default_rng(8), statistics), drawn, strict=True):
        np.testing.assert_allclose(left, right, rtol=1e-12)


def test_rows_with_gaps_are_not_summed_up_where_columns_depend_on_each_other():
    beside = ihmm.Independent(ihmm.Normal(), FULL)
    _, _, y = some_data(beside)
    assert FULL.conjugate(y[:, 1:]) is not None
    y[17, 1:] = np.nan  # a row that is missing altogether does not reach its part
    assert beside.conjugate(y) is not None
    y[40, 2] = np.nan
    assert FULL.conjugate(y[18:, 1:]) is None
    assert beside.conjugate(y) is None


@pytest.mark.parametrize("name", ["poisson", "multinomial"])
def test_counts_are_reals_where_others_are_missing(name):
    emission = FAMILIES[name]
    phi, states, y = some_data(emission)
    reals = y.astype(np.float64)
    assert_identical(
        emission.conjugate(y).statistics(reals, states, N_STATES), emission.conjugate(y).statistics(y, states, N_STATES)
    )
    np.testing.assert_array_equal(emission.log_density(reals, phi), emission.log_density(y, phi))
    np.testing.assert_array_equal(emission.log_marginal(reals), emission.log_marginal(y))
