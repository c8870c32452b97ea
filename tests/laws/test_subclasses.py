"""A subclass that changes the density of a conjugate family must not be treated as if it were its parent."""

import pytest

import ihmm
from reference.cases import ALARM, NORMAL_SERIES, PRIORS

pytestmark = pytest.mark.law


class Wider(ihmm.NormalMean):
    """Twice the noise in every density, and in the draw of φ; nothing else is overridden."""

    @property
    def wide(self):
        return ihmm.NormalMean(2 * self.noise, self.mean, self.scale)

    def log_density(self, y, phi):
        return self.wide.log_density(y, phi)

    def log_density_at(self, y, states, phi):
        return self.wide.log_density_at(y, states, phi)

    def log_marginal(self, y):
        return self.wide.log_marginal(y)

    def log_evidence(self, y):
        return self.wide.log_evidence(y)

    def resample(self, rng, y, states, n_states):
        return self.wide.resample(rng, y, states, n_states)


@pytest.mark.parametrize("moves", [(), (ihmm.PairGibbs(), ihmm.SplitMerge())], ids=["no moves", "exact moves"])
def test_a_subclass_with_another_density_has_its_own_posterior(moves):
    sampler = ihmm.ParticleGibbs(n_particles=5)
    expected = ihmm.testing.exact_posterior(ihmm.Model(ihmm.NormalMean(0.7, scale=1.5), PRIORS["plain"]), NORMAL_SERIES)
    model = ihmm.Model(Wider(0.35, scale=1.5), PRIORS["plain"])
    assert ihmm.testing.exact_posterior(model, NORMAL_SERIES) == pytest.approx(expected, abs=0.02)
    result = ihmm.testing.partition_test(model, NORMAL_SERIES, sampler, moves=moves, sweeps=6000)
    assert result.p_value > ALARM, result
