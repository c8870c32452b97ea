"""Levels in shared noise: the law of the whole sweep, without and with a memory that needs states to last."""

import itertools

import numpy as np
import pytest
from scipy import stats

import ihmm
from ihmm._random import FLOOR
from ihmm.durations import Geometric, NegativeBinomial
from ihmm.durations.geometric import GeometricOmega
from ihmm.emissions import _correlated
from ihmm.emissions.noisy_levels import NoisyLevelsPhi
from ihmm.model import Draw, Hyper, Transitions
from ihmm.testing import geweke, partition_test
from ihmm.trajectory import Trajectory
from reference.cases import ALARM, NORMAL_SERIES, PRIORS, split
from reference.verdicts import assert_frequencies, count_outcomes

pytestmark = pytest.mark.law

LEVELS = {"mean": 0.3, "spread": 1.5, "shape": 2.5, "rate": 0.8}
WHITE = ihmm.NoisyLevels(0, "shared", "student-t", **LEVELS)
WHITE_COLUMNS = ihmm.NoisyLevels(0, "own", "normal", 2, **LEVELS)
CORRELATED = ihmm.NoisyLevels(0, "shared", "normal", 2, **LEVELS, correlated=True, regression_spread=1.5)
ROWS = np.column_stack([NORMAL_SERIES, [0.9, 0.1, -0.2, 1.5, 0.4]])
HIDDEN = np.array([[0, 0], [0, 0], [0, 1], [1, 1], [0, 0]], bool)


def test_white_noise_visits_every_partition_as_often_as_the_exact_posterior_says():
    y = split(np.where(HIDDEN[:, 0], np.nan, NORMAL_SERIES), [3, 2])
    result = partition_test(ihmm.Model(WHITE, PRIORS["sticky"]), y, ihmm.ParticleGibbs(2), sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", [ihmm.ParticleGibbs(2), ihmm.Beam()], ids=repr)
def test_white_noise_leaves_the_joint_law_alone(sampler):
    model = ihmm.Model(WHITE_COLUMNS, PRIORS["sticky-free"])
    result = geweke(model, [3, 2], sampler, sweeps=1500, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


@pytest.mark.slow
def test_correlated_columns_visit_every_partition_as_often_as_the_exact_posterior_says():
    y = split(np.where(HIDDEN[:, ::-1], np.nan, ROWS), [3, 2])
    result = partition_test(ihmm.Model(CORRELATED, PRIORS["sticky"]), y, ihmm.ParticleGibbs(2), sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


def test_correlated_columns_leave_the_joint_law_alone():
    model = ihmm.Model(CORRELATED, PRIORS["sticky-free"])
    result = geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=1500, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


CASES = {
    "order 1": (ihmm.NoisyLevels(1, "shared", "normal", **LEVELS), Geometric(2, 3)),
    "order 2": (ihmm.NoisyLevels(2, "own", "student-t", **LEVELS), NegativeBinomial(2.0, 2, 3, minimum=2)),
    "order 2, two columns": (ihmm.NoisyLevels(2, "shared", "normal", 2, **LEVELS), Geometric(2, 3, minimum=3)),
    "order 1, correlated": (
        ihmm.NoisyLevels(1, "shared", "student-t", 2, **LEVELS, correlated=True, regression_spread=1.5),
        Geometric(2, 3),
    ),
    "filtered": (ihmm.NoisyLevels(2, "shared", "normal", filtered=True, **LEVELS), Geometric(2, 3, minimum=2)),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", ["order 1", "order 2", "order 1, correlated"])
def test_noise_with_a_memory_visits_every_partition_as_often_as_the_exact_posterior_says(case):
    emission, duration = CASES[case]
    model = ihmm.Model(emission, PRIORS["plain"], duration)
    y = split(ROWS if emission.n_features == 2 else NORMAL_SERIES, [5])
    result = partition_test(model, y, ihmm.ParticleGibbs(2), sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("case", CASES)
def test_noise_with_a_memory_leaves_the_joint_law_alone(case):
    emission, duration = CASES[case]
    result = geweke(ihmm.Model(emission, PRIORS["free"], duration), [6, 4], ihmm.ParticleGibbs(2), sweeps=1500, seed=7)
    assert result.p_value > ALARM, result


class InTwoWays(ihmm.NoisyLevels):
    """Broken on purpose: levels are drawn as if the coordinates had the prior of the columns."""

    def update(self, rng, y, states, phi):
        joint = _correlated.draw_levels

        def draw_levels(rng, columns, weights, coefficients, matrix, *rest):
            return joint(rng, columns, weights, coefficients, np.eye(2), *rest) @ np.linalg.inv(matrix).T

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_correlated, "draw_levels", draw_levels)
            return super().update(rng, y, states, phi)


def test_a_mistake_about_correlated_columns_is_caught():
    emission = InTwoWays(1, "shared", "normal", 2, 0.3, 0.8, 2.5, 0.8, correlated=True, regression_spread=1.5)
    result = geweke(ihmm.Model(emission, PRIORS["free"], Geometric(2, 3)), [6, 4], sweeps=2500, seed=7)
    assert result.p_value < 1e-6, result


class OfOneState(ihmm.NoisyLevels):
    """Broken on purpose: updates as if all past values had come from the present state."""

    def update(self, rng, y, states, phi):
        return super().update(rng, y, states[:, 0], phi)


def test_a_mistaken_update_is_caught():
    model = ihmm.Model(OfOneState(1, **LEVELS), PRIORS["free"], Geometric(2, 3))
    result = geweke(model, [6, 4], ihmm.ParticleGibbs(2), sweeps=2500, seed=7)
    assert result.p_value < 1e-6, result


# One pass with everything but the path fixed, over many copies of a short sequence


Y = np.array([0.2, 0.1, 1.4, 1.9, 0.9, 0.4])
INITIAL, LEAVE = np.array([0.4, 0.6]), np.array([0.3, 0.45])
COEFFICIENTS = {1: [0.7], 2: [0.5, 0.3]}


def log_joint(path, order):
    """log p(s, y) of a path over two states with levels 0 and 2, by its definition; −∞ if a run is too short."""
    ends = [t for t in range(1, len(path)) if path[t] != path[t - 1]]
    runs = list(itertools.pairwise([0, *ends, len(path)]))
    total = np.log(INITIAL[path[0]])
    for begin, end in runs:
        p, beyond = LEAVE[path[begin]], end - begin - order
        if end < len(path):
            total += np.log(p) + beyond * np.log1p(-p) if beyond >= 0 else -np.inf
        else:
            total += max(beyond, 0) * np.log1p(-p)
    error = Y - 2.0 * np.array(path)
    for t in range(order, len(Y)):
        past = sum(a * error[t - lag] for lag, a in enumerate(COEFFICIENTS[order], 1))
        total += stats.norm(past, 0.5).logpdf(error[t])
    return total


def frequencies_after_passes(emission, n=3000, passes=4):
    """How often each path is found after some passes over copies of Y whose paths come from the posterior; and how
    often it should be."""
    order, rng = emission.order, np.random.default_rng(0)
    paths = list(itertools.product(range(2), repeat=len(Y)))
    weight = np.exp([log_joint(path, order) for path in paths])
    exact = weight / weight.sum()
    model = ihmm.Model(emission, ihmm.FinitePrior(2, 1.0, 1.0), Geometric(minimum=order))
    data = model.observe([Y] * n)
    transitions = Transitions(
        np.array([0.5, 0.5, FLOOR]), np.append(INITIAL, FLOOR), np.array([[FLOOR, 1.0, FLOOR], [1.0, FLOOR, FLOOR]])
    )
    phi = NoisyLevelsPhi(np.array([0.0, 2.0]), np.full(2, 0.5), np.tile(COEFFICIENTS[order], (2, 1)), ())
    states = np.array(paths)[rng.choice(len(paths), n, p=exact)]
    for _ in range(passes):
        draw = Draw(Trajectory(states.ravel()), transitions, phi, Hyper(1.0, 1.0, 0.0), durations=GeometricOmega(LEAVE))
        update, _ = ihmm.ParticleGibbs(2).resample_states(rng, data, model, draw)
        states = update.states.reshape(n, -1)
    return count_outcomes(states, paths), exact


@pytest.mark.parametrize("order", [1, 2])
def test_a_pass_leaves_the_law_of_the_path_alone(order):
    assert_frequencies(*frequencies_after_passes(ihmm.NoisyLevels(order)))


class SettlesAtOnce(ihmm.NoisyLevels):
    """Broken on purpose: after a change of state the pass forgets the level before."""

    def after_change(self, y, phi):
        after = super().after_change(y, phi)
        return after._replace(factor=0 * after.factor)


@pytest.mark.parametrize("order", [1, 2])
def test_a_pass_that_forgets_the_level_before_is_caught(order):
    with pytest.raises(AssertionError, match="p = "):
        assert_frequencies(*frequencies_after_passes(SettlesAtOnce(order)))
