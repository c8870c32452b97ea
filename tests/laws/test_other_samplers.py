"""The samplers of the paper's comparison pass the law tests of particle Gibbs; finite models against enumeration."""

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp

import ihmm
from ihmm.kernels import direct
from ihmm.samplers import beam
from ihmm.testing import canonical, exact_posterior, geweke, partition_test
from reference.cases import ALARM, EMISSIONS, FINITE_PRIORS, LAYOUTS, PRIORS, some, split, trials

pytestmark = pytest.mark.law

INFINITE = {"beam": ihmm.Beam(), "direct": ihmm.DirectAssignment()}
FINITE = {
    "blocked": ihmm.Blocked(),
    "beam": ihmm.Beam(),
    "direct": ihmm.DirectAssignment(),
    "particles": ihmm.ParticleGibbs(2),
    "particles-prior": ihmm.ParticleGibbs(2, "prior"),
}


CASE = ("emission", "series", "prior", "lengths", "sampler")
TWO_SEQUENCES = some(LAYOUTS, "several sequences")


@pytest.mark.parametrize(CASE, trials(PRIORS, LAYOUTS, INFINITE))
def test_visits_every_partition_as_often_as_the_exact_posterior_says(emission, series, prior, lengths, sampler):
    result = partition_test(ihmm.Model(emission, prior), split(series, lengths), sampler, sweeps=4000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(CASE, trials(FINITE_PRIORS, TWO_SEQUENCES, FINITE, few=1))
def test_visits_every_partition_of_a_finite_model_as_often_as_it_should(emission, series, prior, lengths, sampler):
    result = partition_test(ihmm.Model(emission, prior), split(series, lengths), sampler, sweeps=4000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(CASE, trials(some(PRIORS, "sticky-free"), TWO_SEQUENCES, INFINITE))
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(emission, series, prior, lengths, sampler):
    result = geweke(ihmm.Model(emission, prior), lengths, sampler, sweeps=5000, seed=7)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(
    CASE,
    trials(
        some(FINITE_PRIORS, "bayesian-hmm-sticky-free", "finite-sticky-free"), TWO_SEQUENCES, some(FINITE, "blocked")
    ),
)
def test_a_blocked_sweep_leaves_the_joint_law_of_a_finite_model_alone(emission, series, prior, lengths, sampler):
    result = geweke(ihmm.Model(emission, prior), lengths, sampler, sweeps=5000, seed=7)
    assert result.p_value > ALARM, result


def test_the_exact_posterior_of_a_bayesian_hmm_is_that_of_enumerating_all_labelled_paths():
    """Rows Dirichlet(c/L, …): every one of the L^T paths has a product of Pólya urns as its probability."""
    emission, series = EMISSIONS["normal-mean"]
    n_states, concentration, y = 3, 2.0, np.array(series)
    model = ihmm.Model(emission, ihmm.FinitePrior(n_states, gamma=None, concentration=concentration))
    log_weight: dict[tuple[int, ...], list[float]] = {}
    for path in np.ndindex(*[n_states] * len(y)):
        states = np.array(path)
        counts = np.zeros((n_states + 1, n_states))
        np.add.at(counts, (np.append(0, states[:-1] + 1), states), 1)
        each = concentration / n_states
        urns = gammaln(concentration) - gammaln(concentration + counts.sum(axis=1))
        urns += (gammaln(each + counts) - gammaln(each)).sum(axis=1)
        fit = sum(emission.log_evidence(y[states == k]) for k in np.unique(states))
        log_weight.setdefault(canonical(states), []).append(urns.sum() + fit)
    total = {partition: logsumexp(values) for partition, values in log_weight.items()}
    normaliser = logsumexp(list(total.values()))
    exact = exact_posterior(model, y)
    for partition, value in total.items():
        assert exact[partition] == pytest.approx(np.exp(value - normaliser), rel=1e-9)
    assert sum(exact[partition] for partition in total) == pytest.approx(1.0)


class TestTheLawTestsCanFail:
    model = ihmm.Model(EMISSIONS["normal-mean"][0], PRIORS["plain"])
    series = EMISSIONS["normal-mean"][1]

    def test_slices_drawn_too_high_are_rejected(self, monkeypatch):
        slices = beam.draw_slices
        monkeypatch.setattr(beam, "draw_slices", lambda *arguments: np.sqrt(slices(*arguments)) * 0.3)
        result = partition_test(self.model, self.series, ihmm.Beam(), sweeps=10_000, seed=1)
        assert result.p_value < 1e-6, result

    def test_direct_assignment_that_forgets_the_next_step_is_rejected(self, monkeypatch):
        """As if every step were the last of its sequence."""
        reassign = direct.reassign

        def forgetful(t, stream, compiled, concentrations, n_total, sequence, *rest):
            return reassign(t, stream, compiled, concentrations, n_total, np.arange(len(sequence)), *rest)

        monkeypatch.setattr(direct, "reassign", forgetful)
        result = partition_test(self.model, self.series, ihmm.DirectAssignment(), sweeps=5000, seed=1)
        assert result.p_value < 1e-6, result
