"""InfiniteHMM: scikit-learn's estimator checks, hmmlearn's names, and the supported inputs."""

import os
import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import xarray as xr
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import ihmm
from ihmm import InfiniteHMM

QUICK = {"draws": 30, "tune": 30, "chains": 1, "random_state": 0}


def quick(**settings) -> InfiniteHMM:
    return InfiniteHMM(**(QUICK | settings))


def series(length=300, seed=0) -> np.ndarray:
    """Two levels, (length, 1)."""
    rng = np.random.default_rng(seed)
    level = np.repeat(rng.permutation(np.tile([0.0, 4.0], length // 40 + 1)), 20)[:length]
    return (level + rng.normal(0, 0.5, length)).reshape(-1, 1)


@pytest.fixture(scope="module")
def fitted() -> InfiniteHMM:
    return quick(draws=60, chains=2).fit(series())


@parametrize_with_checks([InfiniteHMM(draws=5, tune=5, chains=1)])
def test_scikit_learns_checks(estimator, check):
    check(estimator)


# Fitted attributes


def test_attributes_have_hmmlearns_names_and_shapes(fitted):
    assert fitted.n_states_ == 2
    assert fitted.startprob_.shape == (2,)
    assert fitted.transmat_.shape == (2, 2)
    np.testing.assert_allclose(fitted.transmat_.sum(axis=1), 1)
    np.testing.assert_allclose(fitted.startprob_.sum(), 1)
    np.testing.assert_allclose(np.sort(fitted.means_.ravel()), [0, 4], atol=0.15)
    assert fitted.means_.shape == (2, 1)
    assert fitted.covars_.shape == (2, 1, 1)
    np.testing.assert_allclose(fitted.covars_.ravel(), 0.25, atol=0.08)
    assert fitted.labels_.shape == (300,)
    assert fitted.n_features_in_ == 1
    assert isinstance(fitted.posterior_, ihmm.Posterior)
    assert fitted.posterior_.summary().n_states == 2


@pytest.mark.parametrize(
    ("emission", "X", "shapes"),
    [
        ("auto", np.random.default_rng(0).integers(3, size=60), {"emissionprob_": 3}),
        ("poisson", np.random.default_rng(0).poisson(20, 60), {"lambdas_": 1}),
        ("normal", np.random.default_rng(0).normal(size=(60, 3)), {"means_": 3}),
        ("bernoulli", np.random.default_rng(0).integers(2, size=60), {"emissionprob_": 1}),
        ("bernoulli", np.random.default_rng(0).integers(2, size=(60, 4)), {"emissionprob_": 4}),
        ("multinomial", np.random.default_rng(0).integers(9, size=(60, 3)), {"emissionprob_": 3}),
        (
            ihmm.Independent(ihmm.Categorical(3), speed=ihmm.Normal()),
            np.random.default_rng(0).integers(3, size=(60, 2)),
            {"categorical_probs_": 3, "speed_mean_": 1, "speed_variance_": 1},
        ),
        (ihmm.NormalMean(1.0), np.random.default_rng(0).normal(size=60), {"means_": 1}),
        (
            ihmm.NoisyLevels(n_features=3, correlated=True),
            np.random.default_rng(0).normal(size=(60, 3)),
            {"means_": 3, "regression_": 3},
        ),
    ],
)
def test_attributes_of_every_family(emission, X, shapes):
    model = quick(emission=emission).fit(X)
    for name, width in shapes.items():
        assert getattr(model, name).shape == (model.n_states_, width)
    if "means_" in shapes and X.shape[1:] == (3,):
        assert model.covars_.shape == (model.n_states_, 3, 3)


@pytest.mark.parametrize(
    ("emission", "name"),
    [
        ("von-mises", "direction_"),
        (ihmm.Independent(heading=ihmm.VonMises(), speed=ihmm.Normal()), "heading_direction_"),
    ],
)
def test_directions_are_averaged_on_the_circle(emission, name):
    rng = np.random.default_rng(0)
    X = rng.vonmises(np.pi, 8.0, (80, 1))
    X = X if emission == "von-mises" else np.column_stack([X, rng.normal(size=80)])
    model = quick(emission=emission).fit(X)
    assert np.cos(getattr(model, name)[0, 0]) < -0.95


def test_one_seed_determines_all_results():
    X = series()
    first, again, other = (quick(random_state=s).fit(X) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.posterior_.states, again.posterior_.states)
    np.testing.assert_array_equal(first.predict_proba(X), again.predict_proba(X))
    assert first.score(X) == again.score(X)
    assert first.posterior_.seed != other.posterior_.seed


# Methods


def test_predictions_are_consistent(fitted):
    X = series(seed=5)
    proba = fitted.predict_proba(X)
    assert proba.shape == (300, 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(fitted.predict(X), proba.argmax(axis=1))
    np.testing.assert_array_equal(fitted.transform(X), proba)
    assert fitted.filter(X).shape == (300, 2)
    log_probability, path = fitted.decode(X)
    assert np.mean(path == fitted.predict(X)) > 0.98
    assert log_probability < fitted.score(X)  # one state sequence of many
    low = fitted.means_.ravel().argmin()
    assert np.mean((fitted.predict(X) == low) == (X.ravel() < 2)) > 0.98


def test_decode_is_viterbi_under_the_posterior_means():
    X = series(5, seed=5)
    fitted = quick(emission="normal").fit(series())
    log_probability, path = fitted.decode(X)
    log_density = fitted.posterior_.model.emission.log_density(X.ravel(), fitted.posterior_.summary().phi)
    value = np.log(fitted.startprob_[path[0]]) + log_density[np.arange(5), path].sum()
    value += np.log(fitted.transmat_[path[:-1], path[1:]]).sum()
    assert log_probability == pytest.approx(value)


def test_score_is_the_held_out_log_likelihood_of_all_series(fitted):
    X = series(seed=5)
    both = fitted.score(X, lengths=[100, 200])
    assert both == pytest.approx(fitted.score(X[:100]) + fitted.score(X[100:]))
    assert both == pytest.approx(fitted.posterior_.log_likelihood([X[:100], X[100:]]).sum())


def test_samples_follow_the_model(fitted):
    X, states = fitted.sample(500, random_state=1)
    assert X.shape == (500, 1)
    assert states.shape == (500,)
    again, _ = fitted.sample(500, random_state=1)
    np.testing.assert_array_equal(X, again)
    for k in range(2):
        assert X[states == k].mean() == pytest.approx(fitted.means_[k, 0], abs=0.3)


def test_forecasts(fitted):
    assert fitted.forecast(7).y.shape == (120, 7)
    last = series(20, seed=5)
    assert fitted.forecast(1, last).mean[0] == pytest.approx(last[-1, 0], abs=1.5)


def test_methods_need_a_fit():
    for method in ("predict", "predict_proba", "score", "decode", "filter", "transform"):
        with pytest.raises(NotFittedError):
            getattr(InfiniteHMM(), method)(series())
    for method in (InfiniteHMM().sample, lambda: InfiniteHMM().forecast(3)):
        with pytest.raises(NotFittedError):
            method()


# Inputs


@pytest.mark.parametrize(
    "convert",
    [
        lambda X: X,
        lambda X: X.ravel(),
        lambda X: X.tolist(),
        lambda X: X.ravel().tolist(),
        lambda X: [X],
        lambda X: pd.Series(X.ravel()),
        lambda X: pd.DataFrame(X, columns=["current"]),
        lambda X: pl.Series(X.ravel()),
        lambda X: pl.DataFrame({"current": X.ravel()}),
    ],
    ids=["array", "1-D", "rows", "list", "list of arrays", "pd.Series", "pd.DataFrame", "pl.Series", "pl.DataFrame"],
)
def test_one_series_of_any_type(convert):
    X = series(100)
    expected = quick().fit(X)
    model = quick().fit(convert(X))
    np.testing.assert_array_equal(model.posterior_.states, expected.posterior_.states)
    np.testing.assert_array_equal(model.predict(convert(X)), expected.predict(X))


@pytest.mark.parametrize(
    "convert", [lambda x: x, lambda x: x.ravel(), lambda x: pd.DataFrame(x), lambda x: pl.Series(x.ravel())]
)
def test_several_series(convert):
    parts = [series(60), series(40, seed=1)]
    together = quick().fit(np.concatenate(parts), lengths=[60, 40])
    model = quick().fit([convert(part) for part in parts])
    np.testing.assert_array_equal(model.posterior_.states, together.posterior_.states)
    assert model.posterior_.lengths.tolist() == [60, 40]
    np.testing.assert_array_equal(
        model.predict_proba([convert(part) for part in parts]),
        together.predict_proba(np.concatenate(parts), lengths=[60, 40]),
    )


def test_feature_names_are_checked():
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)), columns=["x", "y"])
    model = quick().fit(frame)
    assert model.feature_names_in_.tolist() == ["x", "y"]
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"x": "z"}))


def test_lengths_as_second_argument_are_recognised(fitted):
    X = series()
    for call in (lambda: quick().fit(X, [100, 200]), lambda: fitted.score(X, [100, 200])):
        with pytest.raises(ValueError, match=r"looks like the lengths .* fit\(X, lengths=lengths\)"):
            call()
    quick().fit(X, np.zeros(300, int))  # a y is ignored
    with pytest.raises(ValueError, match=r"reshape it to \(-1, 1\)"):
        quick().fit(X.ravel(), np.zeros(300, int))


@pytest.mark.parametrize("lengths", [[100, 100], [0, 300], [-1, 301], [100.0, 200.0], "x", [], [[300]]])
def test_lengths_must_sum_to_the_number_of_rows(lengths):
    with pytest.raises(ValueError, match="lengths must be positive integers that sum to the 300 rows"):
        quick().fit(series(), lengths=lengths)


def test_lengths_cannot_be_combined_with_a_list():
    with pytest.raises(ValueError, match="X is a list of series"):
        quick().fit([series(60), series(40)], lengths=[60, 40])


def test_missing_values(fitted):
    X = series()
    X[50:60] = np.nan
    model = quick().fit(X)
    assert model.n_states_ == 2
    assert np.isfinite(model.predict_proba(X)).all()
    assert np.isfinite(model.score(X))
    rows = np.random.default_rng(0).normal(size=(50, 2))
    rows[3, 0], rows[7] = np.nan, np.nan
    model = quick().fit(rows)
    assert model.posterior_.impute().steps.tolist() == [3, 7]
    np.testing.assert_array_equal(model.posterior_.impute().y[:, 0, 1], rows[3, 1])


@pytest.mark.parametrize("sticky", [True, False, 0.9])
def test_stickiness(sticky):
    model = quick(sticky=sticky, emission="normal").fit(series(60))
    assert model.posterior_.model.prior.stickiness == (ihmm.BetaPrior(1, 1) if sticky is True else sticky)


@pytest.mark.parametrize("sticky", [1.0, -0.1, "yes", None])
def test_stickiness_out_of_range(sticky):
    with pytest.raises(ValueError, match="sticky"):
        quick(sticky=sticky).fit(series(60))


# With scikit-learn's tools


def test_pipeline_cross_validation_and_grid_search():
    X = series()
    pipeline = make_pipeline(StandardScaler(), quick())
    assert pipeline.fit(X).predict(X).shape == (300,)
    parts = [series(80, seed=s) for s in range(4)]
    scores = cross_val_score(quick(), parts, cv=2)
    assert np.isfinite(scores).all()
    search = GridSearchCV(quick(), {"sticky": [False, True]}, cv=2).fit(parts)
    assert search.best_params_["sticky"] in (False, True)
    assert clone(search.best_estimator_).get_params()["draws"] == 30


def test_state_probabilities_as_a_data_frame():
    X = pd.DataFrame(series(), columns=["x"])
    frame = quick().set_output(transform="pandas").fit(X).transform(X)
    assert isinstance(frame, pd.DataFrame)
    assert list(frame) == ["infinitehmm0", "infinitehmm1"]
    np.testing.assert_allclose(frame.sum(axis=1), 1)


def test_masked_values_are_missing(fitted):
    X = series().reshape(-1, 1)
    gappy, masked = X.copy(), np.ma.array(X.copy())
    gappy[10:20] = np.nan
    masked[10:20] = -9999.0
    masked[10:20] = np.ma.masked
    assert fitted.score(masked) == fitted.score(gappy)
    np.testing.assert_array_equal(fitted.predict_proba(masked), fitted.predict_proba(gappy))
    np.testing.assert_array_equal(fitted.predict_proba([masked]), fitted.predict_proba(gappy))
    model = quick(draws=2, tune=0, chains=1).fit(masked)
    assert np.flatnonzero(model.posterior_.data.missing).tolist() == list(range(10, 20))


def test_masked_values_are_missing_beside_a_clock():
    X = np.column_stack([np.arange(60) / 10, np.random.default_rng(0).normal(size=60)])
    gappy, masked = X.copy(), np.ma.array(X.copy())
    gappy[10:20, 1] = np.nan
    masked[10:20, 1] = -9999.0
    masked[10:20, 1] = np.ma.masked
    with pytest.warns(UserWarning, match="column 0 rises steadily"):
        model = quick(draws=2, tune=0, chains=1).fit(masked)
    assert model.posterior_.data.missing.sum() == 10
    assert model.score(masked) == model.score(gappy)


def test_dates_are_not_taken_for_numbers():
    times = pd.Series(pd.date_range("2024-01-01", periods=30, tz="UTC"))
    for X in (times, times.to_frame("when"), [times.to_frame("when")]):
        with pytest.raises(TypeError, match="must contain numbers"):
            quick().fit(X)


def test_columns_of_a_list_of_data_frames_are_matched_by_name():
    first = pd.DataFrame({"a": np.arange(20.0), "b": np.arange(20.0) + 100})
    model = quick(draws=2, tune=0, chains=1).fit([first, first[["b", "a"]]])
    assert model.posterior_.data.y[0].tolist() == model.posterior_.data.y[20].tolist() == [0.0, 100.0]
    assert model.feature_names_in_.tolist() == ["a", "b"]


@pytest.mark.parametrize("names", [(0, 1), (7, 3), (0.5, 1.5), (("x", "a"), ("x", "b"))], ids=str)
def test_columns_are_matched_by_names_that_are_not_texts(names):
    rng = np.random.default_rng(0)
    first = pd.DataFrame({names[0]: rng.normal(size=20), names[1]: rng.normal(50, 1, 20)})
    other = first[[names[1], names[0]]]
    for X in (first, [first, other]):
        model = quick(draws=2, tune=0, chains=1).fit(X)
        assert model.score(other) == model.score([other]) == model.score(first)
        assert model.posterior_.log_likelihood(other) == model.posterior_.log_likelihood(first)
    assert model.means_.mean(axis=0).round(-1).tolist() == [0.0, 50.0]


def test_columns_of_xarray_are_matched_by_their_coordinates():
    rng = np.random.default_rng(0)
    first = xr.DataArray(rng.normal([0, 50], 1, (20, 2)), dims=("t", "channel"), coords={"channel": ["a", "b"]})
    other = first.sel(channel=["b", "a"])
    model = quick(draws=2, tune=0, chains=1).fit(first)
    assert model.score(other) == model.score([other]) == model.score(first)
    with pytest.warns(UserWarning, match="X has feature names"):  # of scikit-learn, which knows data frames only
        assert model.score(other.to_pandas()) == model.score(first)
    assert model.posterior_.log_likelihood(other) == model.posterior_.log_likelihood(first)


def test_symbols_keep_their_letters():
    letters = np.random.default_rng(0).choice(list("ACGT"), 60)
    fitted = ihmm.InfiniteHMM(**QUICK).fit(letters)
    assert isinstance(fitted.emission_, ihmm.Categorical)
    assert fitted.emission_.n_symbols == 4
    assert fitted.posterior_.data.symbols == ("A", "C", "G", "T")
    codes = np.searchsorted(list("ACGT"), letters)
    np.testing.assert_array_equal(fitted.predict_proba(letters), fitted.predict_proba(codes))
    with pytest.raises(ValueError, match="'N' at t = 1 is not one of the symbols A, C, G, T"):
        fitted.predict(list("ANT"))


@pytest.mark.parametrize("kind", ["frame", "array", "lengths"])
def test_a_clock_among_the_columns_is_left_out(kind):
    values = ihmm.datasets.ion_channel(length=60).y
    frame = pd.DataFrame({"t_ms": np.arange(60) / 2, "row": np.arange(60), "x": values})
    lengths = None
    if kind == "lengths":
        frame["t_ms"], lengths = np.tile(np.arange(30) / 2, 2), [30, 30]
    X = frame.to_numpy() if kind == "array" else frame
    column = 1 if kind == "array" else "row"
    with pytest.warns(
        UserWarning, match=f"column {column} rises steadily, like a clock or a row number: it is left out"
    ):
        fitted = ihmm.InfiniteHMM("gaussian", **QUICK).fit(X, lengths=lengths)
    assert fitted.n_features_in_ == 1
    if kind != "array":
        assert fitted.posterior_.clock.step == pytest.approx(5e-4)
    np.testing.assert_array_equal(
        fitted.predict(X, lengths=lengths),
        fitted.predict(X[:, 2:] if kind == "array" else frame[["x"]], lengths=lengths),
    )
    assert isinstance(fitted.emission_, ihmm.Normal), "gaussian is another name of normal"


# scikit-learn is imported when it is needed

START = """
import sys
import numpy as np
import ihmm
hmm = ihmm.InfiniteHMM("normal", draws=5, tune=5, chains=1, random_state=0)
X = np.sin(np.arange(60.0)).reshape(-1, 1)
"""


def test_an_estimator_is_one_of_scikit_learn_at_once_if_that_was_imported_before():
    assert issubclass(InfiniteHMM, BaseEstimator)


def in_new_process(code):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-W", "error", "-c", START + code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.slow
def test_fitting_and_predicting_import_nothing_that_is_not_needed():
    code = """
hmm.fit(X).predict(X)
hmm.fit([X[:30], X[30:]]).score(X)
hmm.posterior_.check()
heavy = "sklearn", "pandas", "xarray", "arviz_stats", "matplotlib", "scipy.stats", "rich"
print([name for name in heavy if name in sys.modules])
"""
    result = in_new_process(code)
    assert result.stdout.strip() == "[]", result.stderr


@pytest.mark.slow
@pytest.mark.parametrize(
    "code",
    [
        "from sklearn.base import clone; assert clone(hmm).fit(X).get_params()['draws'] == 5",
        "assert repr(hmm).startswith('InfiniteHMM(')",
        "assert hmm.get_params()['tune'] == 5 and hmm.set_params(tune=6).tune == 6",
        "assert 'get_params' in dir(hmm)",
        "assert 'InfiniteHMM' in hmm._repr_html_()",
        "assert type(hmm.set_output(transform='pandas').fit_transform(X)).__name__ == 'DataFrame'",
        "from sklearn.utils import get_tags; assert get_tags(hmm).input_tags.allow_nan",
        "from sklearn import set_config as c; c(enable_metadata_routing=True); hmm.set_fit_request(lengths=True)",
        "import pickle; assert (pickle.loads(pickle.dumps(hmm.fit(X))).predict(X) == hmm.predict(X)).all()",
        "assert not hasattr(hmm, 'no_such_attribute')",
    ],
)
def test_an_estimator_becomes_one_of_scikit_learn_when_it_is_asked(code):
    is_one = "\nfrom sklearn.base import BaseEstimator; assert isinstance(hmm, BaseEstimator)"
    result = in_new_process(code + is_one)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_a_derived_class_has_its_own_output_and_parameters():
    code = """
class Mine(ihmm.InfiniteHMM):
    def transform(self, X):
        return 1 - super().predict_proba(X)
    def fit(self, X, y=None, *, weight=None):
        return super().fit(X)
from sklearn import set_config
from sklearn.base import BaseEstimator
set_config(enable_metadata_routing=True)
mine = Mine("normal", draws=5, tune=5, chains=1, random_state=0)
assert isinstance(mine, BaseEstimator) and isinstance(hmm, BaseEstimator)
mine.set_fit_request(weight=True)
assert type(mine.set_output(transform="pandas").fit(X).transform(X)).__name__ == "DataFrame"
"""
    result = in_new_process(code)
    assert result.returncode == 0, result.stderr
