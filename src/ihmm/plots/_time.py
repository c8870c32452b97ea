"""Steps of a sequence as times on a horizontal axis."""

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num

from ihmm._typing import Array, FloatArray
from ihmm.posterior import Posterior


class TimeScale(NamedTuple):
    """When each step of a sequence was taken: numbers, or days if they are dates."""

    times: FloatArray
    label: str
    dates: bool

    def at(self, steps: Array) -> FloatArray:
        """Times of steps, which need not be whole: −0.5 is half a step before the first one."""
        n = len(self.times)
        if n == 1:
            return np.asarray(self.times + steps)
        before, after = np.diff(self.times[:2])[0], np.diff(self.times[-2:])[0]
        known = np.concatenate([self.times[:1] - before, self.times, self.times[-1:] + after])
        return np.asarray(np.interp(steps, np.arange(-1, n + 1), known))

    def label_axis(self, ax: Axes, addition: str = "") -> None:
        ax.set_xlabel(self.label + addition)
        if self.dates:
            locator = AutoDateLocator()  # type: ignore[no-untyped-call]
            ax.xaxis.set_major_locator(locator)
            ax.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]


def time_scale(posterior: Posterior, sequence: int) -> TimeScale:
    values, label = posterior.clock.axis(posterior.lengths)
    here = slice(*posterior.data.offsets[sequence : sequence + 2])
    if values.dtype.kind == "M":
        days = date2num(values[here])  # type: ignore[no-untyped-call]
        return TimeScale(np.asarray(days, np.float64), label, True)
    return TimeScale(values[here], label, False)


def step_scale(n: int) -> TimeScale:
    """Steps that are counted, of new observations."""
    return TimeScale(np.arange(n, dtype=np.float64), "step", False)
