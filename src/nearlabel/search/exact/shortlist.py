"""Exact search by the compiled core: bounds in float32, canonical distances for what they leave.

A block of lower bounds is one matrix product, see `products.py`. The core's `Shortlist` keeps, for
each query, the rows that may be among its k nearest, and measures canonical distances of these
alone. Among the rows themselves each block is computed once, and serves its rows and its columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from math import isqrt
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import Array, kernel_array
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.search.exact.packed_bounds import Packed, Products
from nearlabel.search.exact.row_arithmetic import (
    as_float,
    chunks,
    float_kind,
    typical_length,
    unit_scales,
)

_KEPT_BYTES = 2**28  # packed rows are kept up to here
_SIDE_UNKEPT = 4096  # rows of a block where rows are packed anew for each: that must not count


class CompiledIndex:
    """Base rows that the core searches."""

    def __init__(self, vectors: Any, metric: str, products: Products, block_bytes: int) -> None:
        self._vectors, self._metric, self._products = vectors, metric, products
        self._block_bytes = block_bytes
        self._rows = core_rows(vectors, metric)
        self._is_kept = products.bytes_of(vectors) <= _KEPT_BYTES
        self._kept_side = self._even(min(products.side, isqrt(block_bytes // 4)))
        packed = (products.pack(vectors[rows]) for rows in self._stripes(self._kept_side))
        if self._is_kept:
            self._kept = list(packed)
            self._errors = np.concatenate([stripe.errors for stripe in self._kept])
        else:
            self._errors = np.concatenate([stripe.errors for stripe in packed])

    def reaches(self, queries: Any) -> bool:
        """Whether these queries can be searched."""
        return self._products.reaches(queries)

    def among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        """Fill the graph of the base rows, each left out of its own row; see `nearest`."""
        n, side = len(found), self._side(n_jobs)
        count = -(-n // side)
        lists = self._shortlist(self._rows, found.k, self._errors, side, itself=0)

        def compare(rows: slice, *, with_others: bool) -> Iterator[None]:
            mine = rows.start // side
            queries = self._products.pack_queries(self._base(mine, side))
            others = _partners(mine, count) if with_others else [mine]
            for first, block in self._blocks(queries, others, side):
                lists.offer(block, rows.start, first, with_others)
                yield

        def finish(rows: slice) -> None:
            part = found.rows(rows.start, rows.stop)
            lists.finish(rows.start, part.indices, part.distances)

        # Within itself first: that gives every row a good limit.
        run_blocks(partial(compare, with_others=False), n, side, n_jobs, None)
        run_blocks(partial(compare, with_others=True), n, side, n_jobs, progress)
        run_blocks(finish, n, side, n_jobs, None)
        given_up = np.empty(n, bool)
        lists.given_up(given_up)
        return np.flatnonzero(given_up)

    def nearest(
        self, queries: Any, found: NeighborGraph, n_jobs: int, progress: Progress | None
    ) -> Array:
        """Fill the graph of queries.

        Returns
        -------
        ndarray of int
            Queries that are left to do: float32 tells too little about their distances.
        """
        m, side = len(found), self._side(n_jobs)
        count = -(-found.n_base // side)
        given_up = np.empty(m, bool)

        def search(rows: slice) -> Iterator[None]:
            part = queries[rows]
            packed = self._products.pack(part)
            its_rows = core_rows(part, self._metric)
            lists = self._shortlist(its_rows, found.k, packed.errors, side, itself=-1)
            packed = self._products.pack_queries(packed)
            for first, block in self._blocks(packed, range(count), side):
                lists.offer(block, 0, first, False)
                yield
            mine = found.rows(rows.start, rows.stop)
            lists.finish(0, mine.indices, mine.distances)
            lists.given_up(given_up[rows])

        run_blocks(search, m, min(side, -(-m // n_jobs)), n_jobs, progress)
        return np.flatnonzero(given_up)

    def _shortlist(self, queries: Any, k: int, errors: Array, side: int, *, itself: int) -> Any:
        """Empty lists of the k nearest base rows of some rows, with some room above k."""
        others = len(self._rows) - (itself >= 0)
        return engine.core().Shortlist(
            queries=queries,
            base=self._rows,
            k=k,
            room=min(2 * k + 16, others),
            query_errors=errors,
            base_errors=self._errors,
            scale=self._products.scale,
            itself=itself,
            stripe=side,
            names=np.empty(0, np.int32),
        )

    def _side(self, n_jobs: int) -> int:
        """Rows of a stripe; where they are packed anew, so many that this is a small part."""
        if self._is_kept:
            return self._kept_side
        bytes_a_row = max(1, 2 * self._products.bytes_of(self._vectors) // self._vectors.shape[0])
        most = self._block_bytes // n_jobs
        return self._even(min(_SIDE_UNKEPT, isqrt(most // 4), max(64, most // bytes_a_row)))

    def _even(self, side: int) -> int:
        """Rows of stripes that are all of one size, and not above `side`."""
        n, side = self._vectors.shape[0], max(1, side)
        return int(-(-n // -(-n // side)))

    def _stripes(self, side: int) -> Iterator[slice]:
        n = self._vectors.shape[0]
        return (slice(start, min(start + side, n)) for start in range(0, n, side))

    def _base(self, place: int, side: int) -> Packed:
        if self._is_kept:
            return self._kept[place]
        return self._products.pack(self._vectors[place * side : (place + 1) * side])

    def _blocks(
        self, queries: Packed, places: Iterable[int], side: int
    ) -> Iterator[tuple[int, Array]]:
        """Lower bounds between packed queries and some stripes of the base rows, in one memory."""
        height = len(queries.offsets)
        memory = np.empty(height * side, np.float32)
        for place in places:
            base = self._base(place, side)
            block = memory[: height * len(base.offsets)].reshape(height, -1)
            self._products.fill(block, queries, base)
            yield place * side, block


def can_read(vectors: Any) -> bool:
    """Whether the core can read these rows as they stand, or as a copy that is not too large."""
    if max(vectors.shape) >= 2**31:
        return False
    if sparse.issparse(vectors) or _is_plain(vectors):
        return True
    return bool(8 * vectors.size <= _KEPT_BYTES)


def _partners(mine: int, count: int) -> Iterator[int]:
    """The stripes that a stripe is compared with: each two once, and all have as much to do."""
    for step in range(1, count // 2 + 1):
        if 2 * step < count or mine < step:
            yield (mine + step) % count


def core_rows(vectors: Any, metric: str) -> Any:
    """Rows as the core measures canonical distances of them."""
    exponents, lengths = np.empty(0, np.int32), np.empty(0)
    if metric == "cosine":
        parts = [unit_scales(rows) for _, rows in chunks(vectors, typical_length(vectors))]
        exponents, lengths = (np.concatenate(column) for column in zip(*parts, strict=True))
    if sparse.issparse(vectors):
        return engine.core().sparse_rows(
            vectors.indptr.astype(np.int64, copy=False),
            vectors.indices.astype(np.int32, copy=False),
            as_float(vectors).data,
            vectors.shape[1],
            metric,
            exponents,
            lengths,
        )
    if not _is_plain(vectors):
        vectors = kernel_array(vectors, float_kind(vectors))
    return engine.core().dense_rows(np.asarray(vectors), metric, exponents, lengths)


def _is_plain(values: Array) -> bool:
    """Whether the core reads this array in its place: floats, those of a row side by side."""
    step, feature = values.strides
    is_known = values.dtype in (np.float32, np.float64) and values.dtype.isnative
    return bool(
        is_known
        and feature == values.itemsize
        and step % values.itemsize == 0
        and values.flags.aligned
    )
