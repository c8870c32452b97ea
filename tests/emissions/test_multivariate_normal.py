"""`MultivariateNormal`: y ~ N(μ, Σ), μ | Σ ~ N(mean, Σ/strength), Σ ~ InverseWishart(dof, scale); or by column."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats

import ihmm
from ihmm.emissions import MultivariateNormal, Normal
from ihmm.emissions._diagonal import DiagonalPhi
from ihmm.emissions._full import FullPhi, fill_averages, patterns
from ihmm.emissions._matrices import cholesky, triangle
from ihmm.store.encoding import decode as _decode
from ihmm.store.encoding import encode as _encode
from ihmm.testing._evidence import Evidence
from reference.verdicts import assert_follows, assert_mean

QUICK = settings(max_examples=25, deadline=None, derandomize=True)
SEEDS = st.integers(0, 10_000)
SIZES = st.integers(1, 4)
FULL = MultivariateNormal(2, [1.0, -1.0], 0.5, 5.0, [[2.0, 0.6], [0.6, 1.0]])
DIAGONAL = MultivariateNormal(2, [1.0, -1.0], 0.5, 5.0, [2.0, 1.0], covariance="diagonal")
BOTH = pytest.mark.parametrize("emission", [FULL, DIAGONAL], ids=["full", "diagonal"])
NAN = np.nan


def some_family(size, seed, covariance="full"):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, size))
    scale = root @ root.T + 0.1 * np.eye(size) if covariance == "full" else rng.gamma(1, 1, size) + 0.1
    dof, strength = size - 1 + rng.gamma(2, 2) + 0.1, rng.gamma(1, 1) + 0.05
    return MultivariateNormal(size, rng.normal(size=size), strength, dof, scale, covariance)


def some_rows(size, n, seed, hidden=0.0):
    """Rows of which no one is wholly missing."""
    rng = np.random.default_rng([seed, 1])
    y = 3 * rng.normal(size=(n, size))
    gaps = rng.random(y.shape) < hidden
    gaps[np.arange(n), rng.integers(size, size=n)] = False
    return np.where(gaps, NAN, y)


def covariances(phi):
    return phi.covariance if hasattr(phi, "covariance") else np.array([np.diag(v) for v in phi.variance])


# Densities


@QUICK
@given(SIZES, SEEDS, st.sampled_from(["full", "diagonal"]), st.sampled_from([0.0, 0.4]))
def test_density_is_scipys_of_the_values_that_are_known(size, seed, covariance, hidden):
    emission, y = some_family(size, seed, covariance), some_rows(size, 12, seed, hidden)
    phi = emission.sample_prior(np.random.default_rng(seed), 3)
    table = emission.log_density(y, phi)
    assert table.T.flags.c_contiguous
    for t, row in enumerate(y):
        known = ~np.isnan(row)
        for k, (mean, matrix) in enumerate(zip(phi.mean, covariances(phi), strict=True)):
            law = stats.multivariate_normal(mean[known], matrix[np.ix_(known, known)], allow_singular=True)
            assert table[t, k] == pytest.approx(law.logpdf(row[known]), rel=1e-6, abs=1e-6)
    states = np.arange(12) % 3
    np.testing.assert_allclose(emission.log_density_at(y, states, phi), table[np.arange(12), states], rtol=1e-10)


@pytest.mark.parametrize("hidden", [0.0, 0.2])
def test_density_along_a_long_path_is_that_along_its_parts(hidden):
    rng, y = np.random.default_rng(9), some_rows(6, 3000, 9, hidden)
    phi, states = MultivariateNormal(6).sample_prior(rng, 5), rng.integers(5, size=3000)
    along = MultivariateNormal(6).log_density_at(y, states, phi)
    parts = [MultivariateNormal(6).log_density_at(y[t : t + 9], states[t : t + 9], phi) for t in range(0, 3000, 9)]
    np.testing.assert_allclose(along, np.concatenate(parts), rtol=1e-9)


@QUICK
@given(SIZES, SEEDS, st.sampled_from([0.0, 0.4]))
def test_marginal_is_a_multivariate_t_of_the_values_that_are_known(size, seed, hidden):
    emission, y = some_family(size, seed), some_rows(size, 6, seed, hidden)
    dof = emission.dof - size + 1
    shape = np.array(emission.scale) * (1 + 1 / emission.strength) / dof
    for row, value in zip(y, emission.log_marginal(y), strict=True):
        known = ~np.isnan(row)
        law = stats.multivariate_t(np.array(emission.mean)[known], shape[np.ix_(known, known)], dof)
        assert value == pytest.approx(law.logpdf(row[known]), rel=1e-9, abs=1e-9)


@QUICK
@given(SIZES, SEEDS)
def test_marginal_of_independent_columns_is_a_product_of_ts(size, seed):
    emission, y = some_family(size, seed, "diagonal"), some_rows(size, 6, seed, 0.4)
    dof = emission.dof - size + 1
    spread = np.sqrt(np.array(emission.scale) * (1 + 1 / emission.strength) / dof)
    expected = np.nansum(stats.t.logpdf(y, dof, np.array(emission.mean), spread), axis=1)
    np.testing.assert_allclose(emission.log_marginal(y), expected, rtol=1e-9, atol=1e-9)


@QUICK
@given(SIZES, SEEDS)
def test_prior_density_is_scipys(size, seed):
    emission = some_family(size, seed)
    phi = emission.sample_prior(np.random.default_rng(seed), 3)
    for mean, matrix, value in zip(phi.mean, phi.covariance, emission.log_prior(phi), strict=True):
        expected = stats.invwishart(emission.dof, np.array(emission.scale)).logpdf(matrix)
        spread = matrix / emission.strength
        expected += stats.multivariate_normal(emission.mean, spread, allow_singular=True).logpdf(mean)
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-6)


def test_prior_density_of_independent_columns_is_scipys():
    phi = DIAGONAL.sample_prior(np.random.default_rng(0), 3)
    expected = stats.invgamma.logpdf(phi.variance, 2.0, scale=np.array([2.0, 1.0]) / 2)
    expected += stats.norm.logpdf(phi.mean, [1.0, -1.0], np.sqrt(phi.variance / 0.5))
    np.testing.assert_allclose(DIAGONAL.log_prior(phi), expected.sum(axis=1), rtol=1e-10)


# Evidence


@QUICK
@given(SIZES, SEEDS, st.integers(1, 9))
def test_evidence_is_the_chain_of_marginals_under_priors_updated_one_by_one(size, seed, n):
    emission, y = some_family(size, seed), some_rows(size, n, seed)
    total, prior = 0.0, emission
    for row in y:
        total += prior.log_marginal(row[None])[0]
        prior = updated(prior, row)
    assert emission.log_evidence(y) == pytest.approx(total, rel=1e-8, abs=1e-8)


def updated(prior, row):
    """The posterior after one complete row, as a textbook has it."""
    gap, strength = row - np.array(prior.mean), prior.strength + 1
    scale = np.array(prior.scale) + prior.strength / strength * np.outer(gap, gap)
    mean = (prior.strength * np.array(prior.mean) + row) / strength
    return MultivariateNormal(len(row), mean, strength, prior.dof + 1, (scale + scale.T) / 2)


@QUICK
@given(SIZES, SEEDS)
def test_independent_columns_are_normal_ones(size, seed):
    emission, y = some_family(size, seed, "diagonal"), some_rows(size, 8, seed, 0.4)
    expected = 0.0
    for d in range(size):
        shape, rate = (emission.dof - size + 1) / 2, emission.scale[d] / 2
        column = Normal(emission.mean[d], emission.strength, shape, rate)
        expected += column.log_evidence(y[~np.isnan(y[:, d]), d])
    assert emission.log_evidence(y) == pytest.approx(expected, rel=1e-10, abs=1e-10)


def test_one_column_is_normal_whatever_the_covariance():
    y = np.random.default_rng(0).normal(size=7)
    normal = Normal(0.5, 0.3, 2.5, 1.0)
    for covariance in ("full", "diagonal"):
        emission = MultivariateNormal(1, 0.5, 0.3, 5.0, 2.0, covariance)
        assert emission.log_evidence(y[:, None]) == pytest.approx(normal.log_evidence(y), rel=1e-12)
        np.testing.assert_allclose(emission.log_marginal(y[:, None]), normal.log_marginal(y), rtol=1e-12)


def test_the_evidence_of_rows_with_missing_values_has_no_closed_form():
    y = np.array([[1.0, NAN], [0.0, 1.0]])
    with pytest.raises(ValueError, match="missing values have no evidence in closed form"):
        FULL.log_evidence(y)
    assert FULL.conjugate(y) is None
    assert DIAGONAL.conjugate(y) is not None


def test_monte_carlo_evidence_of_rows_with_missing_values_is_the_integral_over_them():
    """What `exact_posterior` computes when values are missing, against quadrature over the value that is."""
    y = np.array([[0.8, -1.2], [1.5, NAN], [0.3, -0.4]])

    def complete(value):
        return np.exp(FULL.log_evidence(np.where(np.isnan(y), value, y)))

    expected = np.log(integrate.quad(complete, -60, 60, points=[-1.0], epsabs=1e-12)[0])
    model = ihmm.Model(FULL)
    found = Evidence(model, model.observe(y)).of((0, 0, 0))
    assert found == pytest.approx(expected, abs=0.01)


# Draws


@BOTH
def test_prior_draws_follow_the_prior(emission):
    assert_normal_inverse_wishart(emission.sample_prior(np.random.default_rng(0), 20_000), emission)


def test_posterior_draws_follow_the_posterior_of_their_own_state():
    y, n = np.array([[-0.4, 1.0], [2.2, 0.3], [3.1, -2.0], [0.7, 0.5]]), 40_000
    states = (2 * np.arange(n // 2)[:, None] + np.array([0, 0, 0, 1])).ravel()
    phi = FULL.resample(np.random.default_rng(1), np.tile(y, (n // 2, 1)), states, n)
    for own, which in ((y[:3], slice(0, None, 2)), (y[3:], slice(1, None, 2))):
        posterior = FULL
        for row in own:
            posterior = updated(posterior, row)
        assert_normal_inverse_wishart(FullPhi(phi.mean[which], phi.covariance[which]), posterior)


def assert_normal_inverse_wishart(phi, law):
    scale, size = np.array(law.scale), law.n_features
    shape = (law.dof - size + 1) / 2
    if isinstance(phi, DiagonalPhi):
        for d in range(size):
            assert_follows(phi.variance[:, d], stats.invgamma(shape, scale=scale[d] / 2).cdf)
        residual = (phi.mean - np.array(law.mean)) / np.sqrt(phi.variance / law.strength)
    else:
        np.testing.assert_array_equal(phi.covariance, phi.covariance.swapaxes(1, 2))
        # any direction's variance is inverse gamma, its reciprocal in Σ⁻¹ is χ²
        for direction in np.array([[1.0, 0.0], [0.0, 1.0], [0.6, -0.8], [1.0, 2.0]]):
            along = direction @ scale @ direction
            variance = np.einsum("i,kij,j->k", direction, phi.covariance, direction)
            assert_follows(variance, stats.invgamma(shape, scale=along / 2).cdf)
            precision = np.einsum("i,kij,j->k", direction, np.linalg.inv(phi.covariance), direction)
            assert_follows(precision / (direction @ np.linalg.inv(scale) @ direction), stats.chi2(law.dof).cdf)
        factor = np.linalg.cholesky(phi.covariance / law.strength)
        residual = np.linalg.solve(factor, (phi.mean - np.array(law.mean))[..., None])[..., 0]
        # E[Σ⁻¹] = ν S⁻¹, off the diagonal too
        assert_mean(np.linalg.inv(phi.covariance)[:, 0, 1], law.dof * np.linalg.inv(scale)[0, 1])
    for d in range(size):
        assert_follows(residual[:, d], stats.norm.cdf)
    assert_mean(residual[:, 0] * residual[:, 1], 0.0)


def test_the_default_degrees_of_freedom_make_scale_the_expected_covariance():
    emission = MultivariateNormal(2, scale=[[2.0, 0.6], [0.6, 1.0]])
    covariance = emission.sample_prior(np.random.default_rng(2), 200_000).covariance
    assert np.median(covariance[:, 0, 0]) == pytest.approx(stats.invgamma(1.5, scale=1.0).median(), rel=0.02)
    heavier = MultivariateNormal(2, dof=12.0, scale=[[18.0, 5.4], [5.4, 9.0]])  # the same mean, with a variance
    for i, j in ((0, 0), (0, 1), (1, 1)):
        drawn = heavier.sample_prior(np.random.default_rng(2), 20_000).covariance[:, i, j]
        assert_mean(drawn, emission.scale[i][j])


@BOTH
def test_observations_follow_the_density_of_their_state(emission):
    phi = emission.sample_prior(np.random.default_rng(3), 2)
    states = np.arange(40_000) % 2
    y = emission.sample_observations(np.random.default_rng(4), states, phi)
    for k in range(2):
        z = np.linalg.solve(np.linalg.cholesky(covariances(phi)[k]), (y[states == k] - phi.mean[k]).T)
        assert_follows(z[0], stats.norm.cdf)
        assert_follows(z[1], stats.norm.cdf)
        assert_mean(z[0] * z[1], 0.0)


# Missing values


def test_missing_values_are_drawn_given_the_others_of_their_row_and_state():
    phi = FullPhi(
        np.array([[0.0, 1.0, 2.0], [5.0, 5.0, 5.0]]),
        np.array([[[2.0, 0.9, 0.3], [0.9, 1.0, 0.2], [0.3, 0.2, 0.5]], np.eye(3)]),
    )
    n = 20_000
    y = np.tile([[1.0, NAN, 2.5], [NAN, NAN, 4.0], [1.0, 2.0, 3.0]], (n, 1))
    states = np.tile([0, 1, 0], n)
    filled = MultivariateNormal(3).complete(np.random.default_rng(5), y, states, phi)
    known = ~np.isnan(y)
    np.testing.assert_array_equal(filled[known], y[known])
    # the textbook's conditional: μ_m + Σ_mo Σ_oo⁻¹ (y_o − μ_o), Σ_mm − Σ_mo Σ_oo⁻¹ Σ_om
    weights = np.linalg.solve(phi.covariance[0][np.ix_([0, 2], [0, 2])], phi.covariance[0][[0, 2], 1])
    mean = 1.0 + weights @ (np.array([1.0, 2.5]) - [0.0, 2.0])
    variance = 1.0 - weights @ phi.covariance[0][[0, 2], 1]
    assert_follows(filled[0::3, 1], stats.norm(mean, np.sqrt(variance)).cdf)
    for d in (0, 1):
        assert_follows(filled[1::3, d], stats.norm(5.0, 1.0).cdf)
    assert np.isnan(y).sum() == 3 * n  # the data are left alone


def test_missing_values_of_independent_columns_are_drawn_given_their_state():
    phi = DiagonalPhi(np.array([[0.0, 1.0], [5.0, 5.0]]), np.array([[1.0, 4.0], [1.0, 1.0]]))
    y, states = np.tile([[2.0, NAN], [NAN, 3.0]], (20_000, 1)), np.tile([0, 1], 20_000)
    filled = DIAGONAL.complete(np.random.default_rng(5), y, states, phi)
    np.testing.assert_array_equal(filled[~np.isnan(y)], y[~np.isnan(y)])
    assert_follows(filled[::2, 1], stats.norm(1.0, 2.0).cdf)
    assert_follows(filled[1::2, 0], stats.norm(5.0, 1.0).cdf)


def test_an_update_is_a_fresh_draw_where_nothing_is_missing():
    rng = np.random.default_rng(6)
    y, states = rng.normal(size=(30, 2)), rng.integers(0, 3, 30)
    for emission in (FULL, DIAGONAL):
        old = emission.sample_prior(rng, 4)
        updated = emission.update(np.random.default_rng(7), y, states, old)
        fresh = emission.resample(np.random.default_rng(7), y, states, 4)
        for one, other in zip(updated, fresh, strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_first_parameters_are_near_the_data_where_values_are_missing():
    rng = np.random.default_rng(8)
    y = 1000 + rng.normal(size=(200, 2))
    y[rng.random(200) < 0.5, 0] = NAN
    phi = FULL.resample(rng, y, np.arange(200) // 100, 3)
    np.testing.assert_allclose(phi.mean[:2], 1000, atol=10)


def test_averages_stand_in_by_state_and_column():
    y = np.array([[1.0, NAN], [3.0, 5.0], [NAN, 7.0], [NAN, 8.0]])
    filled = fill_averages(y, np.array([0, 0, 0, 1]), 2, np.array([-9.0, -8.0]))
    np.testing.assert_array_equal(filled, [[1.0, 6.0], [3.0, 5.0], [2.0, 7.0], [-9.0, 8.0]])


def test_rows_are_grouped_by_what_is_known_of_them():
    y = some_rows(11, 300, seed=0, hidden=0.1)
    seen = np.zeros(300, int)
    for rows, known in patterns(y):
        seen[rows] += 1
        np.testing.assert_array_equal(~np.isnan(y[rows]), np.tile(np.isin(np.arange(11), known), (len(rows), 1)))
    np.testing.assert_array_equal(seen, 1)
    assert list(patterns(np.zeros((3, 2)))) == [(slice(None), slice(None))]


# Numbers


@pytest.mark.parametrize("shape", [(3, 3), (50, 3), (5000, 3), (1000, 40), (80, 40), (81, 40)])
def test_a_triangle_has_the_products_of_its_matrix(shape):
    matrix = np.random.default_rng(0).normal(size=shape)
    root = triangle(matrix)
    np.testing.assert_allclose(root.T @ root, matrix.T @ matrix, rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(root, np.triu(root))
    assert np.diag(root).min() > 0


def test_a_covariance_that_rounding_made_singular_has_a_factor_all_the_same():
    column = np.array([1e6, 1e-6, 3.0])
    singular = np.outer(column, column)
    factors = cholesky(np.stack([np.eye(3), singular]))
    np.testing.assert_array_equal(factors[0], np.eye(3))
    np.testing.assert_allclose(factors[1] @ factors[1].T, singular, rtol=1e-12)
    assert np.diag(factors[1]).min() > 0


def test_evidence_keeps_its_precision_far_from_zero_and_on_any_scale():
    y, scales = some_rows(3, 20, seed=1), np.array([1e-6, 1.0, 1e6])
    plain = MultivariateNormal(3)
    scaled = MultivariateNormal(3, mean=1e3 * scales, scale=scales**2)
    expected = plain.log_evidence(y) - 20 * np.log(scales).sum()
    assert scaled.log_evidence((y + 1e3) * scales) == pytest.approx(expected, rel=1e-10)


# Settings and data


@pytest.mark.parametrize("scale", [2.0, [1.0, 2.0], np.array([1.0, 2.0]), np.array([[2.0, 0.6], [0.6, 1.0]])])
def test_settings_are_plain_and_survive_saving(scale):
    emission = MultivariateNormal(2, mean=np.array([1, 2]), scale=scale)
    assert emission.mean == (1.0, 2.0)
    assert hash(emission) == hash(MultivariateNormal(2, (1.0, 2.0), scale=emission.scale))
    assert _decode(json.loads(json.dumps(_encode(emission)))) == emission


@BOTH
def test_a_posterior_is_saved_and_loaded(emission, tmp_path):
    y = some_rows(2, 30, seed=3, hidden=0.2)
    posterior = ihmm.sample(ihmm.Model(emission), y, draws=5, tune=5, chains=1, seed=1, progress=False)
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert loaded.model == posterior.model
    np.testing.assert_array_equal(loaded.data.y, y)
    for one, other in zip(loaded.draws[0][-1].phi, posterior.draws[0][-1].phi, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"mean": [1.0]}, r"mean must be a finite number or numbers of shape \(2,\), got \[1.0\]"),
        ({"mean": NAN}, "mean must be a finite number"),
        ({"mean": "0"}, "mean must be a finite number"),
        ({"mean": None}, "mean must be a finite number"),
        ({"strength": 0.0}, "strength must be a positive number, got 0.0"),
        ({"dof": 1.0}, "dof must be above n_features − 1 = 1, got 1.0"),
        ({"dof": NAN}, "dof must be a finite number"),
        ({"scale": 0.0}, "scale must be positive"),
        ({"scale": [1.0, -1.0]}, "scale must be positive"),
        ({"scale": [1.0, 1.0, 1.0]}, r"scale must be a finite number or .* shape \(2,\) or .* shape \(2, 2\)"),
        ({"scale": [[1.0, 2.0], [2.0, 1.0]]}, "a matrix symmetric and positive definite, got"),
        ({"scale": [[1.0, 0.5], [0.0, 1.0]]}, "a matrix symmetric and positive definite, got"),
        ({"covariance": "diagonal", "scale": np.eye(2)}, r"scale must be a finite number or numbers of shape \(2,\)"),
        ({"covariance": "spherical"}, "covariance must be one of 'full', 'diagonal', got 'spherical'"),
    ],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(ValueError, match=f"MultivariateNormal {said}" if "matrix" not in said else said):
        MultivariateNormal(**{"n_features": 2} | settings)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.zeros(5), r"n_features = 2 takes rows of that length, shape \(T, 2\); got one number"),
        (np.zeros((5, 3)), "got 3 columns"),
        (np.array([[0.0, 1.0], [np.inf, 0.0]]), r"finite values, got 1 rows with infinite ones \(first at t = 1\)"),
        (np.array([[0.0, 1.0], [1e200, 0.0]]), "within ±1e.150, got 1e.200; rescale"),
    ],
)
def test_data_are_checked(y, said):
    with pytest.raises(ValueError, match=said):
        ihmm.Model(FULL).observe(y)


@pytest.mark.parametrize("y", [np.arange(4), np.arange(4.0)[:, None]])
def test_one_feature_is_a_series_of_numbers(y):
    np.testing.assert_array_equal(ihmm.Model(MultivariateNormal(1)).observe(y).y, np.arange(4.0)[:, None])


def test_samplers_that_integrate_parameters_out_need_complete_rows_or_independent_columns():
    y = some_rows(2, 20, seed=4, hidden=0.3)
    settings = {"sampler": ihmm.DirectAssignment(), "draws": 3, "tune": 3, "chains": 1, "progress": False}
    with pytest.raises(ValueError, match=r"single values of a row are missing.*use ParticleGibbs"):
        ihmm.sample(ihmm.Model(FULL), y, **settings)
    ihmm.sample(ihmm.Model(DIAGONAL), y, **settings)
    ihmm.sample(ihmm.Model(FULL), some_rows(2, 20, seed=4), **settings)
