"""The law of the logarithms is that of the family inside, so that a chain of logarithms is a chain of that family."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.integrate import quad

import ihmm
from ihmm.emissions import LogScale
from ihmm.model import on_additive_scale

HDP = ihmm.HDPPrior(ihmm.GammaPrior(1, 1), ihmm.GammaPrior(1, 1), 0.3)
LASTING = ihmm.durations.Geometric(1.0, 5.0, minimum=2)
FAMILIES = {
    "white": (ihmm.NoisyLevels(0, spread=2.0), HDP, None),
    "own scales and heavy tails": (ihmm.NoisyLevels(0, "own", "student-t", spread=2.0), HDP, None),
    "memory": (ihmm.NoisyLevels(1, spread=2.0), replace(HDP, stickiness=0.0), LASTING),
    "filtered": (ihmm.NoisyLevels(2, spread=2.0, filtered=True), HDP, None),
    "two columns": (ihmm.NoisyLevels(1, n_features=2, spread=2.0), replace(HDP, stickiness=0.0), LASTING),
    "autoregressive": (ihmm.Autoregressive(1), HDP, None),
}


def logarithms(n_columns: int, missing: bool) -> np.ndarray:
    rng = np.random.default_rng(3)
    states = np.repeat([0, 1, 0, 1], 15)
    y = np.array([[-1.0], [1.5]])[states] + rng.normal(0, 0.4, (60, n_columns))
    if missing:
        y[20:23] = np.nan
        y[40, 0] = np.nan
    return y if n_columns > 1 else y[:, 0]


@pytest.mark.parametrize("missing", [False, True], ids=["complete", "gaps"])
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_given_values_are_those_given_their_logarithms(name, missing):
    emission, prior, duration = FAMILIES[name]
    logs = logarithms(getattr(emission, "n_features", 1), missing)
    settings = {"draws": 30, "tune": 0, "chains": 1, "seed": 1, "init": 3, "moves": (), "progress": False}
    inside = ihmm.sample(ihmm.Model(emission, prior, duration), logs, **settings)
    outside = ihmm.sample(ihmm.Model(LogScale(emission), prior, duration), np.exp(logs), **settings)
    np.testing.assert_array_equal(outside.states, inside.states)
    np.testing.assert_allclose(outside.traces["concentration"], inside.traces["concentration"], rtol=1e-6)
    if not missing:  # the density of y is that of log y over y; the first values may be conditioned on
        jacobian = logs.reshape(60, -1)[outside.model.observe(np.exp(logs)).informative].sum()
        for found in (
            outside.traces["log_joint"] - inside.traces["log_joint"],
            outside.log_likelihood(np.exp(logs)) - inside.log_likelihood(logs),
        ):
            np.testing.assert_allclose(found, -jacobian, rtol=1e-6)


def test_densities_integrate_to_one():
    emission = LogScale(ihmm.NoisyLevels(0, "own", "student-t"))
    phi = emission.sample_prior(np.random.default_rng(2), 3)
    for k in range(3):
        total = quad(
            lambda x, k=k: np.exp(x + emission.log_density(np.array([np.exp(x)]), phi)[0, k]), -80, 80, limit=400
        )
        assert total[0] == pytest.approx(1.0, rel=1e-6)


def test_summaries_have_the_median_in_units_of_the_values():
    rng = np.random.default_rng(1)
    states = np.repeat([0, 1] * 10, 30)
    y = np.array([5.0, 80.0])[states] * np.exp(rng.normal(0, 0.4, 600))
    model = ihmm.Model(LogScale(ihmm.NoisyLevels(0, mean=3.0, spread=2.0)), HDP)
    posterior = ihmm.sample(model, y, draws=60, tune=60, chains=2, seed=1, progress=False)
    levels = posterior.levels()
    np.testing.assert_allclose(levels.centers, [5.0, 80.0], rtol=0.1)
    assert levels.center_name == "median"
    assert "median" in levels.table().columns
    assert posterior.check().criticisms == ()
    assert posterior.forecast(5).y.min() > 0
    assert "mean" not in posterior.summary().parameters
    assert np.exp(posterior.summary().phi.mean) == pytest.approx(
        np.median(posterior.summary().parameters["median"], 0), rel=0.1
    )
    np.testing.assert_allclose(np.isnan(posterior.impute().y).sum(), 0)


def test_missing_values_are_imputed_on_the_same_scale():
    rng = np.random.default_rng(1)
    y = 20.0 * np.exp(rng.normal(0, 0.3, 200))
    y[50:60] = np.nan
    for emission in (ihmm.NoisyLevels(0, mean=3.0), ihmm.NoisyLevels(1, mean=3.0, filtered=True)):
        posterior = ihmm.sample(
            ihmm.Model(LogScale(emission), HDP), y, draws=30, tune=30, chains=1, seed=1, progress=False
        )
        assert np.median(posterior.impute().y) == pytest.approx(20.0, rel=0.3)


def test_what_a_model_is_on_the_scale_of_its_noise():
    model = ihmm.Model(LogScale(ihmm.NoisyLevels(1, filtered=True)), HDP)
    data = model.observe(np.array([1.0, np.e, np.nan, np.e**2]))
    inner, logs = on_additive_scale(model, data)
    assert inner.emission == model.emission.emission
    np.testing.assert_allclose(logs.values, [0, 1, np.nan, 2])
    same = on_additive_scale(inner, logs)
    assert same == (inner, logs)


@pytest.mark.parametrize("values", [[1.0, 0.0, 2.0], [1.0, -3.0, 2.0]], ids=["zero", "negative"])
def test_values_must_be_positive(values):
    model = ihmm.Model(LogScale(ihmm.NoisyLevels()), HDP)
    with pytest.raises(ValueError, match=r"expects positive values, got 1 time step.* t = 1"):
        model.observe(np.array(values))


@pytest.mark.parametrize("inside", [ihmm.Normal, "levels", LogScale(ihmm.Normal()), ihmm.DPMixture(ihmm.Normal())])
def test_only_a_family_of_real_values_has_a_log_scale(inside):
    with pytest.raises(TypeError, match="LogScale takes"):
        LogScale(inside)


def test_runs_are_stored_and_loaded(tmp_path):
    y = np.exp(logarithms(1, missing=True))
    model = ihmm.Model(LogScale(ihmm.NoisyLevels(1, "own")), replace(HDP, stickiness=0.0), LASTING)
    posterior = ihmm.sample(model, y, draws=10, tune=5, chains=1, seed=1, store=tmp_path / "run", progress=False)
    loaded = ihmm.Posterior.load(tmp_path / "run")
    assert loaded.model == model
    np.testing.assert_array_equal(loaded.states, posterior.states)
