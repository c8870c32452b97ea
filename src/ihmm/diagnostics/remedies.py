"""What to do next if an answer is not reliable: never what is in force already."""

import math
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

LONG_TUNE = 2000  # sweeps after which chains that still differ will not be united by more of them
LONGEST_TUNE = 10_000
USUAL_DRAWS = 4000  # to which any run may be extended
MAX_FACTOR = 4  # by which longer runs may be
FORESEEABLE = 20  # times as many draws: the factor is estimated, and larger ones are known too badly to be quoted
STEP = 500  # numbers of draws and sweeps are multiples of this


class RunFacts(NamedTuple):
    """The settings of a run, as far as they are known."""

    draws: int
    tune: int | None = None
    init: Any = None
    thin: int = 1
    noise_order: int = 0  # steps that the noise remembers


class Slow(NamedTuple):
    """A quantity that needs so many times the draws."""

    name: str
    factor: float


@dataclass(frozen=True)
class Remedy:
    """Settings to change, or only a number of `draws` to extend the run to; or, if there are none, a `note`."""

    settings: Mapping[str, Any]
    draws: int | None = None
    note: str = ""

    def text(self, run: str | None = None) -> str:
        """As arguments of `InfiniteHMM` or `sample`, or as a command line if the folder of a `run` is given."""
        if self.settings and run is not None:
            flags = [(f"--{name.replace('_', '-')}", str(value)) for name, value in self.settings.items()]
            command = ["ihmm", "fit", "--config", f"{run}/settings.toml", *sum(flags, ()), "--out", f"{run}-again"]
            return f"Next: {shlex.join(command)}"
        if self.draws is not None and run is not None:
            return f"Next: {shlex.join(['ihmm', 'resume', run, '--draws', str(self.draws)])}"
        given = dict(self.settings) if self.draws is None else {"draws": self.draws}
        if given:
            return f"Next: fit again with {', '.join(f'{name}={value!r}' for name, value in given.items())}"
        return self.note


def remedy(
    run: RunFacts,
    *,
    one_chain: bool = False,
    stuck: bool = False,
    drifting: bool = False,
    slow: Slow | None = None,
    contradicted: bool = False,
    settings: Sequence[str] = (),
) -> Remedy | None:
    """The next step.

    A model that is `contradicted` is changed first: its modes are of no interest. Further draws of chains that are
    `stuck` in different modes, or `drifting`, are of no use, so that these come before what is only `slow`.
    """
    change: dict[str, Any] = {}
    for setting in settings:
        for part in setting.split(", "):
            name, _, value = part.partition("=")
            change.setdefault(name.strip(), _value(value.strip()))
    if contradicted and change:
        return Remedy(change)
    if one_chain:
        change["chains"] = 4
    if stuck and run.init is not None and run.init != "auto":
        change["init"] = "auto"
    sweeps = (run.tune or 0) + run.draws * run.thin
    if drifting and sweeps < LONGEST_TUNE:
        change["tune"] = max(LONG_TUNE, _round_up(sweeps))  # none of the sweeps so far are of use
    elif stuck and sweeps < LONG_TUNE:
        change["tune"] = LONG_TUNE
    if change:
        return Remedy(change)
    if stuck or drifting:
        return Remedy({}, note=MODES if stuck else DRIFT)
    return None if slow is None else _answer_to_slow_mixing(run, slow)


MODES = (
    "Running longer will hardly help: these are separate modes of the posterior, and because the chains do not move "
    "between them, the draws do not say how probable each one is. If the difference does not matter to you, a coarser "
    "resolution may remove it; if it does, compare the modes by log p(y | θ) and by what you know about the experiment."
)
DRIFT = (
    "Running longer will hardly help: chains that still drift after so many sweeps explore a posterior that the data "
    "hardly constrain. Try a simpler model: a coarser resolution, a larger min_dwell or fewer columns."
)
SAME = "The chains find the same levels at the same steps:"


def _answer_to_slow_mixing(run: RunFacts, slow: Slow) -> Remedy:
    """More draws if they are affordable."""
    draws = _round_up(run.draws * slow.factor)
    affordable = max(USUAL_DRAWS, MAX_FACTOR * run.draws)
    if draws <= affordable or run.draws < USUAL_DRAWS:
        return Remedy({}, min(draws, affordable))
    number = f"about {draws:,}" if slow.factor <= FORESEEABLE else "far more"
    found = f"More draws will hardly help: for {slow.name}, {number} draws per chain would be needed."
    if slow.name.startswith("mean") and run.noise_order:
        why = "The noise remembers earlier steps, so that a slow stretch of it looks like a shift of the level."
        return Remedy({}, note=f"{found} {why} {SAME} quote the mean with the differences between them.")
    if slow.name.startswith("number"):
        return Remedy({}, note=f"{found} A coarser resolution may settle it.")
    return Remedy({}, note=f"{found} {SAME} quote {slow.name} with the differences between them.")


def _round_up(number: float) -> int:
    return math.ceil(number / STEP) * STEP


def _value(text: str) -> Any:
    """A number or a string, as written in Python."""
    if text[:1] in "\"'":
        return text[1:-1]
    number = float(text)
    return int(number) if number.is_integer() else number
