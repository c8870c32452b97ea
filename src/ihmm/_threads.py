"""Work on several threads, with results in order."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
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


def share_out(function: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """`function` of every item, by this thread and others that each take the next one when they are done with one.

    For short work: nobody waits for a turn, and no thread has to be woken but to begin. Others that are busy with
    somebody else's work are not waited for.
    """
    results: dict[int, Result] = {}
    todo = iter(enumerate(items))

    def work() -> None:
        for i, item in todo:
            results[i] = function(item)

    others = [helpers().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        for other in others:
            if not other.cancel():  # it has begun
                other.result()
    return [results[i] for i in range(len(items))]


@cache
def helpers() -> ThreadPoolExecutor:
    """Threads that wait for short work: to start one takes as long as a good deal of it."""
    return ThreadPoolExecutor(processors(), "ihmm")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=helpers.cache_clear)  # a forked process has none of them
