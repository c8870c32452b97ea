"""A family for data nobody has said anything about, with a prior on the scale of the data."""

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray
from ihmm.emissions._base import Emission
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.emissions.multivariate_normal import MultivariateNormal
from ihmm.emissions.normal import Normal
from ihmm.emissions.poisson import Poisson

NAMES = ("auto", "normal", "categorical", "poisson", "mixture")
MOST_SYMBOLS = 10  # whole numbers below this are taken for symbols, others for counts
MOST_CORRELATED = 20  # columns up to which correlations within a state are learned
WITHIN = 0.1  # variance expected within a state, as a share of the variance of the whole series


def choose(emission: str | Emission, values: Array) -> Emission:
    """The emission itself, or one of the named family with a prior that suits `values`, (T, D), NaN where missing.

    ``"auto"`` takes several columns, and anything with fractions, for normal; whole numbers from 0 to 9 for symbols,
    and larger ones for counts.

    The priors are weakly informative. Normal: means centred at that of the series, spread as the series is; variances
    a tenth of the series' on average, InvGamma(2, ·). Several columns: the same for each of them, with correlations
    for up to 20. Poisson: rates Gamma(1, 1/mean). Categorical: all probability vectors equally likely. Mixture: of
    normals with the same priors, `DPMixture`.
    """
    if not isinstance(emission, str):
        return emission
    name = _checks.one_of("emission (or an instance such as ihmm.Normal())", emission, NAMES)
    if name == "auto":
        name = _guess(values)
    observed: FloatArray = values.astype(np.float64)
    if name == "normal":
        return _normal(observed)
    if name == "mixture":
        return DPMixture(_normal(observed))
    if observed.shape[1] != 1:
        raise ValueError(f'emission="{name}" takes one column, got {observed.shape[1]}; use "normal", or an instance')
    if name == "poisson":
        mean = float(np.nanmean(observed))
        return Poisson(shape=1.0, rate=1 / mean if mean > 0 else 1.0)
    return Categorical(n_symbols=max(int(np.nanmax(observed)) + 1, 2))


def _guess(values: Array) -> str:
    observed = values[~np.isnan(values)] if values.dtype.kind == "f" else values.ravel()
    whole = values.shape[1] == 1 and bool(np.all(observed == np.floor(observed))) and observed.min() >= 0
    if not whole:
        return "normal"
    return "categorical" if observed.max() < MOST_SYMBOLS else "poisson"


def _normal(values: FloatArray) -> Emission:
    mean, variance = np.nanmean(values, axis=0), np.nanvar(values, axis=0)
    variance = np.where(variance > 0, variance, np.maximum(np.square(mean), 1.0) * 1e-6)  # a constant column
    within = WITHIN * variance
    if values.shape[1] == 1:
        return Normal(mean=float(mean[0]), strength=WITHIN, shape=2.0, rate=float(within[0]))
    return MultivariateNormal(
        n_features=values.shape[1],
        mean=tuple(mean.tolist()),
        strength=WITHIN,
        scale=tuple(within.tolist()),
        covariance="full" if values.shape[1] <= MOST_CORRELATED else "diagonal",
    )
