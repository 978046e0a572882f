"""Work in runs of rows: each run once, and a stop at the next step after a failure."""

import os
import sys
import threading
import time
from contextlib import contextmanager

import pytest
from forking import ends_well_in_a_fork

from nearlabel.common import threads
from nearlabel.common.threads import ForkSafeLock, one_blas_thread, run_blocks


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_every_row_once(n_jobs):
    seen = []
    run_blocks(lambda rows: seen.extend(range(rows.start, rows.stop)), 23, 4, n_jobs, None)
    assert sorted(seen) == list(range(23))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_all_steps_of_a_work_that_yields(n_jobs):
    steps = []

    def work(rows):
        for step in range(3):
            steps.append((rows.start, step))
            yield

    run_blocks(work, 6, 2, n_jobs, None)
    assert sorted(steps) == [(start, step) for start in (0, 2, 4) for step in range(3)]


def test_a_failure_ends_the_others_at_their_next_step():
    begun = threading.Event()
    steps = []

    def work(rows):
        if rows.start == 0:
            begun.wait(10)
            raise KeyboardInterrupt
        for step in range(10_000):
            begun.set()
            steps.append(step)
            time.sleep(0.001)
            yield

    with pytest.raises(KeyboardInterrupt):
        run_blocks(work, 2, 1, 2, None)
    assert 0 < len(steps) < 5000


def test_an_interrupt_does_not_leave_blas_limited_forever(monkeypatch):
    class Interrupted(threading.Event):
        """An event whose first waiter hears Ctrl-C instead."""

        def wait(self, timeout=None):
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return super().wait(timeout)

    holders = []
    make = threading.Thread

    def thread(*args, **kwargs):
        holders.append(make(*args, **kwargs))
        return holders[-1]

    with monkeypatch.context() as patched:
        patched.setattr(threads, "Event", Interrupted)
        patched.setattr(threads, "Thread", thread)
        with pytest.raises(KeyboardInterrupt), one_blas_thread:
            pytest.fail("it was interrupted")
    (holder,) = holders
    holder.join(10)
    assert not holder.is_alive()
    with one_blas_thread:
        pass


def test_blas_libraries_are_looked_for_again_after_an_import(monkeypatch):
    import threadpoolctl

    looked, usual = [], threadpoolctl.ThreadpoolController

    class Counted(usual):
        def __init__(self):
            looked.append(len(sys.modules))
            super().__init__()

    with one_blas_thread:
        pass
    monkeypatch.setattr(threadpoolctl, "ThreadpoolController", Counted)
    for _ in range(2):
        with one_blas_thread:
            blas = [one for one in usual().info() if one["user_api"] == "blas"]
            assert {one["num_threads"] for one in blas} == {1}
    assert looked == []
    monkeypatch.setitem(sys.modules, "a_module_that_is_new", threading)
    for _ in range(2):
        with one_blas_thread:
            pass
    assert len(looked) == 1


@contextmanager
def busy_in_another_thread(work, entered, leave):
    """Let another thread do `work`, which sets `entered` and waits for `leave`."""
    worker = threading.Thread(target=work)
    worker.start()
    try:
        assert entered.wait(30)
        yield
    finally:
        leave.set()
        worker.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_forked_child_can_work_while_another_thread_limits_blas(monkeypatch):
    parent, entered, leave = os.getpid(), threading.Event(), threading.Event()
    limit = threads._one_thread

    def slow_limit():
        if os.getpid() == parent:
            entered.set()
            leave.wait(30)
        return limit()

    monkeypatch.setattr(threads, "_one_thread", slow_limit)

    def work():
        run_blocks(lambda rows: None, 4, 1, 2, None)

    with busy_in_another_thread(work, entered, leave):
        assert ends_well_in_a_fork(work)
    work()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_search_of_the_parent_works_in_a_forked_child():
    with one_blas_thread:

        def work():
            one_blas_thread.__exit__()
            with one_blas_thread:
                pass

        assert ends_well_in_a_fork(work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="Windows has no fork")
def test_a_lock_held_by_another_thread_is_free_in_a_forked_child():
    lock, entered, leave = ForkSafeLock(), threading.Event(), threading.Event()

    def work():
        with lock.held():
            entered.set()
            leave.wait(30)

    def take():
        with lock.held():
            pass

    with busy_in_another_thread(work, entered, leave):
        assert ends_well_in_a_fork(take)
    take()


def test_one_thread_at_a_time_holds_a_lock():
    lock, entered, leave = ForkSafeLock(), threading.Event(), threading.Event()
    order = []

    def work():
        with lock.held():
            entered.set()
            leave.wait(30)
            order.append("first")

    def second():
        with lock.held():
            order.append("second")

    waiting = threading.Thread(target=second)
    with busy_in_another_thread(work, entered, leave):
        waiting.start()
        waiting.join(0.05)
        assert waiting.is_alive()
    waiting.join()
    assert order == ["first", "second"]
