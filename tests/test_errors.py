"""Wrong arguments are answered before any sampling, with what was expected, what came, and what to do."""

import inspect
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ihmm
from ihmm.emissions.choose import choose

NAN, INF = float("nan"), float("inf")
Y = np.linspace(0, 1, 10)
NORMAL = ihmm.Model(ihmm.Normal())
KNOWN_NOISE = ihmm.Model(ihmm.NormalMean())
TWO_COLUMNS = ihmm.Model(ihmm.MultivariateNormal(2))
SYMBOLS = ihmm.Model(ihmm.Categorical(n_symbols=3))
REAL_VALUED = pytest.mark.parametrize("model", [NORMAL, KNOWN_NOISE], ids=["Normal", "NormalMean"])


class Untouchable:
    """A sampler that must not be reached."""

    def resample_states(self, rng, data, model, draw):
        raise AssertionError("sampling had begun")


def assert_refused(*said: str, model=NORMAL, y=Y, error=ValueError, **settings) -> None:
    """`sample` and, where it has the argument, `iterate` refuse, in a sentence that has these parts."""
    settings = {"sampler": Untouchable()} | settings
    calls = [lambda: ihmm.sample(model, y, progress=False, **settings)]
    if settings.keys() <= {"sampler", "seed", "init"}:
        calls.append(lambda: ihmm.iterate(model, y, **settings))
    for call in calls:
        with pytest.raises(error) as caught:
            call()
        for part in said:
            assert part in str(caught.value)


# Numbers of things


@pytest.mark.parametrize("name", ["draws", "chains", "thin", "cores"])
@pytest.mark.parametrize("value", [0, -1, 2.5, NAN, "3", True, [1]])
def test_numbers_that_must_be_at_least_one(name, value):
    assert_refused(name, "whole number of at least 1", f"got {value!r}", **{name: value})


@pytest.mark.parametrize("value", [-1, 0.5, None, False])
def test_tune_must_not_be_negative(value):
    assert_refused("tune", "whole number of at least 0", f"got {value!r}", tune=value)


@pytest.mark.parametrize("value", [-1, 1.5, "x", True, (1, 2), np.random.default_rng(0)])
def test_the_seed_must_be_a_whole_number(value):
    assert_refused("seed", "None chooses one", "whole number of at least 0", f"got {value!r}", seed=value)


# Model and sampler


@pytest.mark.parametrize(
    ("model", "got"),
    [(ihmm.Normal(), "a Normal"), (ihmm.Model, "the class Model"), (Y, "a ndarray"), (None, "NoneType")],
)
def test_the_model_must_be_a_model(model, got):
    assert_refused("model must be an ihmm.Model", got, "ihmm.Model(ihmm.Normal())", model=model, error=TypeError)


def test_a_sampler_class_must_be_called():
    assert_refused("got the class", "call it: ParticleGibbs(…)", sampler=ihmm.ParticleGibbs, error=TypeError)


@pytest.mark.parametrize("sampler", ["beam", 10, ihmm.Normal()])
def test_a_sampler_must_resample_states(sampler):
    assert_refused("resample_states", "ihmm.ParticleGibbs()", f"got {sampler!r}", sampler=sampler, error=TypeError)


@pytest.mark.parametrize("n_particles", [1, 0, -3, 2.0, None])
def test_particle_gibbs_needs_two_particles(n_particles):
    with pytest.raises(ValueError, match=rf"n_particles .* at least 2, got {n_particles!r}"):
        ihmm.ParticleGibbs(n_particles=n_particles)


@pytest.mark.parametrize("proposal", ["likelihood", "Posterior", "", None])
def test_an_unknown_proposal_is_answered_with_the_known_ones(proposal):
    with pytest.raises(ValueError, match=rf"proposal must be one of 'posterior', 'prior', got {proposal!r}"):
        ihmm.ParticleGibbs(proposal=proposal)


@pytest.mark.parametrize("threshold", [0, -0.1, NAN, INF])
def test_the_threshold_must_be_positive(threshold):
    with pytest.raises(ValueError, match=rf"threshold must be a positive number, got {threshold!r}"):
        ihmm.ParticleGibbs(threshold=threshold)


def test_resampling_is_one_of_two_and_only_one_does_without_ancestor_sampling():
    with pytest.raises(ValueError, match=r"resampling must be one of 'systematic', 'multinomial', got 'stratified'"):
        ihmm.ParticleGibbs(resampling="stratified")
    with pytest.raises(ValueError, match=r"ancestor_sampling=False needs resampling='multinomial'"):
        ihmm.ParticleGibbs(ancestor_sampling=False)


@pytest.mark.parametrize("emission", ["normal", None, 3])
def test_a_model_needs_an_emission(emission):
    with pytest.raises(TypeError, match=r"emission must be an Emission such as ihmm.Normal\(\), got"):
        ihmm.Model(emission)


def test_an_emission_class_must_be_called():
    with pytest.raises(TypeError, match=r"got the class; call it: Normal\(…\)"):
        ihmm.Model(ihmm.Normal)


def test_a_model_needs_a_prior_over_transitions():
    with pytest.raises(TypeError, match="prior must be an HDPPrior or a FinitePrior, got GammaPrior"):
        ihmm.Model(ihmm.Normal(), ihmm.GammaPrior())


# Priors


@pytest.mark.parametrize("value", [0, -1.0, NAN, INF, "1", None, True])
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (ihmm.GammaPrior, "shape"),
        (ihmm.GammaPrior, "rate"),
        (ihmm.BetaPrior, "a"),
        (ihmm.BetaPrior, "b"),
        (ihmm.HDPPrior, "gamma"),
        (ihmm.HDPPrior, "concentration"),
        (ihmm.Normal, "strength"),
        (ihmm.Normal, "shape"),
        (ihmm.Normal, "rate"),
        (ihmm.NormalMean, "noise"),
        (ihmm.NormalMean, "scale"),
        (lambda **settings: ihmm.Categorical(n_symbols=2, **settings), "concentration"),
    ],
)
def test_priors_must_be_positive(make, name, value):
    with pytest.raises(ValueError, match=name) as caught:
        make(**{name: value})
    assert f"must be a positive number, got {value!r}" in str(caught.value)


HUGE = 10**400  # beyond all floating-point numbers


@pytest.mark.parametrize(
    ("make", "settings", "sentence"),
    [
        (ihmm.GammaPrior, {"shape": HUGE}, "must be a positive number, got 1000"),
        (ihmm.MultivariateNormal, {"n_features": 2, "mean": HUGE}, "must be a finite number or .* got 1000"),
        (ihmm.MultivariateNormal, {"n_features": 10**5}, "n_features must be a whole number of at most 5000, got"),
        (ihmm.Autoregressive, {"order": 4000, "n_features": 2}, "order must be a whole number of at most 2500, got"),
        (ihmm.Categorical, {"n_symbols": 10**9}, "n_symbols must be a whole number of at most 1000000, got"),
        (ihmm.FinitePrior, {"n_states": 10**9}, "n_states must be a whole number of at most 1000000, got"),
        (ihmm.NoisyLevels, {"scale": np.zeros(2)}, "scale must be one of 'shared', 'own', got array"),
        (ihmm.NoisyLevels, {"dof": [[1], [1, 2]]}, "dof must be .* got"),
        (ihmm.ParticleGibbs, {"ancestor_sampling": np.zeros(2)}, "ancestor_sampling must be True or False, got"),
    ],
)
def test_settings_of_any_kind_are_answered_with_a_sentence(make, settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        make(**settings)


@pytest.mark.parametrize("value", [-0.1, 1, 1.0, 2, NAN, None])
def test_stickiness_is_a_fraction_below_one(value):
    with pytest.raises(ValueError, match=r"stickiness .* must be a number in \[0, 1\), got"):
        ihmm.HDPPrior(stickiness=value)


@pytest.mark.parametrize("emission", [ihmm.Normal, ihmm.NormalMean])
@pytest.mark.parametrize("value", [NAN, INF, "0", None])
def test_the_prior_mean_must_be_finite(emission, value):
    with pytest.raises(ValueError, match=rf"mean must be a finite number, got {value!r}"):
        emission(mean=value)


@pytest.mark.parametrize("n_symbols", [0, -1, 2.5, None])
def test_the_number_of_symbols_must_be_at_least_one(n_symbols):
    with pytest.raises(ValueError, match=rf"n_symbols must be a whole number of at least 1, got {n_symbols!r}"):
        ihmm.Categorical(n_symbols=n_symbols)


# Finite models


@pytest.mark.parametrize("n_states", [0, -1, 2.5, None])
def test_a_finite_model_needs_at_least_one_state(n_states):
    with pytest.raises(ValueError, match=rf"n_states must be a whole number of at least 1, got {n_states!r}"):
        ihmm.FinitePrior(n_states=n_states)


def test_the_blocked_sampler_needs_a_finite_model():
    assert_refused("needs a finite model", "FinitePrior(n_states=…)", sampler=ihmm.Blocked(), error=TypeError)


def test_a_path_must_not_visit_more_states_than_a_finite_model_has():
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(n_states=3))
    assert_refused("init visits 4 states, more than the prior has", "n_states=3", model=model, init=np.arange(10) % 4)


# Series


@pytest.mark.parametrize("model", [NORMAL, KNOWN_NOISE, SYMBOLS])
@pytest.mark.parametrize(("y", "steps"), [([], 0), ([1], 1), (np.zeros((0, 1)), 0), (np.zeros((1, 1)), 1)])
def test_a_series_needs_two_steps(model, y, steps):
    assert_refused(f"sequence 0 has {steps} step(s)", "at least 2", model=model, y=y)


@pytest.mark.parametrize("fit", [lambda y: ihmm.sample(NORMAL, y), ihmm.InfiniteHMM().fit], ids=["sample", "fit"])
def test_what_is_no_series_is_named(fit):
    for y, message in (
        ("trace.csv", "expected numbers, got 'trace.csv'; read a file first"),
        (Path("trace.csv"), "expected numbers, got 'trace.csv'; read a file first"),
        (None, "expected an array, a list or a data frame of numbers, got NoneType"),
        ({"y": [1, 2]}, "expected an array, a list or a data frame of numbers, got dict"),
    ):
        with pytest.raises(TypeError, match=message):
            fit(y)


def test_rows_of_different_lengths_are_no_table():
    with pytest.raises(ValueError, match="X has rows of different lengths; if they are series, make each of them an"):
        ihmm.InfiniteHMM().fit([[1, 2, 3], [4, 5]])


def test_signatures_can_be_read():
    """As shown by help() and in notebooks: NumPy's types of arrays are unions that take a screen each."""
    for function in (ihmm.sample, ihmm.iterate, ihmm.InfiniteHMM.fit, ihmm.InfiniteHMM.predict):
        assert "numpy._typing" not in str(inspect.signature(function))


def test_the_sequence_that_is_too_short_is_named():
    assert_refused("sequence 1 has 1 step(s)", "remove shorter ones", y=[Y, Y[:1]])
    assert_refused("sequence 2 has 0 step(s)", y=[Y, Y, Y[:0]])


@REAL_VALUED
@pytest.mark.parametrize("bad", [INF, -INF])
def test_values_must_be_finite(model, bad):
    y = Y.copy()
    y[[3, 7]] = bad
    assert_refused("expects finite values", "got 2 that are not", "first at t = 3", "use NaN", model=model, y=y)
    assert_refused("sequence 1: ", "first at t = 3", model=model, y=[Y, y])


@REAL_VALUED
def test_one_number_a_step(model):
    assert_refused("one number per time step", "got 2 columns", model=model, y=np.zeros((10, 2)))
    assert_refused("one number per time step", "got 5 columns", model=model, y=np.zeros((3, 4, 5)))
    assert_refused("shape (T,) or (T, D)", "got (3, 4, 5, 6)", "as a list", model=model, y=np.zeros((3, 4, 5, 6)))
    assert_refused("shape (T,) or (T, D)", "got ()", model=model, y=3.0)
    assert_refused("no columns", model=model, y=np.zeros((10, 0)))


def test_one_symbol_a_step():
    assert_refused("one symbol per time step", "got 2 columns", model=SYMBOLS, y=np.zeros((10, 2), int))


@pytest.mark.parametrize("y", [["a", "b"], np.array(["x", "y"]), ["a", None]])
def test_texts_need_an_emission_of_symbols(y):
    assert_refused("the series holds texts", "expects numbers", "use ihmm.Categorical", y=y, error=TypeError)


def test_series_must_hold_numbers():
    assert_refused("must contain numbers", "got dtype complex128", y=np.array([1j, 2j]), error=TypeError)


@pytest.mark.parametrize("bad", [-1, 3, 100])
def test_symbols_must_be_in_range(bad):
    y = np.array([0, 1, 2, bad, 0])
    said = ("whole numbers from 0 to 2 (n_symbols = 3)", f"got {bad} at t = 3", "raise n_symbols")
    assert_refused(*said, model=SYMBOLS, y=y)


@pytest.mark.parametrize("bad", [0.5, INF])
def test_symbols_must_be_whole(bad):
    y = np.array([0.0, 1.0, bad, 0.0])
    assert_refused("whole numbers from 0 to 2", f"got {bad} at t = 2", model=SYMBOLS, y=y)


def test_sequences_must_have_the_same_width():
    y = [np.zeros(5), np.zeros((5, 2))]
    assert_refused("same number of columns", "sequence 0 has shape (T,)", "sequence 1 has shape (T, 2)", y=y)


# Where chains start


@pytest.mark.parametrize("init", [0, -2, 1.5, None, True, NAN])
def test_a_start_needs_at_least_one_state(init):
    assert_refused("init", "whole number of at least 1", f"got {init!r}", init=init)


def test_a_start_needs_a_state_for_every_step():
    path = np.ma.array([0, 1] * 10, mask=[False, True] * 10)
    for init in (path, [path]):
        with pytest.raises(ValueError, match="some are masked"):
            ihmm.sample(
                ihmm.Model(ihmm.Normal()), np.arange(20.0), init=init, draws=1, tune=0, chains=1, progress=False
            )


@pytest.mark.parametrize("init", ["Auto", "kmeans", ""])
def test_a_start_has_no_other_name_than_auto(init):
    assert_refused("init must be a number of states, a trajectory of states, or", f"got {init!r}", init=init)


@pytest.mark.parametrize("init", [np.zeros(9, int), np.zeros(11, int), []])
def test_a_path_has_one_state_a_step(init):
    assert_refused("init must have one state per time step, shape (10,)", f"got {np.shape(init)}", init=init)


def test_the_path_of_each_chain_has_one_state_a_step():
    assert_refused("init must have one state per time step, shape (10,)", "got (1,)", init=np.zeros((10, 1), int))


def test_paths_of_several_sequences_have_their_lengths():
    y = [Y, Y[:4]]
    path = np.zeros(10, int)
    assert_refused("shape (10,), (4,), got (10,), (5,)", y=y, init=[path, path[:5]])
    assert_refused("shape (10,), (4,), got (10,)", y=y, init=[path])
    assert_refused("shape (14,) in total, got (13,)", y=y, init=np.zeros(13, int))


def test_a_path_holds_whole_numbers_from_zero():
    assert_refused("init must hold whole numbers, got dtype float64", ".astype(int)", init=np.zeros(10))
    path = np.zeros(10, int)
    path[6] = -4
    assert_refused("init must hold states numbered from 0, got -4 at t = 6", init=path)


# Densities of emissions, the user's own above all


class Broken(ihmm.Normal):
    """A normal density with one wrong value."""

    wrong = np.nan

    def log_density(self, y, phi):
        table = super().log_density(y, phi)
        table[y == Y[-2], -1] = self.wrong
        return table


class Overflowing(Broken):
    wrong = np.inf


class Transposed(ihmm.Normal):
    def log_density(self, y, phi):
        return super().log_density(y, phi).T


@pytest.mark.parametrize(
    ("sampler", "prior"),
    [
        (ihmm.ParticleGibbs(), None),
        (ihmm.ParticleGibbs(10, resampling="multinomial"), None),
        (ihmm.ParticleGibbs(block_size=2), None),
        (ihmm.Beam(), None),
        (ihmm.Blocked(), ihmm.FinitePrior(3)),
    ],
    ids=["systematic", "multinomial", "blocks", "beam", "finite"],
)
@pytest.mark.parametrize(("emission", "value"), [(Broken(), "nan"), (Overflowing(), "inf")], ids=["nan", "inf"])
def test_a_density_that_is_not_a_number_is_refused(sampler, prior, emission, value):
    model = ihmm.Model(emission, prior or ihmm.HDPPrior())
    with pytest.raises(ValueError, match="log_density returned") as caught:
        ihmm.sample(model, Y, sampler=sampler, draws=3, tune=0, chains=1, seed=1, progress=False)
    said = f"{type(emission).__name__}.log_density returned {value} at time step {len(Y) - 2}, where y = {Y[-2]}, for"
    assert said in str(caught.value)
    assert "mean = [" in str(caught.value)


@pytest.mark.parametrize("resolution", [NAN, INF, 0.0, -1.0, (1.0, 2.0), (), [NAN], "fine", np.ma.masked], ids=str)
def test_a_resolution_is_positive_and_one_or_one_for_each_column(resolution):
    assert_refused("resolution", resolution=resolution)
    assert_refused("one for each column, 2", resolution=(1.0,), y=np.ones((9, 2)), model=TWO_COLUMNS)


def test_parts_and_columns_with_the_same_names_must_be_in_the_same_order():
    model = ihmm.Model(ihmm.Independent(x=ihmm.Normal(), y=ihmm.Normal()))
    frame = pd.DataFrame({"y": Y, "x": Y + 100})
    assert_refused("the columns y, x", "another order: x, y", model=model, y=frame)
    assert model.observe(frame[["x", "y"]]).columns == ("x", "y")
    assert model.observe(frame.rename(columns={"x": "z"})).columns == ("y", "z")


@pytest.mark.parametrize("emission", ["auto", "normal", "poisson", ihmm.NoisyLevels(1)], ids=str)
def test_an_order_that_would_be_ignored_is_refused(emission):
    with pytest.raises(ValueError, match="order is for the emissions 'autoregressive' and 'levels', got emission="):
        ihmm.InfiniteHMM(emission, order=2).fit(Y)


def test_a_table_of_densities_must_have_one_column_per_state():
    with pytest.raises(ValueError, match=r"Transposed.log_density must return log densities of shape \("):
        ihmm.sample(ihmm.Model(Transposed()), Y, draws=1, tune=0, chains=1, seed=1, progress=False)


def test_an_order_as_long_as_the_series_is_refused():
    model = ihmm.Model(ihmm.Autoregressive(4))
    for y in (Y[:4], [Y[:4], Y[:3]], [*Y[:3], NAN, *Y[:3]]):
        assert_refused("no time step is informative", "Autoregressive(order=4", model=model, y=y)
    assert model.observe(Y[:5]).informative.tolist() == [False] * 4 + [True]


@pytest.mark.parametrize("emission", ["normal", "student-t", "autoregressive", "mixture"])
def test_a_spread_too_small_to_be_squared_is_not_taken_for_none(emission):
    with pytest.raises(ValueError, match=r"differ by at most 1e-165, .* rescale the series"):
        ihmm.InfiniteHMM(emission).fit(1e-165 * Y)
    choose(emission, 1e-120 * Y[:, None])
    choose(emission, np.zeros((10, 1)))
