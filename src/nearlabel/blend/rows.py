"""Blocks of rows that fit into memory, and seeded samples of rows."""

from __future__ import annotations

import numbers
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils import check_random_state

from nearlabel.common.arrays import Array, Csr

CELLS_AT_ONCE = 2**21  # 16 MiB: larger arrays would be returned to the system every time


def row_blocks(n: int, width: int, fewest: int = 256) -> Iterator[slice]:
    """Blocks of n rows for which arrays with `width` numbers per row fit into memory."""
    step = max(fewest, CELLS_AT_ONCE // max(width, 1))
    return (slice(start, min(start + step, n)) for start in range(0, n, step))


def drawn_rows(n: int, most: int, seed: int) -> Array:
    """At most `most` of n rows, in order, drawn by seed if there are more."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.RandomState(seed).choice(n, most, replace=False))


def seed_of(random_state: Any) -> int:
    """The seed given as random_state, or one drawn from it."""
    if isinstance(random_state, bool) or not isinstance(random_state, numbers.Integral):
        random_state = check_random_state(random_state).randint(2**31 - 1)
    check_random_state(random_state)
    return int(random_state)


def dense_rows(X: Csr) -> Array:
    """Rows as an array."""
    return np.asarray(X.toarray() if sparse.issparse(X) else X)
