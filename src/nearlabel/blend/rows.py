"""Blocks of rows that fit into memory, and seeded samples of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from sklearn.utils import check_random_state

from nearlabel.common.arrays import Integers, Seed

CELLS_AT_ONCE = 2**21  # 16 MiB: larger arrays would be returned to the system every time


def row_blocks(n: int, width: int, fewest: int = 256) -> Iterator[slice]:
    """Blocks of n rows for which arrays with `width` numbers per row fit into memory."""
    step = max(fewest, CELLS_AT_ONCE // max(width, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def drawn_rows(n: int, most: int, seed: int) -> Integers:
    """At most `most` of n rows, in order, drawn by seed if there are more."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.RandomState(seed).choice(n, most, replace=False))


def seed_of(random_state: Seed) -> int:
    """The seed given as random_state, or one drawn from it."""
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool):
        check_random_state(random_state)
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
