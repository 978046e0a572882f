"""Exact search with NumPy: bounds in float64, and canonical distances where these are not enough.

Let U be the largest upper bound of some k base rows. At least k rows are within U, so a row whose
lower bound is above U is not among the k nearest. All other rows are candidates; their canonical
distances decide, ties by row. Nothing has to be searched again, whatever the data: loose bounds
only make the list of candidates longer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.distances import Bounds, Function, Space
from nearlabel.search.interfaces import Reached

BYTES_A_PAIR = 26  # bounds 8, a sparse product or a partition 12, masks and candidates


class NumpyIndex:
    """Base rows that NumPy searches."""

    def __init__(self, space: Space, block_bytes: int) -> None:
        space.prepare()
        self._space, self._block_bytes = space, block_bytes

    def fill(
        self,
        rows: Matrix,
        chosen: Array,
        found: NeighborGraph,
        alone: bool,
        n_jobs: int,
        progress: Progress | None,
    ) -> None:
        """Fill the chosen rows of a graph of queries, or of the base rows if `alone`."""
        space = self._space

        def search(block: slice) -> None:
            numbers = chosen[block]
            part = rows[numbers]
            found.indices[numbers], found.distances[numbers] = nearest(
                space.bounds(part),
                lambda query, base_row: space.distances(part, query, base_row),
                found.k,
                numbers if alone else None,
            )

        run_blocks(search, len(chosen), self._step(len(chosen), n_jobs), n_jobs, progress)

    def reached(self, queries: Matrix, chosen: Array, limits: Floats, n_jobs: int) -> Reached:
        """The base rows with one of the chosen queries within their limit."""
        space = self._space
        scaled = space.scaled(limits)
        parts: dict[int, tuple[Array, Array, Floats]] = {}

        def search(block: slice) -> None:
            numbers = chosen[block]
            part = queries[numbers]
            if isinstance(space, Function):  # a function need not be symmetric
                query, row = (ends.ravel() for ends in np.indices((len(numbers), len(limits))))
                open_ = limits[row] > 0
                query, row = query[open_], row[open_]
                distances = Function(part, space.function).distances(space.vectors, row, query)
            else:
                query, row = np.nonzero(space.bounds(part).lower <= scaled)
                distances = space.distances(part, query, row)
            is_within = distances < limits[row]
            parts[block.start] = row[is_within], numbers[query[is_within]], distances[is_within]

        run_blocks(search, len(chosen), self._step(len(chosen), n_jobs), n_jobs, None)
        return Reached.joined([parts[start] for start in sorted(parts)])

    def _step(self, n: int, n_jobs: int) -> int:
        """The number of queries searched together, out of n."""
        bytes_a_row = max(BYTES_A_PAIR * self._space.vectors.shape[0], 8 * self._space.width)
        step = max(1, self._block_bytes // int(bytes_a_row * n_jobs))
        return min(step, -(-n // n_jobs))  # enough work for every thread


def nearest(
    bounds: Bounds,
    distance: Callable[[Array, Array], Floats],
    k: int,
    itself: Array | None = None,
) -> tuple[Array, Floats]:
    """The k nearest columns of each row by (distance, column), and their distances.

    `bounds` are those of all distances; its lower bounds may be overwritten. `distance` measures
    pairs of a row and a column; `itself` has a column to exclude for each row.
    """
    lower = bounds.lower
    n = len(lower)
    if itself is not None:
        lower[np.arange(n), itself] = np.inf
    row, column = _candidates(bounds, k)
    if itself is not None:
        other = column != itself[row]
        row, column = row[other], column[other]
    distances = distance(row, column)
    order = np.lexsort((distances, row))  # stable: equal distances stay in the order of columns
    taken = order[_firsts(row, n)[:, None] + np.arange(k)]
    nearest_distances = distances[taken]
    if not np.isfinite(nearest_distances).all():
        raise ValueError("a distance to a neighbor is too large for float64; rescale X")
    return column[taken], nearest_distances


def _candidates(bounds: Bounds, k: int) -> tuple[Array, Array]:
    """Pairs of a row and a column that may be among the row's k nearest, in order."""
    lower = bounds.lower
    n, n_base = lower.shape
    if k == n_base:
        return np.divmod(np.arange(lower.size), n_base)
    # Any k columns give a valid bound. The nearest k of every stride-th column are found in a
    # fraction of the time, and leave about stride times k candidates.
    stride = max(1, int(np.sqrt(n_base / k) / 2))
    few = stride * np.argpartition(lower[:, ::stride], k - 1, axis=1)[:, :k]
    within = bounds.upper(np.arange(n)[:, None], few).max(axis=1)
    row, column = np.divmod(np.flatnonzero(lower <= within[:, None]), n_base)
    if stride > 1:  # the nearest k of the candidates give a tight bound
        first = _firsts(row, n)
        place = np.arange(len(row)) - first[row]
        passed = np.full((n, int(place.max()) + 1), np.inf)
        passed[row, place] = bounds.upper(row, column)
        within = np.partition(passed, k - 1, axis=1)[:, k - 1]
        is_near = lower[row, column] <= within[row]
        row, column = row[is_near], column[is_near]
    return row, column


def _firsts(row: Array, n: int) -> Array:
    """Where the pairs of each of n rows start, in pairs sorted by row."""
    return np.searchsorted(row, np.arange(n))
