"""Work on runs of rows in several threads, while BLAS uses one."""

from __future__ import annotations

import os
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from threading import Event, Lock, RLock, Thread, get_ident
from typing import Any, ClassVar
from weakref import WeakSet

from nearlabel.common.progress import Progress

Work = Callable[[slice], Iterator[None] | None]


def run_blocks(work: Work, n: int, step: int, n_jobs: int, progress: Progress | None) -> None:
    """Call `work` with runs of at most `step` of n rows, in `n_jobs` threads; see `run_slices`."""
    blocks = [slice(start, min(start + step, n)) for start in range(0, n, step)]
    run_slices(work, blocks, n_jobs, progress)


def run_slices(work: Work, blocks: Sequence[slice], n_jobs: int, progress: Progress | None) -> None:
    """Call `work` with each of some runs of rows, in `n_jobs` threads.

    Work in many steps yields after each. An error or an interrupt ends all threads at their next
    step, or at the end of their current block.
    """
    n, done = sum([block.stop - block.start for block in blocks]), 0
    if n_jobs == 1 or len(blocks) <= 1:
        for block in blocks:
            for _ in work(block) or ():
                pass
            done += block.stop - block.start
            if progress is not None:
                progress(done, n)
        return
    ended = Event()

    def take_steps(block: slice) -> slice:
        for _ in work(block) or ():
            if ended.is_set():
                break
        return block

    # Some BLAS libraries have a number of threads for each calling thread.
    with one_blas_thread, ThreadPoolExecutor(n_jobs, initializer=_one_thread) as pool:
        try:
            for finished in as_completed([pool.submit(take_steps, block) for block in blocks]):
                block = finished.result()
                done += block.stop - block.start
                if progress is not None:
                    progress(done, n)
        except BaseException:
            ended.set()
            pool.shutdown(cancel_futures=True)
            raise


class RenewedByFork(ABC):
    """An object that is renewed in the child of a fork, which none of the other threads enter."""

    _all: ClassVar[WeakSet[RenewedByFork]] = WeakSet()

    def __init__(self) -> None:
        self._all.add(self)

    @abstractmethod
    def renew(self) -> None:
        """Forget what threads of the parent do with it."""

    @classmethod
    def renew_all(cls) -> None:
        """Renew all that there are."""
        for each in cls._all:
            each.renew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=RenewedByFork.renew_all)


class _OneBlasThread(RenewedByFork):
    """Limits BLAS to one thread while at least one search or the like needs that.

    The setting belongs to the process, and threadpoolctl lets only the thread that made it restore
    it while that thread lives. Of several concurrent searches, the first need not be the last to
    end; so a dedicated thread makes the setting, waits for all of them, restores it and ends.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renew()

    def renew(self) -> None:
        """Forget all searches: none of their threads exist in the child of a fork."""
        self._lock = Lock()
        self._searches = 0
        self._all_done = Event()
        self._holder = Thread()

    def __enter__(self) -> None:
        with self._lock:
            if not self._searches:
                is_set = Event()
                self._all_done = Event()
                self._holder = Thread(target=self._hold, args=(is_set, self._all_done), daemon=True)
                try:
                    self._holder.start()
                    is_set.wait()
                except BaseException:  # an interrupt: nothing else would end the holding thread
                    self._all_done.set()
                    raise
            self._searches += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            if not self._searches:  # forked meanwhile: this search is the parent's
                return
            self._searches -= 1
            if not self._searches:
                self._all_done.set()
                self._holder.join()

    @staticmethod
    def _hold(is_set: Event, all_done: Event) -> None:
        try:
            with _one_thread():
                is_set.set()
                all_done.wait()
        finally:
            is_set.set()


_blas: tuple[int, Any] = (-1, None)  # control of the libraries loaded with this many modules


def _one_thread() -> AbstractContextManager[object]:
    """Limit BLAS to one thread; as a context, until its end.

    Looking for the loaded libraries takes milliseconds, longer than many a search, so they are
    looked for again only if modules were imported since.
    """
    global _blas
    modules, control = _blas
    if modules != len(sys.modules):
        from threadpoolctl import ThreadpoolController

        modules = len(sys.modules)
        control = ThreadpoolController().select(user_api="blas")
        _blas = modules, control
    limited: AbstractContextManager[object] = control.limit(limits=1)
    return limited


one_blas_thread = _OneBlasThread()


class ForkSafeLock(RenewedByFork):
    """A lock that is free in the child of a fork; a thread that holds it may take it again.

    A plain lock that another thread held would stay locked in the child forever: no thread
    is left to release it.
    """

    def __init__(self) -> None:
        super().__init__()
        self.renew()

    def renew(self) -> None:
        """Free the lock, whichever thread holds it."""
        self._lock, self._owner = RLock(), 0

    def __reduce__(self) -> tuple[type[ForkSafeLock], tuple[()]]:
        return ForkSafeLock, ()  # a copy is another lock

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the lock."""
        with self._lock:
            before, self._owner = self._owner, get_ident()
            try:
                yield
            finally:
                self._owner = before

    @contextmanager
    def held_once(self, why: str) -> Iterator[None]:
        """Hold the lock; if this thread holds it already, raise a RuntimeError that says `why`."""
        if self._owner == get_ident():
            raise RuntimeError(why)
        with self.held():
            yield
