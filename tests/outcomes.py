"""What becomes of random input: a result, or one of our sentences. Anything else is a failure.

IHMM_FUZZ is the total number of examples of all tests. With it, outcomes are counted and printed, and time and memory
are limited.
"""

import faulthandler
import linecache
import os
import resource
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

import ihmm

EXAMPLES = int(os.environ.get("IHMM_FUZZ", "0"))
SECONDS, MEGABYTES = 60, 2048  # limits of one example, and of the resident memory of the process
ADDRESSES = 8 << 30  # arrays of states are reserved in full, and touched as needed
HOME = str(Path(ihmm.__file__).parent)
REFUSALS = (ValueError, TypeError, OSError, RuntimeError)
COUNTS: Counter[str] = Counter()


def examples(few: int, share: float) -> Any:
    """A few examples, or this share of all of them."""
    return settings(
        max_examples=max(1, round(share * EXAMPLES)) if EXAMPLES else few,
        deadline=None,
        derandomize=not EXAMPLES,
        database=None,
        suppress_health_check=list(HealthCheck),
    )


def number(few: int, share: float) -> int:
    """The number of examples of a test without hypothesis, which costs more than most of the calls."""
    return round(share * EXAMPLES) or few


class Refused(Exception):
    """A command that was refused in a sentence."""


def result_or_sentence(call: Callable[[], Any], given: Callable[[], Any] | None = None) -> Any:
    """The result of a call, or None if it is refused by a `raise` of ihmm or of scikit-learn, with a message.

    `given` is the input, to be shown if it fails; hypothesis shows its own.
    """
    begin = time.monotonic()
    outcome = "raw error"
    if EXAMPLES:
        faulthandler.dump_traceback_later(10 * SECONDS, exit=True)
    try:
        with warnings.catch_warnings(action="ignore"):
            result = call()
        outcome = "result"
        return result
    except MemoryError:
        outcome = "memory"
        raise
    except (*REFUSALS, Refused) as error:
        if not isinstance(error, Refused):
            require_sentence(error)
        outcome = "sentence"
        return None
    finally:
        if given is not None and outcome == "raw error":
            print(given())
        seconds, peak = time.monotonic() - begin, peak_megabytes()
        outcome = "timeout" if seconds > SECONDS else "memory" if peak > MEGABYTES else outcome
        COUNTS[outcome] += 1
        assert not EXAMPLES or outcome not in ("timeout", "memory"), f"took {seconds:.0f} s and up to {peak} MB"


def peak_megabytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def require_sentence(error: Exception) -> None:
    frame = traceback.extract_tb(error.__traceback__)[-1]
    statement = linecache.getline(frame.filename, frame.lineno or 0).strip()
    ours = frame.filename.startswith(HOME) or f"{os.sep}sklearn{os.sep}" in frame.filename
    raw = f"raw error: {error!r}"
    assert ours, raw
    assert statement.startswith("raise"), f"{raw} in {statement!r}"
    assert len(str(error)) > 10


@contextmanager
def limited_and_counted(name: str) -> Iterator[None]:
    """If there are many examples: a limit of memory, and the outcomes printed at the end."""
    if not EXAMPLES:
        yield
        return
    before = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (ADDRESSES, before[1]))
    COUNTS.clear()
    begin = time.monotonic()
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_DATA, before)
        found = ", ".join(f"{n} {outcome}" for outcome, n in sorted(COUNTS.items()))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
        print(
            f"\n{name}: {COUNTS.total()} inputs: {found}; {time.monotonic() - begin:.0f} s, peak {peak} MB", flush=True
        )
