"""Models and tiny series that every sampler is tried on."""

import itertools
from collections.abc import Iterable

import numpy as np
import pytest

import ihmm

ALARM = 1e-4  # a p-value below this is a broken sampler: seeds are fixed, so a test that passes keeps passing

NORMAL_SERIES = [-1.0, -1.2, 1.5, 1.3, -0.8]
SYMBOL_SERIES = [0, 0, 2, 1, 2]
COUNT_SERIES = [2, 1, 9, 7, 3]
ROW_SERIES = [[-1.0, 0.5], [-1.2, -0.2], [1.5, -0.8], [1.3, 0.9], [-0.8, 0.7]]
EMISSIONS = {
    "normal-mean": (ihmm.NormalMean(noise=0.7, mean=0.0, scale=1.5), NORMAL_SERIES),
    "normal": (ihmm.Normal(mean=0.0, strength=0.5, shape=2.0, rate=1.0), NORMAL_SERIES),
    "categorical": (ihmm.Categorical(n_symbols=3, concentration=0.5), SYMBOL_SERIES),
    "poisson": (ihmm.Poisson(shape=1.5, rate=0.3), COUNT_SERIES),
    "full": (ihmm.MultivariateNormal(2, 0.0, 0.5, 5.0, [[1.5, 0.5], [0.5, 1.0]]), ROW_SERIES),
    "diagonal": (ihmm.MultivariateNormal(2, 0.0, 0.5, 5.0, [1.5, 1.0], covariance="diagonal"), ROW_SERIES),
}
THOROUGH = ("normal-mean", "normal", "categorical")  # the other families are tried with fewer priors and layouts
PRIORS = {
    "plain": ihmm.HDPPrior(gamma=1.5, concentration=1.0),
    "sticky": ihmm.HDPPrior(gamma=1.5, concentration=2.0, stickiness=0.4),
    "free": ihmm.HDPPrior(ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1)),
    "sticky-free": ihmm.HDPPrior(ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
}
FINITE_PRIORS = {
    "finite": ihmm.FinitePrior(3, gamma=1.5, concentration=1.0),
    "finite-sticky-free": ihmm.FinitePrior(3, ihmm.GammaPrior(2, 1), ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
    "bayesian-hmm": ihmm.FinitePrior(3, gamma=None, concentration=2.0),
    "bayesian-hmm-sticky-free": ihmm.FinitePrior(3, None, ihmm.GammaPrior(2, 1), ihmm.BetaPrior(2, 2)),
}
# Families of several columns, tried in a file of their own
COLUMNS = {
    "bernoulli": (
        ihmm.Bernoulli(3, a=0.4, b=0.6),
        [[0, 1, 0], [0, 1, 0], [1, 1, 1], [1, 0, 1], [0, 0, 0]],
    ),
    "multinomial": (
        ihmm.Multinomial(3, concentration=0.6, total=5),
        [[4, 0, 1], [3, 1, 1], [0, 6, 0], [0, 3, 2], [5, 1, 0]],
    ),
    "independent": (
        ihmm.Independent(ihmm.Categorical(2, 0.5), ihmm.Normal(0.0, 0.5, 3.0, 1.0), ihmm.NormalMean(0.7, scale=1.5)),
        [[0, -1.0, 1.6], [1, -1.2, -1.5], [0, 1.5, 0.4], [1, 1.3, 1.9], [0, -0.8, 0.7]],
    ),
}
LAYOUTS = {"one sequence": [5], "several sequences": [3, 2]}


def trials(priors: dict, layouts: dict, samplers: dict, emissions: Iterable[str] = EMISSIONS, few: int = 0) -> list:
    """Emissions and their series, priors, layouts and samplers: (emission, series, prior, lengths, sampler).

    Any two of a thorough family, a prior, a layout and a sampler meet in some trial, see `covering`. Families differ
    in little but their densities, so that the others are tried with the last prior and the last layout only, and the
    first `few` samplers if that is given.
    """
    emissions = [*emissions]
    thorough = [emission for emission in emissions if emission in THOROUGH]
    chosen = covering(thorough, priors, layouts, samplers)
    chosen += [
        (emission, [*priors][-1], [*layouts][-1], sampler)
        for emission in emissions
        if emission not in THOROUGH
        for sampler in [*samplers][: few or None]
    ]
    return [
        pytest.param(
            *EMISSIONS[emission],
            priors[prior],
            layouts[layout],
            samplers[sampler],
            id=f"{emission}-{prior}-{layout}-{sampler}",
        )
        for emission, prior, layout, sampler in chosen
    ]


def covering(*factors: Iterable[str]) -> list[tuple[str, ...]]:
    """A few combinations, one level of each factor, in which every pair of levels of two factors occurs.

    What goes wrong in a sampler depends on one thing, or on two that meet. All combinations of three or four would try
    the same code many times over. The choice is greedy, and always the same.
    """
    every = [*itertools.product(*factors)]
    todo = {pair for row in every for pair in pairs_of(row)}
    chosen = []
    while todo:
        chosen.append(max(every, key=lambda row: len(todo & pairs_of(row))))
        todo -= pairs_of(chosen[-1])
    return sorted(chosen, key=every.index)


def pairs_of(row: tuple[str, ...]) -> set:
    """The pairs of levels in one combination, with the factors they belong to."""
    return set(itertools.combinations(enumerate(row), 2))


def some(cases: dict, *names: str) -> dict:
    return {name: cases[name] for name in names}


def split(series: list, lengths: list[int]) -> list[np.ndarray]:
    return np.split(np.array(series), np.cumsum(lengths)[:-1])
