"""Levels in shared noise: densities, updates and what is drawn, with and without memory."""

import numpy as np
import pytest
from scipy import signal, stats

import ihmm
from ihmm.emissions import NoisyLevels, _correlated, _noise
from ihmm.emissions._parameters import fields, join, size, take
from ihmm.emissions.noisy_levels import NoisyLevelsPhi
from ihmm.kernels.memory import log_density_after_change
from ihmm.model import Draw, Hyper, Transitions
from ihmm.predictions.forecasts import fill_forwards
from ihmm.trajectory import Trajectory
from reference.verdicts import assert_follows, assert_mean

PRIOR = {"mean": 0.4, "spread": 1.5, "shape": 3.0, "rate": 1.2}
CASES = {
    "white": NoisyLevels(0, **PRIOR),
    "white, t, own, two columns": NoisyLevels(0, "own", "student-t", 2, [0.4, -1.0], 1.5, 3.0, [1.2, 0.3]),
    "order 1, t": NoisyLevels(1, "shared", "student-t", 1, 0.4, 1.5, 20.0, 8.0, coefficient_spread=3.0, dof=(1.5, 50)),
    "order 2, own, two columns": NoisyLevels(2, "own", "normal", 2, [0.4, -1.0], 1.5, 3.0, [1.2, 0.3]),
    "order 2, filtered": NoisyLevels(2, filtered=True, **PRIOR),
    "white, correlated": NoisyLevels(0, "own", "normal", 3, 0.4, 0.5, 3.0, [1.2, 0.3, 0.7], correlated=True),
    "order 1, t, correlated": NoisyLevels(1, "shared", "student-t", 2, **PRIOR, dof=(1.5, 50), correlated=True),
    "order 2, filtered, correlated": NoisyLevels(2, "own", "normal", 2, **PRIOR, filtered=True, correlated=True),
}
every_case = pytest.mark.parametrize("emission", CASES.values(), ids=CASES)
PATH = np.array([0, 0, 0, 1, 1, 2, 2, 2, 0, 0, 1, 1])


def rows(emission, y, begins=(0,), missing=None):
    """Observations with their past, and which of them are informative."""
    if emission.order == 0:
        return y, np.ones(len(y), bool) if missing is None else ~missing
    seen, silent = emission.with_past(y, np.array([*begins, len(y)]), missing)
    return seen, ~silent


def path_of(emission, states):
    """The states of each step and of those before it."""
    steps = np.arange(len(states))
    lags = [states[np.maximum(steps - lag, 0)] for lag in range(emission.order + 1)]
    return np.stack(lags, axis=1) if emission.memory else states


def drawn(emission, rng, states=PATH, n_states=3):
    phi = emission.sample_prior(rng, n_states)
    return phi, emission.sample_observations(rng, states, phi)


# Densities


def log_density_by_hand(emission, y, states, phi, t):
    """log f(y_t | the past), one column and one lag at a time."""
    y, mean, scale = y.reshape(len(y), -1), phi.mean.reshape(size(phi), -1), phi.scale.reshape(size(phi), -1)
    if emission.correlated:
        matrix = np.eye(emission.n_features)
        matrix[np.tril_indices(emission.n_features, -1)] = -phi.regression[0]
        y, mean = y @ matrix.T, mean @ matrix.T
    total = 0.0
    for d in range(emission.n_features):
        center = mean[states[t], d]
        for lag in range(1, emission.order + 1):
            a = phi.coefficients.reshape(size(phi), emission.n_features, -1)[0, d, lag - 1]
            center += a * (y[t - lag, d] - mean[states[t if emission.filtered else t - lag], d])
        law = stats.norm if emission.tails == "normal" else stats.t(phi.dof[0])
        if emission.tails == "normal":
            total += law.logpdf(y[t, d], center, scale[states[t], d])
        else:
            total += law.logpdf((y[t, d] - center) / scale[states[t], d]) - np.log(scale[states[t], d])
    return total


@every_case
def test_density_along_a_path_is_that_of_noise_around_its_levels(emission):
    phi, y = drawn(emission, np.random.default_rng(0))
    seen, informative = rows(emission, y)
    found = emission.log_density_at(seen[informative], path_of(emission, PATH)[informative], phi)
    expected = [log_density_by_hand(emission, y, PATH, phi, t) for t in range(emission.order, len(y))]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@every_case
def test_table_of_densities_is_that_of_settled_states(emission):
    phi, y = drawn(emission, np.random.default_rng(1))
    seen, informative = rows(emission, y)
    table = emission.log_density(seen[informative], phi)
    for k in range(3):
        expected = [log_density_by_hand(emission, y, np.full(12, k), phi, t) for t in range(emission.order, len(y))]
        np.testing.assert_allclose(table[:, k], expected, rtol=1e-10)


@every_case
def test_densities_of_states_with_noise_of_their_own_are_told_apart(emission):
    """During tuning, parameters of several fits are scored side by side."""
    rng = np.random.default_rng(2)
    (one, y), (other, _) = drawn(emission, rng), drawn(emission, rng)
    seen, informative = rows(emission, y)
    both = emission.log_density(seen[informative], join(one, other))
    each = [emission.log_density(seen[informative], phi) for phi in (one, other)]
    np.testing.assert_allclose(both, np.hstack(each), rtol=1e-12)


@pytest.mark.parametrize("case", ["order 1, t", "order 2, own, two columns", "order 1, t, correlated"])
def test_compiled_density_after_a_change_is_that_along_a_path(case):
    emission, rng = CASES[case], np.random.default_rng(3)
    phi, y = drawn(emission, rng)
    y = y.reshape(len(y), -1)
    y[9, -1] = np.nan
    seen, informative = rows(emission, y)
    after, order = emission.after_change(seen, phi), emission.order
    for t in np.flatnonzero(informative):
        for age in range(1, order + 1):
            for k, j in [(0, 1), (2, 0)]:
                path = np.where(np.arange(order + 1) < age, k, j)
                expected = emission.log_density_at(seen[[t]], path[None], phi)[0]
                assert log_density_after_change(after, t, age, k, j) == pytest.approx(expected, rel=1e-10)


def test_a_missing_value_hides_the_column_until_its_past_is_known_again():
    emission = CASES["order 2, own, two columns"]
    _, y = drawn(emission, np.random.default_rng(4))
    y[5, 0] = np.nan
    missing = np.arange(12) == 9
    seen, informative = rows(emission, y, (0, 8), missing)
    np.testing.assert_array_equal(np.flatnonzero(~informative), [0, 1, 8, 9, 10, 11])
    column = ~np.isnan(seen).any(axis=1)
    np.testing.assert_array_equal(np.flatnonzero(column[:, 0]), [2, 3, 4])
    np.testing.assert_array_equal(np.flatnonzero(column[:, 1]), [2, 3, 4, 5, 6, 7])


# Correlated columns


def correlated_phi(rng, n_columns, n_states=2, order=0):
    regression = rng.normal(size=n_columns * (n_columns - 1) // 2)
    coefficients = np.tile(rng.uniform(0.2, 0.7, (n_columns, 1)), (n_states, 1, 1)) if order else ()
    mean, scale = rng.normal(0, 3, (n_states, n_columns)), np.tile(rng.gamma(4.0, 0.2, n_columns), (n_states, 1))
    return NoisyLevelsPhi(mean, scale, coefficients, (), np.tile(regression, (n_states, 1)))


def test_white_noise_of_correlated_columns_is_multivariate_normal():
    rng = np.random.default_rng(12)
    emission, phi = NoisyLevels(n_features=4, correlated=True), correlated_phi(rng, 4)
    y, covariance = rng.normal(size=(20, 4)), emission.covariance(phi)[0]
    assert np.abs(np.corrcoef(covariance)).min() > 0
    expected = np.transpose([stats.multivariate_normal(mean, covariance).logpdf(y) for mean in phi.mean])
    np.testing.assert_allclose(emission.log_density(y, phi), expected)
    states = rng.integers(2, size=20)
    np.testing.assert_allclose(emission.log_density_at(y, states, phi), expected[np.arange(20), states])


@pytest.mark.parametrize("order", [0, 1])
def test_the_covariance_is_that_of_simulated_values(order):
    emission, rng = NoisyLevels(order, n_features=3, correlated=True), np.random.default_rng(13)
    phi = correlated_phi(rng, 3, order=order)
    y = emission.sample_observations(rng, np.ones(100_000, np.int64), phi)
    covariance, scale = emission.covariance(phi)[1], np.sqrt(np.diag(emission.covariance(phi)[1]))
    np.testing.assert_allclose((np.cov(y.T) - covariance) / np.outer(scale, scale), np.zeros((3, 3)), atol=0.03)
    for d in range(3):
        law, select = emission.column(d)
        assert select(phi).scale[1] == pytest.approx(scale[d])
        assert law.log_density(np.zeros(1), select(phi)).shape == (1, 2)
    law, select = emission.row()
    np.testing.assert_allclose(law.covariance(select(phi))[1], covariance)


def test_what_columns_share_is_learned_from_their_noise():
    emission = NoisyLevels(1, n_features=3, spread=3.0, correlated=True)
    rng = np.random.default_rng(14)
    phi, states = correlated_phi(rng, 3, order=1), np.repeat(np.arange(20) % 2, 100)
    seen, informative = rows(emission, emission.sample_observations(rng, states, phi))
    path = path_of(emission, states)[informative]
    found = emission.resample(rng, seen[informative], path, 2)
    for _ in range(10):
        found = emission.update(rng, seen[informative], path, found)
    np.testing.assert_allclose(found.regression[0], phi.regression[0], atol=0.1)
    np.testing.assert_allclose(found.coefficients[0], phi.coefficients[0], atol=0.1)
    np.testing.assert_allclose(found.mean, phi.mean, atol=0.4)


@pytest.mark.parametrize("order", [0, 1])
def test_what_columns_have_of_their_own_is_missing_after_a_missing_column(order):
    emission, rng = NoisyLevels(order, n_features=3, correlated=True), np.random.default_rng(15)
    phi, y = correlated_phi(rng, 3, order=order), rng.normal(size=(6, 3))
    y[2, 1] = np.nan
    hidden = y.copy()
    hidden[2, 2] = 7.0
    densities = []
    for values in (y, hidden):
        seen, informative = rows(emission, values)
        assert informative.sum() == 6 - order
        densities.append(emission.log_density(seen[informative], phi))
    np.testing.assert_array_equal(*densities)
    first = NoisyLevels(order, n_features=1)
    alone = NoisyLevelsPhi(phi.mean[:, 0], phi.scale[:, 0], phi.coefficients[:, 0] if order else (), ())
    seen, informative = rows(first, y[:, 0])
    np.testing.assert_allclose(densities[0][2 - order], first.log_density(seen[informative], alone)[2 - order])


def test_missing_values_are_drawn_given_the_other_columns():
    emission, rng = NoisyLevels(n_features=3, correlated=True), np.random.default_rng(16)
    phi = correlated_phi(rng, 3)
    y = np.tile([0.5, np.nan, -1.0], (20_000, 1))
    y[0], y[1] = np.nan, [1.0, 2.0, 3.0]
    filled = emission.complete(rng, y, np.ones(len(y), np.int64), phi)
    np.testing.assert_array_equal(filled[1], y[1])
    assert np.isfinite(filled).all()
    covariance, known = emission.covariance(phi)[1], [0, 2]
    weight = np.linalg.solve(covariance[np.ix_(known, known)], covariance[known, 1])
    center, variance = phi.mean[1, 1] + weight @ (y[2, known] - phi.mean[1, known]), covariance[1, 1]
    assert_follows(filled[2:, 1], stats.norm(center, np.sqrt(variance - weight @ covariance[known, 1])).cdf)


# Noise


@pytest.mark.parametrize("order", [1, 2, 4])
def test_stationary_is_where_all_roots_lie_outside_the_unit_circle(order):
    a = np.random.default_rng(5).normal(0, 0.7, (300, order))
    expected = [np.abs(np.roots(np.append(1, -row))).max() < 1 for row in a]
    np.testing.assert_array_equal(_noise.is_stationary(a), expected)
    assert 0 < np.sum(expected) < 300


def test_standard_deviation_of_stationary_noise_is_that_of_its_impulse_response():
    for a in ([0.9], [-0.5], [0.6, 0.3], [1.2, -0.5, 0.1]):
        response = signal.lfilter([1.0], np.append(1, -np.array(a)), np.eye(1, 2000)[0])
        factor = _noise.stationary_factor(np.array([a]))[0]
        assert factor == pytest.approx(np.sqrt(np.square(response).sum()), rel=1e-9)


def test_a_column_has_the_spread_of_stationary_noise():
    emission = NoisyLevels(1, n_features=2)
    phi = NoisyLevelsPhi(np.zeros((2, 2)), np.full((2, 2), 0.5), np.tile([[[0.0], [0.8]]], (2, 1, 1)), ())
    law, select = emission.column(1)
    np.testing.assert_allclose(select(phi).scale, 0.5 / 0.6)
    assert law.log_density(np.array([1.0]), select(phi))[0, 0] == pytest.approx(stats.norm(0, 0.5 / 0.6).logpdf(1.0))


# Updates: if φ comes from the prior and y from φ, then (φ, y) has the same law after an update of φ


def functionals(emission, phi, y):
    named = {name: np.ravel(field[[0, -1]]) for name, field in fields(phi).items()}
    own = np.arctan(np.concatenate([*named.values()]))
    seen = np.arctan(np.append(np.ravel(y[[2, 3, 6]]), np.abs(y).max()))
    return np.concatenate([own, np.outer(own, np.append(own, seen)).ravel()])


def changes(emission, n, seed=0, update=None, missing=None):
    """Differences of functionals after and before an update, one row for each of n data sets."""
    rng, out = np.random.default_rng(seed), []
    path, update = path_of(emission, PATH), update or emission.update
    for _ in range(n):
        phi, y = drawn(emission, rng)
        if missing is not None:  # after a gap a sequence begins anew
            after = np.flatnonzero(missing.all(axis=1))[0] + 1
            y[after:] = emission.sample_observations(rng, PATH[after:], phi)
        seen, informative = rows(emission, y if missing is None else np.where(missing, np.nan, y))
        after = update(rng, seen[informative], path[informative], phi)
        out.append(functionals(emission, after, y) - functionals(emission, phi, y))
    return np.array(out)


def worst(differences):
    """The largest z score, and its p-value if all of them are tried."""
    deviation = differences.std(axis=0)
    varying = deviation > 1e-9
    z = differences.mean(axis=0)[varying] / deviation[varying] * np.sqrt(len(differences))
    return min(1.0, len(z) * 2 * stats.norm.sf(np.abs(z).max()))


@pytest.mark.law
@every_case
def test_an_update_leaves_the_law_of_parameters_and_data_alone(emission):
    assert worst(changes(emission, 2000)) > 1e-4


@pytest.mark.law
def test_an_update_with_missing_values_leaves_the_law_alone():
    missing = np.zeros((12, 2), bool)
    missing[[4, 4, 11], [0, 1, 0]] = True
    assert worst(changes(CASES["order 2, own, two columns"], 2000, missing=missing)) > 1e-4


def without_the_half(rng, square, *rest, draw_scales=_noise.draw_scales):
    return draw_scales(rng, 2 * square, *rest)


def settled(self, states):
    return np.repeat(states[:, :1], 2, axis=1)


def as_if_independent(rng, columns, weights, coefficients, matrix, *rest, draw_levels=_correlated.draw_levels):
    own = draw_levels(rng, columns, weights, coefficients, np.eye(len(matrix)), *rest)
    return own @ np.linalg.inv(matrix).T


def without_memory(rng, residual, weight, coefficients, *rest, draw_regression=_correlated.draw_regression):
    return draw_regression(rng, residual, weight, 0 * coefficients, *rest)


MISTAKES = {
    "draws levels of coordinates from the prior of columns": (
        "white, correlated",
        _correlated,
        "draw_levels",
        as_if_independent,
    ),
    "forgets the memory of what columns share": (
        "order 1, t, correlated",
        _correlated,
        "draw_regression",
        without_memory,
    ),
    "ignores the state before": (
        "order 1, t",
        NoisyLevels,
        "_path",
        settled,
    ),
    "forgets the half of sums of squares": ("white", _noise, "draw_scales", without_the_half),
    "draws dof from its prior": ("order 1, t", _noise, "draw_dof", lambda rng, square, grid: rng.choice(grid)),
}


@pytest.mark.law
@pytest.mark.parametrize(("case", "module", "name", "mistake"), MISTAKES.values(), ids=MISTAKES)
def test_a_wrong_update_is_caught(case, module, name, mistake, monkeypatch):
    emission = CASES[case]

    def update(*arguments):
        with monkeypatch.context() as patch:
            patch.setattr(module, name, mistake)
            return emission.update(*arguments)

    assert worst(changes(emission, 2000, update=update)) < 1e-6


def test_levels_given_the_rest_are_the_regression_on_all_of_them():
    """Against the normal equations with a dense design."""
    rng = np.random.default_rng(6)
    values, path = rng.normal(size=(40, 3)), rng.integers(4, size=(40, 3))
    weight, a, spread = rng.gamma(2.0, size=40), np.array([0.5, 0.3]), 1.7
    design = np.zeros((40, 6))  # the last two states have no data
    for t in range(40):
        for lag, factor in enumerate([1.0, *-a]):
            design[t, path[t, lag]] += factor
    precision = design.T @ (weight[:, None] * design) + np.eye(6) / spread**2
    center = np.linalg.solve(precision, design.T @ (weight * (values @ [1.0, *-a])))
    steps = _noise.Steps(values, path)
    levels = np.array([_noise.draw_levels(rng, steps, weight, a, spread, 6) for _ in range(4000)])
    root = np.linalg.cholesky(precision)
    standard = (levels - center) @ root
    for column in standard.T:
        assert_follows(column, stats.norm.cdf)
    assert_mean(standard[:, 0] * standard[:, 3], 0.0)


@pytest.mark.parametrize("n", [0, 3, 30])
def test_a_coefficient_given_the_rest_is_a_normal_cut_off_where_noise_is_not_stationary(n):
    rng = np.random.default_rng(11)
    residual, weight = rng.normal(size=(n, 2)), rng.gamma(2.0, size=n)
    residual[:, 0] += 1.05 * residual[:, 1]
    precision = (weight * residual[:, 1] ** 2).sum() + 1 / 0.8**2
    center, sd = (weight * residual[:, 0] * residual[:, 1]).sum() / precision, precision**-0.5
    drawn = [_noise.draw_coefficients(rng, residual, weight, 0.8, np.zeros(1))[0] for _ in range(3000)]
    assert_follows(drawn, stats.truncnorm((-1 - center) / sd, (1 - center) / sd, center, sd).cdf)


def test_shared_parameters_are_the_same_in_all_states_and_copied_to_new_ones():
    rng = np.random.default_rng(7)
    emission = CASES["order 1, t"]
    phi, y = drawn(emission, rng)
    seen, informative = rows(emission, y)
    states = path_of(emission, PATH)[informative]
    phi = join(phi, emission.sample_new(rng, 3, phi))
    for now in (
        phi,
        emission.update(rng, seen[informative], states, phi),
        emission.resample(rng, seen[informative], states, 6),
    ):
        for name in ("scale", "coefficients", "dof"):
            field = getattr(now, name)
            np.testing.assert_array_equal(field, np.broadcast_to(field[0], field.shape))
        assert len(np.unique(now.mean)) == 6


@every_case
def test_the_prior_density_counts_shared_parameters_once(emission):
    phi = emission.sample_prior(np.random.default_rng(8), 5)
    whole, part = emission.log_prior(phi), emission.log_prior(take(phi, slice(1, 5)))
    np.testing.assert_allclose(whole[2:], part[1:])
    level = stats.norm(0.4, 1.5).logpdf(phi.mean.reshape(5, -1)[1, 0])
    if emission.n_features == 1:
        assert whole[1] == pytest.approx(level)
        assert whole[0] != pytest.approx(stats.norm(0.4, 1.5).logpdf(phi.mean[0]))


def test_a_start_is_near_the_truth():
    rng = np.random.default_rng(9)
    emission = NoisyLevels(2, tails="student-t", spread=5.0)
    states = np.repeat(rng.permutation(np.tile([0, 1, 2], 20)), 25)
    phi = NoisyLevelsPhi(np.array([-3.0, 0.0, 4.0]), np.full(3, 0.5), np.tile([0.5, 0.2], (3, 1)), np.full(3, 4.0))
    y = emission.sample_observations(rng, states, phi)
    seen, informative = rows(emission, y)
    path = path_of(emission, states)[informative]
    found = emission.resample(rng, seen[informative], path, 3)
    for _ in range(20):
        found = emission.update(rng, seen[informative], path, found)
    np.testing.assert_allclose(found.mean, phi.mean, atol=0.4)
    np.testing.assert_allclose(found.coefficients[0], [0.5, 0.2], atol=0.1)
    assert found.scale[0] == pytest.approx(0.5, rel=0.15)
    assert found.dof[0] <= 6


# Observations


def test_a_sequence_is_continued_from_its_past():
    rng = np.random.default_rng(10)
    emission = NoisyLevels(2)
    phi = NoisyLevelsPhi(np.array([0.0, 10.0]), np.full(2, 1e-9), np.tile([0.5, 0.25], (2, 1)), ())
    past = np.array([7.0, 1.0, 12.0])
    states = np.array([1, 1, 0])
    y = emission.sample_observations(rng, states, phi, past, before=np.array([0, 1]))
    np.testing.assert_allclose(y, [10 + 0.5 * 2 + 0.25 * 1, 10 + 0.5 * 1.25 + 0.25 * 2, 0.5 * 1.125 + 0.25 * 1.25])
    same = emission.sample_observations(rng, states, phi, past)
    assert same[0] == pytest.approx(10 + 0.5 * 2 + 0.25 * -9)
    with pytest.raises(ValueError, match=r"continues from the last 2 value\(s\)"):
        emission.sample_observations(rng, states, phi, np.array([1.0, np.nan]))


@pytest.mark.parametrize("length", [1, 2, 3])
def test_a_sequence_may_be_shorter_than_the_memory(length):
    emission = NoisyLevels(3, n_features=2)
    y = emission.sample_observations(
        np.random.default_rng(0), np.zeros(length, int), emission.sample_prior(np.random.default_rng(0), 1)
    )
    np.testing.assert_array_equal(y, np.zeros((length, 2)))


# At the door


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"order": -1}, "order must be a whole number of at least 0"),
        ({"order": 11}, "order must be at most 10, got 11"),
        ({"scale": "tied"}, "scale must be one of 'shared', 'own', got 'tied'"),
        ({"tails": "t"}, "tails must be one of 'normal', 'student-t', got 't'"),
        ({"spread": 0.0}, "spread must be positive"),
        ({"rate": [1.0, -1.0], "n_features": 2}, "rate must be positive"),
        ({"mean": [1.0, 2.0]}, r"mean must be a finite number or numbers of shape \(1,\)"),
        ({"dof": []}, "dof must be positive"),
        ({"shape": 0}, "shape must be a positive number"),
        ({"coefficient_spread": np.inf}, "coefficient_spread must be a positive number"),
        ({"regression_spread": 0}, "regression_spread must be a positive number"),
        ({"correlated": True}, "correlated is for two columns or more"),
    ],
)
def test_wrong_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        NoisyLevels(**settings)


def test_settings_can_be_compared_and_hashed():
    one, other = NoisyLevels(n_features=2, mean=np.array([1.0, 2.0])), NoisyLevels(n_features=2, mean=[1.0, 2.0])
    assert one == other
    assert hash(one) == hash(other)
    assert ihmm.NoisyLevels is NoisyLevels


# Missing values


def test_a_gap_in_one_column_is_filled_given_the_other():
    model = ihmm.Model(NoisyLevels(1, n_features=2, correlated=True), duration=ihmm.durations.Geometric())
    data = model.observe(np.array([[1.0, 1.0], [1.0, 1.0], [np.nan, 4.0], [1.0, 1.0]]))
    shared = np.array([[1.0, 0.01]]), np.full((1, 2, 1), 0.5), (), np.ones((1, 1))  # e_2 = e_1, nearly
    transitions = Transitions(np.full(2, 0.5), np.full(2, 0.5), np.full((1, 2), 0.5))
    phi = NoisyLevelsPhi(np.ones((1, 2)), *shared)
    draw = Draw(Trajectory(np.zeros(4, np.int64)), transitions, phi, Hyper(1.0, 1.0, 0.0))
    filled = fill_forwards(np.random.default_rng(0), model, data, draw, np.array([2]))
    np.testing.assert_allclose(filled, [[4.0, 4.0]], atol=0.05)


@pytest.mark.parametrize("filtered", [False, True])
def test_gaps_are_filled_given_the_values_before(filtered):
    model = ihmm.Model(NoisyLevels(1, filtered=filtered), duration=ihmm.durations.Geometric())
    data = model.observe(np.array([0.2, 1.4, np.nan, np.nan, np.nan, 2.0]))
    phi = NoisyLevelsPhi(np.array([1.0, 3.0]), np.full(2, 0.1), np.full((2, 1), 0.5), ())
    transitions = Transitions(np.full(3, 1 / 3), np.full(3, 1 / 3), np.full((2, 3), 1 / 3))
    draw = Draw(Trajectory(np.array([0, 0, 0, 0, 1, 1])), transitions, phi, Hyper(1.0, 1.0, 0.0))
    rng = np.random.default_rng(0)
    filled = np.array([fill_forwards(rng, model, data, draw, np.arange(2, 5)) for _ in range(2000)])
    change = 3 + 0.5 * (1.1 - (3 if filtered else 1))
    np.testing.assert_allclose(filled.mean(axis=0), [1.2, 1.1, change], atol=0.02)
