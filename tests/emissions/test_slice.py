"""`slice_step`: one step leaves a law as it is."""

import numpy as np
import pytest
from scipy import stats

from ihmm.emissions import slice_step
from reference.verdicts import assert_follows

N = 20_000
LAWS = {
    "normal": stats.norm(3.0, 2.0),
    "narrow": stats.norm(-1.0, 0.01),
    "wide": stats.norm(0.0, 60.0),
    "skewed": stats.gumbel_r(),
    "heavy": stats.t(3.0),
    "bounded": stats.beta(2.0, 0.7),
}


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_step_from_a_law_ends_in_that_law_but_elsewhere(law):
    rng = np.random.default_rng(0)
    x = law.rvs(N, random_state=rng)
    stepped = slice_step(rng, law.logpdf, x)
    assert_follows(stepped, law.cdf)
    assert np.mean(stepped != x) > 0.99


@pytest.mark.parametrize("width", [0.1, 1.0, 30.0])
def test_many_steps_lead_there_from_anywhere(width):
    rng = np.random.default_rng(1)
    x = np.linspace(-5, 10, 4000)
    for _ in range(15):
        x = slice_step(rng, stats.norm(3.0, 2.0).logpdf, x, width)
    assert_follows(x, stats.norm(3.0, 2.0).cdf)


def test_states_have_laws_of_their_own():
    rng = np.random.default_rng(2)
    mean = np.where(np.arange(N) % 2, 5.0, -5.0)
    x = mean + rng.standard_normal(N)
    stepped = slice_step(rng, lambda x: -0.5 * (x - mean) ** 2, x)
    assert_follows(stepped - mean, stats.norm.cdf)


def test_a_density_without_end_is_no_trap():
    x = slice_step(np.random.default_rng(3), np.zeros_like, np.zeros(5))
    assert np.all(np.abs(x) <= 100)


def test_a_start_where_the_density_is_zero_is_refused():
    with pytest.raises(ValueError, match="must start where the log density is finite"):
        slice_step(np.random.default_rng(0), LAWS["bounded"].logpdf, np.array([0.5, 2.0]))
