"""Models with durations: laws, starts, stored runs, and what is refused."""

import numpy as np
import pytest

import ihmm
from ihmm.durations import Geometric, NegativeBinomial, Poisson, Runs, choose, complete
from ihmm.start import absorb_short_runs
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
    cut = Runs(np.full(20_000, least), np.zeros(20_000, np.int64), np.ones(20_000, bool))
    whole, longer = complete(rng, law, cut, omega), d[d >= least]
    assert whole.min() >= least
    assert abs(whole.mean() - longer.mean()) < 5 * longer.std() * np.sqrt(1 / len(longer) + 1 / len(whole))


@pytest.mark.parametrize("minimum", [1, 2, 3, 5])
def test_short_runs_are_absorbed_by_a_neighbour(minimum):
    rng = np.random.default_rng(minimum)
    states, offsets = np.repeat(rng.integers(3, size=60), rng.integers(1, 5, size=60))[:60], np.array([0, 25, 60])
    mended = absorb_short_runs(states, offsets, minimum)
    length, _, censored = runs(mended, offsets)
    assert len(mended) == 60
    assert length[~censored].min() >= minimum
    if minimum == 1:
        np.testing.assert_array_equal(mended, states)


@pytest.mark.parametrize("law", [Geometric(minimum=2), NegativeBinomial(minimum=2), Poisson()], ids=repr)
def test_a_resumed_run_on_threads_is_the_same_bit_for_bit(law, tmp_path):
    model, y = ihmm.Model(ihmm.Normal(3.0, 0.1, 2.0, 1.0), PRIOR, law), [series(200), series(90, 1)]
    options = {"tune": 5, "chains": 1, "seed": 1, "progress": False}
    whole = ihmm.sample(model, y, draws=12, cores=1, **options)
    ihmm.sample(model, y, draws=4, store=tmp_path / "run", **options)
    resumed = ihmm.resume(tmp_path / "run", draws=12, cores=2, progress=False)
    np.testing.assert_array_equal(whole.states, resumed.states)
    for ours, theirs in zip(whole.draws[0][11].durations, resumed.draws[0][11].durations, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert resumed.model == model
    length, _, censored = runs(resumed.draws[0][11].states, resumed.data.offsets)
    assert length[~censored].min(initial=law.minimum) >= law.minimum


REFUSED = {
    "class": ({"duration": Geometric}, "call it"),
    "not a law": ({"duration": 3}, "does not define"),
    "sticky": ({"duration": Geometric(), "prior": ihmm.HDPPrior(stickiness=0.5)}, "stickiness must be 0"),
    "one state": ({"duration": Geometric(), "prior": ihmm.FinitePrior(1)}, "at least 2 states"),
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
