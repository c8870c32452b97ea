"""Exact splits and merges: the ratio is that of the joint probabilities, and they do what they should.

That they leave the posterior as it is, is shown in tests/laws/test_moves.py.
"""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import ihmm
from ihmm.gibbs import sweep
from ihmm.kernels import split_merge
from ihmm.kernels.conditionals import Concentrations
from ihmm.model import Hyper
from ihmm.samplers import StateUpdate
from ihmm.sticks import new_stream
from ihmm.trajectory import Trajectory
from moves.test_greedy import log_joint
from reference.cases import COLUMNS, EMISSIONS

HYPER = Hyper(gamma=1.7, concentration=2.5, stickiness=0.4)
FAMILIES = EMISSIONS | COLUMNS


@pytest.mark.parametrize("lengths", [[8], [3, 5]], ids=["one sequence", "several sequences"])
@pytest.mark.parametrize(("emission", "series"), FAMILIES.values(), ids=FAMILIES)
def test_the_estimate_is_the_sum_over_all_ways_to_split(emission, series, lengths):
    """E[Z] = Σ p(split)/p(one state), the sum over 2^6 choices term by term from the formula of the joint."""
    rng = np.random.default_rng(2)
    model = ihmm.Model(emission)
    y = np.concatenate([series, series])[rng.permutation(2 * len(series))[:8]]
    data = model.observe(np.split(y, np.cumsum(lengths)[:-1]))
    # one of states 0, 1, 2 everywhere; states 0 and 1 are the union, steps i and j its anchors
    union, i, j = np.array([0, 1, 2, 4, 5, 7]), 4, 1
    states = np.full(8, 1)
    states[union] = 0
    beta = np.array([0.4, 0.35, 0.25])
    balance = 0.7
    share = beta[0] / (1 + np.exp([-balance, balance]))

    merged = log_joint(model, data, states, beta, HYPER)
    ratios = []
    for sides in itertools.product([0, 1], repeat=len(union)):
        split = states.copy()
        split[union] = np.where(sides, 2, 0)
        if split[i] == 0 and split[j] == 2:
            joint = log_joint(model, data, split, np.array([share[0], beta[1], share[1], beta[2]]), HYPER)
            # Jacobian, density of the balance, and the pick of j
            joint += np.log(share.prod() / share.sum() * (split_merge.MAX_LOG_ODDS - split_merge.MIN_LOG_ODDS))
            ratios.append(joint - merged + np.log(2 * len(union) / (3 * sum(sides))))
    expected = logsumexp(ratios)

    compiled, concentrations = data.conjugate.compiled, Concentrations(*HYPER)
    attempt = split_merge.Attempt(False, 0, 2, i, j, share)
    begins = np.isin(np.arange(9), data.offsets)
    start = np.log(HYPER.gamma * (split_merge.MAX_LOG_ODDS - split_merge.MIN_LOG_ODDS) * 2 / 3)
    stream, found = new_stream(rng), []
    for _ in range(4000):
        ratio, _, _, known = split_merge.choose_sides(
            stream, compiled, concentrations, begins, states, np.append(beta[:2], 0.0), 2, 3, attempt, start,
            (-np.inf, np.inf),
        )  # fmt: skip
        assert sorted(known) == union.tolist()
        found.append(ratio)
    weights = np.exp(np.array(found) - expected)
    stopped = ~((np.array(found) >= split_merge.STOP_BELOW) & (np.array(found) <= split_merge.STOP_ABOVE))
    assert not stopped.any(), "the series should leave everything open"
    assert weights.mean() == pytest.approx(1.0, abs=4 * weights.std() / np.sqrt(len(weights)))


def twins(n=600, seed=0):
    """Two levels, far apart, each left with probability 1/5."""
    rng = np.random.default_rng(seed)
    states = np.cumsum(rng.random(n) < 0.2) % 2
    return 6.0 * states + rng.normal(size=n), states


def apply(states, y, times, seed=1, hyper=HYPER):
    model = ihmm.Model(ihmm.Normal(3.0, 0.05, 2.0, 2.0))
    data, rng = model.observe(y), np.random.default_rng(seed)
    labels, states = np.unique(states, return_inverse=True)
    share = 0.9 * np.bincount(states) / len(states)
    path, splits, merges = StateUpdate(Trajectory(states), np.append(share, 0.1)), 0, 0
    for _ in range(times):
        path, info = ihmm.SplitMerge(10).apply(rng, data, model, path, hyper)
        splits, merges = splits + info.n_split, merges + info.n_merged
        assert path.beta.sum() == pytest.approx(1.0)
        np.testing.assert_array_equal(np.unique(path.states), np.arange(len(path.beta) - 1))
        assert len(path.beta) - 1 == len(labels) + splits - merges
    return path


def test_copies_of_a_state_become_one():
    y, states = twins()
    copies = states + 2 * np.random.default_rng(3).integers(2, size=len(y))
    path = apply(copies, y, times=20, hyper=HYPER._replace(gamma=0.3))
    sizes = np.bincount(path.states)
    assert np.sort(sizes)[-2:].sum() > 0.95 * len(y)


def test_states_that_differ_stay_apart():
    y, states = twins()
    path = apply(states, y, times=20)
    for k in range(len(path.beta) - 1):
        assert len(np.unique(states[path.states == k])) == 1


def test_others_are_left_alone():
    y, states = twins(60)
    rng = np.random.default_rng(0)
    path = StateUpdate(Trajectory(states), np.array([0.4, 0.4, 0.2]))
    for model in [
        ihmm.Model(ihmm.StudentT()),
        ihmm.Model(ihmm.DPMixture(ihmm.Normal())),
        ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(4)),
    ]:
        renewed, info = ihmm.SplitMerge().apply(rng, model.observe(y), model, path, HYPER)
        assert renewed is path
        assert info == (0, 0)


def test_it_acts_in_every_sweep_and_is_reported():
    y, states = twins(200)
    model = ihmm.Model(ihmm.Normal(3.0, 0.05, 2.0, 2.0))
    posterior = ihmm.sample(model, y, draws=100, tune=20, chains=1, seed=1, progress=False)
    assert posterior.traces["n_split"].sum() > 0
    assert abs(int(posterior.traces["n_split"].sum()) - int(posterior.traces["n_merged"].sum())) < 20
    plain = ihmm.sample(model, y, draws=20, tune=20, chains=1, seed=1, moves=(), progress=False)
    assert not plain.traces["n_split"].any()
    draw, info = next(ihmm.iterate(model, y, seed=1, moves=[ihmm.SplitMerge(50)], init=states))
    _, none = sweep(np.random.default_rng(1), model.observe(y), model, draw, ihmm.ParticleGibbs())
    assert none.moves == (0, 0)
    assert info.moves.n_split >= 0


@pytest.mark.parametrize(("gamma", "expected"), [(1e-3, 8), (1.0, 8), (2.3, 19), (1e4, 64)])
def test_the_usual_number_of_attempts_grows_with_gamma(gamma, expected):
    assert ihmm.SplitMerge.usual_attempts(HYPER._replace(gamma=gamma)) == expected


@pytest.mark.parametrize(("settings", "message"), [({"attempts": 0}, "attempts"), ({"n_particles": 1}, "n_particles")])
def test_settings_are_checked(settings, message):
    with pytest.raises(ValueError, match=f"SplitMerge {message}"):
        ihmm.SplitMerge(**settings)
