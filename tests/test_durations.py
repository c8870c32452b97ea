"""Models with durations: laws, starts, stored runs, and what is refused."""

import numpy as np
import pytest

import ihmm
from ihmm.durations import (
    Geometric,
    NegativeBinomial,
    Poisson,
    Runs,
    choose,
    complete,
    residual_hazards,
    sample_residual,
)
from ihmm.running.start import absorb_short_runs, first_draw
from ihmm.trajectory import runs

LAWS = [
    Geometric(2.0, 5.0, minimum=3),
    NegativeBinomial(minimum=2),
    NegativeBinomial(4.0),
    Poisson(),
    Poisson(minimum=2),
]
PRIOR = ihmm.HDPPrior(ihmm.GammaPrior(1, 20), ihmm.GammaPrior(1, 0.001))
every_law = pytest.mark.parametrize("law", LAWS, ids=repr)


def series(n_steps=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(3, size=n_steps // 20 + 1), 20)[:n_steps] * 3.0 + rng.normal(size=n_steps)


class Wrong(NegativeBinomial):
    """A law of the user's own with a mistake in its hazard."""

    mistake = np.nan

    def hazard(self, n_ages, omega):
        hazard = super().hazard(n_ages, omega)
        hazard[-1, 1] = self.mistake
        return hazard


class AboveOne(Wrong):
    mistake = 1.5


class Negative(Wrong):
    mistake = -0.5


class Short(NegativeBinomial):
    def hazard(self, n_ages, omega):
        return super().hazard(n_ages, omega)[:, :-1]


@pytest.mark.parametrize("law", [Wrong(), AboveOne(), Negative(), Short()], ids=lambda law: type(law).__name__)
def test_a_hazard_that_is_not_a_probability_is_refused(law):
    model = ihmm.Model(ihmm.Normal(), PRIOR, law)
    said = "a column for each" if isinstance(law, Short) else f"must return probabilities, got {law.mistake} at age 2"
    with pytest.raises(ValueError, match=f"{type(law).__name__}.hazard {said}|hazard must have {said}"):
        ihmm.sample(model, series(40), draws=2, tune=0, chains=1, seed=1, progress=False)


class NoProbability(Geometric):
    def log_probability(self, d, omega):
        return np.full(np.broadcast_shapes(np.shape(d), omega.p.shape), np.nan)


class NoSurvivor(Geometric):
    def log_survivor(self, d, omega):
        return super().log_survivor(d, omega) + np.inf


class NoMean(Geometric):
    def mean(self, omega):
        return np.full(omega.p.shape, np.nan)


@pytest.mark.parametrize("law", [NoProbability(), NoSurvivor(), NoMean()], ids=lambda law: type(law).__name__)
def test_a_law_without_finite_probabilities_is_named_and_not_the_emission(law):
    model = ihmm.Model(ihmm.Normal(), PRIOR, law, left_censored=isinstance(law, NoMean))
    with pytest.raises(
        ValueError, match=rf"{type(law).__name__}\..*(nan|inf) as the log probability that a state lasts"
    ):
        ihmm.sample(model, series(60), draws=2, tune=0, chains=1, seed=1, progress=False)


@every_law
def test_probabilities_survivor_function_and_hazards_belong_together(law):
    omega = law.sample_prior(np.random.default_rng(0), 4)
    d = np.arange(1, 301)[:, None]
    p, survivor = np.exp(law.log_probability(d, omega)), np.exp(law.log_survivor(d, omega))
    np.testing.assert_allclose(survivor[:-1] - survivor[1:], p[:-1], atol=1e-12)
    np.testing.assert_allclose(survivor[: law.minimum], 1.0)
    possible = survivor > 1e-200
    np.testing.assert_allclose(law.hazard(300, omega).T[possible], p[possible] / survivor[possible], rtol=1e-8)
    assert np.isfinite(law.log_survivor(np.array([[100_000]]), omega)).all()


@every_law
def test_durations_have_the_mean_of_the_law_and_censored_ones_are_completed(law):
    rng = np.random.default_rng(1)
    omega = law.sample_prior(rng, 1)
    many = type(omega)(*(np.repeat(field, 20_000) for field in omega))
    d = law.sample(rng, many)
    assert d.min() >= law.minimum
    assert abs(d.mean() - law.mean(omega)[0]) < 5 * d.std() / np.sqrt(len(d))
    least = int(np.median(d))
    cut = Runs(np.full(20_000, least), np.zeros(20_000, np.int64), np.ones(20_000, bool), np.zeros(20_000, bool))
    whole, longer = complete(rng, law, cut, omega), d[d >= least]
    assert whole.min() >= least
    assert abs(whole.mean() - longer.mean()) < 5 * longer.std() * np.sqrt(1 / len(longer) + 1 / len(whole))


@every_law
def test_the_rest_of_a_segment_that_began_before_the_data_has_the_law_of_a_window(law):
    """Segments of a long process, seen from a random step: R steps are left with P(R = d) = P(D ≥ d) / E[D]."""
    rng = np.random.default_rng(2)
    omega = law.sample_prior(rng, 3)
    d = np.arange(1, 301)[:, None]
    survivor, mean = np.exp(law.log_survivor(d, omega)), law.mean(omega)
    rest = np.vstack([mean, mean - np.cumsum(survivor, axis=0)[:-1]]) / mean  # P(R ≥ d) = 1 − Σ_{i < d} P(R = i)
    likely = rest > 1e-6
    expected = survivor / mean / np.where(likely, rest, 1.0)
    np.testing.assert_allclose(1 / law.mean_residual(d, omega)[likely], expected[likely], rtol=1e-8)
    hazard = residual_hazards(law, law.hazard(300, omega), omega)
    np.testing.assert_allclose(hazard.T[likely], expected[likely], rtol=1e-8)
    many = sample_residual(rng, law, np.full(5000, 2), type(omega)(*(np.repeat(field[:1], 5000) for field in omega)))
    assert many.min() == 2
    p = rest[9, 0] / rest[1, 0]
    assert abs(np.mean(many >= 10) - p) < 5 * np.sqrt(p / 5000)


@pytest.mark.parametrize("minimum", [1, 2, 3, 5])
def test_short_runs_are_absorbed_by_a_neighbour(minimum):
    rng = np.random.default_rng(minimum)
    states, offsets = np.repeat(rng.integers(3, size=60), rng.integers(1, 5, size=60))[:60], np.array([0, 25, 60])
    mended = absorb_short_runs(states, offsets, minimum)
    length, _, censored, _ = runs(mended, offsets)
    assert len(mended) == 60
    assert length[~censored].min() >= minimum
    if minimum == 1:
        np.testing.assert_array_equal(mended, states)


@pytest.mark.parametrize("left_censored", [False, True])
@pytest.mark.parametrize("law", [Geometric(minimum=2), NegativeBinomial(minimum=2), Poisson()], ids=repr)
def test_a_resumed_run_on_threads_is_the_same_bit_for_bit(law, left_censored, tmp_path):
    model, y = ihmm.Model(ihmm.Normal(3.0, 0.1, 2.0, 1.0), PRIOR, law, left_censored), [series(200), series(90, 1)]
    options = {"tune": 5, "chains": 1, "seed": 1, "progress": False}
    whole = ihmm.sample(model, y, draws=12, cores=1, **options)
    ihmm.sample(model, y, draws=4, store=tmp_path / "run", **options)
    resumed = ihmm.resume(tmp_path / "run", draws=12, cores=2, progress=False)
    np.testing.assert_array_equal(whole.states, resumed.states)
    for ours, theirs in zip(whole.draws[0][11].durations, resumed.draws[0][11].durations, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert resumed.model == model
    length, _, censored, first = runs(resumed.draws[0][11].states, resumed.data.offsets, left_censored)
    assert length[~censored & ~first].min(initial=law.minimum) >= law.minimum


class NoResidual(Geometric):
    mean_residual = None


REFUSED = {
    "class": ({"duration": Geometric}, "call it"),
    "not a law": ({"duration": 3}, "does not define"),
    "sticky": ({"duration": Geometric(), "prior": ihmm.HDPPrior(stickiness=0.5)}, "stickiness must be 0"),
    "one state": ({"duration": Geometric(), "prior": ihmm.FinitePrior(1)}, "at least 2 states"),
    "left-censored": ({"left_censored": True}, "for models with durations"),
    "own law": ({"duration": NoResidual(), "left_censored": True}, "mean_residual"),
    "memory": ({"duration": Geometric(), "emission": ihmm.NoisyLevels(2)}, "memory of 2"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_models_that_make_no_sense_are_refused(case):
    arguments, message = REFUSED[case]
    with pytest.raises((TypeError, ValueError), match=message):
        ihmm.Model(**{"emission": ihmm.Normal(), **arguments})


@pytest.mark.parametrize(
    "sampler", [ihmm.Beam(), ihmm.DirectAssignment(), ihmm.Blocked(), ihmm.ParticleGibbs(block_size=10)], ids=repr
)
def test_other_samplers_say_that_they_do_not_take_durations(sampler):
    with pytest.raises((TypeError, ValueError), match="durations"):
        ihmm.sample(ihmm.Model(ihmm.Normal(), PRIOR, Geometric()), series(), sampler=sampler)


def test_laws_are_chosen_by_name():
    assert choose("negative binomial", 2) == NegativeBinomial(minimum=2)
    assert choose(None, 3) == Geometric(minimum=3)
    assert choose(Poisson()) == Poisson()
    with pytest.raises(ValueError, match="must be one of 'geometric'"):
        choose("weibull")
    with pytest.raises(ValueError, match="minimum=2"):
        choose(Poisson(), 2)


def test_the_estimator_takes_series_that_are_windows_of_a_longer_process():
    options = {"draws": 4, "tune": 2, "chains": 1, "random_state": 0, "left_censored": True}
    windows = ihmm.InfiniteHMM(duration="poisson", **options).fit(series(100))
    assert windows.posterior_.model.left_censored
    assert np.isfinite(windows.score(series(50, 1)))
    markov = ihmm.InfiniteHMM(sticky=False, **options).fit(series(100))  # it makes no difference
    assert not markov.posterior_.model.left_censored


def test_chains_start_from_the_states_of_the_hidden_markov_model():
    """Levels 1.5 standard deviations apart, which greedy splits of a single state do not find."""
    rng = np.random.default_rng(1)
    path = np.repeat(np.arange(160) % 3, 1 + rng.poisson(rng.gamma(20, 19 / 20, 160)))[:3000]
    model = ihmm.Model(ihmm.Normal(1.5, 0.1, 2.0, 1.0), PRIOR, NegativeBinomial())
    data = model.observe(1.5 * path + rng.standard_normal(3000))
    starts = [first_draw(np.random.default_rng(seed), data, model, "auto") for seed in range(4)]
    assert all(np.count_nonzero(np.bincount(draw.states) >= 300) >= 3 for draw in starts)


def test_a_finite_model_has_a_second_state_however_little_weight_it_has():
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(2, 1e-12), ihmm.durations.Geometric())
    for seed in range(5):
        assert ihmm.simulate(model, 200, seed).draw.n_states <= 2
