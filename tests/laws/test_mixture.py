"""Mixtures within states: the posterior of states and components together is the exact one."""

import numpy as np
import pytest
from scipy import stats

import ihmm
import ihmm.gibbs
from ihmm.emissions import dp_mixture
from ihmm.testing import canonical, compare, geweke, log_path_probability, partition_test, set_partitions
from ihmm.testing._evidence import MixtureEvidence
from ihmm.testing._partition_test import BURN_IN
from ihmm.testing._partitions import blocks_of
from reference.cases import ALARM, EMISSIONS, FINITE_PRIORS, PRIORS

pytestmark = pytest.mark.law

NORMAL = EMISSIONS["normal"][0]
SERIES = [-1.0, -1.2, 1.5, 1.3]
ALIKE = [0.0, 0.1, 0.0, -0.1]
FREE = ihmm.GammaPrior(2, 2)
HIDDEN = np.array([False, True, False, False, True])


def both_partitions(n):
    """All set partitions into states, and of every state into components."""
    for states in set_partitions(n):
        seats = [()]
        for block in blocks_of(states).values():
            seats = [(*before, *own) for before in seats for own in set_partitions(len(block))]
        order = np.argsort([t for block in blocks_of(states).values() for t in block])
        for seat in seats:
            yield states, tuple(np.array(seat)[order].tolist())


def named(draw):
    """States in order of appearance, and components in order of appearance within their states."""
    components = np.empty(len(draw.states), np.int64)
    for k in np.unique(draw.states):
        components[draw.states == k] = canonical(draw.components[draw.states == k])
    return canonical(draw.states), tuple(components.tolist())


def joint_test(model, y, sampler, sweeps=1500, seed=0):
    """How often the chain visits each pair of partitions, against the exact posterior."""
    data = model.observe(y)
    evidence = MixtureEvidence(model, data)
    pairs = list(both_partitions(len(y)))
    log_weight = np.array(
        [log_path_probability(model.prior, np.array(s), data.offsets) + evidence.of_components(s, z) for s, z in pairs]
    )
    probability = np.exp(log_weight - np.logaddexp.reduce(log_weight))
    index = {pair: i for i, pair in enumerate(pairs)}

    rng = np.random.default_rng(seed)
    draw = ihmm.gibbs.initial_draw(rng, data, model, np.array(pairs[rng.choice(len(pairs), p=probability)][0]))
    visits = np.empty(sweeps, np.int64)
    for i in range(-BURN_IN, sweeps):
        draw, _ = ihmm.gibbs.sweep(rng, data, model, draw, sampler)
        if i >= 0:
            visits[i] = index[named(draw)]

    common = np.flatnonzero(probability * sweeps >= 50)
    functionals = np.zeros((len(pairs), 2 + len(common)))
    functionals[:, 0] = [max(s) + 1 for s, _ in pairs]
    functionals[:, 1] = [len(set(zip(s, z, strict=True))) for s, z in pairs]
    functionals[common, 2 + np.arange(len(common))] = 1
    expected = probability @ functionals
    variance = probability @ (functionals - expected) ** 2
    names = ["states", "components", *(str(pairs[i]) for i in common)]
    return compare(names, expected, variance, np.zeros(len(names)), functionals[visits])


def test_there_are_sixty_pairs_of_partitions_of_four_steps():
    assert len(set(both_partitions(4))) == len(list(both_partitions(4))) == 60


@pytest.mark.parametrize(
    ("prior", "concentration", "threshold", "sampler"),
    [
        ("plain", 1.0, 0.03, ihmm.ParticleGibbs(2)),
        ("sticky-free", FREE, 0.2, ihmm.ParticleGibbs(5)),
        ("sticky-free", FREE, 0.001, ihmm.ParticleGibbs(2)),
        ("plain", FREE, 0.2, ihmm.ParticleGibbs(2, "prior")),
        ("sticky", 1.0, 0.5, ihmm.ParticleGibbs(5, "prior")),
        ("sticky-free", FREE, 0.2, ihmm.Beam()),
    ],
)
def test_states_and_components_are_visited_as_often_as_the_exact_posterior_says(
    prior, concentration, threshold, sampler
):
    model = ihmm.Model(ihmm.DPMixture(NORMAL, concentration, threshold), PRIORS[prior])
    result = joint_test(model, SERIES, sampler)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("threshold", [0.5, 0.01])
def test_states_and_components_of_a_finite_model(threshold):
    model = ihmm.Model(ihmm.DPMixture(NORMAL, FREE, threshold), FINITE_PRIORS["finite-sticky-free"])
    result = joint_test(model, SERIES, ihmm.Blocked())
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", [ihmm.ParticleGibbs(2), ihmm.Beam()], ids=["particles", "beam"])
def test_states_given_that_values_are_missing(sampler):
    y = np.array(EMISSIONS["poisson"][1], float)
    y[HIDDEN] = np.nan
    model = ihmm.Model(ihmm.DPMixture(EMISSIONS["poisson"][0], FREE, 0.2), PRIORS["plain"])
    result = partition_test(model, y, sampler, sweeps=1500)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("prior", [PRIORS["plain"], ihmm.FinitePrior(3, 1.5, 1.0)], ids=["infinite", "finite"])
def test_states_that_have_durations(prior):
    emission = ihmm.DPMixture(EMISSIONS["poisson"][0], FREE, 0.2)
    model = ihmm.Model(emission, prior, ihmm.durations.Poisson(1.5, 1.0), left_censored=True)
    y = np.array(EMISSIONS["poisson"][1], float)
    y[HIDDEN] = np.nan
    result = partition_test(model, y, ihmm.ParticleGibbs(2), sweeps=1500)
    assert result.p_value > ALARM, result


def test_a_sweep_with_durations_leaves_the_joint_law_alone():
    model = ihmm.Model(ihmm.DPMixture(NORMAL, FREE, 0.1), PRIORS["free"], ihmm.durations.Geometric(1.0, 2.0, minimum=2))
    result = geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=1500)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("missing", [None, HIDDEN], ids=["whole", "missing values"])
def test_a_sweep_with_everything_free_leaves_the_joint_law_alone(missing):
    model = ihmm.Model(ihmm.DPMixture(NORMAL, FREE, 0.1), PRIORS["sticky-free"])
    result = geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=1500, missing=missing)
    assert result.p_value > ALARM, result


class TestTheLawTestsCanFail:
    """Broken on purpose, in the places where it would be easy to go wrong."""

    def test_rare_components_that_count_for_more_than_they_should(self, monkeypatch):
        honest = dp_mixture.SlicedMixture._tail

        def tail(self, steps, phi):
            found = honest(self, steps, phi)
            return found._replace(log_density=found.log_density - np.log(self.threshold))

        monkeypatch.setattr(dp_mixture.SlicedMixture, "_tail", tail)
        model = ihmm.Model(ihmm.DPMixture(NORMAL, 1.0, 0.2), PRIORS["plain"])
        result = joint_test(model, ALIKE, ihmm.ParticleGibbs(2), sweeps=1500)
        assert result.p_value < 1e-6, result

    def test_slices_that_do_not_know_the_weight_of_their_component(self, monkeypatch):
        monkeypatch.setattr(dp_mixture, "slice_height", lambda weights, threshold: np.where(weights > 0, 1.0, 0.0))
        model = ihmm.Model(ihmm.DPMixture(NORMAL, 1.0, 0.5), PRIORS["plain"])
        result = joint_test(model, ALIKE, ihmm.ParticleGibbs(2), sweeps=1500)
        assert result.p_value < 1e-6, result

    def test_a_concentration_drawn_after_the_weights_it_has_integrated_out(self, monkeypatch):
        honest, old = dp_mixture.sample_weights, {}

        def remember(self, rng, sigma, counts):
            old["sigma"] = sigma
            return resample_sigma(self, rng, sigma, counts)

        resample_sigma = ihmm.DPMixture._resample_sigma
        monkeypatch.setattr(ihmm.DPMixture, "_resample_sigma", remember)
        monkeypatch.setattr(
            dp_mixture, "sample_weights", lambda rng, counts, sigma: honest(rng, counts, old.get("sigma", sigma))
        )
        model = ihmm.Model(ihmm.DPMixture(NORMAL, FREE, 0.1), PRIORS["plain"])

        def measure(model, data, draw):
            """ψ_rest ~ Beta(σ, n): where it lies in that law should not depend on σ."""
            first, sigma = draw.states[0], draw.phi.sigma[0]
            level = stats.beta.cdf(draw.phi.rest[first], sigma, np.count_nonzero(draw.states == first))
            return {"log sigma": np.log(sigma), "level of rest": level}

        result = geweke(model, [5], ihmm.ParticleGibbs(2), sweeps=1000, functionals=measure)
        assert result.p_value < 1e-6, result
        monkeypatch.undo()
        result = geweke(model, [5], ihmm.ParticleGibbs(2), sweeps=1000, functionals=measure)
        assert result.p_value > ALARM, result
