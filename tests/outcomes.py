"""What becomes of random input: a result, or one of our sentences. Anything else is a failure.

IHMM_FUZZ is the total number of examples of all tests. With it, outcomes are counted and printed, by test and by the
part of ihmm that they reached, with the input that took the most memory, and time and memory are limited.
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
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings

import ihmm

EXAMPLES = int(os.environ.get("IHMM_FUZZ", "0"))
SECONDS, MEGABYTES = 60, 2048  # limits of one example: processor time, and resident memory of the process meanwhile
ADDRESSES = 8 << 30  # arrays of states are reserved in full, and touched as needed
MOST = 1000  # letters of an input
HOME = str(Path(ihmm.__file__).parent)
REFUSALS = (ValueError, TypeError, OSError, RuntimeError)
COUNTS: Counter[str] = Counter()  # outcomes of the current test
REACHED: dict[str, Counter[str]] = {}  # outcomes of all tests by the part of ihmm that was reached
LONGEST: dict[str, float] = {}  # seconds of processor time, by the same
LARGEST: dict[str, tuple[int, str]] = {}  # megabytes and the input, by the same


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


def result_or_sentence(call: Callable[[], Any], part: str, given: Callable[[], Any] | None = None) -> Any:
    """The result of a call, or None if it is refused by a `raise` of ihmm or of scikit-learn, with a message.

    `part` is what the call reaches. `given` is the input, to be shown if it fails; hypothesis shows its own.
    """
    begin = time.process_time()
    outcome = "raw error"
    if EXAMPLES:
        faulthandler.dump_traceback_later(10 * SECONDS, exit=True)
        forget_peak()
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
        seconds, peak = time.process_time() - begin, peak_megabytes()
        outcome = "timeout" if seconds > SECONDS else "memory" if peak > MEGABYTES else outcome
        if given is not None and outcome not in ("result", "sentence"):
            print(given())
        COUNTS[outcome] += 1
        REACHED.setdefault(part, Counter())[outcome] += 1
        LONGEST[part] = max(LONGEST.get(part, 0.0), seconds)
        if peak > LARGEST.get(part, (0, ""))[0]:
            LARGEST[part] = peak, "" if given is None else " ".join(repr(given()).split())
        assert not EXAMPLES or outcome not in ("timeout", "memory"), f"took {seconds:.0f} s and up to {peak} MB"


def forget_peak() -> None:
    """Let the peak of resident memory be that from now on."""
    with suppress(OSError):  # not on Linux
        Path("/proc/self/clear_refs").write_text("5")


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
    begin = time.process_time()
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()
        resource.setrlimit(resource.RLIMIT_DATA, before)
        seconds = time.process_time() - begin
        print(f"\n{name}: {described(COUNTS)}; {seconds:.0f} s, peak {peak_megabytes()} MB", flush=True)


def described(outcomes: Counter[str]) -> str:
    found = ", ".join(f"{n} {outcome}" for outcome, n in sorted(outcomes.items()))
    return f"{outcomes.total()} inputs: {found}"


def report() -> None:
    """Print the outcomes of all tests by the part of ihmm that was reached."""
    print("\nBy what they reached:")
    for part, outcomes in REACHED.items():
        print(f"  {part}: {described(outcomes)}; longest {LONGEST[part]:.1f} s")
        megabytes, given = LARGEST[part]
        print(f"    largest {megabytes} MB {given[:MOST]}")
    total = sum(REACHED.values(), Counter())
    print(f"  all: {described(total)}; peak {max(LARGEST.values())[0]} MB", flush=True)
