"""Posteriors of all kinds of data."""

import numpy as np
import pytest

import ihmm
from report_cases import MODEL, PATH, RNG, Y, draw_some


@pytest.fixture(scope="module")
def posterior() -> ihmm.Posterior:
    return draw_some(draws=60)


@pytest.fixture(scope="module")
def several() -> ihmm.Posterior:
    gappy = Y.copy()
    gappy[[3, 4, 5, 30]] = np.nan
    return draw_some(y=[gappy, Y[:25], Y], init=[PATH, PATH[:25], PATH], save_warmup=True)


@pytest.fixture(scope="module")
def wide() -> ihmm.Posterior:
    y = 4.0 * PATH[:, None] + RNG.standard_normal((len(PATH), 3))
    y[40:45, 1] = np.nan
    return draw_some(ihmm.Model(ihmm.MultivariateNormal(3), MODEL.prior), y)


@pytest.fixture(scope="module")
def symbols() -> ihmm.Posterior:
    return draw_some(ihmm.Model(ihmm.Categorical(4, 0.1), MODEL.prior), PATH)


@pytest.fixture(scope="module")
def counts() -> ihmm.Posterior:
    return draw_some(
        ihmm.Model(ihmm.Poisson(), MODEL.prior), np.array([0, 9, 40])[PATH] + RNG.integers(0, 3, len(PATH))
    )


@pytest.fixture(scope="module")
def single() -> ihmm.Posterior:
    model = ihmm.Model(ihmm.Normal(), ihmm.FinitePrior(1, gamma=None))
    return draw_some(model, Y[:20], 1, sampler=ihmm.Blocked(), chains=1)
