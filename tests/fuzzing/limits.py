"""Limits on the time and the memory for one input."""

from __future__ import annotations

import signal
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

SECONDS = 2.0  # of computing, for one input
PEAK = 2**26  # bytes that reading one input may take, measured on a sample
ROOM = 2**29  # bytes of address space that no input may go beyond


try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]
_STATM = Path("/proc/self/statm")


class TooSlow(BaseException):
    """Not an Exception, so that the tested code cannot catch it."""


def _stop(*_: object) -> None:
    raise TooSlow("it takes too long")


@contextmanager
def limits(measured: bool, seconds: float) -> Iterator[None]:
    """Limit the CPU time and the memory of a block, if the system supports it."""
    if not hasattr(signal, "SIGVTALRM"):
        yield
        return
    before = signal.signal(signal.SIGVTALRM, _stop)
    room = _STATM.exists() and resource.getrlimit(resource.RLIMIT_AS)
    if room:
        size = int(_STATM.read_text().split()[0]) * resource.getpagesize() + ROOM
        resource.setrlimit(resource.RLIMIT_AS, (size, room[1]))
    if measured:
        tracemalloc.start()
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds * (5 if measured else 1))
    try:
        yield
        peak = tracemalloc.get_traced_memory()[1] if measured else 0
        assert peak < PEAK, f"{peak / 2**20:.0f} MiB for one input"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        tracemalloc.stop()
        signal.signal(signal.SIGVTALRM, before)
        if room:
            resource.setrlimit(resource.RLIMIT_AS, room)
