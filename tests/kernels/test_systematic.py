"""`kernels.systematic` through the sampler that runs it, against its twin and against enumeration.

The problems are those of `test_csmc`, and so is the way many copies of one short sequence make many passes at once.
"""

import numpy as np
import pytest

from ihmm.kernels import particles, systematic
from ihmm.samplers import ParticleGibbs, states
from reference import systematic as twin
from reference.broken import SYSTEMATIC, broken
from reference.csmc import chooser, law_of, path_law
from reference.problems import THREE_STATES, THRESHOLDS, TWO_STATES, chain_of, passes
from reference.verdicts import assert_frequencies, assert_same_frequencies, count_outcomes

pytestmark = pytest.mark.bounds


def pass_law(chain, reference, n_particles):
    return law_of(lambda choose: twin.one_pass(choose, chain, reference, n_particles))


@pytest.mark.parametrize(
    ("n_particles", "threshold"), [*((2, threshold) for threshold in THRESHOLDS), (3, 0.1), (3, 0.25)]
)
def test_the_twin_leaves_the_law_of_paths_unchanged(n_particles, threshold):
    chain = chain_of(THREE_STATES._replace(y=(0, 2)), threshold)
    law = path_law(chain)
    after = dict.fromkeys(law, 0.0)
    for reference, weight in law.items():
        for path, probability in pass_law(chain, reference, n_particles).items():
            after[path] += weight * probability
    np.testing.assert_allclose(list(after.values()), list(law.values()), rtol=1e-12)


@pytest.mark.law
@pytest.mark.parametrize("threshold", THRESHOLDS)
def test_a_pass_turns_a_path_into_each_other_as_often_as_the_twin(threshold):
    for reference in [(0, 0, 1), (1, 2, 2), (2, 2, 0)]:
        law = pass_law(chain_of(THREE_STATES, threshold), reference, 2)
        new = passes(ParticleGibbs(2, threshold=threshold), THREE_STATES, [reference] * 30_000)
        assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
def test_so_does_a_pass_that_follows_the_prior():
    reference = (1, 2, 2)
    law = pass_law(chain_of(THREE_STATES, proposal="prior"), reference, 2)
    new = passes(ParticleGibbs(2, "prior"), THREE_STATES, [reference] * 30_000)
    assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize(("n_particles", "threshold"), [(3, 0.1), (3, 0.5), (3, 1.0), (4, 0.5), (20, 0.1)])
def test_so_does_a_pass_with_more_particles(n_particles, threshold):
    problem, reference = TWO_STATES._replace(y=(2, 0), marginal=(0.2, 0.6)), (1, 0)
    law = pass_law(chain_of(problem, threshold), reference, n_particles)
    new = passes(ParticleGibbs(n_particles, threshold=threshold), problem, [reference] * 30_000)
    assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize("threshold", [0.1, 0.25, 0.4])
def test_so_does_a_longer_pass_as_far_as_simulation_tells(threshold):
    problem = THREE_STATES._replace(y=(0, 1, 2, 2), marginal=(0.5, 0.1, 0.3, 0.4))
    chain, reference = chain_of(problem, threshold), (2, 2, 0, 0)
    choose = chooser(np.random.default_rng(4))
    simulated = [twin.one_pass(choose, chain, reference, 5) for _ in range(3000)]
    new = passes(ParticleGibbs(5, threshold=threshold), problem, [reference] * 40_000)
    possible = path_law(chain)
    assert_same_frequencies(count_outcomes(new, possible), count_outcomes(simulated, possible))


# (proposal, threshold): V is all states, one of two, none
SETTINGS = [("posterior", 0.1), ("posterior", 0.5), ("posterior", 1.0), ("prior", 0.5)]


@pytest.mark.law
@pytest.mark.parametrize("n_particles", [2, 3, 6, 30])
@pytest.mark.parametrize(("proposal", "threshold"), SETTINGS)
def test_a_pass_leaves_the_enumerated_law_of_paths_unchanged(n_particles, proposal, threshold):
    assert_frequencies(*after_one_pass(ParticleGibbs(n_particles, proposal, threshold=threshold)))


def after_one_pass(sampler):
    """How often each path of TWO_STATES is seen after one pass over independent draws of them, and the law."""
    law = path_law(chain_of(TWO_STATES))
    paths, weights = np.array(list(law)), list(law.values())
    references = np.random.default_rng(5).choice(paths, 40_000, p=weights)
    return count_outcomes(passes(sampler, TWO_STATES, references), law), weights


@pytest.mark.law
def test_as_many_particles_as_states_and_more_forget_the_reference():
    """With spacing so small that every state is kept, a pass is an independent draw: filtering and sampling back."""
    law = path_law(chain_of(TWO_STATES))
    for reference in [(0, 0, 0, 0), (1, 0, 1, 0)]:
        new = passes(ParticleGibbs(1000, threshold=0.1), TWO_STATES, [reference] * 40_000)
        assert_frequencies(count_outcomes(new, law), list(law.values()))


@pytest.mark.law
@pytest.mark.parametrize("name", SYSTEMATIC)
def test_a_broken_pass_is_rejected(name, monkeypatch, tmp_path):
    sampler = ParticleGibbs(6 if "once" in name else 2, threshold=0.5)
    assert_frequencies(*after_one_pass(sampler))
    monkeypatch.setattr(states, "systematic", broken(systematic, tmp_path, *SYSTEMATIC[name]))
    counts, law = after_one_pass(sampler)
    with pytest.raises(AssertionError, match="p = "):
        assert_frequencies(counts, law)


@pytest.mark.parametrize("threshold", [0.1, 0.5, 1.0])
def test_a_step_at_which_every_weight_is_zero_keeps_the_reference(threshold, monkeypatch):
    def score_of_nothing(*arguments):
        density = score(*arguments)
        density.explicit[1::4] = 0.0
        return density

    score = states.score
    monkeypatch.setattr(states, "score", score_of_nothing)
    references = np.random.default_rng(6).integers(0, 2, (500, 4))
    new = passes(ParticleGibbs(5, threshold=threshold), TWO_STATES, references)
    np.testing.assert_array_equal(new[:, 1], references[:, 1])
    assert np.any(new != references)


def test_masses_are_finite_where_weights_almost_underflow(monkeypatch):
    def score_of_little(*arguments):
        density = score(*arguments)
        density.explicit[:] *= 3e-304
        return density

    def look(sticks, system, *others):
        masses.append(system.mass[: system.first[-1]])
        trace_back(sticks, system, *others)

    score, trace_back, masses = states.score, particles.trace_back, []
    monkeypatch.setattr(states, "score", score_of_little)
    monkeypatch.setattr(particles, "trace_back", look)
    passes(ParticleGibbs(60_000, threshold=0.1), TWO_STATES, [(0, 1, 0, 1)] * 20)
    assert np.all(np.isfinite(masses[0]))
    assert np.all(masses[0] > 0)


@pytest.mark.parametrize("n_particles", [2, 10, 1000])
@pytest.mark.parametrize("threshold", [0.1, 0.5, 1.0])
def test_a_reference_that_cannot_be_is_left_soon(threshold, n_particles):
    """One state cannot emit the first symbol, and the path begins there; no other state is found in its place."""
    problem = TWO_STATES._replace(probs=((0.5, 0.5, 1e-320), (0.2, 0.2, 0.6)))
    new = np.tile([0, 1, 0, 0], (200, 1))
    for seed in range(30):
        new = passes(ParticleGibbs(n_particles, threshold=threshold), problem, new, seed)
    assert np.all(new[:, [0, 2]] == 1)
