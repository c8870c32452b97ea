"""Extreme but valid input: all results are finite, and every state is visited."""

import numpy as np
import pytest

import ihmm

# Extreme series are far from what these priors expect, which sample says.
pytestmark = pytest.mark.filterwarnings("ignore:the prior of:UserWarning")

NORMAL = ihmm.Normal()
KNOWN_NOISE = ihmm.NormalMean(noise=0.5, scale=2.0)
TWO_LEVELS = np.repeat([0.0, 3.0, 0.0, 3.0], 25) + np.random.default_rng(11).normal(0, 0.5, 100)
SYMBOLS = np.repeat([0, 1, 2, 1], 25)
PROPOSALS = pytest.mark.parametrize("proposal", ["posterior", "prior"])
ALL_EMISSIONS = pytest.mark.parametrize(
    ("emission", "y"),
    [
        pytest.param(NORMAL, TWO_LEVELS, marks=pytest.mark.bounds),
        (KNOWN_NOISE, TWO_LEVELS),
        (ihmm.Categorical(3), SYMBOLS),
        (ihmm.Poisson(), 5 * SYMBOLS),
        (ihmm.MultivariateNormal(2), np.column_stack([TWO_LEVELS, SYMBOLS])),
    ],
    ids=["Normal", "NormalMean", "Categorical", "Poisson", "MultivariateNormal"],
)
REAL_VALUED = pytest.mark.parametrize(
    "emission", [pytest.param(NORMAL, marks=pytest.mark.bounds), KNOWN_NOISE], ids=["Normal", "NormalMean"]
)


def draw_some(emission, y, sampler="posterior", prior=None, **settings) -> ihmm.Posterior:
    """A few valid draws. `sampler` may be the proposal of a particle Gibbs sampler."""
    model = ihmm.Model(emission, prior or ihmm.HDPPrior())
    sampler = ihmm.ParticleGibbs(proposal=sampler) if isinstance(sampler, str) else sampler
    settings = {"draws": 20, "tune": 10, "chains": 2, "seed": 1, "init": 5} | settings
    posterior = ihmm.sample(model, y, sampler=sampler, progress=False, **settings)
    assert_valid(posterior)
    return posterior


def assert_valid(posterior: ihmm.Posterior) -> None:
    for trace in posterior.traces.values():
        assert np.all(np.isfinite(trace))
    for draws in posterior.draws:
        for draw in draws:
            np.testing.assert_array_equal(np.unique(draw.states), np.arange(draw.n_states))
            for weights in draw.transitions:
                assert np.all(weights > 0)
                np.testing.assert_allclose(weights.sum(axis=-1), 1)
            assert all(np.all(np.isfinite(field)) for field in draw.phi)
            assert draw.hyper.gamma > 0
            assert draw.hyper.concentration > 0
            assert 0 <= draw.hyper.stickiness < 1


# Series


@PROPOSALS
@pytest.mark.parametrize("value", [0.0, 1.0, -1000.0])
@REAL_VALUED
def test_a_constant_series_needs_few_states(emission, value, proposal):
    posterior = draw_some(emission, np.full(100, value), proposal, tune=100, draws=50)
    assert np.median(posterior.n_states) <= 2


@PROPOSALS
def test_a_series_of_one_symbol_works(proposal):
    draw_some(ihmm.Categorical(n_symbols=1), np.zeros(50, int), proposal)
    draw_some(ihmm.Categorical(n_symbols=1000), np.full(50, 999), proposal)


@PROPOSALS
@pytest.mark.parametrize("y", [[0.0, 0.0], [0.0, 50.0]])
@REAL_VALUED
def test_two_steps_are_a_series(emission, y, proposal):
    posterior = draw_some(emission, y, proposal)
    assert posterior.states.shape == (2, 20, 2)


@pytest.mark.bounds
def test_many_short_sequences_work():
    posterior = draw_some(NORMAL, list(np.random.default_rng(0).normal(size=(300, 2))))
    assert posterior.states.shape == (2, 20, 600)


@PROPOSALS
@REAL_VALUED
def test_outliers_a_million_standard_deviations_away_get_separate_states(emission, proposal):
    y = TWO_LEVELS.copy()
    y[[10, 40, 41]] = 5e5
    y[70] = -5e5
    posterior = draw_some(emission, y, proposal, tune=100, draws=50)
    if proposal == "posterior":  # the prior proposal finds them only by chance
        outliers, usual = posterior.states[..., [10, 40, 41, 70]], posterior.states[..., [9, 11, 39, 42, 69, 71]]
        assert not np.any(outliers[..., :, None] == usual[..., None, :])


EXTREME_SERIES = {
    "constant": np.full(50, -1000.0),
    "two steps": np.array([0.0, 50.0]),
    "outliers": np.where(np.arange(100) % 33 == 10, 5e5, TWO_LEVELS),
}
OTHER_SAMPLERS = {
    "Beam": (ihmm.Beam(), ihmm.HDPPrior()),
    "DirectAssignment": (ihmm.DirectAssignment(), ihmm.HDPPrior()),
    "Blocked": (ihmm.Blocked(), ihmm.FinitePrior(n_states=8)),
    "ParticleGibbs of a finite model": (ihmm.ParticleGibbs(), ihmm.FinitePrior(n_states=8)),
    "multinomial": (ihmm.ParticleGibbs(10, resampling="multinomial"), ihmm.HDPPrior()),
    "multinomial, prior": (ihmm.ParticleGibbs(10, "prior", resampling="multinomial"), ihmm.HDPPrior()),
}


@pytest.mark.parametrize("series", EXTREME_SERIES)
@pytest.mark.parametrize("sampler", OTHER_SAMPLERS)
@REAL_VALUED
def test_every_sampler_handles_extreme_series(sampler, emission, series):
    sampler, prior = OTHER_SAMPLERS[sampler]
    draw_some(emission, EXTREME_SERIES[series], sampler, prior)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_data_may_be_on_another_scale_than_the_prior(scale):
    draw_some(NORMAL, TWO_LEVELS * scale)
    draw_some(KNOWN_NOISE, TWO_LEVELS * scale)


@pytest.mark.slow
@PROPOSALS
@REAL_VALUED
def test_a_hundred_thousand_steps_work(emission, proposal):
    y = np.tile(TWO_LEVELS, 1000) + np.random.default_rng(0).normal(0, 0.1, 100_000)
    posterior = draw_some(emission, y, proposal, draws=3, tune=2)
    assert posterior.states.shape == (2, 3, 100_000)


@pytest.mark.slow
@REAL_VALUED
def test_new_states_may_appear_anywhere_in_a_long_series(emission):
    draw_some(emission, np.random.default_rng(0).normal(size=9000), init=10)


# Counts and rows

COVARIANCES = pytest.mark.parametrize("covariance", ["full", "diagonal"])
NOISE = np.random.default_rng(12).normal(size=(100, 50))
ROWS = {
    "fifty columns": TWO_LEVELS[:, None] + NOISE,
    "fewer steps than columns": NOISE[:10],
    "two steps": NOISE[:2, :3],
    "the same column twice": TWO_LEVELS[:, None] * [1.0, 1.0],
    "collinear columns": TWO_LEVELS[:, None] * [1.0, -2.0, 1e-3],
    "a column that is a sum": np.column_stack([NOISE[:, :2], NOISE[:, 0] + NOISE[:, 1]]),
    "a constant column": np.column_stack([TWO_LEVELS, np.full(100, 7.0)]),
    "constant columns only": np.full((100, 3), -1000.0),
    "scales far apart": NOISE[:, :4] * [1e-6, 1.0, 1e3, 1e6],
    "collinear, far above the prior's scale": 1e9 * TWO_LEVELS[:, None] * [1.0, 1.0, 2.0],
    "outliers": np.where(np.arange(100)[:, None] % 33 == 10, 5e5, TWO_LEVELS[:, None] + NOISE[:, :3]),
}


@COVARIANCES
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_any_rank_and_scale_work(rows, covariance):
    y = ROWS[rows]
    emission = ihmm.MultivariateNormal(y.shape[1], covariance=covariance)
    draw_some(emission, y, draws=5, tune=5)
    draw_some(emission, y, ihmm.DirectAssignment(), draws=3, tune=3, chains=1)


@COVARIANCES
@pytest.mark.parametrize("rows", ROWS)
def test_rows_of_any_rank_and_scale_may_have_gaps(rows, covariance):
    y = ROWS[rows].copy()
    y[::3, 0] = np.nan
    y[1::3, 1:] = np.nan
    y[-1] = np.nan
    draw_some(ihmm.MultivariateNormal(y.shape[1], covariance=covariance), y, draws=5, tune=5, chains=1)


@COVARIANCES
@pytest.mark.parametrize(
    "settings",
    [{"strength": 1e-8}, {"strength": 1e8}, {"scale": 1e-8}, {"scale": 1e8}, {"dof": 1.01}, {"dof": 1e6}],
    ids=str,
)
def test_priors_of_rows_may_be_narrow_or_wide(settings, covariance):
    emission = ihmm.MultivariateNormal(2, covariance=covariance, **settings)
    draw_some(emission, TWO_LEVELS[:, None] + NOISE[:, :2], chains=1)


COUNTS = {
    "a million": np.repeat([1_000_000, 990_000], 50),
    "zero": np.zeros(100, int),
    "zero or a million": np.repeat([0, 1_000_000, 0], 30),
}


@pytest.mark.parametrize("counts", COUNTS)
@pytest.mark.parametrize("sampler", OTHER_SAMPLERS)
def test_counts_may_be_zero_or_a_million(sampler, counts):
    sampler, prior = OTHER_SAMPLERS[sampler]
    draw_some(ihmm.Poisson(), COUNTS[counts], sampler, prior, draws=10)


@PROPOSALS
@pytest.mark.parametrize("counts", COUNTS)
def test_counts_may_be_zero_or_a_million_with_particles(counts, proposal):
    posterior = draw_some(ihmm.Poisson(1.0, 1e-6), COUNTS[counts], proposal, tune=50)
    if proposal == "posterior":
        assert np.median(posterior.n_states) == len(np.unique(COUNTS[counts]))


@pytest.mark.parametrize(
    "emission", [ihmm.Poisson(1e-3, 1e-3), ihmm.Poisson(1e6, 1e6), ihmm.Poisson(1, 1e-6)], ids=repr
)
def test_priors_of_counts_may_be_narrow_or_wide(emission):
    draw_some(emission, np.round(abs(TWO_LEVELS) * 10))


# Priors


@PROPOSALS
@pytest.mark.parametrize(
    ("gamma", "concentration"),
    [
        (1e-6, 1),
        (1, 1e-6),
        (1, 1e4),
        (1e-6, 1e-6),
        (1e-6, 1e4),
        (1e4, 1e-6),
    ],
)
@ALL_EMISSIONS
def test_concentrations_may_be_tiny_or_huge(emission, y, gamma, concentration, proposal):
    draw_some(emission, y, proposal, ihmm.HDPPrior(gamma, concentration), draws=2, tune=0, chains=1)


@pytest.mark.slow
@ALL_EMISSIONS
def test_a_sweep_may_instantiate_fifty_thousand_states(emission, y):
    draw_some(emission, y, "posterior", ihmm.HDPPrior(1e4, 1), draws=2, tune=0, chains=1)


@pytest.mark.slow
def test_a_sweep_may_reach_for_fifty_thousand_states_one_by_one():
    draw_some(NORMAL, TWO_LEVELS, "prior", ihmm.HDPPrior(1e4, 1), draws=2, tune=0, chains=1)


SAMPLERS_OF_ANY_GAMMA = [ihmm.ParticleGibbs(), ihmm.ParticleGibbs(10, resampling="multinomial"), ihmm.Beam()]


@pytest.mark.parametrize("sampler", SAMPLERS_OF_ANY_GAMMA, ids=["multinomial", "systematic", "beam"])
def test_a_gamma_that_calls_for_too_many_states_is_refused(sampler):
    y = np.random.default_rng(0).normal(size=40)
    settings = {"sampler": sampler, "draws": 3, "tune": 0, "chains": 1, "seed": 1, "progress": False}
    ihmm.sample(ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=ihmm.GammaPrior(1, 1e-10))), y, **settings)
    with pytest.raises(ValueError, match="call for more states than fit into memory"):
        ihmm.sample(ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=1e12)), y, **settings)


def test_a_beam_that_would_open_thousands_of_rows_is_refused():
    model = ihmm.Model(ihmm.Normal(), ihmm.HDPPrior(gamma=500.0, concentration=30.0))
    with pytest.raises(ValueError, match="call for more states than fit into memory"):
        ihmm.sample(model, np.arange(11.0), sampler=ihmm.Beam(), draws=3, tune=0, chains=1, seed=1, progress=False)


@PROPOSALS
@ALL_EMISSIONS
def test_concentrations_may_both_be_large(emission, y, proposal):
    draw_some(emission, y[20:30], proposal, ihmm.HDPPrior(1000.0, 1000.0), draws=4, tune=0, chains=1)


@PROPOSALS
@pytest.mark.parametrize("stickiness", [1e-12, 0.999, 1 - 1e-12, ihmm.BetaPrior(1000, 1), ihmm.BetaPrior(1e-3, 1e-3)])
@ALL_EMISSIONS
def test_stickiness_may_be_close_to_zero_or_one(emission, y, stickiness, proposal):
    draw_some(emission, y, proposal, ihmm.HDPPrior(stickiness=stickiness), chains=1)
    draw_some(emission, y, proposal, ihmm.HDPPrior(concentration=1e4, stickiness=stickiness), draws=5, chains=1)


@PROPOSALS
@pytest.mark.parametrize("prior", [ihmm.GammaPrior(1e-3, 1e-3), ihmm.GammaPrior(1e-3, 1e3), ihmm.GammaPrior(1e3, 1)])
@pytest.mark.parametrize("quantity", ["gamma", "concentration"])
def test_hyperpriors_may_be_vague_or_extreme(quantity, prior, proposal):
    transitions = ihmm.HDPPrior(**{quantity: prior}, stickiness=ihmm.BetaPrior(1, 1))
    draw_some(NORMAL, TWO_LEVELS, proposal, transitions, draws=10, chains=1)


@PROPOSALS
@pytest.mark.parametrize(
    "emission",
    [
        ihmm.Normal(strength=1e-8),
        ihmm.Normal(strength=1e8),
        ihmm.Normal(shape=1e-2, rate=1e-6),
        ihmm.Normal(shape=1e6, rate=1e6),
        ihmm.NormalMean(noise=1e-6),
        ihmm.NormalMean(noise=1e6),
        ihmm.NormalMean(scale=1e-8),
        ihmm.NormalMean(scale=1e8),
    ],
    ids=repr,
)
def test_emission_priors_may_be_narrow_or_wide(emission, proposal):
    draw_some(emission, TWO_LEVELS, proposal, chains=1)


@pytest.mark.parametrize("concentration", [1e-6, 1e6])
def test_symbol_priors_may_be_narrow_or_wide(concentration):
    draw_some(ihmm.Categorical(3, concentration), SYMBOLS)


@pytest.mark.bounds
def test_two_particles_are_enough():
    model = ihmm.Model(NORMAL)
    assert_valid(
        ihmm.sample(model, TWO_LEVELS, sampler=ihmm.ParticleGibbs(2), draws=20, tune=0, chains=1, progress=False)
    )


@pytest.mark.bounds
def test_the_initial_states_may_all_differ():
    draw_some(NORMAL, TWO_LEVELS, init=np.arange(100))


# Families that are updated by MCMC steps

MCMC_SERIES = {
    "constant": np.full(60, 3.0),
    "constant at π": np.full(60, np.pi),
    "both sides of ±π": np.pi * np.where(np.arange(60) % 2, 1.0, -1.0),
    "all different": np.arange(6.0),
    "nearly the same": 1.0 + 1e-9 * np.arange(60),
    "a sequence without values": [np.full(5, np.nan), np.array([1.0, np.nan, 2.0])],
    "one value": np.array([np.nan, 1.0, np.nan]),
}


@pytest.mark.parametrize("series", MCMC_SERIES)
@pytest.mark.parametrize("emission", [ihmm.StudentT(), ihmm.StudentT(dof=0.3), ihmm.VonMises()], ids=repr)
def test_updates_of_parameters_are_finite_on_extreme_series(emission, series):
    for init in (5, "auto"):
        draw_some(emission, MCMC_SERIES[series], init=init)


def test_student_t_handles_outliers_and_other_scales_than_the_prior():
    y = np.where(np.arange(100) % 33 == 10, 5e5, TWO_LEVELS)
    for values in (y, 1e6 * TWO_LEVELS, 1e-6 * TWO_LEVELS, 1e6 + TWO_LEVELS):
        draw_some(ihmm.StudentT(), values)
    draw_some(ihmm.StudentT(rate=1e-12), y)


@pytest.mark.parametrize("rate", [1e-12, 1e6])
def test_concentrations_may_be_huge_or_tiny(rate):
    identical = draw_some(ihmm.VonMises(rate=rate), np.full(60, 0.5))
    largest = max(draw.phi.concentration.max() for draws in identical.draws for draw in draws)
    assert (largest > 1e9) if rate < 1 else (largest < 1e-2)
    draw_some(ihmm.VonMises(rate=rate, strength=1e6), TWO_LEVELS, ihmm.Beam())
    draw_some(ihmm.VonMises(shape=1e-3), TWO_LEVELS, ihmm.Blocked(), ihmm.FinitePrior(n_states=8))
