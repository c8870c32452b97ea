"""Autoregressive emissions: the posterior given the first values of every history, and nothing said by them."""

import numpy as np
import pytest

import ihmm
from ihmm.testing import geweke, partition_test
from reference.cases import ALARM, FINITE_PRIORS, NORMAL_SERIES, PRIORS, ROW_SERIES, split

pytestmark = pytest.mark.law

INFINITE = {
    "posterior": ihmm.ParticleGibbs(2),
    "prior": ihmm.ParticleGibbs(2, "prior"),
    "beam": ihmm.Beam(),
    "direct": ihmm.DirectAssignment(),
}
SAMPLERS = INFINITE | {"blocked": ihmm.Blocked()}
# Order, columns; one sequence or several; a step without a value or none
CASES = {
    "one column": (1, 1, [6], 1),
    "one column, two steps": (2, 1, [6], None),
    "two columns": (1, 2, [4, 2], 0),
    "two columns, two steps": (2, 2, [6], None),
}


class GivenFirst(ihmm.Autoregressive):
    """Every sequence that is drawn begins with values away from the prior mean: those say more about coefficients."""

    def sample_observations(self, rng, states, phi, past=None):
        if past is not None:
            return super().sample_observations(rng, states, phi, past)
        first = np.array([[-2.0, 1.0], [1.5, 3.0]])[: self.order, : self.n_features]
        first = first[:, 0] if self.n_features == 1 else first
        return np.concatenate([first, super().sample_observations(rng, states[self.order :], phi, first)])[
            : len(states)
        ]


def family(order, n_features, kind=GivenFirst):
    return kind(order, n_features, 0.2, strength=0.5, coefficients=0.3, precision=2.0, dof=n_features + 4.0, scale=1.5)


@pytest.mark.parametrize(
    ("case", "sampler"),
    [(case, sampler) for case in CASES for sampler in ("posterior", "direct")]
    + [("two columns, two steps", sampler) for sampler in ("prior", "beam", "blocked")],
)
def test_exact_posterior(case, sampler):
    order, n_features, lengths, gap = CASES[case]
    y = np.array([*NORMAL_SERIES, 1.1] if n_features == 1 else [*ROW_SERIES, [1.1, -0.4]])
    if gap is not None:
        y[gap] = np.nan
    prior = FINITE_PRIORS["finite"] if sampler == "blocked" else PRIORS["sticky"]
    model = ihmm.Model(family(order, n_features), prior)
    result = partition_test(model, split(y, lengths), SAMPLERS[sampler], sweeps=2500, seed=3)
    assert result.p_value > ALARM, result


@pytest.mark.parametrize(
    ("case", "sampler"),
    [
        ("one column", "beam"),
        ("one column, two steps", "posterior"),
        ("two columns", "direct"),
        ("two columns, two steps", "blocked"),
    ],
)
def test_geweke(case, sampler):
    order, n_features, lengths, gap = CASES[case]
    prior = FINITE_PRIORS["finite-sticky-free"] if sampler == "blocked" else PRIORS["sticky-free"]
    missing = None if gap is None else np.arange(6) == gap
    model = ihmm.Model(family(order, n_features), prior)
    result = geweke(model, lengths, SAMPLERS[sampler], sweeps=2000, seed=7, missing=missing)
    assert result.p_value > ALARM, result


class ForgetsThePast(GivenFirst):
    """Broken on purpose: parameters are drawn as if the past had always been zero."""

    def resample(self, rng, y, states, n_states):
        y = np.hstack([0 * y[:, : -self.n_features], y[:, -self.n_features :]])
        return super().resample(rng, y, states, n_states)


class SeesThroughTheGap(GivenFirst):
    """Broken on purpose: what stands in for a missing value is taken for the past of the next one."""

    def with_past(self, y, offsets, missing):
        rows, silent = super().with_past(y, offsets, None)
        return rows, silent | missing


class JudgesTheFirstValue(GivenFirst):
    """Broken on purpose: the first value of a history counts, with a past of zeros."""

    def with_past(self, y, offsets, missing):
        rows, silent = super().with_past(y, offsets, missing)
        rows[offsets[:-1], -1] = y[offsets[:-1]]
        silent[offsets[:-1]] = False
        return rows, silent


@pytest.mark.parametrize("broken", [ForgetsThePast, SeesThroughTheGap, JudgesTheFirstValue])
def test_an_emission_that_is_mistaken_about_the_past_is_caught(broken):
    model = ihmm.Model(family(1, 1, broken), PRIORS["sticky-free"])
    result = geweke(model, [6], ihmm.ParticleGibbs(2), sweeps=1000, seed=7, missing=np.arange(6) == 2)
    assert result.p_value < 1e-6, result
