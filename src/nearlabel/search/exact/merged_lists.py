"""Sorted lists of neighbors, of which two are merged into one."""

from __future__ import annotations

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, kernel_array


def merged_lists(
    rows: Array, distances: Floats, more: Array, more_distances: Floats, offset: int
) -> tuple[Array, Floats]:
    """The nearest of two lists of neighbors of each row, as many as the first has room for.

    Parameters
    ----------
    rows, distances : ndarray of int and of float, shape (n, k)
        Neighbors by (distance, row); behind the last there is -1, infinitely far away.
    more, more_distances : ndarray of int32 and of float, shape (n, m)
        Others.
    offset : int
        What is added to `more`: the number of its first row.
    """
    new = np.empty_like(rows), np.empty_like(distances)
    core = engine.core()
    if core is not None:
        others = kernel_array(more, np.int32), kernel_array(more_distances, np.float64)
        core.merge_lists(rows, distances, *others, offset, *new)
        return new
    numbers = np.where(more < 0, -1, more + np.asarray(offset, rows.dtype))
    joined = np.hstack([rows, numbers]), np.hstack([distances, more_distances])
    order = np.lexsort(joined, axis=1)[:, : rows.shape[1]]
    new[0][:], new[1][:] = (np.take_along_axis(part, order, axis=1) for part in joined)
    return new
