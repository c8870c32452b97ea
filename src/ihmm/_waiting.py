"""A progress bar for work that makes the user wait."""

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Result = TypeVar("Result")

PATIENCE = 1.0  # seconds without a progress bar


def with_progress(results: Iterable[Result], total: int, description: str) -> Iterator[Result]:
    """Pass on the results. After a second, a terminal or notebook shows how many of the `total` there are so far."""
    begun = time.monotonic()
    bar = None
    try:
        for done, result in enumerate(results, 1):
            if bar is None and time.monotonic() - begun > PATIENCE and is_watched():
                from rich.console import Console
                from rich.progress import Progress

                bar = Progress(console=Console(stderr=True), transient=True)
                bar.start()
                task = bar.add_task(description, total=total)
            if bar is not None:
                bar.update(task, completed=done)
            yield result
    finally:
        if bar is not None:
            bar.stop()


def is_watched() -> bool:
    """Whether there is a terminal or notebook to show something on."""
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules
