"""Columns of zeros and ones, of counts and of several kinds: every sampler has the law it should, gaps or none."""

from dataclasses import dataclass, replace

import numpy as np
import pytest

import ihmm
from ihmm.samplers import Sampler
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, COLUMNS, FINITE_PRIORS, PRIORS, split

pytestmark = pytest.mark.law

SAMPLERS = {
    "posterior": ihmm.ParticleGibbs(2),
    "prior": ihmm.ParticleGibbs(2, "prior"),
    "beam": ihmm.Beam(),
    "direct": ihmm.DirectAssignment(),
    "blocked": ihmm.Blocked(),
}
# Complete rows, rows with gaps, and one of which nothing is known; a row of counts is known altogether or not at all
GAPS = {
    "bernoulli": np.array([[0, 1, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 1]], bool),
    "multinomial": np.array([[0, 0, 0], [0, 0, 0], [1, 1, 1], [0, 0, 0], [0, 0, 0]], bool),
    "independent": np.array([[0, 1, 0], [0, 0, 0], [1, 1, 1], [1, 0, 0], [0, 0, 1]], bool),
}


def prior_for(sampler, infinite, finite):
    return FINITE_PRIORS[finite] if sampler == "blocked" else PRIORS[infinite]


def with_gaps(family):
    emission, series = COLUMNS[family]
    return emission, split(np.where(GAPS[family], np.nan, series), [3, 2])


@pytest.mark.parametrize("sampler", SAMPLERS)
@pytest.mark.parametrize("family", COLUMNS)
def test_visits_every_partition_as_often_as_the_exact_posterior_says(family, sampler):
    emission, y = with_gaps(family)
    model = ihmm.Model(emission, prior_for(sampler, "sticky", "finite"))
    result = partition_test(model, y, SAMPLERS[sampler], sweeps=3000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize("sampler", ["posterior", "direct", "blocked"])  # of the others, Step 1 alone is different
@pytest.mark.parametrize("family", COLUMNS)
def test_a_sweep_leaves_the_joint_law_alone(family, sampler):
    model = ihmm.Model(COLUMNS[family][0], prior_for(sampler, "sticky-free", "finite-sticky-free"))
    result = geweke(model, [3, 2], SAMPLERS[sampler], sweeps=2000, seed=7, missing=GAPS[family])
    assert result.p_value > ALARM, result


class Wiggle:
    """A level with Metropolis steps of its own, φ a plain array, and nothing in closed form."""

    def validate(self, y):
        return y.astype(float)

    def log_density(self, y, phi):
        return -0.5 * (y[:, None] - phi) ** 2 - 0.5 * np.log(2 * np.pi)

    def sample_prior(self, rng, n):
        return rng.normal(size=n)

    def resample(self, rng, y, states, n_states):
        return self.sample_prior(rng, n_states)

    def update(self, rng, y, states, phi):
        proposal = phi + rng.normal(size=len(phi))
        gain = np.bincount(states, (self._at(y, states, proposal) - self._at(y, states, phi)), len(phi))
        gain += self.log_prior(proposal) - self.log_prior(phi)
        return np.where(np.log(rng.random(len(phi))) < gain, proposal, phi)

    def sample_observations(self, rng, states, phi):
        return phi[states] + rng.normal(size=len(states))

    def log_prior(self, phi):
        return -0.5 * phi**2 - 0.5 * np.log(2 * np.pi)

    def _at(self, y, states, phi):
        return -0.5 * (y - phi[states]) ** 2


def test_parts_may_be_of_any_kind_and_keep_their_own_steps():
    model = ihmm.Model(ihmm.Independent(ihmm.Bernoulli(), level=Wiggle()), PRIORS["sticky-free"])
    gaps = GAPS["independent"][:, :2]
    result = geweke(model, [3, 2], ihmm.ParticleGibbs(2), sweeps=2000, seed=7, missing=gaps)
    assert result.p_value > ALARM, result


@dataclass(frozen=True)
class WithDensityOf:
    """Broken on purpose: resamples the states with the density of another emission than the model's."""

    sampler: Sampler
    emission: object

    def resample_states(self, rng, data, model, draw):
        return self.sampler.resample_states(rng, data, replace(model, emission=self.emission), draw)


class TestTheLawTestsCanFail:
    @staticmethod
    def run(emission, family, sampler):
        model = ihmm.Model(emission, PRIORS["sticky"])
        return partition_test(model, with_gaps(family)[1], sampler, sweeps=3000, seed=3)

    def run_with(self, broken, family, sampler):
        return self.run(COLUMNS[family][0], family, WithDensityOf(sampler, broken))

    def test_gaps_read_as_zeros_are_caught(self):
        class Broken(ihmm.Bernoulli):
            def log_density(self, y, phi):
                return super().log_density(np.nan_to_num(y), phi)

        result = self.run_with(Broken(3, a=0.4, b=0.6), "bernoulli", ihmm.ParticleGibbs(2))
        assert result.p_value < 1e-6, result

    def test_counts_of_which_one_category_is_forgotten_are_caught(self):
        class Broken(ihmm.Multinomial):
            def log_density(self, y, phi):
                return super().log_density(y * [1, 1, 0], phi)

        result = self.run_with(Broken(3, concentration=0.6), "multinomial", ihmm.ParticleGibbs(2))
        assert result.p_value < 1e-6, result

    def test_a_part_that_goes_unheard_is_caught(self):
        class Broken(ihmm.Independent):
            def log_density(self, y, phi):
                return super().log_density(y * [1, np.nan, 1], phi)

        result = self.run_with(Broken(*COLUMNS["independent"][0].parts), "independent", ihmm.Beam())
        assert result.p_value < 1e-6, result

    def test_a_part_that_is_integrated_out_under_another_prior_is_caught(self):
        class Broken(ihmm.Independent):
            def conjugate(self, y):
                own = super().conjugate(y)
                own.compiled.prior[1] *= 10
                return own

        result = self.run(Broken(*COLUMNS["independent"][0].parts), "independent", ihmm.DirectAssignment())
        assert result.p_value < 1e-6, result
