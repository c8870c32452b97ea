"""Doubts about the number of levels where the model itself is not in question."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.diagnostics.check import Criticism
from ihmm.diagnostics.rivals import CLOSE, SHORTEST, Rival, rival_of_counts, rival_of_levels, rival_of_one_level
from ihmm.emissions import NoisyLevels
from ihmm.model import Model
from ihmm.pilot._fit import Structure
from ihmm.priors import FinitePrior
from ihmm.summaries.levels import Levels

COUNTS = ("Poisson", "NegativeBinomial")
MEASURED = ("NoisyLevels", "Normal", "NormalMean", "StudentT")  # families whose levels may be noise


def check_length(model: Model, values: FloatArray) -> Iterator[Criticism]:
    """Whether there are enough values to find more than one level: the prior favours few states."""
    known = int(np.isfinite(values).any(axis=1).sum())
    if known < SHORTEST and not isinstance(model.prior, FinitePrior):
        text = f"There are only {known} values: with so few, the answer is mostly that of the prior."
        yield Criticism(text, False, unsettled=f"{known} values are too few to settle the number of levels")


def check_overlap(levels: Levels) -> Iterator[Criticism]:
    """Whether the number of levels depends on how much exactly the laws of one level have to overlap."""
    coarse = Counter(found.n_coarse for found in levels.by_draw).most_common(1)[0][0]
    if levels.n_levels > coarse and np.mean([found.n_coarse < levels.n_levels for found in levels.by_draw]) > 0.5:
        left = f"{coarse} are left" if coarse > 1 else "a single one is left"
        text = f"Levels overlap: of the {levels.n_levels}, {left} if slightly larger differences are ignored."
        advice = "Set resolution to the smallest difference in the mean that matters to you."
        unsettled = "levels overlap, so that their number depends on which differences matter"
        yield Criticism(f"{text} {advice}", False, unsettled=unsettled)


def check_rival(
    model: Model, values: FloatArray, offsets: IntArray, levels: Levels, *, of_logarithms: bool = True
) -> Iterator[Criticism]:
    """Whether another number of levels explains the data as well: several instead of one, or fewer than were found.

    Fewer levels `of_logarithms` are tried, too, if all values are positive.
    """
    family, n_levels = type(model.emission).__name__, levels.n_levels
    if isinstance(model.prior, FinitePrior):
        return
    if family in MEASURED and n_levels == 1:
        several = rival_of_one_level(values, offsets)
        if several is not None:
            yield _doubt(int(getattr(model.emission, "order", 0)), several)
    elif family in MEASURED:
        own = _structure(model)
        fewer = rival_of_levels(values, offsets, levels.segmentation, own, of_logarithms=of_logarithms)
        if fewer is not None:
            yield _doubt_of_levels(n_levels, _reading(fewer), fewer.gain, fewer.log)
    elif family in COUNTS and n_levels > 1:
        counts = rival_of_counts(values, offsets, levels.segmentation)
        if counts is not None:
            kind = "overdispersed" if counts.overdispersed else "Poisson"
            yield _doubt_of_levels(n_levels, f"{_number(counts.n_levels)} of {kind} counts", counts.gain)


def _structure(model: Model) -> Structure:
    """The noise of the model, as a pilot fit has it."""
    emission, dwell = model.emission, 1 if model.duration is None else min(model.duration.minimum, 2)
    if not isinstance(emission, NoisyLevels):
        return Structure(0, dwell, shared=False)
    return Structure(emission.order, dwell, emission.scale == "shared", not (emission.filtered and emission.order))


def _reading(fewer: Rival) -> str:
    trend = " that follows a slow trend" if fewer.trend else ""
    scale = " on a logarithmic scale" if fewer.log else ""
    return f"{_number(fewer.n_levels)}{trend} in {_noise_of(fewer.order)}{scale}"


def _number(n_levels: int) -> str:
    return f"{n_levels} levels" if n_levels > 1 else "a single level"


def _doubt_of_levels(n_levels: int, reading: str, gain: float, log: bool = False) -> Criticism:
    """Several levels, although a reading by fewer of them explains the data hardly worse, or better."""
    if gain > CLOSE:
        unsettled = f"the data are explained better by {reading}"
        text = f"{n_levels} levels explain the data worse than {reading}, by {gain:.0f} nats."
    else:
        unsettled = f"the data can be read either way: as {n_levels} levels, or as {reading}"
        text = f"{n_levels} levels explain the data hardly any better than {reading}: the data alone do not decide."
    advice = " To see that reading, fit the logarithms of the values." if log else ""
    return Criticism(text + advice, False, unsettled=unsettled)


def _doubt(order: int, several: Rival) -> Criticism:
    """A single level in noise of this order, although several are as good."""
    if several.order == order:
        reading, setting = f"as a single level, or as {several.n_levels} that are close together", ""
        text = f"A single level explains the data hardly any better than {several.n_levels} levels close together"
        advice = "posterior.levels(overlap=0.9)."
    else:
        reading = f"as a single level in {_noise_of(order)}, or as {several.n_levels} levels"
        others = f"{several.n_levels} levels in {_noise_of(several.order)}"
        text = f"A single level in {_noise_of(order)} explains the data hardly any better than {others}"
        setting = f'emission="levels", order={several.order}'
        advice = f'emission="levels" with order={several.order}.'
    text += f": the data alone do not decide. To see the levels, try {advice}"
    return Criticism(text, False, setting, f"the data can be read either way: {reading}")


def _noise_of(order: int) -> str:
    return f"noise with a memory of {order} step{'s' * (order > 1)}" if order else "white noise"
