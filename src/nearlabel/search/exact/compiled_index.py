"""Exact search by the compiled core: bounds in float32, canonical distances for what they leave.

A block of lower bounds is one matrix product, see `packed_bounds.py`. The core's `Shortlist` keeps,
for each query, the rows that may be among its k nearest, and measures canonical distances of these
alone. Among the rows themselves each block is computed once, and serves its rows and its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from math import isqrt
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.graph import NeighborGraph
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.core_rows import core_rows
from nearlabel.search.exact.packed_bounds import Packed, Products

_SIDE_UNKEPT = 4096  # rows of a block where rows are packed anew for each: that must not count

Blocks = Iterator[tuple[int, Array]]  # where the base rows of a block begin, and its lower bounds


@dataclass(frozen=True)
class BaseRows:
    """Base rows as the core's lists of the nearest of them take them.

    Attributes
    ----------
    rows : Rows of the core
    errors : ndarray of float32, shape (n,)
    scale, relative : float
        Of the bounds; see `packed_bounds.py`.
    names : ndarray of int32, shape (n,) or (0,)
        Numbers that decide between rows at one distance; without them, their places.
    tells_apart : bool
        Whether blocks of bounds mark the rows that share nothing with a query.
    """

    rows: Any
    errors: Array
    scale: float
    relative: float = 0.0
    names: Array = field(default_factory=lambda: np.empty(0, np.int32))
    tells_apart: bool = False

    def shortlist(
        self,
        queries: Any,
        errors: Array,
        k: int,
        *,
        stripe: int | None = None,
        itself: int = -1,
        starts: Sequence[int] = (),
    ) -> Any:
        """Empty lists of the k nearest base rows of some queries, with some room above k.

        Query i is the base row `itself` + i, and left out of its own list, unless that is -1. One
        thread at a time writes to a stripe of queries: all, `stripe` each, or from each of `starts`
        to the next.
        """
        return engine.core().Shortlist(
            queries=queries,
            base=self.rows,
            k=k,
            room=min(2 * k + 16, len(self.rows) - (itself >= 0)),
            query_errors=errors,
            base_errors=self.errors,
            scale=self.scale,
            itself=itself,
            stripe=len(queries) if stripe is None else stripe,
            starts=list(starts),
            names=self.names,
            relative=self.relative,
            apart=self.tells_apart,
        )


class CompiledIndex:
    """Base rows that the core searches, in stripes of rows that are packed together."""

    def __init__(
        self, vectors: Any, metric: str, rows: Any, products: Products, block_bytes: int
    ) -> None:
        self._vectors, self._metric = vectors, metric
        self._products, self._block_bytes = products, block_bytes
        self._is_kept = products.bytes_of(vectors) <= KEPT_BYTES
        self._kept_side = side = self._even(min(products.side, isqrt(block_bytes // 4)))
        self._kept, errors = [], []
        for first in range(0, vectors.shape[0], side):
            packed = products.pack(vectors[first : first + side])
            errors.append(packed.errors)
            if self._is_kept:
                self._kept.append(packed)
        self._base_rows = BaseRows(
            rows, np.concatenate(errors), products.scale, tells_apart=products.tells_apart
        )

    def reaches(self, queries: Any) -> bool:
        """Whether these queries can be searched."""
        return self._products.reaches(queries)

    def fill(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        """Fill the graph of queries; for None that of the base rows, each left out of its own.

        Returns
        -------
        ndarray of int
            Queries that are left to do: float32 tells too little about their distances.
        """
        if queries is None:
            return self._among(found, n_jobs, progress)
        return self._nearest(queries, found, n_jobs, progress)

    def _among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        side, n, base = self._side(n_jobs), found.n_base, self._base_rows
        lists = base.shortlist(base.rows, base.errors, found.k, stripe=side, itself=0)

        def blocks(mine: int, others: Iterable[int]) -> Blocks:
            queries = self._products.pack_queries(self._base(mine, side))
            return self._blocks(queries, others, side)

        stripes = [slice(first, min(first + side, n)) for first in range(0, n, side)]
        return fill_among(lists, stripes, blocks, found, n_jobs, progress)

    def _nearest(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        m, side = len(found), self._side(n_jobs)
        given_up = np.empty(m, bool)

        def search(rows: slice) -> Iterator[None]:
            part = queries[rows]
            packed = self._products.pack(part)
            its_rows = core_rows(part, self._metric)
            lists = self._base_rows.shortlist(its_rows, packed.errors, found.k, stripe=side)
            packed = self._products.pack_queries(packed)
            stripes = range(-(-found.n_base // side))
            for first, block in self._blocks(packed, stripes, side):
                lists.offer(block, 0, first, False)
                yield
            lists.finish(0, found.indices[rows], found.distances[rows])
            lists.given_up(given_up[rows])

        run_blocks(search, m, min(side, -(-m // n_jobs)), n_jobs, progress)
        return np.flatnonzero(given_up)

    def _side(self, n_jobs: int) -> int:
        """Rows of a stripe; where they are packed anew, so many that this is a small part."""
        if self._is_kept:
            return self._kept_side
        bytes_a_row = max(1, 2 * self._products.bytes_of(self._vectors) // self._vectors.shape[0])
        most = self._block_bytes // n_jobs
        return self._even(min(_SIDE_UNKEPT, isqrt(most // 4), max(64, most // bytes_a_row)))

    def _even(self, side: int) -> int:
        """Rows of stripes that are all of one size, and not above `side`."""
        n = self._vectors.shape[0]
        return int(-(-n // -(-n // max(1, side))))

    def _base(self, place: int, side: int) -> Packed:
        if self._is_kept:
            return self._kept[place]
        return self._products.pack(self._vectors[place * side : (place + 1) * side])

    def _blocks(self, queries: Packed, places: Iterable[int], side: int) -> Blocks:
        """Lower bounds between packed queries and some stripes of the base rows, in one memory."""
        height = len(queries.offsets)
        memory = np.empty(height * side, np.float32)
        for place in places:
            base = self._base(place, side)
            block = memory[: height * len(base.offsets)].reshape(height, -1)
            self._products.fill(block, queries, base)
            yield place * side, block


def fill_among(
    lists: Any,
    stripes: Sequence[slice],
    blocks: Callable[[int, Iterable[int]], Blocks],
    found: NeighborGraph,
    n_jobs: int,
    progress: Progress | None,
) -> Array:
    """Fill the graph of base rows; returns those that are left to do.

    `lists` are the core's, of all base rows; `blocks` gives the lower bounds between a stripe and
    each of some others, by their numbers.
    """
    number = {rows.start: place for place, rows in enumerate(stripes)}

    def compare(rows: slice, *, with_others: bool) -> Iterator[None]:
        mine = number[rows.start]
        others = _partners(mine, len(stripes)) if with_others else [mine]
        for first, block in blocks(mine, others):
            lists.offer(block, rows.start, first, with_others)
            yield

    def finish(rows: slice) -> None:
        lists.finish(rows.start, found.indices[rows], found.distances[rows])

    # Within itself first: that gives every row a good limit.
    run_slices(partial(compare, with_others=False), stripes, n_jobs, None)
    run_slices(partial(compare, with_others=True), stripes, n_jobs, progress)
    run_slices(finish, stripes, n_jobs, None)
    given_up = np.empty(len(found), bool)
    lists.given_up(given_up)
    return np.flatnonzero(given_up)


def _partners(mine: int, count: int) -> Iterator[int]:
    """The stripes that a stripe is compared with: each two once, and all have as much to do."""
    for step in range(1, count // 2 + 1):
        if 2 * step < count or mine < step:
            yield (mine + step) % count
