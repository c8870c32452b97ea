"""The automatic choice of a model for a recording, with its reasons."""

from dataclasses import dataclass

import numpy as np

from ihmm import _checks
from ihmm._typing import Array, IntArray
from ihmm.durations import Duration, Geometric
from ihmm.durations import choose as choose_duration
from ihmm.emissions import Emission
from ihmm.emissions.choose import guess, level_prior
from ihmm.emissions.noisy_levels import NoisyLevels
from ihmm.model import Model, model_for
from ihmm.pilot import MAX_ORDER, Pilot, pilot
from ihmm.priors import GammaPrior, HDPPrior
from ihmm.samplers import ParticleGibbs, Sampler
from ihmm.trajectory import runs

LEAST_NOISE = 1e-3  # prior scale of the noise in units of the spread of the levels, for recordings without any

Resolution = float | tuple[float, ...]
SHORTEST = 30  # steps, without the first few of each sequence, that a first look needs


@dataclass(frozen=True, eq=False)
class Choice:
    """A model, where its chains start, which levels are told apart, and why.

    `init` is a path, or "auto". `resolution`, a number or one for each column, is None if all levels are told apart.
    """

    model: Model
    init: IntArray | str = "auto"
    resolution: Resolution | None = None
    reasons: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self.reasons)


def choose_model(
    values: Array,
    lengths: IntArray,
    emission: str | Emission = "auto",
    sticky: bool | float = True,
    order: int | None = None,
    *,
    duration: str | Duration | None = None,
    min_dwell: int | None = None,
    resolution: float | None = None,
    sampler: Sampler | None = None,
) -> Choice:
    """The model for `values`, (T, D), NaN where missing, in sequences of the given `lengths`.

    With ``emission="auto"`` a quick first look at real values chooses the memory, scale and tails of the noise, the
    minimum dwell time and a path to start from. What is given is not chosen. A `sticky` other than True and a `sampler`
    other than particle Gibbs ask for a hidden Markov model without durations, and nothing is looked at.
    """
    if resolution is not None:
        resolution = _checks.positive("resolution", resolution)
    if min_dwell is not None:
        min_dwell = _checks.count("min_dwell (steps that a state lasts at least)", min_dwell)
    empty = np.flatnonzero(np.isnan(values).all(axis=0)) if values.dtype.kind == "f" else np.empty(0)
    if empty.size:
        raise ValueError(f"column {empty[0]} has no value at all, only NaN; leave it out")
    family = guess(values) if isinstance(emission, str) and emission == "auto" else None
    markov = sticky is not True or not (sampler is None or isinstance(sampler, ParticleGibbs))
    short = len(values) - MAX_ORDER * len(lengths) < SHORTEST
    if family != "normal" or markov or short:
        reasons = () if family in (None, "normal") else (f"Whole numbers: {NAMES[family]}.",)
        model = model_for(values, emission, sticky, order, duration, min_dwell)
        return Choice(model, resolution=resolution, reasons=reasons)
    found = pilot(values, np.concatenate([[0], np.cumsum(lengths)]))
    if found.family == "autoregressive":
        order = found.order if order is None else order
        model = model_for(values, "autoregressive", True, order, duration, min_dwell)
        return Choice(model, resolution=resolution, reasons=found.reasons)
    return _levels(values, lengths, found, duration, min_dwell, resolution)


NAMES = {"categorical": "symbols, with probabilities of their own in each state", "poisson": "Poisson counts"}


def _levels(
    values: Array,
    lengths: IntArray,
    found: Pilot,
    duration: str | Duration | None,
    min_dwell: int | None,
    resolution: float | None,
) -> Choice:
    dwell, order = found.min_dwell, found.order
    if min_dwell is None and duration is not None and not isinstance(duration, str):
        min_dwell = duration.minimum
    reasons = found.reasons
    if min_dwell is not None and min_dwell != dwell:
        dwell = min_dwell
        reasons += (f"A state lasts at least {dwell} step(s), as given.",)
    filtered = found.filtered or order > dwell  # noise that remembers states for longer than they last
    plain = order == 0 and dwell == 1 and duration is None and found.scale == "own" and found.tails == "normal"
    if plain:
        model = model_for(values, "normal")
    else:
        mean, spread = level_prior(values)
        innovation = np.exp(np.log(np.maximum(found.innovation, LEAST_NOISE * spread)).mean(axis=0))
        noise = NoisyLevels(
            order,
            found.scale,
            found.tails,
            values.shape[1],
            mean=tuple(mean.tolist()),
            spread=tuple(spread.tolist()),
            shape=2.0,
            rate=tuple((innovation**2).tolist()),
            filtered=filtered,
        )
        length, _, _ = runs(found.states, np.concatenate([[0], np.cumsum(lengths)]))
        prior = HDPPrior(GammaPrior(1, 20), GammaPrior(1, 0.001), 0.0)
        law: Duration = Geometric(1.0, float(np.clip(length.mean(), 5, 1000)), minimum=dwell)
        if duration is not None:
            law = choose_duration(duration, dwell if isinstance(duration, str) else min_dwell)
        model = Model(noise, prior, law)
    return Choice(model, found.states, resolution if resolution is not None else _finest(found), reasons)


def _finest(found: Pilot) -> Resolution:
    """The resolution of the pilot, but at most half of what separates the levels that it told apart."""
    gaps = np.abs(found.level[:, None] - found.level)[np.triu_indices(found.n_states, 1)]
    share = min((float((gap / found.resolution).max()) for gap in gaps), default=2.0)
    fine = found.resolution * min(1.0, 0.5 * share)
    return float(fine[0]) if len(fine) == 1 else tuple(fine.tolist())
