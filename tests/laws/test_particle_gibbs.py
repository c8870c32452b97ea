"""The law of the whole sweep with particle Gibbs as Step 1, against the exact posterior and the prior."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import ihmm
from ihmm import gibbs
from ihmm.kernels import conditionals, sticks
from ihmm.samplers import particle_gibbs, states
from ihmm.testing import LawTest, geweke, partition_test
from reference.cases import ALARM, EMISSIONS, LAYOUTS, PRIORS, some, split, trials

pytestmark = pytest.mark.law


CASE = ("emission", "series", "prior", "lengths", "sampler")
Multinomial = partial(ihmm.ParticleGibbs, resampling="multinomial")
TWO = {"posterior-2": ihmm.ParticleGibbs(2), "prior-2": ihmm.ParticleGibbs(2, "prior")}
SAMPLERS = {**TWO, "posterior-5": ihmm.ParticleGibbs(5)}
# Both schemes share everything but the kernel of the pass, which has exact tests of its own: a few cases are enough
MULTINOMIAL = {"multinomial": Multinomial(2), "multinomial-prior": Multinomial(2, "prior")}
SEVERAL, LAST = some(LAYOUTS, "several sequences"), some(PRIORS, "sticky-free")
THREE = ("normal-mean", "normal", "categorical")


@pytest.mark.parametrize(
    CASE, trials(PRIORS, LAYOUTS, SAMPLERS, few=2) + trials(LAST, SEVERAL, MULTINOMIAL, emissions=THREE)
)
def test_visits_every_partition_as_often_as_the_exact_posterior_says(emission, series, prior, lengths, sampler):
    result = partition_test(ihmm.Model(emission, prior), split(series, lengths), sampler, sweeps=5000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("threshold", [0.3, 0.03, 1e-6])
@pytest.mark.parametrize(
    "sampler",
    [ihmm.ParticleGibbs(2), ihmm.ParticleGibbs(10), Multinomial(2), Multinomial(2, ancestor_sampling=False)],
    ids=["two", "ten", "multinomial", "without ancestor sampling"],
)
def test_any_threshold_is_exact(threshold, sampler):
    emission, series = EMISSIONS["normal-mean"]
    model = ihmm.Model(emission, PRIORS["sticky-free"])
    result = partition_test(model, series, replace(sampler, threshold=threshold), sweeps=8000, seed=5)
    assert result.p_value > ALARM, result


# Every size of block with the usual settings; other settings with some of them
@pytest.mark.parametrize(
    ("block_size", "sampler"),
    [
        (1, ihmm.ParticleGibbs(3)),
        (2, ihmm.ParticleGibbs(3)),
        (3, ihmm.ParticleGibbs(3)),
        (1, ihmm.ParticleGibbs(3, "prior")),
        (3, ihmm.ParticleGibbs(3, "prior")),
        (2, Multinomial(3, ancestor_sampling=False, threshold=0.3)),
    ],
)
def test_blocks_of_any_size_are_exact(block_size, sampler):
    emission, series = EMISSIONS["normal-mean"]
    model = ihmm.Model(emission, PRIORS["sticky-free"])
    result = partition_test(model, series, replace(sampler, block_size=block_size), sweeps=5000, seed=6)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(
    CASE,
    trials(some(PRIORS, "free", "sticky-free"), LAYOUTS, TWO) + trials(LAST, SEVERAL, MULTINOMIAL, emissions=THREE[:1]),
)
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(emission, series, prior, lengths, sampler):
    result = geweke(ihmm.Model(emission, prior), lengths, sampler, sweeps=5000, seed=7)
    assert result.p_value > ALARM, result


class TestTheLawTestsCanFail:
    """Broken samplers, each of which looks fine in a plot.

    The priors are those under which the mistake shows most: it is then found within few sweeps.
    """

    emission = ihmm.NormalMean(noise=0.5, mean=0.0, scale=3.0)
    series = (-1.0, -0.6, 0.2, 0.7, 1.1)

    def run(self, prior: ihmm.HDPPrior, sampler: object) -> LawTest:
        return partition_test(ihmm.Model(self.emission, prior), self.series, sampler, sweeps=5000, seed=11)

    def test_the_literal_proposal_of_the_paper_is_rejected(self, monkeypatch):
        """T15 §3.2 scores the states of the reference explicitly and lumps everything else together."""

        def open_theta_literally(draw, prior, key, threshold):
            theta, _ = open_sticks(draw, prior, key, np.inf)  # no stick broken before the pass
            order = np.empty(theta.size[0], np.int64)
            sticks.arrange(theta, 0.0, order)  # V = the states of the reference
            return theta, order

        open_sticks = particle_gibbs.open_sticks
        case = ihmm.HDPPrior(3.0, 8.0), Multinomial(2)  # many states are born
        assert self.run(*case).p_value > ALARM
        monkeypatch.setattr(particle_gibbs, "open_sticks", open_theta_literally)
        result = self.run(*case)
        assert result.p_value < 1e-8, result

    def test_blocks_that_forget_what_follows_them_are_rejected(self, monkeypatch):
        def forget(theta, system, reference, following, *others):
            trace_back(theta, system, reference, -1, *others)

        trace_back = states.particles.trace_back
        case = ihmm.HDPPrior(1.0, 3.0, stickiness=0.7), ihmm.ParticleGibbs(3, block_size=2)  # neighbours are alike
        assert self.run(*case).p_value > ALARM
        monkeypatch.setattr(states.particles, "trace_back", forget)
        result = self.run(*case)
        assert result.p_value < 1e-8, result

    def test_transitions_drawn_before_the_hyperparameters_are_rejected(self, monkeypatch):
        """The order of T15 §3: every mean is right, only the dependence between c and π is not."""

        def out_of_order(stream, priors, counts, beta, gamma, concentration, stickiness):
            drawn = resample_transitions(stream, priors, counts, beta, gamma, concentration, stickiness)
            measure = conditionals.base_measure(drawn[3], concentration, stickiness)
            return (*drawn[:4], conditionals.draw_rows(stream, counts, measure))

        resample_transitions = gibbs.resample_transitions
        model = ihmm.Model(EMISSIONS["normal-mean"][0], PRIORS["free"])
        assert geweke(model, [5], ihmm.ParticleGibbs(5), sweeps=6000, seed=1).p_value > ALARM
        monkeypatch.setattr(gibbs, "resample_transitions", out_of_order)
        result = geweke(model, [5], ihmm.ParticleGibbs(5), sweeps=6000, seed=1)
        assert result.p_value < 1e-6, result
        assert "×" in result.names[np.abs(result.z).argmax()]

    def test_a_tail_without_its_weight_correction_is_rejected(self, monkeypatch):
        def score_without_correction(*arguments):
            density = score(*arguments)
            density.log_tail[:] = 0.0
            return density

        score = states.score
        monkeypatch.setattr(states, "score", score_without_correction)
        monkeypatch.setattr(states, "add_column", lambda d, k, c, add=states.add_column: add(d, k, 0 * c))
        result = self.run(ihmm.HDPPrior(1.0, 3.0), ihmm.ParticleGibbs(2, threshold=0.3))
        assert result.p_value < 1e-8, result
