"""Default emissions, chosen from the data, with priors on the scale of the data."""

import numpy as np
from scipy.special import chdtri, gammaln

from ihmm import _checks
from ihmm._typing import Array, FloatArray
from ihmm.emissions._protocol import Emission
from ihmm.emissions.autoregressive import Autoregressive
from ihmm.emissions.bernoulli import Bernoulli
from ihmm.emissions.categorical import Categorical
from ihmm.emissions.dp_mixture import DPMixture
from ihmm.emissions.multinomial import Multinomial
from ihmm.emissions.multivariate_normal import MultivariateNormal
from ihmm.emissions.negative_binomial import NegativeBinomial
from ihmm.emissions.noisy_levels import NoisyLevels
from ihmm.emissions.normal import Normal
from ihmm.emissions.poisson import Poisson
from ihmm.emissions.student_t import StudentT
from ihmm.emissions.von_mises import VonMises
from ihmm.priors import GammaPrior

MEASURED = 30  # mean from which whole numbers are measurements: their noise is rarely that of counts
FEW_SYMBOLS, MANY_SYMBOLS = 10, 200  # from which integers are symbols only in no order, and never
COUNTS_LEVEL, UNORDERED_LEVEL = 0.05, 1e-6  # of the test whether integers are distributed as counts
UNORDERED, USED = 0.75, 0.6  # see `_are_unordered`
MAX_CORRELATED = 20  # columns up to which covariances are full
MIN_NOISE = 1e-10  # of an autoregression, relative to the variance of the series
INTERQUARTILE_RANGE = 1.349  # of a standard normal distribution
MIN_SPREAD = 1e-140  # its square is still a normal number
NORMAL_DIFFERENCE = 0.954  # median absolute difference of two standard normal variables
RANGE = (0.01, 0.99)  # quantiles between which levels are expected
WITHIN = 0.1  # expected variance within a state, relative to the variance of the series


def choose(emission: str | Emission, values: Array, order: int | None = None) -> Emission:
    """The emission itself if it is an instance, else the named family with a prior that fits `values`.

    `values` is (T, D), NaN where missing. ``"auto"`` chooses normal for several columns or fractional values. One
    column of whole numbers is Poisson if they are distributed as counts, a mixture of Poisson distributions, and
    categorical otherwise. Numbers of 10 and more are categorical only if neighbouring numbers have unrelated shares, as
    letters have. Other families are not chosen automatically.

    The priors are weakly informative:

    - Normal: means centred at the mean of the series, with its variance; variances InvGamma(2, ·), on average a tenth
      of that of the series. Several columns: the same for each of them, with full covariances for up to 20.
    - Student t, with 4 degrees of freedom: as normal, but on the scale of the interquartile range, which is robust to
      outliers.
    - Von Mises: uniform mean directions, exponential concentrations with mean 20.
    - Poisson: rates Gamma(1, 1/mean). Negative binomial: the same, and sizes Gamma(2, ·), on average that of all counts
      together.
    - Categorical: probabilities around the shares of the symbols in the whole series, as close to them as the states
      say; the concentration is Gamma(1, 1) and resampled.
    - Bernoulli, Multinomial: uniform probabilities. The total of simulated rows of counts is the median of the observed
      totals.
    - Autoregressive, of the given `order`, 1 by default: noise variances on average that of a single autoregression for
      the whole series; coefficients centred at 0, of order 1 for columns with equal variance; intercepts with the
      variance of the series.
    - Levels: `NoisyLevels` with Student t tails and noise of the given `order`, 0 by default. Levels over the range of
      the series without its most extreme values; σ as large as differences between successive values suggest.
    - Mixture: a `DPMixture` of normals with the priors above.
    """
    if not isinstance(emission, str):
        return emission
    name = _checks.one_of("emission (or an instance such as ihmm.Normal())", emission, _checks.EMISSIONS)
    if name == "auto":
        name = guess(values)
    if name == "gaussian":
        name = "normal"
    observed: FloatArray = values.astype(np.float64)
    if name == "normal":
        return _normal(observed)
    if name == "autoregressive":
        return _autoregressive(observed, 1 if order is None else order)
    if name == "levels":
        return _levels(observed, 0 if order is None else order)
    if name == "bernoulli":
        return Bernoulli(n_features=observed.shape[1])
    if name == "multinomial":
        return _multinomial(observed)
    if name == "mixture":
        return DPMixture(_normal(observed))
    if observed.shape[1] != 1:
        raise ValueError(
            f'emission="{name}" takes one column, got {observed.shape[1]}; use "normal", or an emission instance '
            "(ihmm.Independent for columns of different types)"
        )
    if name == "poisson":
        return Poisson(shape=1.0, rate=_rate_prior(observed))
    if name == "negative-binomial":
        return NegativeBinomial(1.0, _rate_prior(observed), 2.0, 2 / _size(observed))
    if name == "student-t":
        return _student_t(observed)
    if name == "von-mises":
        return VonMises()
    return categorical(observed)


def guess(values: Array) -> str:
    """The family of ``"auto"``, from the type of the values alone."""
    observed = values[~np.isnan(values)] if values.dtype.kind == "f" else values.ravel()
    counts = values.shape[1] == 1 and bool(np.all(observed == np.floor(observed))) and observed.min() >= 0
    if not counts or observed.mean() >= MEASURED:
        return "normal"
    whole = observed.astype(np.int64)
    symbols = _are_unordered(whole) if whole.max() >= FEW_SYMBOLS else not _are_counts(whole)
    return "categorical" if symbols else "poisson"


def reason(values: Array, family: str) -> str:
    """Why ``"auto"`` chooses this family, from the type of the values alone."""
    if family == "normal":
        return "Real numbers: a normal distribution in each state."
    low, high = int(np.nanmin(values)), int(np.nanmax(values))
    whole = f"Whole numbers from {low} to {high}"
    if family == "poisson":
        return f'{whole}, with the frequencies of counts: a Poisson rate in each state ("categorical": symbols).'
    return f'{whole}, without the frequencies of counts: symbols, with probabilities in each state ("poisson": counts).'


def _are_unordered(values: Array) -> bool:
    """Whether the shares of many integers are those of symbols, such as letters, rather than of counts.

    Most of the numbers occur, their shares are not those of counts, and the share of a number says nothing about that
    of the next one: shares of neighbours differ about as much as those of any two.
    """
    shares = np.bincount(values) / len(values)
    if len(shares) > MANY_SYMBOLS or np.mean(shares > 0) < USED or _are_counts(values, UNORDERED_LEVEL):
        return False
    neighbours, any_two = np.abs(np.diff(shares)).mean(), np.abs(shares[:, None] - shares).mean()
    return bool(neighbours > UNORDERED * any_two)


def _are_counts(values: Array, level: float = COUNTS_LEVEL) -> bool:
    """Whether the shares of the values are those of a mixture of Poisson distributions, by a likelihood ratio test.

    A hidden Markov model with Poisson emissions has such shares. Symbols do not: they end at some number without
    getting rarer before. Zeros and ones are not counts.
    """
    shares = np.bincount(values) / len(values)
    if len(shares) <= 2:
        return False
    numbers, rates = np.arange(len(shares)), np.geomspace(0.01, len(shares) + 1, 60)
    density = np.exp(numbers[:, None] * np.log(rates) - rates - gammaln(numbers + 1)[:, None])
    weights = np.full(len(rates), 1 / len(rates))
    for _ in range(500):  # of the EM algorithm for the weights of a mixture
        weights *= density.T @ (shares / (density @ weights))
    seen = shares > 0
    excess = 2 * len(values) * np.sum(shares[seen] * np.log(shares[seen] / (density @ weights)[seen]))
    return bool(excess < chdtri(len(shares) - 1, level))


def categorical(values: FloatArray, n_symbols: int | None = None) -> Categorical:
    """Symbols, `n_symbols` of them or as many as there are in `values`, each expected as often as it occurs there."""
    n_symbols = max(int(np.nanmax(values)) + 1, 2) if n_symbols is None else n_symbols
    known = values[np.isfinite(values)]
    symbols = known[(known >= 0) & (known == np.floor(known))].astype(np.int64)  # others are refused later
    number = np.bincount(symbols, minlength=n_symbols) + 0.5  # symbols that do not occur are possible
    return Categorical(n_symbols, GammaPrior(1, 1), tuple((number / number.sum()).tolist()))


def _moments(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    mean, variance = np.nanmean(values, axis=0), np.nanvar(values, axis=0)
    _check_spread(values, variance)
    return mean, _positive(variance, mean)


def _autoregressive(values: FloatArray, order: int) -> Emission:
    size = values.shape[1]
    mean, variance = _moments(values)
    plain = Autoregressive(order, size)
    rows, unknown = plain.with_past((values - mean) / np.sqrt(variance), np.array([0, len(values)]), None)
    y, past = rows[~unknown, -size:], rows[~unknown, :-size]
    residual = y - past @ np.linalg.lstsq(past, y)[0]
    noise = np.square(residual).sum(axis=0) / max(len(y) - past.shape[1], 1)
    noise = np.where(np.ptp(y, axis=0) > 0, np.clip(noise, MIN_NOISE, 1), 1.0) if len(y) else np.ones(size)
    least = float(noise.min())
    return Autoregressive(
        order,
        size,
        mean=tuple(mean.tolist()),
        strength=least,
        precision=tuple(np.tile(least * variance, order).tolist()),
        scale=tuple((noise * variance).tolist()),
    )


def _levels(values: FloatArray, order: int) -> Emission:
    mean, spread = level_prior(values)
    noise = np.array([_successive_differences(column) for column in values.T])
    noise = np.where(noise > 0, noise, np.sqrt(WITHIN) * spread)
    return NoisyLevels(
        order,
        tails="student-t",
        n_features=values.shape[1],
        mean=tuple(mean.tolist()),
        spread=tuple(spread.tolist()),
        shape=2.0,
        rate=tuple((2 * noise**2).tolist()),
    )


def level_prior(values: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation, (D,), of levels over the range of the series without its most extreme values."""
    low, high = np.nanquantile(values, RANGE, axis=0)
    middle = np.asarray((low + high) / 2)
    return middle, np.sqrt(_positive(np.square((high - low) / 2), middle))


def _successive_differences(values: FloatArray) -> float:
    """Standard deviation of white noise with the median difference of successive values: changes of level are rare.
    Differences of 0 do not count, those of rounded values."""
    step = np.abs(np.diff(values))
    step = step[step > 0]
    return float(np.median(step) / NORMAL_DIFFERENCE) if len(step) else 0.0


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
        covariance="full" if values.shape[1] <= MAX_CORRELATED else "diagonal",
    )


def _multinomial(values: FloatArray) -> Emission:
    if values.shape[1] < 2:
        raise ValueError('emission="multinomial" takes rows of counts, two columns or more, got one; use "poisson"')
    totals = values.sum(axis=1)
    known = totals[np.isfinite(totals)]
    return Multinomial(n_categories=values.shape[1], total=max(round(float(np.median(known))), 1) if known.size else 1)


def _rate_prior(values: FloatArray) -> float:
    """The rate of an exponential prior with the mean of the values."""
    mean = float(np.nanmean(values))
    return 1 / mean if mean > 0 else 1.0


def _size(values: FloatArray) -> float:
    """The size of a negative binomial with the mean and variance of the values, between 0.1 and 100."""
    mean, excess = float(np.nanmean(values)), float(np.nanvar(values) - np.nanmean(values))
    return float(np.clip(mean**2 / excess, 0.1, 100.0)) if excess > 0 else 100.0


def _student_t(values: FloatArray) -> StudentT:
    low, middle, high = np.nanquantile(values, (0.25, 0.5, 0.75))
    variance = ((high - low) / INTERQUARTILE_RANGE) ** 2 if high > low else np.nanvar(values)
    _check_spread(values, np.asarray(variance))
    within = WITHIN * _positive(np.asarray(variance), middle)
    return StudentT(mean=float(middle), strength=WITHIN, shape=2.0, rate=float(within))


def _check_spread(values: FloatArray, variance: FloatArray) -> None:
    """A series that is not constant must not seem so because the squares of its differences vanish."""
    spread = np.nanmax(values, axis=0) - np.nanmin(values, axis=0)
    lost = np.flatnonzero((spread > 0) & (spread < MIN_SPREAD) & (variance < MIN_SPREAD**2))
    if lost.size:
        found = float(spread[lost[0]])
        raise ValueError(
            f"the values of column {lost[0]} differ by at most {found:.3g}, less than arithmetic can square; rescale "
            f"the series, for example by a factor of {1 / found:.0e}"
        )


def _positive(variance: FloatArray, mean: FloatArray) -> FloatArray:
    """The variance, or a small positive number where a column is constant."""
    return np.where(variance > 0, variance, np.maximum(np.square(mean), 1.0) * 1e-6)
