"""What is done with a posterior can be done with families that are renewed step by step, too."""

import numpy as np
import pytest

import ihmm
from ihmm.emissions._parameters import fields

RNG = np.random.default_rng(0)
PATH = np.repeat([0, 1, 2, 1], 25)
HIDDEN = [3, 60, 61]
NUMBERS = np.array([-6.0, 0.0, 7.0])[PATH] + 0.5 * RNG.standard_t(3, 100)
ANGLES = np.array([3.1, -1.0, 0.8])[PATH] + RNG.vonmises(0, 30, 100)
COUNTS = RNG.negative_binomial(50, 50 / (50 + np.array([1.0, 12.0, 60.0])[PATH])).astype(float)
ROWS = NUMBERS[:, None] + [0.0, 0.3] * RNG.standard_normal((100, 2))
ROWS[HIDDEN] = COUNTS[HIDDEN] = NUMBERS[HIDDEN] = ANGLES[HIDDEN] = np.nan
CASES = {
    "student-t": (ihmm.StudentT(), NUMBERS),
    "levels": (ihmm.NoisyLevels(tails="student-t", spread=5.0), NUMBERS),
    "correlated": (ihmm.NoisyLevels(n_features=2, spread=5.0, correlated=True), ROWS),
    "von-mises": (ihmm.VonMises(), ANGLES),
    "negative-binomial": (ihmm.NegativeBinomial(rate=0.05), COUNTS),
}
SETTINGS = {"tune": 12, "chains": 2, "seed": 1, "init": 6, "progress": False}


@pytest.fixture(scope="module", params=CASES)
def drawn(request):
    emission, y = CASES[request.param]
    return request.param, ihmm.sample(ihmm.Model(emission), y, draws=30, **SETTINGS)


def same(first, second):
    for one, other in zip(first, second, strict=True):
        np.testing.assert_array_equal(one.states, other.states)
        for field, other_field in zip(fields(one.phi).values(), fields(other.phi).values(), strict=True):
            np.testing.assert_array_equal(field, other_field)


def test_a_run_goes_on_from_its_parameters_bit_by_bit(drawn, tmp_path):
    _, whole = drawn
    ihmm.sample(whole.model, whole.data.values, draws=7, store=tmp_path / "run", **SETTINGS)
    same(ihmm.resume(tmp_path / "run", draws=30, progress=False), whole)


def test_a_saved_posterior_is_the_same_when_loaded(drawn, tmp_path):
    drawn[1].save(tmp_path / "saved")
    loaded = ihmm.Posterior.load(tmp_path / "saved")
    assert loaded.model == drawn[1].model
    same(loaded, drawn[1])


def test_forecasts_imputed_values_and_likelihoods_are_sound(drawn):
    name, posterior = drawn
    forecast, imputed = posterior.forecast(20), posterior.impute()
    np.testing.assert_array_equal(imputed.steps, HIDDEN)
    assert forecast.y.shape[:2] == (60, 20)
    if name == "von-mises":
        assert np.abs(np.append(forecast.y, imputed.y)).max() <= np.pi
    middle = np.median(imputed.y, axis=0)[1:]  # in the third stretch, of one level
    expected = {"von-mises": 0.8, "negative-binomial": 60.0}.get(name, 7.0)
    np.testing.assert_allclose(middle, expected, atol=20.0 if name == "negative-binomial" else 0.5)
    assert np.isfinite(posterior.log_likelihood(posterior.data.values)).all()


@pytest.mark.slow
def test_pictures_and_reports_are_drawn(drawn, tmp_path):
    plots, report = pytest.importorskip("ihmm.plots"), pytest.importorskip("ihmm.report")
    _, posterior = drawn
    plots.overview(posterior).savefig(tmp_path / "overview.png")
    page = report.write(posterior, tmp_path / "report.html").read_text("utf-8")
    assert type(posterior.model.emission).__name__ in page


@pytest.mark.parametrize("name", [name for name in CASES if name != "correlated"])
def test_the_estimator_knows_it_by_name(name):
    emission, y = CASES[name]
    hmm = ihmm.InfiniteHMM(name, draws=20, tune=20, chains=1, random_state=0).fit(y)
    assert type(hmm.emission_) is type(emission)
    assert hmm.n_states_ == 3
    assert np.mean(hmm.predict(y) == hmm.labels_) > 0.95
    level = {"student-t": "location_", "levels": "means_", "von-mises": "direction_", "negative-binomial": "lambdas_"}[
        name
    ]
    assert getattr(hmm, level).shape == (3, 1)


def test_priors_of_student_t_go_with_the_quartiles_of_the_data():
    y = RNG.normal(3.0, 2.0, (1000, 1))
    spiked = np.where(np.arange(1000)[:, None] % 100 == 0, 1e6 + np.arange(1000)[:, None], y)
    for values in (y, spiked):
        emission = ihmm.InfiniteHMM("student-t", draws=1, tune=0, chains=1, init=1).fit(values).emission_
        assert emission.mean == pytest.approx(3.0, abs=0.3)
        assert emission.rate == pytest.approx(0.4, abs=0.1)
    assert ihmm.InfiniteHMM("student-t", draws=5, tune=5, chains=1).fit(np.full(30, 5.5)).n_states_ == 1
