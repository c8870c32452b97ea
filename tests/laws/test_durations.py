"""Models with durations: the law of the whole sweep against all segmentations of a tiny series, and the prior."""

import numpy as np
import pytest

import ihmm
from ihmm import gibbs
from ihmm.durations import Geometric, NegativeBinomial, Poisson
from ihmm.samplers import segments
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, EMISSIONS, NORMAL_SERIES, PRIORS, split

pytestmark = pytest.mark.law

SERIES = [*NORMAL_SERIES, 0.4]
HIDDEN = np.array([False, True, False, False, True, False])
PLAIN = PRIORS["plain"]
LAWS = {
    "geometric": Geometric(1.0, 2.0),
    "geometric-2": Geometric(1.0, 2.0, minimum=2),
    "geometric-3": Geometric(1.0, 2.0, minimum=3),
    "negative-binomial": NegativeBinomial(ihmm.GammaPrior(2, 1), 1.5, 2.0),
    "negative-binomial-2": NegativeBinomial(3.0, 1.5, 2.0, minimum=2),
    "poisson": Poisson(1.5, 1.0),
    "poisson-2": Poisson(1.5, 1.0, minimum=2),
    "poisson-3": Poisson(1.5, 1.0, minimum=3),
}
# law, prior, sampler, lengths: V has nearly all states, one or two, or none
CASES = {
    "all of V": ("geometric", PLAIN, ihmm.ParticleGibbs(2), [6]),
    "some of V": ("geometric-2", PLAIN, ihmm.ParticleGibbs(2, threshold=0.3), [4, 2]),
    "none of V": ("geometric", PLAIN, ihmm.ParticleGibbs(5, threshold=2.0), [4, 2]),
    "prior proposal": ("geometric-2", PLAIN, ihmm.ParticleGibbs(5, "prior"), [6]),
    "free": ("geometric", PRIORS["free"], ihmm.ParticleGibbs(5), [4, 2]),
    "finite": ("geometric", ihmm.FinitePrior(3, 1.5, 1.0), ihmm.ParticleGibbs(2), [6]),
    "equal weights": ("geometric-2", ihmm.FinitePrior(3, None, 2.0), ihmm.ParticleGibbs(2), [4, 2]),
    "negative binomial": ("negative-binomial", PLAIN, ihmm.ParticleGibbs(2, threshold=0.3), [6]),
    "negative binomial, minimum": ("negative-binomial-2", PLAIN, ihmm.ParticleGibbs(5), [4, 2]),
    "Poisson": ("poisson", PLAIN, ihmm.ParticleGibbs(5), [4, 2]),
    "Poisson, minimum": ("poisson-2", PLAIN, ihmm.ParticleGibbs(2, threshold=0.3), [6]),
}
# with a first segment that may have begun before the data
LEFT_CENSORED = {
    "geometric": ("geometric-3", PLAIN, ihmm.ParticleGibbs(2, threshold=0.3), [6]),
    "negative binomial": ("negative-binomial-2", PLAIN, ihmm.ParticleGibbs(5), [4, 2]),
    "Poisson": ("poisson-3", PLAIN, ihmm.ParticleGibbs(2), [6]),
}
ALL = [(case, False) for case in CASES] + [(case, True) for case in LEFT_CENSORED]


@pytest.mark.parametrize(("case", "left_censored"), ALL)
def test_visits_every_partition_as_often_as_the_exact_posterior_says(case, left_censored):
    law, prior, sampler, lengths = (LEFT_CENSORED if left_censored else CASES)[case]
    y = np.array(SERIES)
    if len(lengths) > 1:
        y[1] = np.nan
    model = ihmm.Model(EMISSIONS["normal-mean"][0], prior, LAWS[law], left_censored)
    result = partition_test(model, split(y, lengths), sampler, sweeps=3000, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(
    ("law", "left_censored"),
    [(law, False) for law in ("geometric", "negative-binomial", "poisson-2")]
    + [(law, True) for law in ("geometric-3", "negative-binomial", "poisson-2")],
)
def test_a_sweep_with_every_hyperparameter_free_leaves_the_joint_law_alone(law, left_censored):
    model = ihmm.Model(EMISSIONS["normal"][0], PRIORS["free"], LAWS[law], left_censored)
    result = geweke(model, [4, 2], ihmm.ParticleGibbs(2, threshold=0.1), sweeps=3000, seed=7, missing=HIDDEN)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(("order", "law"), [(1, "geometric"), (2, "geometric-2"), (1, "poisson-2")])
def test_noise_that_remembers_the_previous_state_is_exact(order, law):
    noise = ihmm.NoisyLevels(order, shape=3.0, coefficient_spread=0.5)
    model = ihmm.Model(noise, PRIORS["free"], LAWS[law])
    result = geweke(model, [7], ihmm.ParticleGibbs(2, threshold=0.1), sweeps=3000, seed=7)
    assert result.p_value > ALARM, result


class NotCensored(Geometric):
    """Broken on purpose: takes the end of the data for the end of the last segment."""

    def update(self, rng, runs, omega):
        return super().update(rng, runs._replace(censored=np.zeros(len(runs.length), bool)), omega)


class OneAgeLate(Poisson):
    """Broken on purpose: the hazard of the age after."""

    def hazard(self, n_ages, omega):
        return super().hazard(n_ages + 1, omega)[:, 1:]


class BeganWithTheData(Poisson):
    """Broken on purpose: takes the beginning of the data for the beginning of the first segment."""

    def update(self, rng, runs, omega):
        return super().update(rng, runs._replace(left_censored=np.zeros(len(runs.length), bool)), omega)


class TestTheLawTestsCanFail:
    def run(self, law):
        model = ihmm.Model(EMISSIONS["normal-mean"][0], PLAIN, law)
        # three sequences: a third of the runs or more are censored
        return partition_test(model, split(SERIES, [2, 2, 2]), ihmm.ParticleGibbs(5), sweeps=3000, seed=3)

    @pytest.mark.parametrize(
        "broken", [NotCensored(1.0, 2.0), OneAgeLate(1.5, 1.0)], ids=lambda law: type(law).__name__
    )
    def test_a_wrong_duration_law_is_rejected(self, broken):
        result = self.run(broken)
        assert result.p_value < 1e-8, result

    def test_a_first_segment_with_the_hazard_of_a_whole_one_is_rejected(self, monkeypatch):
        monkeypatch.setattr(segments, "residual_hazards", lambda law, hazard, omega: hazard)
        model = ihmm.Model(EMISSIONS["normal-mean"][0], PLAIN, LAWS["poisson-3"], left_censored=True)
        result = partition_test(model, SERIES, ihmm.ParticleGibbs(2), sweeps=3000, seed=3)
        assert result.p_value < 1e-8, result

    def test_a_first_segment_that_counts_as_a_whole_one_is_rejected(self):
        model = ihmm.Model(EMISSIONS["normal"][0], PRIORS["free"], BeganWithTheData(1.5, 1.0), left_censored=True)
        result = geweke(model, [2, 2, 2], ihmm.ParticleGibbs(2, threshold=0.1), sweeps=3000, seed=7)
        assert result.p_value < 1e-8, result

    def test_departures_without_the_self_transitions_before_them_are_rejected(self, monkeypatch):
        def without_self(*arguments):
            *hyper, beta, rows = resample_transitions(*arguments[:-1])
            rows[np.arange(1, len(rows)), np.arange(len(rows) - 1)] = 1e-300
            return *hyper, beta, rows / rows.sum(axis=1, keepdims=True)

        resample_transitions = gibbs.resample_transitions
        monkeypatch.setattr(gibbs, "resample_transitions", without_self)
        model = ihmm.Model(EMISSIONS["normal"][0], PRIORS["free"], LAWS["geometric"])
        result = geweke(model, [12], ihmm.ParticleGibbs(5), sweeps=3000, seed=7)
        assert result.p_value < 1e-8, result
