"""The automatic choice of a model for a recording, with its reasons."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from ihmm import _checks
from ihmm._threads import processors
from ihmm._typing import Array, FloatArray, IntArray
from ihmm.durations import Duration, Geometric
from ihmm.durations import choose as choose_duration
from ihmm.emissions import Emission, LogScale, NegativeBinomial
from ihmm.emissions.choose import categorical, choose, guess, level_prior, reason
from ihmm.emissions.noisy_levels import NoisyLevels
from ihmm.model import Model, Prior, model_for
from ihmm.pilot import MAX_ORDER, Pilot, are_measurements, fit_counts, pilot, pilot_of_logarithms
from ihmm.priors import FinitePrior, GammaPrior, HDPPrior
from ihmm.running.compiling import OF_PILOT, Rehearsal, second_compiler
from ihmm.running.progress import compilation_bar
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.series.sequences import Sequences
from ihmm.summaries.overlap import SIMILAR_SPREAD
from ihmm.trajectory import runs

LEAST_NOISE = 1e-3  # prior scale of the noise in units of the spread of the levels, for recordings without any

WITH_ORDER = ("autoregressive", "levels")  # emissions

Resolution = float | tuple[float, ...]
SHORTEST = 30  # steps, without the first few of each sequence, that a pilot fit needs
TEXTS = "Texts: symbols, with probabilities of their own in each state."


@dataclass(frozen=True, eq=False)
class Choice:
    """A model, where its chains start, which levels are told apart, and why.

    `init` is a path, or "auto". `resolution`, a number or one for each column, is None if all levels are told apart.
    `baseline`, (T, D), is what the model expects to be subtracted from the values, None if they are taken as they are.
    """

    model: Model
    init: IntArray | str = "auto"
    resolution: Resolution | None = None
    reasons: tuple[str, ...] = ()
    baseline: FloatArray | None = None

    def __str__(self) -> str:
        return "\n".join(self.reasons or (f"{type(self.model.emission).__name__}, as given.",))

    def __repr__(self) -> str:
        return f"<Choice of {type(self.model.emission).__name__}>\n{self}"

    def left_censored(self) -> "Choice":
        """The same for series that are windows of a longer process. It makes no difference without durations."""
        return self if self.model.duration is None else replace(self, model=replace(self.model, left_censored=True))

    def without_baseline(self, data: Sequences) -> Sequences:
        """What the model is for: the data that it was chosen for, without the baseline."""
        if self.baseline is None:
            return data
        return replace(data, values=data.values - self.baseline.reshape(data.values.shape), baseline=self.baseline)


@dataclass(frozen=True)
class ModelOptions:
    """What is known about the model in advance, as in `ihmm.InfiniteHMM`; `choose_model` chooses the rest."""

    emission: str | Emission = "auto"
    sticky: bool | float = True
    order: int | None = None
    duration: str | Duration | None = None
    min_dwell: int | None = None
    left_censored: bool = False
    resolution: float | None = None
    sampler: Sampler | None = None

    def __post_init__(self) -> None:
        if self.resolution is not None:
            object.__setattr__(self, "resolution", _checks.positive("resolution", self.resolution))
        if self.min_dwell is not None:
            steps = _checks.count("min_dwell (steps that a state lasts at least)", self.min_dwell)
            object.__setattr__(self, "min_dwell", steps)
        with_order = isinstance(self.emission, str) and self.emission in WITH_ORDER
        if self.order is not None and not with_order:
            raise ValueError(
                f"order is for the emissions {' and '.join(map(repr, WITH_ORDER))}, got emission={self.emission!r}; it "
                "would be ignored. An emission of your own has its order itself, such as ihmm.NoisyLevels(2)"
            )

    @classmethod
    def of(cls, settings: object, **others: Any) -> "ModelOptions":
        """The attributes of `settings` that have these names, unless they are among the `others`."""
        return cls(**({field.name: getattr(settings, field.name) for field in fields(cls)} | others))

    @property
    def is_auto(self) -> bool:
        return isinstance(self.emission, str) and self.emission == "auto"

    @property
    def is_markov(self) -> bool:
        """Whether a hidden Markov model without durations is asked for."""
        return self.sticky is not True or not (self.sampler is None or isinstance(self.sampler, ParticleGibbs))

    def model(self, values: Array) -> Model:
        """The default model for `values`, without looking at more than their type and scale."""
        return model_for(values, self.emission, self.sticky, self.order, self.duration, self.min_dwell)


DEFAULTS = ModelOptions()


def choose_model(
    values: Array,
    lengths: IntArray,
    given: ModelOptions = DEFAULTS,
    *,
    symbols: Sequence[str] | None = None,
    cores: int | None = None,
    progress: bool = False,
) -> Choice:
    """The model for `values`, (T, D), NaN where missing, in sequences of the given `lengths`.

    With ``emission="auto"`` a pilot fit to real values chooses the memory, scale and tails of the noise, the minimum
    dwell time and a path to start from. What is `given` is not chosen. A `sticky` other than True and a `sampler` other
    than particle Gibbs ask for a hidden Markov model without durations, and nothing is looked at. Whole numbers that
    stand for `symbols` are categorical. `cores` and `progress` are about compilation, in the first run on a machine.
    """
    empty = np.flatnonzero(np.isnan(values).all(axis=0)) if values.dtype.kind == "f" else np.empty(0)
    if empty.size:
        raise ValueError(f"column {empty[0]} has no value at all, only NaN; leave it out")
    choice = _choose(values, lengths, given, symbols, cores, progress)
    return choice.left_censored() if given.left_censored else choice


def _choose(
    values: Array,
    lengths: IntArray,
    given: ModelOptions,
    symbols: Sequence[str] | None,
    cores: int | None,
    progress: bool,
) -> Choice:
    if symbols and (given.is_auto or given.emission == "categorical"):
        emission = categorical(values.astype(np.float64), max(len(symbols), 2))
        model = replace(given, emission=emission).model(values)
        return Choice(model, resolution=given.resolution, reasons=(TEXTS,) * given.is_auto)
    family = guess(values) if given.is_auto else None
    short = len(values) - MAX_ORDER * len(lengths) < SHORTEST
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    if family == "poisson" and not short:
        counts, path = fit_counts(values, offsets)
        if are_measurements(counts, values, path):
            family = "normal"
        elif counts.overdispersed:
            size = float(np.exp(np.average(np.log(counts.size), weights=np.bincount(path, minlength=counts.n_states))))
            spread_out = NegativeBinomial(1.0, 1 / float(np.nanmean(values)), 2.0, 2 / size)
            model = replace(given, emission=spread_out).model(values)
            return Choice(model, path, given.resolution, (_overdispersed(values, size),))
    if family != "normal" or given.is_markov or short:
        reasons = () if family is None else (reason(values, family),)
        return Choice(given.model(values), resolution=given.resolution, reasons=reasons)
    found = _pilot_fit(values, offsets, given.sampler or ParticleGibbs(), cores, progress)
    logs = pilot_of_logarithms(values, offsets, found) if given.resolution is None else None
    if logs is not None:
        choice = _of_pilot(np.log(values), lengths, logs, given)
        return replace(choice, model=replace(choice.model, emission=LogScale(choice.model.emission)))
    return _of_pilot(values, lengths, found, given)


def _of_pilot(values: Array, lengths: IntArray, found: Pilot, given: ModelOptions) -> Choice:
    if found.family == "autoregressive":
        model = replace(given, emission="autoregressive", order=found.order).model(values)
        return Choice(model, resolution=given.resolution, reasons=found.reasons)
    if found.baseline is not None:
        values = values - found.baseline
    return replace(_levels(values, lengths, found, given), baseline=found.baseline)


def _pilot_fit(values: Array, offsets: IntArray, sampler: Sampler, cores: int | None, progress: bool) -> Pilot:
    expected = Rehearsal(_usual_model(values), values, sampler, ())
    second_compiler.start(expected, processors() if cores is None else cores)
    with compilation_bar((*OF_PILOT, *expected.kernels), enabled=progress):
        return pilot(values, offsets)


def _usual_model(values: Array) -> Model:
    """A model such as most recordings have, whose kernels are compiled during the pilot fit."""
    levels = NoisyLevels(1, n_features=values.shape[1])
    return Model(levels, HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), 0.0), Geometric(minimum=2))


def _overdispersed(values: Array, size: float) -> str:
    low, high = int(np.nanmin(values)), int(np.nanmax(values))
    return (
        f"Whole numbers from {low} to {high}, more variable within states than Poisson counts: a negative binomial "
        f"distribution in each state, of size {size:.2g} or so."
    )


def _levels(values: Array, lengths: IntArray, found: Pilot, given: ModelOptions) -> Choice:
    duration, min_dwell = given.duration, given.min_dwell
    dwell, order = found.min_dwell, found.order
    if min_dwell is None and duration is not None and not isinstance(duration, str):
        min_dwell = duration.minimum
    reasons = found.reasons
    if min_dwell is not None and min_dwell != dwell:
        dwell = min_dwell
        reasons += (f"A state lasts at least {dwell} step{'s' * (dwell > 1)}, as given.",)
    single = found.number_given and found.n_states == 1
    if order == 0 and found.scale == "own" and found.tails == "normal" and dwell == 1 and duration is None:
        model = model_for(values, "normal")
    else:
        filtered = found.filtered or single or order > dwell  # noise that remembers states for longer than they last
        noise = choose("normal", values) if found.own_correlations else _noise(values, found, filtered)
        prior: Prior = HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), 0.0)
        if found.number_given:
            prior = FinitePrior(found.n_states, None, 1.0)
        length = runs(found.states, np.concatenate([[0], np.cumsum(lengths)])).length
        law: Duration = Geometric(1.0, float(np.clip(length.mean(), 5, 1000)), minimum=dwell)
        if duration is not None:
            law = choose_duration(duration, dwell if isinstance(duration, str) else min_dwell)
        model = Model(noise, prior, None if single else law)  # a single state does not end
    resolution = _finest(found) if given.resolution is None else given.resolution
    return Choice(model, found.states, resolution, reasons)


def _noise(values: Array, found: Pilot, filtered: bool) -> NoisyLevels:
    """Levels over the range of the values, and noise as the pilot found it."""
    mean, spread = level_prior(values)
    innovation = np.exp(np.log(np.maximum(found.innovation, LEAST_NOISE * spread)).mean(axis=0))
    return NoisyLevels(
        found.order,
        found.scale,
        found.tails,
        values.shape[1],
        mean=tuple(mean.tolist()),
        spread=tuple(spread.tolist()),
        shape=2.0,
        rate=tuple((innovation**2).tolist()),
        filtered=filtered,
        correlated=found.correlated,
    )


def _finest(found: Pilot) -> Resolution | None:
    """The resolution of the pilot, but at most half of what separates the levels that it told apart.

    None if it told some apart by their spread: differences in the mean then say little, and overlap decides.
    """
    a, b = np.triu_indices(found.n_states, 1)
    gap = np.abs(found.level[a] - found.level[b]) / found.resolution
    ratio = np.exp(np.abs(np.log(found.noise[a] / found.noise[b])))
    if np.any((gap.max(axis=1) < 1) & (ratio.max(axis=1) > SIMILAR_SPREAD)):
        return None
    fine = found.resolution * min(1.0, 0.5 * float(gap.max(axis=1).min(initial=2.0)))
    return float(fine[0]) if len(fine) == 1 else tuple(fine.tolist())
