"""Work shared among threads, with results in order."""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def processors() -> int:
    """Number of processors."""
    return os.cpu_count() or 1


def in_threads(
    function: Callable[[Item], Result], items: Iterable[Item], n_threads: int | None = None
) -> Iterator[Result]:
    """The function of every item in order, as an iterator; by default on as many threads as there are processors."""
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


def run_in_threads(function: Callable[[Item], Result], items: Sequence[Item], n_threads: int) -> list[Result]:
    """The function of every item, computed by this thread and others that take the next item when they are idle.

    For short work: no thread waits for its turn. Pool threads that are busy with other work are not waited for.
    """
    results: dict[int, Result] = {}
    todo = iter(enumerate(items))

    def work() -> None:
        for i, item in todo:
            results[i] = function(item)

    others = [_pool().submit(work) for _ in range(n_threads - 1)]
    try:
        work()
    finally:
        for other in others:
            if not other.cancel():  # it has started
                other.result()
    return [results[i] for i in range(len(items))]


@cache
def _pool() -> ThreadPoolExecutor:
    """Idle threads: starting one takes as long as much of the work they are for."""
    return ThreadPoolExecutor(processors(), "ihmm")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked process has no threads of its parent
