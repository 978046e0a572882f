"""Progress of a part of the work, told as progress of all of it."""

from __future__ import annotations

from nearlabel.search import Progress

_STEPS = 1000  # that a unit of work is divided into


def part_of(progress: Progress | None, first: int, last: int, of: int) -> Progress:
    """Progress of the work from one unit to another one, of so many in all.

    Examples
    --------
    >>> tell = part_of(lambda done, total: print(done, "of", total), 2, 3, 4)
    >>> tell(0, 10), tell(5, 10)
    2000 of 4000
    2500 of 4000
    (None, None)
    """

    def tell(done: int, total: int) -> None:
        if progress is not None:
            share = _STEPS * (last - first) * done // max(total, 1)
            progress(_STEPS * first + share, _STEPS * of)

    return tell
