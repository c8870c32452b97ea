"""The tree for ArviZ: states that mean the same in every draw, and log-likelihoods for leave-one-out."""

import numpy as np
import pytest

import ihmm
from ihmm.emissions._parameters import fields
from ihmm.predictions import averages

RNG = np.random.default_rng(3)
PATH = np.repeat([0, 1, 0, 2, 1, 0], [40, 20, 30, 10, 20, 30])
MEANS = np.array([0.0, 4.0, 9.0])
Y = MEANS[PATH] + 0.4 * RNG.standard_normal(len(PATH))
MODEL = ihmm.Model(ihmm.Normal(mean=3, strength=0.1, rate=0.3), ihmm.HDPPrior(stickiness=ihmm.BetaPrior()))


def draw_some(model=MODEL, y=Y, init=PATH, **settings) -> ihmm.Posterior:
    settings = {"draws": 30, "tune": 5, "chains": 2, "seed": 1} | settings
    return ihmm.sample(model, y, init=init, progress=False, **settings)


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    return draw_some()


@pytest.fixture(scope="module")
def tree(posterior):
    return posterior.to_datatree()


def test_parameters_are_those_of_the_matching_state_of_every_draw(posterior, tree):
    found = posterior.summary()
    assert found.n_states == 3
    np.testing.assert_allclose(tree["posterior"]["mean"].mean(("chain", "draw")), MEANS, atol=0.3)
    for name in ("mean", "variance"):
        by_draw = found.parameters[name].reshape(2, 30, 3)
        known = np.isfinite(by_draw)
        np.testing.assert_array_equal(tree["posterior"][name].values[known], by_draw[known])
        assert tree["posterior"][name].dims == ("chain", "draw", "state")
    dwell = found.dwell.reshape(2, 30, 3)
    np.testing.assert_array_equal(tree["posterior"]["dwell"].values[np.isfinite(dwell)], dwell[np.isfinite(dwell)])
    np.testing.assert_allclose(tree["sample_stats"]["share"].sum("state"), 1)
    np.testing.assert_array_equal(tree["sample_stats"]["n_states"], posterior.n_states)


def test_transitions_lead_from_matching_states_to_matching_states(posterior, tree):
    rows = tree["posterior"]["transitions"]
    assert rows.dims == ("chain", "draw", "state", "to_state")
    assert np.all(rows.sum("to_state") <= 1 + 1e-12)
    mean = rows.mean(("chain", "draw")).values
    np.testing.assert_allclose(mean / mean.sum(axis=1, keepdims=True), posterior.summary().transitions, atol=0.02)


def test_a_state_that_a_draw_does_not_have_is_replaced_by_the_one_with_most_of_its_steps():
    path = np.repeat([0, 1, 0], [40, 2, 38])  # two steps, which some draws do not tell apart
    y = 1.6 * path + 0.5 * np.random.default_rng(4).standard_normal(len(path))
    found = draw_some(y=y, init=path, draws=60)
    tree = found.to_datatree(log_likelihood=False, posterior_predictive=False)
    missing = np.isnan(found.summary().dwell).reshape(2, 60, -1)
    means = tree["posterior"]["mean"].values
    assert missing.any(), "the case has no draw that lacks a state"
    assert np.isfinite(means).all()
    for c, d, j in np.argwhere(missing):
        draw = found.draws[c][d]
        most = np.bincount(draw.states[found.summary().states == j]).argmax()
        assert means[c, d, j] == fields(draw.phi)["mean"][most]


@pytest.mark.parametrize("durations", [False, True])
def test_log_likelihoods_are_those_of_a_step_given_all_others(durations):
    y = Y.copy()
    y[[3, 70, 71]] = np.nan
    law = ihmm.durations.Geometric(minimum=2)
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(), law) if durations else MODEL
    found = draw_some(model, y, draws=3)
    tree = found.to_datatree()
    scores = tree["log_likelihood"]["y"]
    assert tree["log_likelihood"].attrs["given"] == "all other steps"
    np.testing.assert_array_equal(scores["time"], np.setdiff1d(np.arange(len(y)), [3, 70, 71]))
    items = found.labelled_draws
    whole = averages.log_likelihood(model, found.data, items)
    for t in (0, 39, 40, 69, 72, len(y) - 1):
        without = y.copy()
        without[t] = np.nan
        expected = whole - averages.log_likelihood(model, model.observe(without), items)
        np.testing.assert_allclose(scores.sel(time=t).values.ravel(), expected.ravel(), rtol=1e-6)


@pytest.mark.parametrize(
    "model",
    [
        ihmm.Model(ihmm.Autoregressive(1), MODEL.prior),
        ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(), ihmm.durations.Poisson(2.0, 0.1)),
    ],
    ids=["past values", "long durations"],
)
def test_other_log_likelihoods_are_given_previous_steps_and_sum_to_that_of_the_series(model):
    found = draw_some(model, draws=3)
    tree = found.to_datatree()
    assert tree["log_likelihood"].attrs["given"] == "previous steps"
    by_draw = averages.log_likelihood(found.model, found.data, found.labelled_draws)
    np.testing.assert_allclose(tree["log_likelihood"]["y"].sum("time").values.ravel(), by_draw.ravel())


def test_replicated_series_have_the_law_of_the_data(tree):
    replicated = tree["posterior_predictive"]["y"]
    assert replicated.dims == ("chain", "draw", "time")
    assert replicated.shape == (2, 30, len(Y))
    near = np.abs(replicated.values[..., None] - MEANS).min(axis=-1)
    assert np.mean(near < 1.3) > 0.9  # also states never visited
    assert np.unique(replicated.values[:, :, 0]).size == 60


def test_long_series_have_fewer_draws(posterior, monkeypatch):
    monkeypatch.setattr("ihmm.datatree.MAX_CELLS", 2 * len(Y) * 10)
    monkeypatch.setattr("ihmm.datatree.LEAST_DRAWS", 5)
    short, whole = posterior.to_datatree(), posterior.to_datatree(posterior_predictive=False)
    assert short["log_likelihood"].sizes["draw"] == short["posterior_predictive"].sizes["draw"] == 10
    assert "posterior_predictive" not in whole.children
    np.testing.assert_array_equal(short["log_likelihood"]["draw"][[0, -1]], [0, 29])


def test_parameters_that_states_share_appear_once():
    model = ihmm.Model(
        ihmm.NoisyLevels(1, tails="student-t", spread=5.0), ihmm.HDPPrior(), ihmm.durations.Geometric(minimum=2)
    )
    tree = draw_some(model).to_datatree(log_likelihood=False, posterior_predictive=False)
    assert tree["posterior"]["scale"].dims == ("chain", "draw")
    assert tree["posterior"]["mean"].dims == ("chain", "draw", "state")
    rows = tree["posterior"]["transitions"]
    np.testing.assert_allclose(rows.sum("to_state"), 1)
    np.testing.assert_allclose(1 / (1 - np.diagonal(rows.values, axis1=2, axis2=3)), tree["posterior"]["dwell"])


def test_columns_and_symbols_have_names():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"left": Y, "right": -Y})
    model = ihmm.Model(ihmm.MultivariateNormal(2), MODEL.prior)
    tree = draw_some(model, frame, draws=4).to_datatree()
    assert tree["posterior"]["mean"].dims == ("chain", "draw", "state", "column")
    for group in ("posterior", "observed_data", "posterior_predictive"):
        assert tree[group]["column"].values.tolist() == ["left", "right"]
    tree = draw_some(ihmm.Model(ihmm.Categorical(3), MODEL.prior), PATH, draws=4).to_datatree()
    assert tree["posterior"]["probs"].dims == ("chain", "draw", "state", "symbol")


def test_states_have_their_names_and_dwell_times_are_in_seconds():
    timed = draw_some(draws=4, dt="2ms")
    named = timed.relabel(names={0: "closed"}).to_datatree(log_likelihood=False, posterior_predictive=False)
    steps = timed.summary().dwell.reshape(2, 4, -1)
    assert named["posterior"]["state"].values[0] == "closed"
    assert named["sample_stats"]["share"].sel(state="closed").shape == (2, 4)
    np.testing.assert_allclose(named["posterior"]["dwell"].sel(state="closed"), 0.002 * steps[:, :, 0])


def test_a_parameter_named_like_a_hyperparameter_keeps_apart():
    angles = np.angle(np.exp(1j * (Y - 4)))
    tree = draw_some(ihmm.Model(ihmm.VonMises(), MODEL.prior), angles, draws=4).to_datatree()
    assert tree["posterior"]["concentration"].dims == ("chain", "draw")
    assert tree["posterior"]["emission_concentration"].dims == ("chain", "draw", "state")


@pytest.mark.slow
def test_a_hyperparameter_is_there_once():
    """Without stickiness, the mass tied to β is all there is."""
    plain = ihmm.Model(ihmm.Normal(mean=3, strength=0.1, rate=0.3), ihmm.HDPPrior())
    assert {"alpha", "concentration"} & set(draw_some(plain).to_datatree()["posterior"]) == {"concentration"}


def test_arviz_summarises_and_scores_the_tree_without_a_warning():
    pytest.importorskip("xarray_einstats", reason="the part of arviz-stats that reads trees needs it")
    import arviz_stats

    model = ihmm.Model(ihmm.NormalMean(0.5, scale=2), ihmm.HDPPrior(0.1, ihmm.GammaPrior(1, 0.001), ihmm.BetaPrior()))
    recording = ihmm.datasets.four_state(length=400)
    tree = draw_some(model, recording.y, recording.states, draws=300, tune=50).to_datatree()
    summary = arviz_stats.summary(tree)  # a warning is an error here
    assert {"mean[0]", "dwell[1]", "transitions[0, 2]", "concentration"} <= set(summary.index)
    assert "gamma" not in summary.index  # it is fixed
    loo = arviz_stats.loo(tree)
    assert loo.n_data_points == 400
    assert loo.elpd < float(tree["log_likelihood"]["y"].sum("time").mean())


def test_arviz_draws_traces_of_the_tree_without_a_warning(tree):
    pytest.importorskip("matplotlib")
    try:
        import arviz_plots
    except (ImportError, AttributeError) as error:  # the second with a version of matplotlib that it does not support
        pytest.skip(f"arviz-plots cannot be imported: {error}")
    drawn = arviz_plots.plot_trace_dist(tree, backend="matplotlib")
    assert {"mean", "variance", "dwell", "concentration"} <= set(drawn.viz["trace"].data_vars)
