"""`Autoregressive`: y_t ~ N(b + A (y_{t−1}, …), Σ), (b, A) | Σ matrix-normal, Σ ~ InverseWishart(dof, scale)."""

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import integrate, stats
from scipy.special import gammaln

import ihmm
from ihmm.emissions import Autoregressive, MultivariateNormal
from ihmm.emissions.choose import choose
from ihmm.kernels import families
from ihmm.kernels.families.dispatch import FULL_NORMAL
from ihmm.store.encoding import decode as _decode
from ihmm.store.encoding import encode as _encode
from reference.verdicts import assert_follows, assert_mean

QUICK = settings(max_examples=20, deadline=None, derandomize=True)
SEEDS, SIZES, ORDERS = st.integers(0, 10_000), st.integers(1, 3), st.integers(1, 3)
NAN = np.nan


def some_family(order, size, seed):
    rng = np.random.default_rng(seed)
    past = order * size
    matrices = [(root := rng.normal(size=(n, n))) @ root.T + 0.2 * np.eye(n) for n in (past, size)]
    coefficients = rng.normal(size=(size, past)) / 2
    return Autoregressive(
        order, size, rng.normal(size=size), rng.gamma(2, 1) + 0.1, coefficients, matrices[0], size + 2.5, matrices[1]
    )


def some_rows(emission, n, seed):
    return 2 * np.random.default_rng([seed, 1]).normal(size=(n, emission.n_features * (emission.order + 1)))


def regression(emission, seen):
    """y, the design (past, 1), and prior mean and precision of the coefficients and the intercept, as a textbook has
    them: (A, b) with b = level − A m, level independent of A."""
    size = emission.n_features
    past = size * emission.order
    design = np.column_stack([seen[:, :past], np.ones(len(seen))])
    center = np.tile(np.broadcast_to(emission.mean, size), emission.order)
    # (A, b) = (A, level) C with C = [[I, −m], [0, 1]]
    change = np.eye(past + 1)
    change[:past, past] = -center
    precision = np.zeros((past + 1, past + 1))
    precision[:past, :past], precision[past, past] = emission.precision, emission.strength
    back = np.linalg.inv(change)
    prior = np.column_stack([np.array(emission.coefficients), np.broadcast_to(emission.mean, size)]) @ change
    return seen[:, past:], design, prior, back @ precision @ back.T


# What is seen of a step


def test_a_step_is_seen_with_its_past_and_histories_begin_with_sequences_and_after_gaps():
    y = [np.array([1.0, 2.0, 3.0, 4.0]), np.array([5.0, 6.0, NAN, 8.0, 9.0, 10.0, 11.0])]
    data = ihmm.Model(Autoregressive(2)).observe(y)
    np.testing.assert_array_equal(data.values, np.concatenate(y))
    np.testing.assert_array_equal(np.flatnonzero(~data.uninformative), [2, 3, 9, 10])
    np.testing.assert_array_equal(
        data.observations[~data.uninformative], [[2, 1, 3], [3, 2, 4], [9, 8, 10], [10, 9, 11]]
    )
    np.testing.assert_array_equal(data.log_marginal == 0, data.uninformative)


def test_a_row_with_anything_missing_ends_the_history():
    y = np.array([[1.0, 2.0], [3.0, 4.0], [NAN, 6.0], [7.0, 8.0], [9.0, 10.0]])
    data = ihmm.Model(Autoregressive(1, 2)).observe(y)
    np.testing.assert_array_equal(data.uninformative, [True, False, True, True, False])
    np.testing.assert_array_equal(data.observations[[1, 4]], [[1, 2, 3, 4], [7, 8, 9, 10]])


@pytest.mark.parametrize("y", [np.arange(4), np.arange(4.0)[:, None]])
def test_one_column_is_a_series_of_numbers(y):
    assert ihmm.Model(Autoregressive(1)).observe(y).y.shape == (4,)
    assert Autoregressive(2).sample_prior(np.random.default_rng(0), 3).coefficients.shape == (3, 2)
    assert Autoregressive(2).sample_prior(np.random.default_rng(0), 3).covariance.shape == (3,)


# Densities


@QUICK
@given(ORDERS, SIZES, SEEDS)
def test_density_is_scipys_of_the_residual(order, size, seed):
    emission = some_family(order, size, seed)
    seen, phi = some_rows(emission, 8, seed), emission.sample_prior(np.random.default_rng(seed), 3)
    table = emission.log_density(seen, phi)
    for k in range(3):
        b, a, covariance = phi.intercept[k], phi.coefficients[k], phi.covariance[k]
        for t, row in enumerate(seen):
            past, y = row[: size * order], row[size * order :]
            mean = b + a @ past
            law = stats.multivariate_normal(np.atleast_1d(mean), covariance, allow_singular=True)
            assert table[t, k] == pytest.approx(law.logpdf(y), rel=1e-6, abs=1e-6)


@QUICK
@given(ORDERS, SIZES, SEEDS)
def test_prior_density_is_scipys(order, size, seed):
    emission = some_family(order, size, seed)
    _, _, prior, precision = regression(emission, some_rows(emission, 1, seed))
    phi = emission.sample_prior(np.random.default_rng(seed), 3)
    for k, value in enumerate(emission.log_prior(phi)):
        covariance = np.reshape(phi.covariance[k], (size, size))
        both = np.column_stack([phi.coefficients[k].reshape(size, -1), np.reshape(phi.intercept[k], size)])
        expected = stats.invwishart(emission.dof, np.array(emission.scale)).logpdf(covariance)
        expected += stats.matrix_normal(prior, covariance, np.linalg.inv(precision)).logpdf(both)
        assert value == pytest.approx(expected, rel=1e-6, abs=1e-6)


# Evidence


@pytest.mark.parametrize("n", [1, 2, 7])
def test_evidence_of_order_one_is_an_integral_over_the_noise(n):
    """Given σ² the values are jointly normal, N(X m, σ² (I + X V⁻¹ Xᵀ)); what is left is a quadrature over log σ²."""
    emission = Autoregressive(1, mean=0.4, strength=0.3, coefficients=0.6, precision=1.7, dof=3.5, scale=0.8)
    y, (level, slope, dof, scale) = 2 * np.random.default_rng(n).normal(size=n + 1), (0.4, 0.6, 3.5, 0.8)
    past = y[:-1] - level
    spread = np.eye(n) + np.outer(past, past) / 1.7 + 1 / 0.3
    law = stats.multivariate_normal(np.zeros(n), spread)
    residual = y[1:] - level - slope * past

    def integrand(log_variance):
        sd = np.exp(log_variance / 2)
        prior = stats.invgamma(dof / 2, scale=scale / 2).pdf(sd**2) * sd**2
        return prior * law.pdf(residual / sd) / sd**n

    expected = np.log(integrate.quad(integrand, -15, 25, epsabs=0, limit=200)[0])
    data = ihmm.Model(emission).observe(y)
    assert emission.log_evidence(data.observations[1:]) == pytest.approx(expected, rel=1e-7)


@QUICK
@given(ORDERS, SIZES, SEEDS, st.integers(1, 9))
def test_evidence_is_a_matrix_t(order, size, seed, n):
    emission = some_family(order, size, seed)
    y, design, prior, precision = regression(emission, some_rows(emission, n, seed))
    spread = np.eye(n) + design @ np.linalg.inv(precision) @ design.T
    # Y ~ T(ν − D + 1, X Mᵀ, spread, S), written out with determinants
    dof, scale, gap = emission.dof, np.array(emission.scale), y - design @ prior.T
    expected = sum(np.array([1, -1]) @ gammaln((np.array([dof + n, dof]) - d) / 2) for d in range(size))
    expected -= 0.5 * n * size * np.log(np.pi) + 0.5 * size * np.linalg.slogdet(spread)[1]
    expected += 0.5 * dof * np.linalg.slogdet(scale)[1]
    expected -= 0.5 * (dof + n) * np.linalg.slogdet(scale + gap.T @ np.linalg.solve(spread, gap))[1]
    assert emission.log_evidence(some_rows(emission, n, seed)) == pytest.approx(expected, rel=1e-7, abs=1e-7)


def test_a_past_that_is_always_the_same_leaves_a_normal_level():
    """A past at the prior's level says nothing about the coefficients."""
    y = np.random.default_rng(0).normal(size=(8, 2))
    emission = Autoregressive(1, 2, mean=[1.0, -1.0], strength=0.5, dof=5.0, scale=[2.0, 1.0])
    seen = np.hstack([np.tile([1.0, -1.0], (8, 1)), y])
    normal = MultivariateNormal(2, [1.0, -1.0], 0.5, 5.0, [2.0, 1.0])
    assert emission.log_evidence(seen) == pytest.approx(normal.log_evidence(y), rel=1e-12)
    np.testing.assert_allclose(emission.log_marginal(seen), normal.log_marginal(y), rtol=1e-12)


@QUICK
@given(ORDERS, SIZES, SEEDS)
def test_compiled_code_predicts_in_turn_what_the_evidence_says_at_once(order, size, seed):
    emission = some_family(order, size, seed)
    compiled = emission.conjugate(some_rows(emission, 10, seed)).compiled
    values, prior = np.array(compiled.values), compiled.prior
    values[3] = NAN
    statistic = np.zeros(compiled.size)
    in_turn = 0.0
    for t in [*range(10), 0, 4]:  # two of them twice: then they are taken away again
        in_turn += families.log_predictive(FULL_NORMAL, prior, statistic, values, t)
        families.change_statistics(FULL_NORMAL, statistic, values, t, 1.0)
    assert in_turn == pytest.approx(emission.log_evidence(values[[0, 1, 2, 4, 5, 6, 7, 8, 9, 0, 4]]), rel=1e-8)
    for t in (0, 4):
        families.change_statistics(FULL_NORMAL, statistic, values, t, -1.0)
    known = np.delete(values, 3, axis=0)
    at_once = families.log_evidence(FULL_NORMAL, prior, statistic) - 0.5 * 9 * size * np.log(np.pi)
    assert at_once == pytest.approx(emission.log_evidence(known), rel=1e-8)


# Draws


def test_prior_and_posterior_draws_follow_their_laws():
    emission, n = some_family(1, 2, seed=3), 20_000
    seen = some_rows(emission, 5, seed=3)
    y, design, prior, precision = regression(emission, seen)
    assert_matrix_normal(emission.sample_prior(np.random.default_rng(0), n), prior, precision, emission.dof, emission)
    # a textbook's posterior: V_n = V + XᵀX, M_n V_n = M V + YᵀX
    precise = precision + design.T @ design
    center = np.linalg.solve(precise, (prior @ precision + y.T @ design).T).T
    scale = np.array(emission.scale) + y.T @ y + prior @ precision @ prior.T - center @ precise @ center.T
    states = np.repeat(np.arange(n), 5)
    phi = emission.resample(np.random.default_rng(1), np.tile(seen, (n, 1)), states, n)
    assert_matrix_normal(phi, center, precise, emission.dof + 5, scale)


def assert_matrix_normal(phi, center, precision, dof, scale):
    scale = np.array(getattr(scale, "scale", scale))
    for direction in np.array([[1.0, 0.0], [0.6, -0.8]]):
        variance = np.einsum("i,kij,j->k", direction, phi.covariance, direction)
        law = stats.invgamma((dof - 1) / 2, scale=direction @ scale @ direction / 2)
        assert_follows(variance, law.cdf)
    gap = np.concatenate([phi.coefficients, phi.intercept[:, :, None]], axis=2) - center
    z = np.linalg.solve(np.linalg.cholesky(phi.covariance), gap) @ np.linalg.cholesky(precision)
    for i in np.ndindex(z.shape[1:]):
        assert_follows(z[:, *i], stats.norm.cdf)
    assert_mean(z[:, 0, 0] * z[:, 0, 1], 0.0)
    assert_mean(z[:, 0, 0] * z[:, 1, 0], 0.0)


@pytest.mark.parametrize(("order", "size"), [(1, 1), (3, 1), (2, 2)])
def test_what_is_drawn_after_a_past_has_white_residuals(order, size):
    emission = Autoregressive(order, size, coefficients=0.3, precision=50.0)
    rng = np.random.default_rng(5)
    phi, states, past = emission.sample_prior(rng, 2), np.arange(5000) % 2, rng.normal(size=(order + 2, size))
    past = past[:, 0] if size == 1 else past
    y = emission.sample_observations(rng, states, phi, past)
    assert y.shape == (5000, size)[: past.ndim]
    whole = np.concatenate([past, y])
    seen, silent = emission.with_past(whole, np.array([0, len(whole)]), None)
    assert not silent[order + 2 :].any()
    parts = emission._by_row(phi)
    for k in range(2):
        own = seen[order + 2 :][states == k]
        residual = own[:, size * order :] - parts.intercept[k] - own[:, : size * order] @ parts.coefficients[k].T
        z = np.linalg.solve(np.linalg.cholesky(parts.covariance[k]), residual.T)
        for column in z:
            assert_follows(column, stats.norm.cdf)


def test_explosive_states_stay_numbers():
    emission = Autoregressive(1)
    phi = emission.sample_prior(np.random.default_rng(0), 1)._replace(coefficients=np.array([[50.0]]))
    y = emission.sample_observations(np.random.default_rng(1), np.zeros(500, int), phi, np.array([1.0]))
    assert np.isfinite(y).all()


def test_simulated_sequences_begin_at_the_prior_mean():
    model = ihmm.Model(Autoregressive(2, mean=3.0, precision=10.0))
    y, _ = ihmm.simulate(model, [5, 1, 4], seed=1)
    assert [len(part) for part in y] == [5, 1, 4]
    for part in y:
        np.testing.assert_array_equal(part[:2], 3.0)
    assert not np.any(y[0][2:] == 3.0)


# A fit


@pytest.fixture(scope="module")
def oscillators():
    """Two rhythms of the same variance, the recording with a gap."""
    rng = np.random.default_rng(2)
    truth = np.repeat([0, 1, 0, 1], 100)
    coefficients, noise = np.array([[1.6, -0.81], [-0.4, -0.81]]), [0.28, 0.57]
    y = np.zeros(400)
    for t in range(2, 400):
        y[t] = coefficients[truth[t]] @ y[t - 2 : t][::-1] + noise[truth[t]] * rng.normal()
    y[150:155] = NAN
    hmm = ihmm.InfiniteHMM("autoregressive", order=2, draws=40, tune=60, chains=2, random_state=1).fit(y)
    return hmm, truth


def test_rhythms_are_told_apart(oscillators):
    hmm, truth = oscillators
    assert hmm.n_states_ == 2
    agree = np.mean(hmm.labels_ == truth)
    assert max(agree, 1 - agree) > 0.95
    assert sorted(np.round(hmm.coefficients_[:, 0]).tolist()) == [-0.0, 2.0]
    assert hmm.intercept_.shape == (2, 1)
    assert hmm.covars_.shape == (2, 1, 1)


def test_forecasts_go_on_from_the_last_values(oscillators):
    hmm, _ = oscillators
    y = hmm.posterior_.data.y[:98]
    expected = 1.6 * y[1:] - 0.81 * y[:-1]
    end = 40 + int(np.argmax(np.abs(expected[40:])))  # where a forecast that forgets the past would be most wrong
    ahead = hmm.forecast(4, y[: end + 2])
    assert ahead.y.shape == (80, 4)
    assert np.abs(expected[end]) > 1.5
    assert np.median(np.abs(ahead.y[:, 0] - expected[end])) < 0.5
    assert hmm.forecast(3).y.shape == (80, 3)
    for short in (np.array([1.0]), np.array([1.0, 2.0, NAN])):
        with pytest.raises(ValueError, match=r"continues from the last 2 value\(s\) of a sequence"):
            hmm.forecast(3, short)
    assert hmm.sample(6)[0].shape == (6, 1)


def test_gaps_are_not_imputed(oscillators):
    with pytest.raises(ValueError, match=r"Autoregressive cannot impute missing values \(5 steps have some\)"):
        oscillators[0].posterior_.impute()


def test_pictures_do_without_a_density_of_single_values(oscillators):
    plots = pytest.importorskip("ihmm.plots")
    plots.overview(oscillators[0].posterior_)
    with pytest.raises(ValueError, match="a density that does not depend on past values"):
        plots.emissions(oscillators[0].posterior_)


def test_a_posterior_is_saved_and_loaded(oscillators, tmp_path):
    posterior = oscillators[0].posterior_
    posterior.save(tmp_path / "run")
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert loaded.model == posterior.model
    np.testing.assert_array_equal(loaded.data.values, posterior.data.values)
    np.testing.assert_array_equal(loaded.data.observations, posterior.data.observations)
    np.testing.assert_array_equal(loaded.forecast(3).y, posterior.forecast(3).y)


@pytest.mark.parametrize("dwell", [100, 1])
def test_one_state_is_split_into_the_dynamics_it_is_made_of(dwell):
    """Whether states last, so that stretches tell them apart, or change all the time, so that single steps must."""
    rng = np.random.default_rng(1)
    truth = np.repeat(rng.integers(3, size=2000 // dwell), dwell)
    slope, level = np.array([0.9, -0.9, 0.0])[truth], np.array([0.0, 0.0, 3.0])[truth]
    y = np.zeros(2000)
    for t in range(1, 2000):
        y[t] = slope[t] * y[t - 1] + level[t] + 0.3 * rng.normal()
    emission = choose("autoregressive", y[:, None])
    model = ihmm.Model(emission, ihmm.HDPPrior(stickiness=ihmm.BetaPrior(1, 1)))
    posterior = ihmm.sample(model, y, draws=10, tune=40, chains=1, init=1, seed=1, progress=False)
    assert np.median([np.sum(np.bincount(path) >= 20) for path in posterior.states[0]]) == 3  # small ones come and go


# Numbers


def harsh_series():
    rng = np.random.default_rng(4)
    steps = rng.normal(size=200)
    walk = np.cumsum(steps)
    return {
        "a random walk": walk,
        "far from zero": 1e6 + walk,
        "large": 1e6 * steps,
        "constant": np.full(200, 7.0),
        "a line": np.arange(200.0),
        "collinear": np.column_stack([walk, 2 * walk, steps]),
        "a constant column": np.column_stack([walk, np.full(200, -3.0)]),
    }


@pytest.mark.parametrize("name", harsh_series())
@pytest.mark.parametrize("sampler", [ihmm.ParticleGibbs(), ihmm.DirectAssignment()], ids=["particles", "direct"])
@pytest.mark.parametrize("scaled", [True, False])
def test_harsh_series_are_borne(name, sampler, scaled):
    y = harsh_series()[name]
    columns = y.reshape(len(y), -1)
    emission = choose("autoregressive", columns, 2) if scaled else Autoregressive(2, columns.shape[1])
    settings = {"draws": 4, "tune": 6, "chains": 1, "seed": 1, "init": 3, "progress": False}
    posterior = ihmm.sample(ihmm.Model(emission), y, sampler=sampler, **settings)
    for trace in posterior.traces.values():
        assert np.isfinite(trace).all()
    for draw in posterior:
        assert all(np.isfinite(field).all() for field in draw.phi)


def test_evidence_keeps_its_precision_far_from_zero_and_on_any_scale():
    y = some_rows(Autoregressive(1, 2), 20, seed=1)
    scales = np.array([1e-6, 1e6])
    both = np.tile(scales, 2)
    plain = Autoregressive(1, 2, coefficients=np.eye(2) / 2)
    scaled = Autoregressive(1, 2, 1e3 * scales, coefficients=np.eye(2) / 2, precision=scales**2, scale=scales**2)
    expected = plain.log_evidence(y) - 20 * np.log(scales).sum()
    assert scaled.log_evidence((y + 1e3) * both) == pytest.approx(expected, rel=1e-9)


def test_the_prior_chosen_for_a_series_is_on_its_scale():
    rng = np.random.default_rng(6)
    y = np.zeros((2000, 1))
    for t in range(1, 2000):
        y[t] = 0.9 * y[t - 1] + rng.normal()
    emission = choose("autoregressive", 50 + 3 * y)
    assert emission.scale[0] == pytest.approx(9, rel=0.1)
    assert emission.mean[0] == pytest.approx(50, rel=0.1)
    assert emission.precision[0] == pytest.approx(9, rel=0.1)
    assert choose("autoregressive", rng.normal(size=(30, 3)), 2).order == 2
    assert choose("autoregressive", np.array([[1.0], [NAN], [2.0]])).scale[0] > 0


# Settings and data


def test_settings_are_plain_and_survive_saving():
    emission = Autoregressive(2, 2, np.array([1, 2]), coefficients=np.zeros((2, 4)), precision=np.eye(4), scale=[1, 2])
    assert hash(emission) == hash(
        Autoregressive(2, 2, (1, 2), coefficients=np.zeros((2, 4)), precision=np.eye(4), scale=(1, 2))
    )
    assert _decode(json.loads(json.dumps(_encode(emission)))) == emission
    assert Autoregressive(2, coefficients=[0.5, 0.1]).coefficients == (0.5, 0.1)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"order": 0}, "order must be a whole number of at least 1, got 0"),
        ({"n_features": 0}, "n_features must be a whole number of at least 1, got 0"),
        ({"mean": [1.0]}, r"mean must be a finite number or numbers of shape \(2,\), got \[1.0\]"),
        ({"strength": 0.0}, "strength must be a positive number, got 0.0"),
        ({"coefficients": [0.5, 0.5]}, r"coefficients must be a finite number or numbers of shape \(2, 2\)"),
        ({"precision": [1.0, -1.0]}, "precision must be positive, and a matrix symmetric"),
        ({"dof": 1.0}, "dof must be above n_features − 1 = 1, got 1.0"),
        ({"scale": [[1.0, 2.0], [2.0, 1.0]]}, "scale must be positive, and a matrix symmetric and positive definite"),
    ],
)
def test_settings_are_checked(settings, said):
    with pytest.raises(ValueError, match=f"Autoregressive {said}"):
        Autoregressive(**{"order": 1, "n_features": 2} | settings)


@pytest.mark.parametrize(
    ("y", "said"),
    [
        (np.zeros(5), r"Autoregressive with n_features = 2 takes rows of that length, shape \(T, 2\); got one number"),
        (np.array([[0.0, 1.0], [np.inf, 0.0]]), r"finite values, got 1 rows with infinite ones \(first at t = 1\)"),
    ],
)
def test_data_are_checked(y, said):
    with pytest.raises(ValueError, match=said):
        ihmm.Model(Autoregressive(1, 2)).observe(y)
