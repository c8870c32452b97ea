"""The time axis of a recording: how long a step lasts, when each was taken, and how times are written."""

import re
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from ihmm import _checks
from ihmm._numbers import three_digits
from ihmm._typing import Array, FloatArray, IntArray

SECONDS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
LONG_NAMES = {"sec": "s", "second": "s", "seconds": "s", "minute": "min", "minutes": "min", "hour": "h", "hours": "h"}
LONG_NAMES |= {"hr": "h", "day": "d", "days": "d", "msec": "ms", "usec": "us", "milliseconds": "ms"}
NUMPY_UNITS = {"ps": 1e-12, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "D": 86400.0}
NUMPY_UNITS |= {"W": 604800.0}  # a month or a year has no length
HERTZ = {"mhz": 1e-3, "hz": 1.0, "khz": 1e3, "Mhz": 1e6}
READABLE = ("ns", "µs", "ms", "s", "min", "h", "d")
FAR = 2**62 * 1e-9  # seconds, 146 years
JITTER = 0.3  # steps may differ by this share of the median step and still count as regular


class Scale(NamedTuple):
    """Numbers of steps, multiplied by `factor`, are times in `unit`."""

    factor: float
    unit: str


class TimeAxis(NamedTuple):
    """What a plot needs: one value for each step, numbers or dates, and the label of the axis."""

    values: Array
    label: str


@dataclass(frozen=True, eq=False)
class Clock:
    """How long a step lasts and when each was taken. `Clock()` knows neither and counts steps.

    Attributes
    ----------
    step
        Seconds from one step to the next, the median if sampling is irregular; None if it is not known.
    times
        (total T,): recorded time of each step in seconds; None if every sequence begins at 0.
    origin
        Date from which `times` are counted, None if they are not dates. UTC if the dates had a time zone.
    """

    step: float | None = None
    times: FloatArray | None = None
    origin: np.datetime64 | None = None

    @property
    def is_known(self) -> bool:
        """Whether steps can be converted to seconds."""
        return self.step is not None

    @property
    def unit(self) -> str:
        """Of `duration` and of rates: 's', or 'step' if the time between steps is not known."""
        return "s" if self.is_known else "step"

    def duration(self, steps: Any) -> Any:
        """A number or an array of steps in seconds; unchanged if the time between steps is not known."""
        return steps if self.step is None else steps * self.step

    def elapsed(self, lengths: IntArray) -> FloatArray:
        """(total T,): time of each step in seconds, or its number within its sequence."""
        if self.times is not None:
            return self.times
        steps = np.concatenate([np.arange(length, dtype=np.float64) for length in lengths])
        return np.asarray(self.duration(steps))

    def dates(self) -> Array | None:
        """(total T,): date of each step, None if times are not dates."""
        if self.origin is None or self.times is None:
            return None
        origin = self.origin.astype("datetime64[s]")
        unit = _unit_of(np.array([origin, origin + np.timedelta64(int(self.times.max()), "s")]))
        since = (self.times * (1e9 if unit == "ns" else 1e6)).round().astype(f"timedelta64[{unit}]")
        return np.asarray(self.origin.astype(f"datetime64[{unit}]") + since)

    def axis(self, lengths: IntArray) -> TimeAxis:
        """Where each step lies on the horizontal axis of a plot, in a readable unit, and the label of the axis."""
        dates = self.dates()
        if dates is not None:
            return TimeAxis(dates, "time")
        elapsed = self.elapsed(lengths)
        if self.step is None:
            return TimeAxis(elapsed, "step")
        factor, unit = self.scale(float(np.abs(elapsed).max()) / self.step)
        return TimeAxis(elapsed * (factor / self.step), f"time ({unit})")

    def scale(self, steps: float) -> Scale:
        """A readable unit for durations of about so many steps: 'ms', 's', 'h', …, or 'steps'."""
        if self.step is None:
            return Scale(1.0, "steps")
        unit = _readable_unit(steps * self.step)
        return Scale(self.step / SECONDS[unit], unit)

    def text(self, steps: float) -> str:
        """A duration in words: '3.4 ms', or '34 steps' if the time between steps is not known."""
        factor, unit = self.scale(steps)
        return f"{three_digits(steps * factor)} {unit}"


def make_clock(dt: Any = None, sample_rate: Any = None) -> Clock | None:
    """A clock that ticks every `dt`, or at the `sample_rate`; None if neither is given."""
    if dt is None and sample_rate is None:
        return None
    if dt is not None and sample_rate is not None:
        raise ValueError(f"give dt or sample_rate, not both, got dt={dt!r} and sample_rate={sample_rate!r}")
    return Clock(parse_duration(dt) if dt is not None else 1 / _parse_rate(sample_rate))


def parse_duration(value: Any, name: str = "dt") -> float:
    """Seconds, from a number of seconds, a text such as '0.1 ms', or a `timedelta`."""
    if isinstance(value, timedelta):  # that of pandas, too
        value = value.total_seconds()
    elif isinstance(value, np.timedelta64):
        value = _seconds_of(value, name)
    elif isinstance(value, str):
        value = _parse(value, name, "0.1ms, 20us or 5min", lambda unit: SECONDS.get(_short(unit)))
    return _checks.positive(f'{name} (seconds, or a text such as "0.1ms")', value)


def _seconds_of(value: np.timedelta64, name: str) -> float:
    unit, count = np.datetime_data(value.dtype)
    if unit not in NUMPY_UNITS:
        raise ValueError(f"{name} must be a time of known length, got {value!r}; give it in seconds or days")
    return float("nan") if np.isnat(value) else float(value.astype(np.int64)) * count * NUMPY_UNITS[unit]


def _parse_rate(value: Any) -> float:
    if isinstance(value, str):
        value = _parse(value, "sample_rate", "10kHz or 50Hz", lambda unit: HERTZ.get(unit[:-2] + unit[-2:].lower()))
    return _checks.positive('sample_rate (Hz, or a text such as "10kHz")', value)


def _parse(text: str, name: str, examples: str, factor_of: Any) -> float:
    """A number with an optional unit."""
    found = re.fullmatch(r"\s*([-+.\deE]*\d\.?)\s*([^\W\d]*)\s*", text)
    factor = 1.0 if found and not found[2] else factor_of(found[2]) if found else None
    try:
        if found and factor is not None:
            return float(found[1]) * float(factor)
    except ValueError:
        pass
    raise ValueError(f"{name} must be a number with a unit, such as {examples}, got {text!r}")


def _short(unit: str) -> str:
    return LONG_NAMES.get(unit.lower(), unit)


def unit_in(name: str) -> str | None:
    """The unit of time in the name of a column: 'ms' of 'time (ms)', 't_ms', 'Time [ms]' or 't/ms'."""
    found = re.search(r"(?:[\[(/_,]\s*|\s)([^\W\d_]+)\s*[\])]?\s*$", name)
    unit = _short(found[1]) if found else None
    return unit if unit in SECONDS else None


def index_clock(parts: Sequence[Any]) -> Clock | None:
    """The clock of series from pandas whose index has dates or time differences; None if there is none."""
    indices = [getattr(part, "index", None) for part in parts]
    times = [_index_times(index) for index in indices if index is not None and not callable(index)]
    found = [each for each in times if each is not None]
    return recorded_clock(found) if len(found) == len(parts) else None


def _index_times(index: Any) -> Array | None:
    if type(index).__name__ == "PeriodIndex":
        index = index.to_timestamp()
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    if kind not in ("M", "m"):
        return None
    values = index.tz_convert(None) if getattr(index, "tz", None) is not None else index
    return np.asarray(values)


def recorded_clock(times: Sequence[Array], names: Iterable[str] | None = None) -> Clock:
    """The clock of sequences with recorded times: seconds, dates or time differences, which must not fall.

    `names` are those of the sequences, for messages. Irregular sampling gives a warning.
    """
    names = [f"sequence {i}" for i in range(len(times))] if names is None else list(names)
    for name, each in zip(names, times, strict=True):
        _check_order(name, each)
    origin = times[0][0].astype(f"datetime64[{_unit_of(times[0])}]") if times[0].dtype.kind == "M" else None
    seconds = [_seconds(each, origin) for each in times]
    steps = np.concatenate([np.diff(each) for each in seconds])
    step = _typical_step(seconds, steps)
    if step is None:
        raise ValueError("all recorded times are equal, or there is only one; give the time between steps as dt")
    clock = Clock(step, np.concatenate(seconds), origin)
    _report_irregular(clock, names, seconds)
    return clock


def _check_order(name: str, times: Array) -> None:
    if times.dtype.kind == "f" and not np.isfinite(times).all():
        place = int(np.flatnonzero(~np.isfinite(times))[0])
        raise ValueError(f"{name}: the time of row {place + 1} is missing; every row needs one")
    if times.dtype.kind in "mM" and np.isnat(times).any():
        place = int(np.flatnonzero(np.isnat(times))[0])
        raise ValueError(f"{name}: the time of row {place + 1} is missing; every row needs one")
    back = np.flatnonzero(times[1:] < times[:-1])
    if len(back):
        i = int(back[0])
        raise ValueError(
            f"{name}: times must rise, but {times[i + 1]} in row {i + 2} is before {times[i]} in row {i + 1}; "
            "sort the rows by time"
        )


def _seconds(times: Array, origin: np.datetime64 | None) -> FloatArray:
    if times.dtype.kind not in "mM":
        return times.astype(np.float64)
    unit = _unit_of(times if origin is None else np.append(times, origin))
    since = times.astype(f"{times.dtype.kind}8[{unit}]")
    if origin is not None:
        since = since - origin.astype(f"datetime64[{unit}]")
    return np.asarray(since.astype(np.int64) * SECONDS[unit])


def _unit_of(times: Array) -> str:
    """'ns', or 'us' if there are dates so far from 1970 that nanoseconds between them may not fit 64 bits."""
    seconds = times.astype(f"{times.dtype.kind}8[s]").astype(np.int64)
    return "ns" if np.abs(seconds).max() < FAR else "us"


def is_regular(times: FloatArray) -> bool:
    """Whether times rise steadily, apart from rounding."""
    steps = np.diff(times)
    middle = float(np.median(steps)) if len(steps) else 0.0
    return middle > 0 and bool(np.all(np.abs(steps - middle) <= JITTER * middle))


def _typical_step(times: Sequence[FloatArray], steps: FloatArray) -> float | None:
    """The mean step if sampling is regular, which is more precise where times are rounded; else the median."""
    if not steps.size or not steps.max() > 0:
        return None
    if all(is_regular(each) for each in times if len(each) > 1):
        return float(sum(each[-1] - each[0] for each in times) / steps.size)
    middle = float(np.median(steps))
    return middle if middle > 0 else float(steps.mean())


def _report_irregular(clock: Clock, names: Sequence[str], times: Sequence[FloatArray]) -> None:
    assert clock.step is not None
    for name, each in zip(names, times, strict=True):
        steps = np.diff(each)
        odd = np.flatnonzero(np.abs(steps - clock.step) > JITTER * clock.step)
        if len(odd):
            i = int(odd[np.argmax(steps[odd])])
            warnings.warn(
                f"sampling is irregular: in {name}, {len(odd)} of {len(steps)} steps are not {clock.text(1)} long, "
                f"the longest is {clock.text(steps[i] / clock.step)} (rows {i + 1} to {i + 2}); dwell times and rates "
                f"count steps of {clock.text(1)}. If rows are missing, insert empty ones",
                UserWarning,
                stacklevel=3,
            )
            return


def _readable_unit(seconds: float) -> str:
    """The largest unit of which a duration has at least one; milliseconds and less up to 1 s, minutes from 100 s."""
    size = abs(seconds)
    if size == 0 or not np.isfinite(size):
        return "s"
    least = {"min": 100.0, "h": 100 * 60.0, "d": 48 * 3600.0}
    fitting = [unit for unit in READABLE if size >= least.get(unit, SECONDS[unit])]
    return fitting[-1] if fitting else READABLE[0]
