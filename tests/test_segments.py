"""Predictions of models with durations, against the enumeration of all paths."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import ihmm
from ihmm import predict
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.model import Draw, Hyper, Transitions
from ihmm.trajectory import Trajectory, runs

Y = [-1.0, -1.2, 1.5, 1.3, -0.8, 0.4]
PRIOR = ihmm.FinitePrior(3, 1.5, 1.0)
LEVELS = ihmm.NormalMean(noise=0.7, mean=0.0, scale=1.5)
CASES = {
    "geometric": (LEVELS, Geometric(1.0, 2.0)),
    "geometric, minimum": (LEVELS, Geometric(1.0, 2.0, minimum=3)),
    "negative binomial": (LEVELS, NegativeBinomial(ihmm.GammaPrior(2, 1), 1.5, 2.0, minimum=2)),
    "poisson": (LEVELS, Poisson(1.5, 1.0)),
    "noise with memory": (ihmm.NoisyLevels(1, shape=3.0), Geometric(1.0, 2.0)),
    "noise with a longer memory": (ihmm.NoisyLevels(2, shape=3.0), Poisson(1.5, 1.0, minimum=2)),
}


def a_draw(model, n_steps, seed=0):
    """Two of the three states of a model, and their parameters."""
    rng = np.random.default_rng(seed)
    rows = rng.dirichlet(np.ones(3), size=2)
    rows[np.arange(2), np.arange(2)] = 1e-300
    rows /= rows.sum(axis=1, keepdims=True)
    beta, initial = rng.dirichlet(np.ones(3), size=2)
    phi = model.emission.sample_prior(rng, 2)
    if model.memory:
        phi = model.emission.sample_new(rng, 2, phi)
    states = np.zeros(n_steps, np.int64)
    return Draw(
        Trajectory(states), Transitions(beta, initial, rows), phi, Hyper(1.5, 1.0, 0.0), None,
        model.duration.sample_prior(rng, 2),
    )  # fmt: skip


def enumerate_paths(model, data, hmm):
    """All paths of one sequence, and log p(s, y)."""
    n_steps, n_states = len(data.y), len(hmm.initial)
    paths = np.array(list(itertools.product(range(n_states), repeat=n_steps)))
    log_p = np.empty(len(paths))
    with np.errstate(divide="ignore"):
        log_initial, log_rows = np.log(hmm.initial), np.log(hmm.rows)
    for i, path in enumerate(paths):
        length, state, censored = runs(path, data.offsets)
        own = type(hmm.omega)(*(field[state] for field in hmm.omega))
        law = model.duration
        lasts = np.where(censored, law.log_survivor(length, own), law.log_probability(length, own))
        follows = log_initial[state[0]] + log_rows[state[:-1], state[1:]].sum()
        log_p[i] = follows + lasts.sum() + model.log_density_at(data, path, hmm.phi).sum()
    return paths, log_p


@pytest.mark.parametrize("case", CASES)
def test_filter_smoother_score_and_decoding_equal_enumeration(case):
    model = ihmm.Model(CASES[case][0], PRIOR, CASES[case][1])
    y = np.array(Y)
    y[5 if model.memory else 1] = np.nan
    data = model.observe([y, y[::-1]])
    item = predict.LabelledDraw(a_draw(model, len(data.y)), np.arange(2), [5])
    hmm = predict.finite_hmm(model, item)
    filtered, log_predictive = predict.run_filter(model, data, hmm)
    smoothed = predict.run_smoother(model, data, hmm)
    decoded = predict.decode(model, data, [item])[0]
    for begin, end in itertools.pairwise(data.offsets):
        part = data.part(begin, end)
        for stop in range(1, end - begin + 1):
            paths, log_p = enumerate_paths(model, part.part(0, stop), hmm)
            weight = np.exp(log_p - logsumexp(log_p))
            last = np.bincount(paths[:, -1], weight, len(hmm.initial))
            np.testing.assert_allclose(filtered[begin + stop - 1], last, atol=1e-9)
            np.testing.assert_allclose(log_predictive[begin : begin + stop].sum(), logsumexp(log_p), atol=1e-9)
        for t in range(end - begin):
            np.testing.assert_allclose(smoothed[begin + t], np.bincount(paths[:, t], weight, 3), atol=1e-9)
        np.testing.assert_array_equal(decoded[begin:end], hmm.label[paths[log_p.argmax()]])


def test_a_forecast_knows_how_long_the_present_state_has_lasted():
    model = ihmm.Model(LEVELS, PRIOR, Poisson(1000.0, 100.0))  # segments of about 11 steps
    rng = np.random.default_rng(0)
    ends = {}
    for age in (2, 11):
        y = np.append(rng.normal(-1.5, 0.1, 30 - age), rng.normal(1.5, 0.1, age))
        data = model.observe(y)
        draw = a_draw(model, len(y))._replace(trajectory=Trajectory((np.arange(30) >= 30 - age).astype(np.int64)))
        draw = draw._replace(phi=type(draw.phi)(np.array([-1.5, 1.5])), durations=model.duration.sample_prior(rng, 2))
        items = [predict.LabelledDraw(draw, np.arange(2), [i]) for i in range(100)]
        for given in (None, data):
            forecast = predict.forecast(model, data, items, 5, given)[0]
            ends[age, given is None] = np.mean(forecast.states[:, 3] != 1)
    assert ends[2, True] < 0.1 > ends[2, False]
    assert ends[11, True] > 0.5 < ends[11, False]
