"""Doubts about the number of levels where the model itself is not in question."""

from collections import Counter
from collections.abc import Iterator

import numpy as np

from ihmm._typing import FloatArray, IntArray
from ihmm.diagnostics.check import Criticism
from ihmm.diagnostics.rivals import Rival, rival_of_levels, rival_of_one_level
from ihmm.model import Model
from ihmm.priors import FinitePrior
from ihmm.summaries.levels import Levels

MEASURED = ("NoisyLevels", "Normal", "NormalMean", "StudentT")  # families whose levels may be noise


def check_overlap(levels: Levels) -> Iterator[Criticism]:
    """Whether the number of levels depends on how much exactly the laws of one level have to overlap."""
    coarse = Counter(found.n_coarse for found in levels.by_draw).most_common(1)[0][0]
    if levels.n_levels > coarse and np.mean([found.n_coarse < levels.n_levels for found in levels.by_draw]) > 0.5:
        text = f"Levels overlap: there are {coarse} instead of {levels.n_levels} if slightly larger differences"
        unsettled = "levels overlap: their number depends on which differences matter"
        yield Criticism(f"{text} are ignored. Say which do not matter: resolution=….", False, unsettled=unsettled)


def check_rival(model: Model, values: FloatArray, offsets: IntArray, levels: Levels) -> Iterator[Criticism]:
    """Whether another number of levels explains the data as well: several instead of one, or one instead of several."""
    if isinstance(model.prior, FinitePrior) or type(model.emission).__name__ not in MEASURED:
        return
    if levels.n_levels == 1:
        several = rival_of_one_level(values, offsets)
        if several is not None:
            yield _doubt(int(getattr(model.emission, "order", 0)), several)
        return
    one = rival_of_levels(values, offsets, levels.segmentation)
    if one is not None:
        reading = f"a single level {'that follows a slow trend ' * one.trend}in {_noise_of(one.order)}"
        text = f"{levels.n_levels} levels explain the data hardly better than {reading}: the data alone do not decide."
        yield Criticism(text, False, unsettled=f"either reading fits: {levels.n_levels} levels, or {reading}")


def _doubt(order: int, several: Rival) -> Criticism:
    """A single level in noise of this order, although several are as good."""
    if several.order == order:
        reading, setting = f"a single level, or {several.n_levels} that are close together", ""
        text = f"A single level explains the data hardly better than {several.n_levels} levels that are close together"
        advice = "posterior.levels(overlap=0.9)."
    else:
        reading = f"a single level in {_noise_of(order)}, or {several.n_levels} levels"
        text = f"A single level in {_noise_of(order)} explains the data hardly better than {several.n_levels} levels in"
        text += f" {_noise_of(several.order)}"
        setting = f'emission="levels", order={several.order}'
        advice = f'emission="levels" with order={several.order}.'
    text += f": the data alone do not decide. To see the levels, try {advice}"
    return Criticism(text, False, setting, f"either reading fits: {reading}")


def _noise_of(order: int) -> str:
    return f"noise that remembers {order} step{'s' * (order > 1)}" if order else "white noise"
