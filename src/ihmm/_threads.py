"""Work on several threads, with results in order."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """How many processors there are."""
    return os.cpu_count() or 1


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """`function` of every item in turn, computed on so many threads, or as many as there are processors."""
    n_threads = n_threads or processors()
    if n_threads == 1:
        yield from map(function, items)
        return
    todo = iter(items)
    with ThreadPoolExecutor(n_threads, "ihmm") as pool:
        waiting = [pool.submit(function, item) for item in islice(todo, 2 * n_threads)]
        while waiting:
            result = waiting.pop(0).result()
            waiting += [pool.submit(function, item) for item in islice(todo, 1)]
            yield result
