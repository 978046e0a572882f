"""Neighbors between two blocks of rows, each of which may be too large to stand beside others.

A list of the k nearest rows of all blocks is the merged list of those of each. What a row has
found so far is a limit: only what is nearer is looked for, so that most of the time is that of the
products, and these are computed once for the rows of both blocks.
"""

from __future__ import annotations

import sys

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats, kernel_array
from nearlabel.search.exact.byte_bounds import fastest_bounds
from nearlabel.search.exact.compiled_index import CompiledIndex, PackedStripes
from nearlabel.search.exact.distances import Metric
from nearlabel.search.exact.equal_rows import equal_rows
from nearlabel.search.exact.index import exact_index
from nearlabel.search.exact.packed_bounds import DenseBounds, bounds_for
from nearlabel.search.exact.row_arithmetic import METRICS, core_rows


def neighbors_between(
    vectors: Array, first: int, metric: Metric, k: int, limits: Floats
) -> tuple[Array, Floats]:
    """The nearest rows of the other block for each row of two blocks, by (distance, place).

    Parameters
    ----------
    vectors : ndarray, shape (n, d)
        The rows of both blocks.
    first : int
        How many of them are of the first block.
    metric : str or callable
    k : int
        Neighbors of each row, at most.
    limits : ndarray of float, shape (n,)
        Neighbors at a greater distance are left out, as a rule; infinite for no limit, negative
        where a row needs none.

    Returns
    -------
    places : ndarray of int32, shape (n, k)
        Behind the last one there is -1.
    distances : ndarray of float, shape (n, k)
        Behind the last one they are infinite.
    """
    n = len(vectors)
    places, distances = np.full((n, k), -1, np.int32), np.full((n, k), np.inf)
    index = _compiled(vectors, first, metric)
    left = limits >= 0
    if index is not None:
        left &= index.fill_between(first, limits, places, distances)
    parts = slice(0, first), slice(first, n)
    for own, other in (parts, parts[::-1]):
        chosen = own.start + np.flatnonzero(left[own])
        if len(chosen):
            near = exact_index(vectors[other], metric)
            width = min(k, other.stop - other.start)
            graph = near.graph(width, vectors[chosen])
            places[chosen, :width] = graph.indices + other.start
            distances[chosen, :width] = graph.distances
            places[chosen, width:], distances[chosen, width:] = -1, np.inf
    return places, distances


def _compiled(vectors: Array, first: int, metric: Metric) -> CompiledIndex | None:
    """The rows of both blocks in stripes, where the core has sharp bounds on their distances."""
    if engine.core() is None or metric not in METRICS or equal_rows(vectors) is not None:
        return None
    rows, bounds = core_rows(vectors, str(metric)), bounds_for(vectors, str(metric))
    if not isinstance(bounds, DenseBounds) or bounds.are_vague(rows):
        return None
    fastest = fastest_bounds(bounds, rows)
    starts = [*range(0, first, fastest.side), *range(first, len(rows), fastest.side), len(rows)]
    return CompiledIndex(PackedStripes(fastest, vectors, rows, starts, sys.maxsize), str(metric))


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
