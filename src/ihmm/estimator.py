"""InfiniteHMM: the model as a scikit-learn estimator, with hmmlearn's names for what was fitted."""

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, DensityMixin, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from ihmm import _checks
from ihmm._typing import Array, ArrayLike, FloatArray, IntArray
from ihmm.chain import sample
from ihmm.emissions import Emission
from ihmm.model import model_for
from ihmm.posterior import Posterior
from ihmm.predict import Forecast, LabelledDraw, finite_hmm, simulate_from, viterbi
from ihmm.samplers import Sampler
from ihmm.sequences import as_array

TINY = 1e-300
HMMLEARN = {"mean": "means_", "probs": "emissionprob_", "rate": "lambdas_"}


class InfiniteHMM(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DensityMixin, BaseEstimator):  # type: ignore[misc]
    """A hidden Markov model that finds out how many states it has.

    Parameters
    ----------
    emission
        ``"auto"`` looks at the data: fractions or several columns are normal, whole numbers from 0 to 9 symbols,
        larger ones counts. Or ``"normal"``, ``"categorical"``, ``"poisson"``, ``"bernoulli"`` (zeros and ones),
        ``"multinomial"`` (rows of counts), ``"autoregressive"`` (dynamics), ``"student-t"`` (for outliers),
        ``"von-mises"`` (for angles) or ``"mixture"`` (of normals, in each state), each with a weakly informative prior
        on the scale of the data; or an emission with a prior of your own, such as ``ihmm.Normal(mean=0, rate=0.1)``, or
        ``ihmm.Independent`` for columns of several kinds.
    sticky
        Whether states may prefer to stay: True learns how much, False does not favour it, a number in [0, 1)
        fixes ρ.
    order
        Of ``"autoregressive"``: how many steps back a value depends on.
    sampler
        How paths are drawn; ``ihmm.ParticleGibbs()`` if not given.
    draws, tune, chains, init, thin, cores, progress
        As in `ihmm.sample`.
    random_state
        Governs everything random.

    Attributes
    ----------
    posterior_
        The draws, an `ihmm.Posterior`; `posterior_.summary()` has intervals, `posterior_.check()` convergence.
    n_states_
        Number of states of the segmentation that is closest to the draws on average. States are numbered from the most
        used to the least, in all methods and attributes.
    labels_
        (n_samples,): that segmentation of the training data.
    startprob_, transmat_
        Posterior means, (n_states,) and (n_states, n_states).
    means_, covars_, emissionprob_, lambdas_, intercept_, coefficients_
        Posterior means of the emission parameters, those that the family has: (n_states, n_features),
        (n_states, n_features, n_features), (n_states, n_symbols), (n_states, 1), (n_states, n_features),
        (n_states, n_features² · order).
    emission_
        The emission with its prior.
    n_features_in_, feature_names_in_
        As everywhere in scikit-learn.

    Notes
    -----
    The prior on the transitions is `HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), BetaPrior(1, 1))`: few states
    rather than many, rows that may be alike or not. For another one use `ihmm.Model` and `ihmm.sample`.

    X is one series, (n_samples, n_features) or (n_samples,), or a list of series; or several series end to end
    with their `lengths`. NaN marks a missing value.
    """

    def __init__(
        self,
        emission: str | Emission = "auto",
        *,
        sticky: bool | float = True,
        order: int = 1,
        sampler: Sampler | None = None,
        draws: int = 500,
        tune: int = 300,
        chains: int = 4,
        init: Any = "auto",
        thin: int = 1,
        cores: int | None = None,
        progress: bool = False,
        random_state: Any = None,
    ) -> None:
        self.emission = emission
        self.sticky = sticky
        self.order = order
        self.sampler = sampler
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.init = init
        self.thin = thin
        self.cores = cores
        self.progress = progress
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> "InfiniteHMM":
        """Draw from the posterior given X; `y` is ignored, as in all unsupervised estimators."""
        series = self._series(X, lengths, y=y, reset=True)
        model = model_for(np.concatenate(series), self.emission, self.sticky, self.order)
        self.emission_ = model.emission
        self.posterior_ = sample(
            model,
            series,
            sampler=self.sampler,
            draws=self.draws,
            tune=self.tune,
            chains=self.chains,
            seed=int(check_random_state(self.random_state).randint(2**31)),
            init=self.init,
            thin=self.thin,
            cores=self.cores,
            progress=self.progress,
        )
        summary = self.posterior_.summary()
        self.n_states_ = self._n_features_out = summary.n_states
        self.labels_ = summary.states
        self.startprob_, self.transmat_ = summary.initial, summary.transitions
        for name, by_draw in summary.parameters.items():
            values = np.nanmean(by_draw, axis=0)
            if name in ("variance", "covariance"):
                self.covars_ = _matrices(values)
            else:
                setattr(self, HMMLEARN.get(name, f"{name}_"), values.reshape(len(values), -1))
        return self

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> IntArray:
        """(n_samples,): the most probable state of every step, given all of its series."""
        return np.asarray(np.argmax(self.predict_proba(X, lengths=lengths), axis=1))

    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """(n_samples, n_states): probability of every state at every step, given all of its series.

        It is averaged over the draws. `posterior_.smooth` also has the probability that none of them is right.
        """
        return _among_known(self._posterior().smooth(self._series(X, lengths)))

    def transform(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """As `predict_proba`: the states as features for another estimator."""
        return self.predict_proba(X, lengths=lengths)

    def filter(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """As `predict_proba`, but causal: a step is judged by itself and what came before."""
        return _among_known(self._posterior().filter(self._series(X, lengths)))

    def decode(self, X: Any, *, lengths: ArrayLike | None = None) -> tuple[float, IntArray]:
        """The path that is most probable as a whole (Viterbi), under the posterior mean parameters.

        Returns its log-probability, joint with X, and the path.
        """
        posterior, summary = self._posterior(), self._posterior().summary()
        data = posterior.model.observe(self._series(X, lengths), shortest=1)
        log_density = posterior.model.log_density(data, summary.phi)
        path, log_probability = viterbi(log_density, data.offsets, summary.initial, summary.transitions)
        return log_probability, path

    def score(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> float:
        """Held-out log-likelihood: log p(X | training data), summed over the series; the higher the better."""
        return float(self._posterior().log_likelihood(self._series(X, lengths, y=y)).sum())

    def forecast(self, steps: int, X: Any = None, *, lengths: ArrayLike | None = None) -> Forecast | list[Forecast]:
        """What comes after the training data, or after X: futures with `mean`, `interval(0.9)` and `states`.

        A list of them for several series.
        """
        return self._posterior().forecast(steps, None if X is None else self._series(X, lengths))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, IntArray]:
        """A new series from one of the draws, taken at random: X, (n_samples, n_features), and its states; −1 is a
        state never met."""
        posterior = self._posterior()
        _checks.count("n_samples", n_samples)
        seed = int(check_random_state(random_state).randint(2**31))
        rng = np.random.default_rng(seed)
        draws, matches = list(posterior), posterior.summary().matches
        i = int(rng.integers(len(draws)))
        hmm = finite_hmm(posterior.model, LabelledDraw(draws[i], matches[i].label, (seed,)))
        X, states = simulate_from(rng, posterior.model, hmm, hmm.initial, n_samples)
        return X.reshape(n_samples, -1), states

    def _posterior(self) -> Posterior:
        check_is_fitted(self, "posterior_")
        return self.posterior_

    def _series(self, X: Any, lengths: ArrayLike | None, *, y: Any = None, reset: bool = False) -> list[Array]:
        """X as a list of series, (T, D) each."""
        if not reset:
            check_is_fitted(self, "posterior_")
        if _several(X):
            if lengths is not None:
                raise ValueError("lengths tell series apart that lie end to end; X is a list of series already")
            return [self._checked(part, reset=reset and i == 0) for i, part in enumerate(X)]
        if y is not None and _n_dimensions(X) == 1 and reset:
            raise ValueError("X must be 2-D when there is a y, as everywhere in scikit-learn: reshape it to (-1, 1)")
        values = self._checked(X, reset=reset)
        _refuse_lengths_as_y(y, len(values))
        return np.split(values, _ends(lengths, len(values))) if lengths is not None else [values]

    def _checked(self, X: Any, *, reset: bool) -> Array:
        """One series as (T, D), NaN where missing; columns as in the fit."""
        if _n_dimensions(X) == 1 and (reset or self.n_features_in_ == 1):
            X = as_array(X).reshape(-1, 1)
        checked: Array = validate_data(self, X, reset=reset, ensure_all_finite="allow-nan")
        return checked

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _several(X: Any) -> bool:
    """A list of arrays is several series; lists of numbers within a list are the rows of one."""
    if not isinstance(X, (list, tuple)):
        return False
    return any(np.ndim(part) == 2 or (np.ndim(part) == 1 and not isinstance(part, (list, tuple))) for part in X)


def _n_dimensions(X: Any) -> int:
    return np.ndim(X) if isinstance(X, (list, tuple)) else len(getattr(X, "shape", (0, 0)))


def _ends(lengths: ArrayLike, total: int) -> IntArray:
    """Where all series but the last end."""
    each = np.atleast_1d(np.asarray(lengths))
    if each.ndim != 1 or each.dtype.kind not in "iu" or each.size == 0 or each.min() < 1 or each.sum() != total:
        got = f"{lengths!r}, which add up to {each.sum()}" if each.dtype.kind in "iuf" else repr(lengths)
        raise ValueError(f"lengths must be whole numbers that add up to the {total} rows of X, got {got}")
    return np.cumsum(each)[:-1]


def _refuse_lengths_as_y(y: Any, total: int) -> None:
    if y is None:
        return
    values = np.asarray(y)
    if values.ndim == 1 and values.dtype.kind in "iu" and len(values) < total and values.sum() == total:
        raise ValueError(
            f"the second argument is y, which is ignored, but {np.array2string(values, threshold=5)} looks like the "
            "lengths of the series in X: write lengths=…, as in fit(X, lengths=lengths)"
        )


def _among_known(probabilities: FloatArray) -> FloatArray:
    """Probabilities of the known states, given that it is one of them."""
    known = np.maximum(probabilities[:, :-1], TINY)
    return np.asarray(known / known.sum(axis=1, keepdims=True))


def _matrices(values: FloatArray) -> FloatArray:
    """Variances, (K,) or (K, D), or covariances, (K, D, D), as (K, D, D)."""
    if values.ndim == 3:
        return values
    columns = values.reshape(len(values), -1)
    return np.asarray(columns[:, :, None] * np.eye(columns.shape[1]))
