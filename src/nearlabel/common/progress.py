"""Progress of long work, reported to a callback."""

from __future__ import annotations

from collections.abc import Callable

Progress = Callable[[int, int], None]  # called with (rows done, total rows)


class Stages:
    """Stages of work, done one after the other and reported as a single one.

    Parameters
    ----------
    progress : callable or None
        Called with (steps done, total steps).
    total : int
        Steps of all stages.

    Examples
    --------
    >>> stages = Stages(lambda done, total: print(done, "of", total), 10)
    >>> searching, learning = stages.next(8), stages.next(2)
    >>> searching(50, 100)
    4 of 10
    >>> learning(100, 100)
    10 of 10
    """

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress, self._total, self._done = progress, total, 0

    def next(self, steps: int) -> Progress | None:
        """Progress of the next stage, which takes `steps` steps and counts in its own units."""
        progress, total, before = self._progress, self._total, self._done
        self._done += steps
        if progress is None:
            return None

        def tell(done: int, of: int) -> None:
            progress(before + steps * done // max(of, 1), total)

        return tell
