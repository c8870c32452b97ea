"""`DPMixture`: every state emits from Σ_c ψ_c f(y|θ_c), ψ ~ GEM(σ)."""

import numpy as np
import pytest
from scipy import stats

import ihmm
import ihmm.model
import ihmm.samplers
from ihmm.emissions import Categorical, DPMixture, MultivariateNormal, Normal, Poisson
from ihmm.emissions._mixture_parameters import MixturePhi
from ihmm.emissions._parameters import fields, join, size, take
from ihmm.emissions.normal import NormalPhi
from ihmm.gibbs import initial_draw, sweep
from ihmm.moves.mixture import group, separate
from ihmm.sticks import extend_phi
from ihmm.trajectory import Trajectory
from reference.verdicts import assert_follows, assert_mean

NORMAL = Normal(mean=0.0, strength=0.5, shape=2.0, rate=1.0)
EMISSION = DPMixture(NORMAL, 1.5, threshold=0.1)
PHI = MixturePhi(  # the second state has two components only
    weights=np.array([[0.5, 0.2, 0.04], [0.9, 0.06, 0.0]]),
    rest=np.array([0.26, 0.04]),
    sigma=np.array([1.5, 1.5]),
    component=NormalPhi(np.array([[0.0, 2.0, 5.0], [-3.0, 1.0, 0.0]]), np.array([[1.0, 0.5, 2.0], [1.0, 0.3, 0.0]])),
)
Y = np.array([-3.0, 0.1, 1.9, 5.2, 0.7])


def by_hand(weigh, y=Y, phi=PHI):
    """Σ_c weigh(ψ_kc, t) f(y_t|θ_kc), (T, K), one term at a time."""
    out = np.zeros((len(y), len(phi.rest)))
    for (k, c), weight in np.ndenumerate(phi.weights):
        for t in range(len(y)):
            if weight > 0:
                law = stats.norm(phi.component.mean[k, c], np.sqrt(phi.component.variance[k, c]))
                out[t, k] += weigh(weight, t) * law.pdf(y[t])
    return out


def levels(n=400, seed=3):
    """Two sticky states: two bumps, that alternate at random, and one."""
    rng = np.random.default_rng(seed)
    states = np.repeat(np.arange(n // 50) % 2, 50)
    return np.where(states == 0, rng.choice([-3.0, 0.0], n), 4.0) + 0.4 * rng.standard_normal(n), states


# Densities


def test_the_density_is_that_of_the_components_and_of_a_new_one():
    expected = by_hand(lambda weight, t: weight) + PHI.rest * np.exp(NORMAL.log_marginal(Y))[:, None]
    table = EMISSION.log_density(Y, PHI)
    np.testing.assert_allclose(np.exp(table), expected, rtol=1e-12)
    states = np.array([0, 1, 1, 0, 1])
    np.testing.assert_allclose(EMISSION.log_density_at(Y, states, PHI), table[np.arange(5), states], rtol=1e-12)


def test_given_slices_common_components_have_their_weight_and_rare_ones_the_threshold_if_in_the_slice():
    states, components = np.array([1, 0, 0, 0, 1]), np.array([0, 1, 1, 2, 1])
    sliced, phi = EMISSION.sliced(np.random.default_rng(1), Y, states, components, PHI)
    assert (sliced.slices <= np.minimum(PHI.weights[states, components] / 0.1, 1)).all()
    assert (phi.rest <= 0.1 * sliced.slices.min()).all()

    def weigh(weight, t):
        return weight if weight >= 0.1 else 0.1 * (weight >= 0.1 * sliced.slices[t])

    np.testing.assert_allclose(np.exp(sliced.log_density(np.arange(5), phi)), by_hand(weigh, phi=phi), rtol=1e-10)
    part = sliced.log_density(np.arange(2, 4), phi)
    np.testing.assert_allclose(part, sliced.log_density(np.arange(5), phi)[2:4], rtol=1e-12)


def test_components_are_drawn_in_proportion_to_their_terms():
    states, components = np.array([1, 0, 0, 0, 1]), np.array([0, 1, 1, 2, 1])
    rng = np.random.default_rng(2)
    sliced, phi = EMISSION.sliced(rng, Y, states, components, PHI)
    drawn = np.array([sliced.assign(rng, states, phi) for _ in range(4000)])
    for t in range(5):
        weight = phi.weights[states[t]]
        odds = np.where(weight >= 0.1, weight, 0.1 * (weight >= 0.1 * sliced.slices[t])) * (weight > 0)
        real = odds > 0
        theta = take(phi.component, (states[t], np.flatnonzero(real)))
        odds[real] *= np.exp(NORMAL.log_density(Y[t : t + 1], theta)[0])
        for c in np.flatnonzero(odds > 1e-3 * odds.sum()):
            assert np.mean(drawn[:, t] == c) == pytest.approx(odds[c] / odds.sum(), abs=0.04)
        assert not np.isin(drawn[:, t], np.flatnonzero(~real)).any()


def test_a_state_without_components_is_a_new_one():
    phi = MixturePhi(np.zeros((1, 1)), np.ones(1), np.ones(1), NormalPhi(np.zeros((1, 1)), np.zeros((1, 1))))
    np.testing.assert_allclose(EMISSION.log_density(Y, phi)[:, 0], NORMAL.log_marginal(Y), rtol=1e-12)
    assert np.isfinite(EMISSION.sample_observations(np.random.default_rng(0), np.zeros(9, np.int64), phi)).all()


# Draws


@pytest.mark.parametrize("sigma", [0.3, 4.0])
def test_sticks_are_those_of_a_dirichlet_process(sigma):
    phi = DPMixture(NORMAL, sigma).sample_prior(np.random.default_rng(4), 4000)
    assert (phi.rest <= 1e-3).all()
    np.testing.assert_allclose(phi.weights.sum(axis=1) + phi.rest, 1, rtol=1e-12)
    assert_follows(phi.weights[:, 0], stats.beta(1, sigma).cdf)  # in order of breaking
    assert_mean((phi.weights**2).sum(axis=1), 1 / (1 + sigma))
    assert_follows(phi.component.variance[:, 0], stats.invgamma(2, scale=1).cdf)


def test_sticks_broken_further_keep_what_was_known():
    phi = EMISSION._deepen(np.random.default_rng(5), PHI, 1e-5)
    assert (phi.rest <= 1e-5).all()
    np.testing.assert_allclose(phi.weights.sum(axis=1) + phi.rest, 1, rtol=1e-12)
    for before, after in zip(fields(PHI).values(), fields(phi).values(), strict=True):
        if before.ndim > 1:
            np.testing.assert_array_equal(after[:, :3], before)


def test_observations_of_states_from_the_prior_have_the_marginal_law():
    rng = np.random.default_rng(6)
    y = EMISSION.sample_observations(rng, np.arange(20_000), EMISSION.sample_prior(rng, 20_000))
    assert_follows(y, stats.t(4, scale=np.sqrt(1.5)).cdf)  # rate (1 + 1/strength) / shape


def test_observations_follow_the_mixture_of_their_state():
    certain = PHI._replace(weights=np.array([[0.7, 0.3, 0.0], [1.0, 0.0, 0.0]]), rest=np.full(2, 1e-300))
    y = EMISSION.sample_observations(np.random.default_rng(8), np.zeros(40_000, np.int64), certain)
    assert_follows(y, lambda x: 0.7 * stats.norm.cdf(x, 0, 1) + 0.3 * stats.norm.cdf(x, 2, np.sqrt(0.5)))


def test_states_share_one_concentration_fresh_ones_too():
    emission = DPMixture(NORMAL, ihmm.GammaPrior(1, 1))
    rng = np.random.default_rng(9)
    data = ihmm.Model(emission).observe(Y)
    draw = initial_draw(rng, data, ihmm.Model(emission), np.array([0, 1, 1, 0, 2]))
    sliced, phi = emission.sliced(rng, data.y, draw.states, draw.components, draw.phi)
    for family in (emission, sliced):
        fresh = extend_phi(family, np.uint64(3), phi, 40)
        assert size(fresh) >= 40
        assert np.unique(fresh.sigma).size == 1
        again = extend_phi(family, np.uint64(3), phi, 4)
        np.testing.assert_array_equal(again.rest, fresh.rest[: size(again)])


def test_states_with_fewer_components_than_others_are_joined():
    both = join(PHI, DPMixture(NORMAL, 1.5).sample_prior(np.random.default_rng(1), 2))
    assert both.weights.shape == both.component.mean.shape
    np.testing.assert_array_equal(both.weights[:2, :3], PHI.weights)
    assert not both.weights[:2, 3:].any()
    np.testing.assert_allclose(EMISSION.log_density(Y, take(both, slice(0, 2))), EMISSION.log_density(Y, PHI))


def test_prior_density_is_that_of_the_sticks_and_the_components():
    left = np.array([[1.0, 0.5, 0.3], [1.0, 0.1, 0.1]])
    broken = PHI.weights / left
    sticks = np.where(PHI.weights > 0, stats.beta.logpdf(np.where(PHI.weights > 0, broken, 0.5), 1, 1.5), 0)
    sticks -= np.where(PHI.weights > 0, np.log(left), 0)
    real = np.nonzero(PHI.weights)
    components = np.zeros((2, 3))
    components[real] = NORMAL.log_prior(take(PHI.component, real))
    np.testing.assert_allclose(EMISSION.log_prior(PHI), (sticks + components).sum(axis=1), rtol=1e-10)


# Moves


def test_components_taken_apart_and_group_are_as_before_where_nothing_is_gained():
    y, states = levels()
    y[60:63] = np.nan
    model = ihmm.Model(DPMixture(NORMAL))
    data = model.observe(y)
    components = np.where(np.isnan(y), -1, (y > -1.5) & (states == 0))
    path = ihmm.samplers.StateUpdate(Trajectory(states), np.array([0.5, 0.4, 0.1]), None, components)
    observed = ~np.isnan(y)
    apart, before = separate(path, observed)
    np.testing.assert_array_equal(np.stack(before), [[0, 0, 1], [0, 1, 0]])
    assert len(apart.beta) == 4
    assert apart.beta[:-1].sum() == pytest.approx(0.9)
    hyper = ihmm.model.Hyper(1.0, 5.0, 0.5)
    state, place, beta = group(apart, data, hyper, 1.0, observed, most=10)
    np.testing.assert_array_equal(state, before[0])
    np.testing.assert_array_equal(place, before[1])
    np.testing.assert_allclose(beta, path.beta)
    state, place, beta = group(apart, data, hyper, 1.0, observed, most=1)
    np.testing.assert_array_equal(np.stack([state, place]), [[0, 0, 0], [0, 1, 2]])
    np.testing.assert_allclose(beta, [0.9, 0.1])


def test_components_are_grouped_in_the_first_tuning_sweeps_and_only_those_of_mixtures():
    move = ihmm.GroupComponents(sweeps=3)
    assert [move.acts(i, 10) for i in range(5)] == [True, True, True, False, False]
    assert not move.acts(1, 1)
    model = ihmm.Model(NORMAL)
    path = ihmm.samplers.StateUpdate(Trajectory(np.array([0, 1, 1, 0, 0])), np.array([0.5, 0.4, 0.1]))
    rng = np.random.default_rng(0)
    assert move.apply(rng, model.observe(Y), model, path, ihmm.model.Hyper(1.0, 1.0, 0.0))[0] is path
    with pytest.raises(ValueError, match="GroupComponents sweeps must be a whole number of at least 0, got -1"):
        ihmm.GroupComponents(sweeps=-1)


def test_a_finite_model_never_gets_more_states_than_it_has():
    y, _ = levels()
    model = ihmm.Model(DPMixture(NORMAL), ihmm.FinitePrior(2, gamma=None))
    posterior = ihmm.sample(
        model, y, sampler=ihmm.Blocked(), draws=5, tune=10, chains=1, seed=1, progress=False, save_warmup=True
    )
    assert posterior.warmup.n_states.max() <= 2


def test_two_bumps_are_two_states_for_a_normal_and_one_for_a_mixture():
    y, states = levels(1000)
    found = {}
    for emission in ("normal", "mixture"):
        settings = {"draws": 30, "tune": 100, "chains": 1, "random_state": 1, "progress": False}
        found[emission] = ihmm.InfiniteHMM(emission, **settings).fit(y)
    assert found["normal"].n_states_ >= 3
    assert found["mixture"].n_states_ == 2
    assert np.mean(found["mixture"].labels_ == states) in (0.0, 1.0)
    assert found["mixture"].n_components_.max().round() >= 2  # and small ones come and go


# What a posterior is asked


@pytest.fixture(scope="module")
def posterior():
    y, _ = levels()
    y[100:103] = np.nan
    model = ihmm.Model(DPMixture(Normal(0.0, 0.01, 2.0, 0.2)), ihmm.HDPPrior(stickiness=ihmm.BetaPrior()))
    return ihmm.sample(model, y, draws=30, tune=20, chains=2, seed=1, progress=False)


def assert_same(one, other):
    np.testing.assert_array_equal(one.states, other.states)
    for a, b in zip(one, other, strict=True):
        for x, y in zip(fields(a.phi).values(), fields(b.phi).values(), strict=True):
            np.testing.assert_array_equal(x, y)


def test_what_was_saved_is_read(posterior, tmp_path):
    posterior.save(tmp_path / "run")
    assert_same(ihmm.Posterior.load(tmp_path / "run"), posterior)


def test_a_run_that_goes_on_has_the_same_draws(posterior, tmp_path):
    settings = {"tune": 20, "chains": 2, "seed": 1, "progress": False}
    ihmm.sample(posterior.model, posterior.data.values, draws=11, store=tmp_path / "run", **settings)
    assert_same(ihmm.resume(tmp_path / "run", draws=30, progress=False), posterior)


def test_the_trace_of_the_concentration_is_kept(posterior):
    assert posterior.traces["sigma"].shape == (2, 30)
    assert posterior.traces["sigma"][1, 7] == posterior.draws[1][7].phi.sigma[0]
    assert "sigma" in posterior.to_datatree()["posterior"]


def test_new_observations_are_predicted(posterior):
    y, states = levels(100, seed=4)
    bumps = 0.5 * stats.norm.pdf(y, -3, 0.4) + 0.5 * stats.norm.pdf(y, 0, 0.4)
    truth = np.log(np.where(states == 0, bumps, stats.norm.pdf(y, 4, 0.4))).sum()  # but for the transitions
    assert posterior.log_likelihood(y)[0] == pytest.approx(truth, abs=12)
    np.testing.assert_allclose(posterior.filter(y).sum(axis=1), 1)
    assert posterior.forecast(5).y.shape == (60, 5)
    imputed = posterior.impute()
    assert imputed.steps.tolist() == [100, 101, 102]
    assert np.isfinite(imputed.y).all()


def test_the_summary_has_moments_of_the_whole_mixture(posterior):
    found = posterior.summary()
    y, labels = posterior.data.values, found.states
    for k in range(found.n_states):
        here = y[(labels == k) & np.isfinite(y)]
        assert np.nanmean(found.parameters["mean"][:, k]) == pytest.approx(here.mean(), abs=0.2)
        assert np.nanmedian(found.parameters["variance"][:, k]) == pytest.approx(here.var(), rel=0.3)
    grid = np.linspace(-6, 8, 2000)
    total = np.exp(posterior.model.emission.log_density(grid, found.phi)).sum(axis=0) * (grid[1] - grid[0])
    np.testing.assert_allclose(total, 1, atol=0.02)


def test_it_is_drawn_and_reported(posterior, tmp_path):
    ihmm.plots.overview(posterior)
    page = ihmm.report.write(posterior, tmp_path / "page.html")
    assert "large: many components" in page.read_text("utf-8")


def test_rows_with_gaps_are_completed_by_the_component_they_belong_to():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 2, 300)
    y = np.column_stack([kind * 10.0, kind * 20.0]) + rng.standard_normal((300, 2))
    y[:30, 1] = np.nan
    model = ihmm.Model(DPMixture(MultivariateNormal(2, strength=0.01)))
    found = ihmm.sample(model, y, draws=20, tune=20, chains=1, seed=1, progress=False)
    np.testing.assert_allclose(found.impute().mean[:, 1], kind[:30] * 20.0, atol=2)
    ihmm.plots.emissions(found, column=1)


# Components of any family, and extremes


class Rates:
    """Counts whose rate moves by Metropolis' steps: no base class, no evidence, φ a plain array."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        return stats.poisson.logpmf(y[:, None], phi)

    def sample_prior(self, rng, n):
        return rng.gamma(2.0, 2.0, n)

    def resample(self, rng, y, states, n_states):
        return rng.gamma(2.0, 2.0, n_states)

    def update(self, rng, y, states, phi):
        proposed = phi * np.exp(0.5 * rng.standard_normal(len(phi)))
        gain = self.log_prior(proposed) - self.log_prior(phi) + np.log(proposed / phi)
        change = stats.poisson.logpmf(y, proposed[states]) - stats.poisson.logpmf(y, phi[states])
        gain += np.bincount(states, change, len(phi))
        return np.where(np.log(rng.random(len(phi))) < gain, proposed, phi)

    def sample_observations(self, rng, states, phi):
        return rng.poisson(phi[states]).astype(float)

    def log_prior(self, phi):
        return stats.gamma(2.0, scale=2.0).logpdf(phi)


@pytest.mark.parametrize(
    ("component", "y"),
    [
        (Rates(), np.repeat([2, 9, 2], 20)),
        (Poisson(), np.repeat([2, 9, 2], 20)),
        (Categorical(3), np.repeat([0, 1, 2], 20)),
        (MultivariateNormal(2, covariance="diagonal"), np.random.default_rng(0).normal(size=(60, 2))),
    ],
    ids=["Metropolis", "Poisson", "Categorical", "MultivariateNormal"],
)
def test_components_of_any_family(component, y):
    found = ihmm.sample(ihmm.Model(DPMixture(component)), y, draws=8, tune=8, chains=1, seed=1, progress=False)
    assert np.isfinite(found.traces["log_joint"]).all()
    assert found.draws[0].traces["sigma"].min() > 0
    assert found.summary().n_states >= 1
    assert len(found.forecast(3).y) == 8


EXTREMES = {
    "constant": (np.full(60, 3.0), 1.0),
    "outliers": (np.append(np.linspace(-1, 1, 60), [1e6, -1e6]), ihmm.GammaPrior()),
    "two steps": (np.array([0.0, 1.0]), ihmm.GammaPrior()),
    "hardly any component": (np.linspace(-1, 1, 60), 1e-6),
    "many components": (np.linspace(-1, 1, 60), 100.0),
    "anything goes": (np.linspace(-1, 1, 60), ihmm.GammaPrior(0.01, 0.01)),
}


@pytest.mark.parametrize("sampler", [ihmm.ParticleGibbs(), ihmm.ParticleGibbs(5, "prior"), ihmm.Beam()], ids=repr)
@pytest.mark.parametrize(("y", "concentration"), EXTREMES.values(), ids=EXTREMES)
def test_extremes(y, concentration, sampler):
    model = ihmm.Model(DPMixture(NORMAL, concentration))
    rng, data = np.random.default_rng(1), model.observe(y)
    draw = initial_draw(rng, data, model, rng.integers(3, size=len(y)))
    for _ in range(12):
        draw, info = sweep(rng, data, model, draw, sampler, [ihmm.GroupComponents()])
        assert np.isfinite(info.log_joint)
        assert all(np.isfinite(array).all() for array in fields(draw.phi).values())
        np.testing.assert_allclose(draw.phi.weights.sum(axis=1) + draw.phi.rest, 1, rtol=1e-9)
        assert (draw.phi.weights[draw.states, draw.components] > 0).all()


# Errors


@pytest.mark.parametrize("bad", [0, -1.0, np.nan, "1", None, True])
def test_the_concentration_must_be_positive(bad):
    with pytest.raises(
        ValueError, match=r"DPMixture concentration \(a number fixes it.*must be a positive number, got"
    ):
        DPMixture(NORMAL, bad)


@pytest.mark.parametrize("bad", [0, 1.0, -0.1, np.nan, "1"])
def test_the_threshold_must_lie_between_zero_and_one(bad):
    with pytest.raises(ValueError, match="DPMixture threshold must be"):
        DPMixture(NORMAL, 1.0, bad)


def test_components_must_be_emissions():
    with pytest.raises(TypeError, match=r"component must be an instance, got the class; call it: Normal\(…\)"):
        DPMixture(Normal)
    with pytest.raises(TypeError, match=r"such as ihmm.Normal\(\), got 3, which does not define validate"):
        DPMixture(3)
    with pytest.raises(TypeError, match="a mixture of its own already"):
        DPMixture(DPMixture(Normal()))


def test_it_cannot_be_integrated_out():
    with pytest.raises(TypeError, match="DirectAssignment integrates φ out, which DPMixture does not support"):
        ihmm.sample(ihmm.Model(EMISSION), Y, sampler=ihmm.DirectAssignment(), progress=False)
