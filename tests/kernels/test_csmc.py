"""`kernels.csmc` through the sampler that runs it, against N particles written out and against enumeration.

Given θ the sequences of a data set are independent, so many copies of one short sequence are many passes at once.
"""

from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ihmm.data import Data
from ihmm.emissions import Categorical
from ihmm.emissions.categorical import CategoricalPhi
from ihmm.kernels import csmc
from ihmm.model import Draw, Hyper, Model, Transitions
from ihmm.priors import HDPPrior
from ihmm.samplers import ParticleGibbs
from ihmm.trajectory import Trajectory
from reference import csmc as twin
from reference.problems import THREE_STATES, THRESHOLDS, TWO_STATES, chain_of, passes
from reference.verdicts import assert_frequencies, assert_mean, assert_same_frequencies, count_outcomes

pytestmark = pytest.mark.bounds

Multinomial = partial(ParticleGibbs, resampling="multinomial")


def pass_law(chain, reference, n_particles, ancestor_sampling=True):
    return twin.law_of(lambda choose: twin.one_pass(choose, chain, reference, n_particles, ancestor_sampling))


@pytest.mark.parametrize("ancestor_sampling", [True, False])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_the_twin_leaves_the_law_of_paths_unchanged(threshold, ancestor_sampling):
    problem = THREE_STATES._replace(y=(0, 2))
    chain = chain_of(problem, threshold)
    law = twin.path_law(chain)
    after = dict.fromkeys(law, 0.0)
    for reference, weight in law.items():
        for path, probability in pass_law(chain, reference, 2, ancestor_sampling).items():
            after[path] += weight * probability
    np.testing.assert_allclose(list(after.values()), list(law.values()), rtol=1e-12)


@pytest.mark.law
@pytest.mark.parametrize("ancestor_sampling", [True, False])
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_pass_turns_a_path_into_each_other_as_often_as_particles_written_out(threshold, ancestor_sampling):
    for reference in [(0, 0, 1), (1, 2, 2), (2, 2, 0)]:
        law = pass_law(chain_of(THREE_STATES, threshold), reference, 2, ancestor_sampling)
        sampler = Multinomial(2, ancestor_sampling=ancestor_sampling, threshold=threshold)
        new = passes(sampler, THREE_STATES, [reference] * 30_000)
        assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize("ancestor_sampling", [True, False])
def test_so_does_a_pass_that_follows_the_prior(ancestor_sampling):
    reference = (1, 2, 2)
    law = pass_law(chain_of(THREE_STATES, proposal="prior"), reference, 2, ancestor_sampling)
    sampler = Multinomial(2, "prior", ancestor_sampling)
    assert_frequencies(count_outcomes(passes(sampler, THREE_STATES, [reference] * 30_000), law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize(("n_particles", "threshold"), [(3, 0.1), (3, 0.5), (3, 1.0), (4, 0.5)])
def test_so_does_a_pass_with_more_particles(n_particles, threshold):
    problem, reference = TWO_STATES._replace(y=(2, 0), marginal=(0.2, 0.6)), (1, 0)
    law = pass_law(chain_of(problem, threshold), reference, n_particles)
    new = passes(Multinomial(n_particles, threshold=threshold), problem, [reference] * 30_000)
    assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize(("threshold", "ancestor_sampling"), [(0.1, True), (0.25, True), (0.25, False), (0.4, True)])
def test_so_does_a_longer_pass_as_far_as_simulation_tells(threshold, ancestor_sampling):
    problem = THREE_STATES._replace(y=(0, 1, 2, 2), marginal=(0.5, 0.1, 0.3, 0.4))
    chain, reference = chain_of(problem, threshold), (2, 2, 0, 0)
    choose = twin.chooser(np.random.default_rng(4))
    simulated = [twin.one_pass(choose, chain, reference, 5, ancestor_sampling) for _ in range(3000)]
    new = passes(Multinomial(5, "posterior", ancestor_sampling, threshold), problem, [reference] * 40_000)
    possible = twin.path_law(chain)
    assert_same_frequencies(count_outcomes(new, possible), count_outcomes(simulated, possible))


@pytest.mark.law
@pytest.mark.parametrize("n_particles", [2, 5, 30])
@pytest.mark.parametrize("ancestor_sampling", [True, False])
@pytest.mark.parametrize(("proposal", "threshold"), [("posterior", 0.1), ("posterior", 0.5), ("prior", 0.5)])
def test_a_pass_leaves_the_enumerated_law_of_paths_unchanged(n_particles, ancestor_sampling, proposal, threshold):
    law = twin.path_law(chain_of(TWO_STATES))
    paths, weights = np.array(list(law)), list(law.values())
    references = np.random.default_rng(5).choice(paths, 40_000, p=weights)
    new = passes(Multinomial(n_particles, proposal, ancestor_sampling, threshold), TWO_STATES, references)
    assert_frequencies(count_outcomes(new, law), weights)


@pytest.mark.law
def test_many_particles_forget_the_reference():
    # one step and a thousand particles: the reference is one in a thousand
    problem = THREE_STATES._replace(y=(1,), marginal=(0.2,))
    law = twin.path_law(chain_of(problem))
    new = passes(Multinomial(1000, threshold=0.25), problem, [(0,)] * 20_000)
    observed = np.bincount(new.ravel(), minlength=3) / 20_000
    np.testing.assert_allclose(observed, [law[(k,)] for k in range(3)], atol=0.02)


@pytest.mark.law
@pytest.mark.parametrize(("proposal", "threshold"), [("prior", 1.0), ("posterior", 0.05), ("posterior", 0.7)])
def test_two_sequences_meet_in_a_state_never_seen_as_often_as_the_process_says(proposal, threshold):
    """The rest of the initial row is a DP(c β_rest) over a GEM(γ) rest of β: two draws from it meet with probability

    1/(1 + m) + m/(1 + m) · 1/(1 + γ),   m = c β_rest.
    """
    gamma, concentration, rest, share, n_particles = 1.5, 4.0, 0.5, 0.6, 8
    phi = CategoricalPhi(np.ones((1, 1)))  # one symbol, which every state emits: the data say nothing
    transitions = Transitions(np.array([0.5, rest]), np.array([1 - share, share]), np.array([[0.5, 0.5]]))
    draw = Draw(Trajectory(np.zeros(2, np.int64)), transitions, phi, Hyper(gamma, concentration, 0.0))
    data = Data(np.zeros(2, np.int64), np.arange(3), np.zeros(2))
    model = Model(Categorical(1), HDPPrior(gamma, concentration, 0.0))
    sampler = Multinomial(n_particles, proposal, threshold=threshold)
    fresh, meet = [], []
    for seed in range(4000):
        path, info = sampler.resample_states(np.random.default_rng(seed), data, model, draw)
        new = path.states >= len(path.beta) - 1 - info.n_born
        fresh.append(new[0])
        if new.all():
            meet.append(path.states[0] == path.states[1])
    assert_mean(fresh, share * (n_particles - 1) / n_particles)
    mass = concentration * rest
    assert_mean(meet, 1 / (1 + mass) + mass / (1 + mass) / (1 + gamma))


@pytest.mark.law
@pytest.mark.parametrize("stickiness", [0.0, 0.5])
def test_a_newborn_state_is_followed_by_itself_as_often_as_its_self_bias_says(stickiness):
    """With all of β still to be broken, P(s_2 = s_1) = E Σ_k π_0k π_kk = ρ + (1−ρ) E Σ_k β_k² = ρ + (1−ρ)/(1 + γ).

    Without ancestor sampling a new first state has a free particle's future.
    """
    gamma, concentration, tiny = 1.0, 3.0, 1e-9
    phi = CategoricalPhi(np.ones((1, 1)))  # one symbol, which every state emits: the data say nothing
    transitions = Transitions(np.array([tiny, 1 - tiny]), np.array([tiny, 1 - tiny]), np.array([[0.5, 0.5]]))
    draw = Draw(Trajectory(np.zeros(2, np.int64)), transitions, phi, Hyper(gamma, concentration, stickiness))
    data = Data(np.zeros(2, np.int64), np.array([0, 2]), np.zeros(2))
    model = Model(Categorical(1), HDPPrior(gamma, concentration, stickiness))
    sampler = Multinomial(8, ancestor_sampling=False, threshold=0.1)
    stays = []
    for seed in range(4000):
        path, info = sampler.resample_states(np.random.default_rng(seed), data, model, draw)
        if path.states[0] >= len(path.beta) - 1 - info.n_born:
            stays.append(path.states[0] == path.states[1])
    assert_mean(stays, stickiness + (1 - stickiness) / (1 + gamma))


@settings(max_examples=100, deadline=None, derandomize=True)
@given(st.one_of(st.integers(1, 5), st.integers(45, 130)), st.integers(0, 1000), st.data())
def test_search_finds_the_first_step_of_a_cumulative_row_that_goes_beyond(size, seed, data):
    steps = np.random.default_rng(seed).integers(0, 4, size)  # some of no height
    reach = np.cumsum(steps).astype(float)
    low = data.draw(st.integers(0, size // 10))
    high = data.draw(st.integers(max(size - 3, low + 1), size))
    u = data.draw(st.one_of(st.sampled_from(list(reach)), st.floats(0, float(reach[-1]) + 0.1)))
    beyond = [k for k in range(low, high) if reach[k] > u]
    assert csmc.search(reach, low, high, u) == (beyond[0] if beyond else high - 1)
