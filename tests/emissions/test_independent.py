"""`Independent`: families side by side, each for columns of its own."""

import copy
import pickle

import numpy as np
import pytest

import ihmm
from ihmm.emissions import Bernoulli, Categorical, Independent, Multinomial, MultivariateNormal, Normal, Poisson
from ihmm.emissions._parameters import fields, rebuild
from ihmm.emissions._protocol import REQUIRED

MIXED = Independent(mode=Categorical(3), speed=Normal(), place=MultivariateNormal(2), on=Bernoulli(2))


def some_rows(emission=MIXED, n=40, seed=0):
    rng = np.random.default_rng(seed)
    phi, states = emission.sample_prior(rng, 4), rng.integers(0, 4, n)
    return phi, states, emission.sample_observations(rng, states, phi)


def own(part, arrays):
    """φ of a part, made of its arrays."""
    return rebuild(part.sample_prior(np.random.default_rng(0), 1), arrays)


def test_parameters_are_called_after_the_parts():
    assert fields(MIXED.sample_prior(np.random.default_rng(0), 2)).keys() == {
        "mode_probs", "speed_mean", "speed_variance", "place_mean", "place_covariance", "on_probs",
    }  # fmt: skip
    unnamed = Independent(Normal(), MultivariateNormal(2), Normal(), level=Poisson())
    assert unnamed.names == ("normal_0", "multivariate_normal", "normal_1", "level")
    assert unnamed.sample_prior(np.random.default_rng(0), 2).level_rate.shape == (2,)


def test_densities_are_those_of_the_parts_added_up():
    phi, _, y = some_rows()
    mode, speed, place, on = MIXED.parts
    symbols = y[:, 0].astype(int)
    density = mode.log_density(symbols, own(mode, phi[:1])) + speed.log_density(y[:, 1], own(speed, phi[1:3]))
    density += place.log_density(y[:, 2:4], own(place, phi[3:5])) + on.log_density(y[:, 4:], own(on, phi[5:]))
    np.testing.assert_allclose(MIXED.log_density(y, phi), density, rtol=1e-12)
    evidence = mode.log_evidence(symbols) + speed.log_evidence(y[:, 1])
    evidence += place.log_evidence(y[:, 2:4]) + on.log_evidence(y[:, 4:])
    assert MIXED.log_evidence(y) == pytest.approx(evidence, rel=1e-12)


def test_values_missing_in_one_part_leave_the_others_informative():
    phi, states, y = some_rows()
    y[3, 0] = y[5, 1] = y[6, 2] = np.nan
    y[7, 2:4] = np.nan
    y[:, 4:] = np.nan  # nothing is known of a whole part
    model = ihmm.Model(MIXED)
    data = model.observe(y)
    assert data.missing is None
    np.testing.assert_array_equal(data.y, y)
    assert np.isfinite(MIXED.log_density(y, phi)).all()
    only_speed = np.where(np.arange(6) == 1, y, np.nan)
    expected = Normal().log_density(y[:, 1], own(Normal(), phi[1:3]))
    np.testing.assert_allclose(MIXED.log_density(only_speed, phi)[:5], expected[:5], rtol=1e-12)
    assert np.isfinite(MIXED.log_density_at(y, states, phi)).all()
    assert np.isfinite(MIXED.log_marginal(y)).all()
    fresh = MIXED.update(np.random.default_rng(1), y, states, phi)
    assert all(np.isfinite(array).all() for array in fresh)


def test_what_is_missing_is_drawn_and_the_rest_left_alone():
    phi, states, y = some_rows()
    hidden = np.random.default_rng(2).random(y.shape) < 0.3
    gappy = np.where(hidden, np.nan, y)
    full = MIXED.complete(np.random.default_rng(3), gappy, states, phi)
    np.testing.assert_array_equal(full[~hidden], y[~hidden])
    assert np.isfinite(full).all()
    assert set(np.unique(full[:, 0])) <= {0, 1, 2}
    assert set(np.unique(full[:, 4:])) <= {0, 1}


def test_a_row_with_gaps_in_one_part_is_completed_by_what_that_part_knows():
    """Two columns that go together: the one that is there tells the other."""
    emission = Independent(MultivariateNormal(2), Normal())
    phi = emission.sample_prior(np.random.default_rng(0), 1)
    phi.multivariate_normal_covariance[:] = [[1.0, 0.999], [0.999, 1.0]]
    phi.multivariate_normal_mean[:] = 0.0
    y = np.column_stack([np.full(200, 5.0), np.full(200, np.nan), np.full(200, np.nan)])
    full = emission.complete(np.random.default_rng(1), y, np.zeros(200, int), phi)
    assert abs(full[:, 1].mean() - 5.0) < 0.05


SETTINGS = {"draws": 30, "tune": 30, "chains": 1, "seed": 1, "progress": False}


def agreement(one, other):
    return np.mean((one[:, None] == one) == (other[:, None] == other))


def test_together_the_parts_find_states_that_none_finds_alone():
    """Four states: the symbol tells two pairs apart, the two numbers another two pairs each."""
    rng = np.random.default_rng(0)
    truth = np.repeat(rng.permutation(np.repeat([0, 1, 2, 3], 5)), 30)
    symbol = np.where(rng.random(600) < 0.9, truth // 2, 1 - truth // 2)
    first = np.array([0.0, 3.0, 0.0, 3.0])[truth] + rng.normal(size=600)
    second = np.array([0.0, 3.0, 3.0, 0.0])[truth] + rng.normal(size=600)
    y = np.column_stack([symbol, first, second])
    prior = ihmm.HDPPrior(stickiness=ihmm.BetaPrior(5, 1))

    def states(emission, columns):
        return ihmm.sample(ihmm.Model(emission, prior), y[:, columns], **SETTINGS).summary().states

    together = states(Independent(Categorical(2), Normal(), Normal()), [0, 1, 2])
    assert len(np.unique(together)) == 4
    assert agreement(together, truth) > 0.97
    for emission, columns in ((Categorical(2), 0), (Normal(), 1), (Normal(), 2)):
        assert agreement(states(emission, columns), truth) < 0.8


def test_a_posterior_goes_all_the_way(tmp_path):
    """Gaps, a second sequence, a store that is resumed, files, a pickle, a forecast."""
    _, _, y = some_rows(n=60)
    y[5, 0] = y[9, 2] = np.nan
    y[20:23] = np.nan
    posterior = ihmm.sample(ihmm.Model(MIXED), [y[:40], y[40:]], store=tmp_path / "run", **SETTINGS)
    assert posterior.forecast(4)[1].y.shape == (30, 4, 6)
    imputed = posterior.impute()
    assert imputed.steps.tolist() == [5, 9, 20, 21, 22]
    assert np.isfinite(imputed.y).all()
    assert "speed_mean" in posterior.summary().table()
    posterior.save(tmp_path / "saved")
    for again in (ihmm.Posterior.load(tmp_path / "saved"), pickle.loads(pickle.dumps(posterior))):
        assert again.model == posterior.model
        assert again.model.emission.names == MIXED.names
        np.testing.assert_array_equal(again.draws[0][-1].phi.place_mean, posterior.draws[0][-1].phi.place_mean)
    longer = ihmm.resume(tmp_path / "run", draws=35, progress=False)
    np.testing.assert_array_equal(longer.states[:, :30], posterior.states)


def test_a_part_of_ones_own_is_asked_for_when_a_file_is_read(tmp_path):
    class Own(Normal):
        pass

    model = ihmm.Model(Independent(Categorical(3), own=Own()))
    y = np.column_stack([np.arange(30) % 3, np.zeros(30)])
    ihmm.sample(model, y, **SETTINGS).save(tmp_path / "x")
    with pytest.raises(ValueError, match="made with Own, which is not part of ihmm; pass the model"):
        ihmm.Posterior.load(tmp_path / "x")
    assert ihmm.Posterior.load(tmp_path / "x", model=model).model is model


def test_equality_and_order():
    a, b = Categorical(3), Normal()
    assert Independent(x=a, y=b) == Independent(x=Categorical(3), y=Normal())
    assert Independent(x=a, y=b) != Independent(y=b, x=a)
    assert hash(Independent(a, b)) == hash(Independent(a, b))
    assert copy.deepcopy(MIXED) == MIXED
    assert eval(repr(MIXED)) == MIXED


def test_parts_that_cannot_be_integrated_out_are_left_to_other_samplers():
    y = np.column_stack([np.zeros((10, 2)), np.arange(10) % 2])
    y[3, 0] = np.nan
    gappy = ihmm.Model(Independent(MultivariateNormal(2), Bernoulli()))
    assert gappy.observe(y).conjugate is None
    with pytest.raises(ValueError, match="single values of a row are missing"):
        ihmm.sample(gappy, y, sampler=ihmm.DirectAssignment(), **SETTINGS)
    y[3] = [np.nan, np.nan, 1]
    assert gappy.observe(y).conjugate is not None


def test_a_part_without_closed_forms_is_named():
    class Six:
        """The methods every emission has, and no more."""

    for name in REQUIRED:
        setattr(Six, name, staticmethod(getattr(Normal(), name)))
    model = ihmm.Model(Independent(Bernoulli(), level=Six()))
    y = np.column_stack([np.arange(20) % 2, np.random.default_rng(0).normal(size=20)])
    with pytest.raises(TypeError, match="which Six does not support"):
        ihmm.sample(model, y, sampler=ihmm.DirectAssignment(), **SETTINGS)
    assert ihmm.sample(model, y, **SETTINGS).draws[0][-1].phi.level_mean.ndim == 1


def test_values_that_a_part_refuses_are_found_by_their_step_and_column():
    y = np.column_stack([np.zeros(6), np.arange(6.0), np.ones((6, 2))])
    y[1, 0] = np.nan
    y[4, 0] = 7
    emission = Independent(kind=Categorical(3), speed=Normal(), shares=Multinomial(2))
    with pytest.raises(ValueError, match=r"kind \(column 0\): Categorical expects .* got 7.0 at t = 4"):
        ihmm.Model(emission).observe(y)
    y[4, 0] = 2
    y[5, 3] = 0.5
    with pytest.raises(ValueError, match=r"shares \(columns 2 to 3\): Multinomial expects non-negative whole numbers"):
        ihmm.Model(emission).observe(y)


def test_a_wrong_number_of_columns_is_refused():
    with pytest.raises(ValueError, match=r"6 columns here \(1 for mode, 1 for speed, 2 for place, 2 for on\), got 1"):
        MIXED.validate(np.zeros(5))


@pytest.mark.parametrize(
    ("parts", "named", "error", "message"),
    [
        ((), {}, ValueError, "needs parts"),
        ((Normal,), {}, TypeError, "such as ihmm.Normal"),
        (("normal",), {}, TypeError, "such as ihmm.Normal"),
        ((Independent(Normal()),), {}, TypeError, "as its parts"),
        ((Normal(),), {"normal": Normal()}, ValueError, "different name for every part"),
        ((), {"a speed": Normal()}, ValueError, "without spaces"),
    ],
)
def test_what_is_no_set_of_parts_is_refused(parts, named, error, message):
    with pytest.raises(error, match=message):
        Independent(*parts, **named)
