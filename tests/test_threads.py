"""Work that is shared among threads."""

import multiprocessing
import threading
import time

import pytest

from ihmm._threads import _pool, run_in_threads


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_results_come_in_order(n_threads):
    def slow_at_first(i):
        time.sleep(0.01 / (i + 1))
        return i * i

    assert run_in_threads(slow_at_first, range(20), n_threads) == [i * i for i in range(20)]
    assert run_in_threads(slow_at_first, [], n_threads) == []


def test_several_threads_take_part():
    both = threading.Barrier(2, timeout=10)
    run_in_threads(lambda _: both.wait(), range(2), 2)  # would break if one thread had both


@pytest.mark.parametrize("here", [True, False])
def test_what_goes_wrong_on_any_thread_is_raised(here):
    caller, both = threading.current_thread(), threading.Barrier(2, timeout=10)

    def fails(_):
        both.wait()
        if (threading.current_thread() is caller) == here:
            raise ZeroDivisionError("on purpose")

    with pytest.raises(ZeroDivisionError, match="on purpose"):
        run_in_threads(fails, range(2), 2)


def test_threads_that_are_busy_are_not_waited_for():
    release = threading.Event()
    busy = [_pool().submit(release.wait, 30) for _ in range(_pool()._max_workers)]
    try:
        assert run_in_threads(str, range(3), 2) == ["0", "1", "2"]
    finally:
        release.set()
        for each in busy:
            each.result()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own():
    run_in_threads(str, range(3), 2)
    fork = multiprocessing.get_context("fork")
    answers = fork.Queue()
    child = fork.Process(target=lambda: answers.put(run_in_threads(str, range(3), 2)))
    child.start()
    assert answers.get(timeout=30) == ["0", "1", "2"]
    child.join(30)
    assert child.exitcode == 0
