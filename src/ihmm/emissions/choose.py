"""A family for data nobody has said anything about, with a prior on the scale of the data."""

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, FloatArray
from ihmm.emissions._protocol import Emission
from ihmm.emissions.autoregressive import Autoregressive
from ihmm.emissions.bernoulli import Bernoulli
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.emissions.multinomial import Multinomial
from ihmm.emissions.multivariate_normal import MultivariateNormal
from ihmm.emissions.normal import Normal
from ihmm.emissions.poisson import Poisson
from ihmm.emissions.student_t import StudentT
from ihmm.emissions.von_mises import VonMises

MOST_SYMBOLS = 10  # whole numbers below this are taken for symbols, others for counts
MOST_CORRELATED = 20  # columns up to which correlations within a state are learned
LEAST_NOISE = 1e-10  # of an autoregression, as a share of the variance of the whole series
QUARTILES = 1.349  # how far apart they are, in standard deviations of a normal
WITHIN = 0.1  # variance expected within a state, as a share of the variance of the whole series


def choose(emission: str | Emission, values: Array, order: int = 1) -> Emission:
    """The emission itself, or one of the named family with a prior that suits `values`, (T, D), NaN where missing.

    ``"auto"`` takes several columns, and anything with fractions, for normal; whole numbers from 0 to 9 for symbols,
    and larger ones for counts. ``"student-t"``, for outliers, and ``"von-mises"``, for angles in radians, must be asked
    for.

    The priors are weakly informative. Normal: means centred at that of the series, spread as the series is; variances
    a tenth of the series' on average, InvGamma(2, ·). Several columns: the same for each of them, with correlations
    for up to 20. Student t, with 4 degrees of freedom: as normal, but on the scale of the quartiles, which outliers do
    not move. Von Mises: all directions equally likely, concentrations exponential of mean 20. Poisson: rates
    Gamma(1, 1/mean). Categorical, Bernoulli and Multinomial: all probabilities equally likely; the total of simulated
    rows of counts is the median of those seen. Autoregressive, of the given `order`: noise as that of one
    autoregression for the whole series on average, coefficients about 0 and around 1 in size for columns of equal
    spread, levels spread as the series is. Mixture: a `DPMixture` of normals with the priors above. ``"auto"`` takes a
    normal, a categorical or a Poisson.
    """
    if not isinstance(emission, str):
        return emission
    name = _checks.one_of("emission (or an instance such as ihmm.Normal())", emission, _checks.EMISSIONS)
    if name == "auto":
        name = _guess(values)
    observed: FloatArray = values.astype(np.float64)
    if name == "normal":
        return _normal(observed)
    if name == "autoregressive":
        return _autoregressive(observed, order)
    if name == "bernoulli":
        return Bernoulli(n_features=observed.shape[1])
    if name == "multinomial":
        return _multinomial(observed)
    if name == "mixture":
        return DPMixture(_normal(observed))
    if observed.shape[1] != 1:
        raise ValueError(
            f'emission="{name}" takes one column, got {observed.shape[1]}; use "normal", or an instance '
            "(ihmm.Independent for columns of several kinds)"
        )
    if name == "poisson":
        mean = float(np.nanmean(observed))
        return Poisson(shape=1.0, rate=1 / mean if mean > 0 else 1.0)
    if name == "student-t":
        return _student_t(observed)
    if name == "von-mises":
        return VonMises()
    return Categorical(n_symbols=max(int(np.nanmax(observed)) + 1, 2))


def _guess(values: Array) -> str:
    observed = values[~np.isnan(values)] if values.dtype.kind == "f" else values.ravel()
    whole = values.shape[1] == 1 and bool(np.all(observed == np.floor(observed))) and observed.min() >= 0
    if not whole:
        return "normal"
    return "categorical" if observed.max() < MOST_SYMBOLS else "poisson"


def _moments(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean = np.nanmean(values, axis=0)
    return mean, _positive(np.nanvar(values, axis=0), mean)


def _autoregressive(values: FloatArray, order: int) -> Emission:
    size = values.shape[1]
    mean, variance = _moments(values)
    plain = Autoregressive(order, size)
    rows, unknown = plain.with_past((values - mean) / np.sqrt(variance), np.array([0, len(values)]), None)
    y, past = rows[~unknown, -size:], rows[~unknown, :-size]
    residual = y - past @ np.linalg.lstsq(past, y)[0]
    noise = np.square(residual).sum(axis=0) / max(len(y) - past.shape[1], 1)
    noise = np.where(np.ptp(y, axis=0) > 0, np.clip(noise, LEAST_NOISE, 1), 1.0) if len(y) else np.ones(size)
    least = float(noise.min())
    return Autoregressive(
        order,
        size,
        mean=tuple(mean.tolist()),
        strength=least,
        precision=tuple(np.tile(least * variance, order).tolist()),
        scale=tuple((noise * variance).tolist()),
    )


def _normal(values: FloatArray) -> Emission:
    mean, variance = _moments(values)
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


def _multinomial(values: FloatArray) -> Emission:
    if values.shape[1] < 2:
        raise ValueError('emission="multinomial" takes rows of counts, two columns or more, got one; use "poisson"')
    totals = values.sum(axis=1)
    known = totals[np.isfinite(totals)]
    return Multinomial(n_categories=values.shape[1], total=max(round(float(np.median(known))), 1) if known.size else 1)


def _student_t(values: FloatArray) -> StudentT:
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    variance = ((high - low) / QUARTILES) ** 2 if high > low else np.nanvar(values)
    within = WITHIN * _positive(np.asarray(variance), middle)
    return StudentT(mean=float(middle), strength=WITHIN, shape=2.0, rate=float(within))


def _positive(variance: FloatArray, mean: FloatArray) -> FloatArray:
    """The variance, or something small in its place where a column is constant."""
    return np.where(variance > 0, variance, np.maximum(np.square(mean), 1.0) * 1e-6)
