"""Predictions of models with durations, against the enumeration of all paths."""

import itertools

import numpy as np
import pytest
from scipy.special import logsumexp

import ihmm
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.kernels.segment_chain import advance, smooth_segments
from ihmm.model import Draw, Hyper, Transitions
from ihmm.predictions import averages, forecasts, predict
from ihmm.samplers._base import sequence_starts
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


def log_rest(law, length, censored, omega):
    """log P(R = length), P(R = d) = P(D ≥ d) / E[D], or log P(R ≥ length)."""
    survivor = np.exp([law.log_survivor(np.array([d]), omega)[0] for d in range(1, length + 1)])
    mean = law.mean(omega)[0]
    return np.log((mean - survivor[:-1].sum() if censored else survivor[-1]) / mean)


def enumerate_paths(model, data, hmm):
    """All paths of one sequence, and log p(s, y)."""
    n_steps, n_states = len(data.y), len(hmm.initial)
    paths = np.array(list(itertools.product(range(n_states), repeat=n_steps)))
    log_p = np.empty(len(paths))
    with np.errstate(divide="ignore"):
        log_initial, log_rows = np.log(hmm.initial), np.log(hmm.rows)
    for i, path in enumerate(paths):
        length, state, censored, _ = runs(path, data.offsets)
        own = type(hmm.omega)(*(field[state] for field in hmm.omega))
        law = model.duration
        lasts = np.where(censored, law.log_survivor(length, own), law.log_probability(length, own))
        if model.left_censored:
            lasts[0] = log_rest(law, length[0], censored[0], type(own)(*(field[:1] for field in own)))
        follows = log_initial[state[0]] + log_rows[state[:-1], state[1:]].sum()
        log_p[i] = follows + lasts.sum() + model.log_density_at(data, path, hmm.phi).sum()
    return paths, log_p


@pytest.mark.parametrize("left_censored", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_filter_smoother_score_and_decoding_equal_enumeration(case, left_censored):
    model = ihmm.Model(CASES[case][0], PRIOR, CASES[case][1], left_censored)
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


INFINITE = ihmm.HDPPrior(gamma=1.5, concentration=2.0)
SEVERAL = CASES | {
    "heavy tails": (ihmm.NoisyLevels(2, tails="student-t", scale="own", shape=3.0), Geometric(1.0, 2.0, minimum=2)),
    "two columns": (ihmm.NoisyLevels(1, n_features=2, shape=3.0), Geometric(1.0, 2.0)),
    "filtered": (ihmm.NoisyLevels(2, filtered=True, shape=3.0), Geometric(1.0, 2.0, minimum=2)),
}


@pytest.mark.parametrize(("prior", "left_censored"), [(PRIOR, True), (INFINITE, False)], ids=["finite", "infinite"])
@pytest.mark.parametrize("case", SEVERAL)
def test_draws_together_have_the_probabilities_and_likelihoods_of_one_chain_over_nodes_at_a_time(
    case, prior, left_censored
):
    model = ihmm.Model(SEVERAL[case][0], prior, SEVERAL[case][1], left_censored=left_censored)
    rng = np.random.default_rng(1)
    y = rng.normal(0, 2, (90, getattr(model.emission, "n_features", 1)))
    y[[5, 40, 41]] = y[50, 0] = np.nan
    data = model.observe([y[:60], y[60:]])
    items = [predict.LabelledDraw(a_draw(model, 90, seed), np.array([seed % 2, -1]), [seed]) for seed in range(8)]
    likelihood, causal, given_all = [], np.zeros((90, 3)), np.zeros((90, 3))
    for item in items:
        hmm = predict.finite_hmm(model, item)
        chain, filtered, by_step, _ = predict.run_segment_filter(model, data, hmm)
        smoothed = np.empty_like(filtered)
        table = predict.chain_over_ages(model, data, hmm)[1]
        smooth_segments(chain, table, sequence_starts(data.offsets), smoothed)
        likelihood.append(np.add.reduceat(by_step, data.offsets[:-1]))
        for k, label in enumerate(hmm.label):
            causal[:, label] += filtered[:, k] / 8
            given_all[:, label] += smoothed[:, k] / 8
    np.testing.assert_allclose(averages.log_likelihood(model, data, items), likelihood, rtol=1e-12)
    for expected, is_causal in ((causal, True), (given_all, False)):
        found = averages.state_probabilities(model, data, items, 2, causal=is_causal)
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("duration", [Geometric(1.0, 2.0, minimum=30), Poisson(1.5, 1.0, minimum=30)], ids=str)
def test_what_is_possible_counts_even_if_it_is_much_less_likely_than_what_is_not(duration):
    """After a while only one state has any probability left, and it must last on, whatever the data."""
    model = ihmm.Model(ihmm.NormalMean(noise=0.01, mean=0.0, scale=1.0), PRIOR, duration)
    y = np.where(np.arange(60) < 20, -1.0, 1.0)
    data = model.observe(y)
    items = [
        predict.LabelledDraw(
            a_draw(model, 60, seed)._replace(phi=type(draw_phi)(np.array([-1.0, 1.0]))), np.arange(2), [0]
        )
        for seed, draw_phi in ((seed, a_draw(model, 60, seed).phi) for seed in range(3))
    ]
    expected = [predict.run_segment_filter(model, data, predict.finite_hmm(model, item))[2].sum() for item in items]
    np.testing.assert_allclose(averages.log_likelihood(model, data, items)[:, 0], expected, rtol=1e-12)
    assert np.isfinite(averages.state_probabilities(model, data, items, 2, causal=False)).all()


@pytest.mark.parametrize("left_censored", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_a_forecast_has_the_state_probabilities_of_the_steps_to_come(case, left_censored):
    """Those of steps without values, by enumeration; the simulated states follow them."""
    model = ihmm.Model(CASES[case][0], PRIOR, CASES[case][1], left_censored)
    steps = 4
    known, longer = model.observe(Y[:3]), model.observe([*Y[:3], *[np.nan] * steps])
    draw = a_draw(model, 3)
    hmm = predict.finite_hmm(model, predict.LabelledDraw(draw, np.arange(2), [5]))
    paths, log_p = enumerate_paths(model, longer, hmm)
    weight = np.exp(log_p - logsumexp(log_p))
    expected = np.array([np.bincount(paths[:, t], weight, 3) for t in range(3, 3 + steps)])

    np.testing.assert_allclose(exact_forecast(model, known, hmm, steps), expected, atol=1e-9)

    items = [predict.LabelledDraw(draw, np.arange(2), [i]) for i in range(400)]
    found = forecasts.forecast(model, known, items, steps, known)[0].state_probabilities(2)
    exact = np.mean([exact_forecast(model, known, predict.finite_hmm(model, item), steps) for item in items], axis=0)
    assert np.abs(found - exact).max() < 5 * 0.5 / np.sqrt(len(items))


def exact_forecast(model, data, hmm, steps):
    """(steps, states): what `forecasts.forecast` simulates."""
    chain, _, _, (mass,) = predict.run_segment_filter(model, data, hmm, ahead=steps)
    out = []
    for _ in range(steps):
        now = np.empty_like(mass)
        advance(chain, mass, np.empty(len(hmm.initial)), now)
        mass = now
        out.append(np.bincount(chain.state, mass, len(hmm.initial)))
    return np.array(out)


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
            forecast = forecasts.forecast(model, data, items, 5, given)[0]
            ends[age, given is None] = np.mean(forecast.states[:, 3] != 1)
    assert ends[2, True] < 0.1 > ends[2, False]
    assert ends[11, True] > 0.5 < ends[11, False]
