"""InfiniteHMM: a scikit-learn estimator, with fitted attributes named as in hmmlearn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._scikit_learn import EstimatorOnDemand, as_random_state, checked, not_fitted
from ihmm._typing import Array, ArrayLike, FloatArray, IntArray
from ihmm.chain import sample
from ihmm.choice import ModelOptions, choose_model
from ihmm.durations import Duration
from ihmm.emissions import Emission, NoisyLevels
from ihmm.posterior import Posterior
from ihmm.predictions.forecasts import Forecast, simulate_anew
from ihmm.predictions.predict import FiniteHMM, LabelledDraw, finite_hmm, most_probable_states
from ihmm.running.start import dispersed
from ihmm.samplers import Sampler
from ihmm.series.clock import Clock, index_clock, make_clock
from ihmm.series.estimator_input import (
    as_numbers,
    is_list_of_series,
    n_dimensions,
    refuse_lengths_as_y,
    split_points,
    split_series,
)
from ihmm.series.sequences import Sequences, match_columns, numbers
from ihmm.series.symbols import encode
from ihmm.series.time_columns import clock_columns, date_columns, without_columns
from ihmm.summaries.summary import Summary

TINY = 1e-300  # keeps state probabilities positive
HMMLEARN_NAMES = {"mean": "means_", "probs": "emissionprob_", "rate": "lambdas_"}


class InfiniteHMM(EstimatorOnDemand):
    """A hidden Markov model that infers its number of states.

    Parameters
    ----------
    emission
        ``"auto"`` chooses by a pilot fit: for measurements, levels in noise, with the autocorrelation, tails and scales
        that fit best, or switching dynamics; for whole numbers, symbols or counts. `choice_` has the reasons.
        Otherwise ``"normal"``, ``"categorical"``, ``"poisson"``, ``"negative-binomial"`` (overdispersed counts),
        ``"bernoulli"`` (zeros and ones), ``"multinomial"`` (rows of counts), ``"autoregressive"`` (switching dynamics),
        ``"levels"`` (levels in noise that the states share), ``"student-t"`` (outliers), ``"von-mises"`` (angles) or
        ``"mixture"`` (a mixture of normals in each state), each with a weakly informative prior on the scale of the
        data. Or an emission with a prior of your choice, such as ``ihmm.Normal(mean=0, rate=0.1)``, or
        ``ihmm.Independent`` for columns of different types.
    sticky
        Whether self-transitions have extra prior mass: True infers the stickiness ρ, False sets it to 0, a number in
        [0, 1) fixes it. With durations it has no effect.
    order
        Number of lags of ``"autoregressive"``, 1 by default, or of the noise of ``"levels"``, 0 by default.
    duration
        Distribution of dwell times. None: as ``emission="auto"`` chooses, or as in a hidden Markov model.
        ``"geometric"``: a separate staying probability for each state. ``"negative binomial"`` or ``"poisson"``: dwell
        times with a typical length. Or a distribution of your choice, such as ``ihmm.durations.Geometric(1, 20)``.
    min_dwell
        Minimum number of steps that a state lasts; shorter visits, such as blurred changes of level, are not states. By
        default 2 if ``emission="auto"`` finds levels without visits of a single step, else 1. The duration is geometric
        beyond it unless `duration` says otherwise.
    left_censored
        Whether the first visit of a series may have begun before it, so that it can be shorter than others.
    resolution
        Differences in level that do not matter, in the units of X: states whose means differ by less are on one level.
        By default chosen by ``emission="auto"``, about 1.5 standard deviations of the noise; otherwise only the overlap
        of the emission laws decides.
    sampler
        How state sequences are sampled; ``ihmm.ParticleGibbs()`` if None.
    order_by
        How states are numbered: ``"use"``, from the most to the least used, or ``"mean"``, from the lowest mean.
    dt, sample_rate
        Time between steps, in seconds or as a text such as ``"0.1ms"``, or steps per second, such as ``"10kHz"``. Dwell
        times, rates and plots are then in seconds. By default the times of a pandas index of dates, if there is one.
    draws, tune, chains, init, thin, cores, progress
        As in `ihmm.sample`. ``draws="auto"`` adds draws until the chains have converged, up to a limit. Without
        `progress`, a terminal or notebook shows only compilation, in the first run on a machine.
    random_state
        Seed or `numpy.random.RandomState`; determines all results.

    Attributes
    ----------
    posterior_
        The draws, an `ihmm.Posterior`. `posterior_.levels()` and `posterior_.summary()` have intervals,
        `posterior_.check()` says whether they can be trusted.
    n_levels_, n_levels_probabilities_
        Number of levels: states that emit the same, and differ in their dynamics only, are on one level. And the
        posterior probability of each number.
    level_of_state_
        (n_states,): the level of each state. Levels of one column are numbered by their mean, from the lowest.
    levels_
        (n_samples,): segmentation of the training data by level, ``level_of_state_[labels_]``.
    n_states_, n_states_probabilities_
        Number of states of the segmentation that agrees best with the draws, numbered as `order_by` says in all methods
        and attributes. And the posterior probability of each number of states visited.
    labels_
        (n_samples,): this segmentation of the training data.
    startprob_, transmat_
        Posterior means, (n_states,) and (n_states, n_states). If states have durations, the diagonal of `transmat_` has
        the staying probabilities 1 − 1/m that belong to their mean dwell times m.
    means_, covars_, emissionprob_, lambdas_, intercept_, coefficients_
        Posterior means of the parameters that the emission has: (n_states, n_features),
        (n_states, n_features, n_features), (n_states, n_symbols), (n_states, 1), (n_states, n_features),
        (n_states, n_features² · order).
    emission_
        The emission with its prior.
    choice_
        What ``emission="auto"`` chose; print it for the reasons.
    n_features_in_, feature_names_in_
        As in other scikit-learn estimators.

    Notes
    -----
    The prior on the transitions is `HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), BetaPrior(1, 1))`, which favours
    few states and is vague about the similarity of the rows. For other priors use `ihmm.Model` and `ihmm.sample`.

    X is one series, (n_samples, n_features) or (n_samples,), or a list of series, or several concatenated series with
    their `lengths`. NaN marks missing values.
    """

    def __init__(
        self,
        emission: str | Emission = "auto",
        *,
        sticky: bool | float = True,
        order: int | None = None,
        duration: str | Duration | None = None,
        min_dwell: int | None = None,
        left_censored: bool = False,
        resolution: float | None = None,
        order_by: str = "use",
        dt: Any = None,
        sample_rate: Any = None,
        sampler: Sampler | None = None,
        draws: int | str = "auto",
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
        self.duration = duration
        self.min_dwell = min_dwell
        self.left_censored = left_censored
        self.resolution = resolution
        self.order_by = order_by
        self.dt = dt
        self.sample_rate = sample_rate
        self.sampler = sampler
        self.draws = draws
        self.tune = tune
        self.chains = chains
        self.init = init
        self.thin = thin
        self.cores = cores
        self.progress = progress
        self.random_state = random_state

    _left_out: list[Any]  # columns that are times rather than data
    _columns: tuple[str, ...] | None  # their names, None if they have none
    _symbols: tuple[str, ...] | None  # what integers stand for, if X holds texts

    def fit(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> InfiniteHMM:
        """Sample from the posterior given X. `y` is ignored, as in all unsupervised estimators."""
        clock = make_clock(self.dt, self.sample_rate)
        recorded = self._find_times(X, lengths)
        series = self._series(X, lengths, y=y, reset=True)
        choice = choose_model(
            np.concatenate(series),
            np.array([len(part) for part in series]),
            ModelOptions.of(self),
            symbols=self._symbols,
            cores=self.cores,
            progress=True,
        )
        self.choice_, self.emission_ = choice, choice.model.emission
        sequences = Sequences.of(series, columns=self._columns, clock=clock or recorded, symbols=self._symbols)
        data = choice.without_baseline(sequences)
        self.posterior_ = sample(
            choice.model,
            data,
            sampler=self.sampler,
            draws=self.draws,
            tune=self.tune,
            chains=self.chains,
            seed=int(as_random_state(self.random_state).randint(2**31)),
            init=dispersed(choice.init, data, choice.model) if _is_auto(self.init) else self.init,
            thin=self.thin,
            resolution=choice.resolution,
            cores=self.cores,
            progress=self.progress or "compilation",
        )
        if self.order_by != "use":
            self.posterior_ = self.posterior_.relabel(order_by=self.order_by)
        self._set_fitted_attributes()
        return self

    def predict(self, X: Any, *, lengths: ArrayLike | None = None) -> IntArray:
        """(n_samples,): the most probable state of each step, given its whole series."""
        return np.asarray(np.argmax(self.predict_proba(X, lengths=lengths), axis=1))

    def predict_proba(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """(n_samples, n_states): probability of each state at each step, given its whole series.

        Probabilities are averaged over the draws, or over as many of them as it takes for standard errors of at most
        0.01. Unseen states are excluded; `posterior_.smooth` includes them, and takes another standard error.
        """
        return _without_unseen(self._posterior().smooth(self._series(X, lengths)))

    def transform(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """The same as `predict_proba`: state probabilities as features for another estimator."""
        return self.predict_proba(X, lengths=lengths)

    def filter(self, X: Any, *, lengths: ArrayLike | None = None) -> FloatArray:
        """As `predict_proba`, but given only the current and earlier steps."""
        return _without_unseen(self._posterior().filter(self._series(X, lengths)))

    def decode(self, X: Any, *, lengths: ArrayLike | None = None) -> tuple[float, IntArray]:
        """The most probable state sequence (Viterbi) under the posterior mean parameters.

        Returns its log probability, joint with X, and the sequence.
        """
        posterior, summary = self._posterior(), self._posterior().summary()
        data = posterior.observe(self._series(X, lengths))
        labels = np.arange(summary.n_states)
        mean = FiniteHMM(summary.initial, summary.transitions, summary.phi, False, labels, summary.durations)
        states, log_probability = most_probable_states(posterior.model, data, mean)
        return log_probability, states

    def score(self, X: Any, y: Any = None, *, lengths: ArrayLike | None = None) -> float:
        """Held-out log-likelihood log p(X | training data), summed over the series."""
        return float(self._posterior().log_likelihood(self._series(X, lengths, y=y)).sum())

    def forecast(self, steps: int, X: Any = None, *, lengths: ArrayLike | None = None) -> Forecast | list[Forecast]:
        """Forecast the steps after the training data, or after X; a list of forecasts for several series."""
        return self._posterior().forecast(steps, None if X is None else self._series(X, lengths))

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Array, IntArray]:
        """Simulate a series from a random draw: X, (n_samples, n_features), and its states, −1 for unseen states."""
        posterior = self._posterior()
        posterior.warn_of_baseline()
        _checks.count("n_samples", n_samples)
        seed = int(as_random_state(random_state).randint(2**31))
        rng = np.random.default_rng(seed)
        draws, matches = list(posterior), posterior.summary().matches
        i = int(rng.integers(len(draws)))
        hmm = finite_hmm(posterior.model, LabelledDraw(draws[i], matches[i].label, (seed,)))
        X, states = simulate_anew(rng, posterior.model, hmm, n_samples)
        return X.reshape(n_samples, -1), states

    def _set_fitted_attributes(self) -> None:
        summary = self.posterior_.summary()
        self.n_states_ = self._n_features_out = summary.n_states
        self.n_states_probabilities_ = self.posterior_.n_states_probabilities()
        self.labels_ = summary.states
        levels = self.posterior_.levels()
        self.n_levels_, self.n_levels_probabilities_ = levels.n_levels, levels.n_levels_probabilities
        self.level_of_state_, self.levels_ = levels.level_of_state, levels.segmentation
        self.startprob_, self.transmat_ = summary.initial, _one_step(summary)
        for name, by_draw in summary.parameters.items():
            values = np.nanmean(by_draw, axis=0)
            if name in ("variance", "covariance"):
                self.covars_ = _covariance_matrices(values)
            else:
                setattr(self, HMMLEARN_NAMES.get(name, f"{name}_"), values.reshape(len(values), -1))
        if isinstance(self.emission_, NoisyLevels):
            self.covars_ = self.emission_.covariance(summary.phi)

    def _posterior(self) -> Posterior:
        if "posterior_" not in vars(self):
            raise not_fitted(self)
        return self.posterior_

    def _find_times(self, X: Any, lengths: ArrayLike | None) -> Clock | None:
        """Note the columns that are times rather than data, which are left out, and return the clock they give."""
        self._left_out = []
        parts = split_series(X, lengths)
        clocks = [index_clock(parts)]
        for find in (date_columns, clock_columns):
            columns, clock = find([without_columns(part, self._left_out) for part in parts])
            self._left_out += columns
            clocks.append(clock)
        return next((clock for clock in clocks if clock is not None), None)

    def _series(self, X: Any, lengths: ArrayLike | None, *, y: Any = None, reset: bool = False) -> list[Array]:
        """X as a list of validated series, (T, D) each."""
        if not reset:
            self._posterior()
        return self._validated(X, lengths, y=y, reset=reset)

    def _validated(self, X: Any, lengths: ArrayLike | None, *, y: Any, reset: bool) -> list[Array]:
        if is_list_of_series(X):
            if lengths is not None:
                raise ValueError("lengths apply to concatenated series, but X is a list of series")
            parts = self._match([self._data_columns(part, reset=reset) for part in X], reset=reset)
            parts = self._encode(parts, reset=reset)
            return [self._validate(part, reset=reset and i == 0) for i, part in enumerate(parts)]
        if y is not None and n_dimensions(X) == 1 and reset:
            raise ValueError("X must be 2-D if y is given, as elsewhere in scikit-learn: reshape it to (-1, 1)")
        parts = self._match([self._data_columns(X, reset=reset)], reset=reset)
        (X,) = self._encode(parts, reset=reset)
        values = self._validate(X, reset=reset)
        refuse_lengths_as_y(y, len(values))
        return np.split(values, split_points(lengths, len(values))) if lengths is not None else [values]

    def _data_columns(self, X: Any, *, reset: bool) -> Any:
        """X without the columns that were left out of the fit."""
        if reset or not self._left_out or hasattr(X, "columns"):
            return without_columns(X, self._left_out)
        has_all = np.asarray(X).shape[-1] == self.n_features_in_ + len(self._left_out)
        return without_columns(X, self._left_out) if has_all else X

    def _match(self, parts: Sequence[Any], *, reset: bool) -> Sequence[Any]:
        """Data frames with their columns in one order. Names that are texts are compared with those of the fit by
        scikit-learn, which refuses another order and ignores all other names."""
        texts = all(_has_texts_as_names(part) for part in parts) and (reset or hasattr(self, "feature_names_in_"))
        known = None if reset or texts else self._columns or numbers(self.n_features_in_)
        matched, found = match_columns(parts, known)
        if reset:
            self._columns = found
        return matched

    def _encode(self, parts: Sequence[Any], *, reset: bool) -> Sequence[Any]:
        """Texts as numbers: those of the symbols of the fit."""
        parts, found = encode(parts, None if reset else self._symbols)
        if reset:
            self._symbols = found
        return parts

    def _validate(self, X: Any, *, reset: bool) -> Array:
        """One series as (T, D), NaN where missing, with the columns of the fit."""
        values: Any = X if hasattr(X, "tocsr") else as_numbers(X)  # scikit-learn refuses sparse matrices
        if n_dimensions(X) == 1 and (reset or self.n_features_in_ == 1):
            X = values = values.reshape(-1, 1)
        return checked(self, X, values, reset=reset)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _has_texts_as_names(part: Any) -> bool:
    return hasattr(part, "columns") and all(isinstance(name, str) for name in part.columns)


def _is_auto(init: Any) -> bool:
    return isinstance(init, str) and init == "auto"


def _without_unseen(probabilities: FloatArray) -> FloatArray:
    """Probabilities of the states of the fit, conditional on the state being one of them."""
    known = np.maximum(probabilities[:, :-1], TINY)
    return np.asarray(known / known.sum(axis=1, keepdims=True))


def _one_step(summary: Summary) -> FloatArray:
    """(n_states, n_states): transition probabilities of one step."""
    if summary.durations is None:
        return summary.transitions
    leave = 1 / np.maximum(np.nanmean(summary.dwell, axis=0), 1.0) * (summary.transitions.sum(axis=1) > 0)
    return np.asarray(leave[:, None] * summary.transitions + np.diag(1 - leave))


def _covariance_matrices(values: FloatArray) -> FloatArray:
    """(K, D, D): from variances, (K,) or (K, D), or covariances, (K, D, D)."""
    if values.ndim == 3:
        return values
    columns = values.reshape(len(values), -1)
    return np.asarray(columns[:, :, None] * np.eye(columns.shape[1]))
