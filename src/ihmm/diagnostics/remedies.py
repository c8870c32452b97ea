"""What to do next if an answer is not reliable: never what is in force already."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

LONGEST_TUNE = 10_000  # beyond which more tuning is not advised
LONG_TUNE = 2000
STEP = 500  # numbers of draws are multiples of this


class RunFacts(NamedTuple):
    """The settings of a run, as far as they are known."""

    draws: int
    tune: int | None = None
    init: Any = None
    chains: int = 4


@dataclass(frozen=True)
class Remedy:
    """Settings to change, or only a number of `draws` to extend the run to; or, if there are none, a `note`."""

    settings: Mapping[str, Any]
    draws: int | None = None
    note: str = ""

    def text(self, run: str | None = None) -> str:
        """As arguments of `InfiniteHMM` or `sample`, or as a command line if the folder of a `run` is given."""
        lines = []
        if run is not None:
            if self.settings:
                flags = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in self.settings.items())
                lines.append(f"ihmm fit --config {run}/settings.toml {flags} --out {run}-again")
            elif self.draws is not None:
                lines.append(f"ihmm resume {run} --draws {self.draws}")
        elif self.settings or self.draws is not None:
            settings = dict(self.settings) | ({"draws": self.draws} if self.draws is not None else {})
            given = ", ".join(f"{name}={value!r}" for name, value in settings.items())
            lines.append(f"fit again with {given}")
        return "Next: " + "; ".join(lines) + (f". {self.note}" if self.note and lines else self.note)


def remedy(
    run: RunFacts,
    *,
    one_chain: bool = False,
    stuck: bool = False,
    drifting: bool = False,
    few_draws: float = 0.0,
    contradicted: bool = False,
    settings: Sequence[str] = (),
) -> Remedy | None:
    """The next step. `few_draws` is by what factor there are too few, 0 if there are enough.

    A model that is `contradicted` is changed first: its modes are of no interest.
    """
    change: dict[str, Any] = {}
    note = ""
    for setting in settings:
        for part in setting.split(", "):
            name, _, value = part.partition("=")
            change.setdefault(name.strip(), _value(value.strip()))
    if contradicted and change:
        return Remedy(change)
    if one_chain:
        change["chains"] = 4
    if stuck or drifting:
        if run.init is not None and run.init != "auto":
            change["init"] = "auto"
        if run.tune is None or run.tune < LONGEST_TUNE:
            change["tune"] = max(LONG_TUNE, 4 * (run.tune or 0))
        elif stuck and "init" not in change:
            note = "Long tuning has not helped: these are modes of the posterior, and their probabilities are unknown."
    draws = math.ceil(run.draws * few_draws / STEP) * STEP if few_draws else None
    if draws is not None and draws <= run.draws:
        draws = None
    if not change and draws is None and not note:
        return None
    return Remedy(change, draws, note)


def _value(text: str) -> Any:
    """A number or a string, as written in Python."""
    if text[:1] in "\"'":
        return text[1:-1]
    number = float(text)
    return int(number) if number.is_integer() else number
