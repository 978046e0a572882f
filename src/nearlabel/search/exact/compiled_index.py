"""Exact search by the compiled core: bounds in float32, canonical distances for the rest.

Base rows are divided into stripes, which are packed for the bounds; see `packed_bounds.py`. The
lower bounds between some queries and a stripe are one matrix product. The core's `Shortlist` keeps,
for each query, the rows that may be among its k nearest, and measures canonical distances of these
only. For the rows themselves each block is computed once, and serves both its rows and its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from math import isqrt
from typing import Any, Protocol

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.graph import NeighborGraph
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.core_rows import core_rows
from nearlabel.search.exact.far_clusters import near_rows
from nearlabel.search.exact.packed_bounds import DenseBounds, PackedBounds, bounds_for
from nearlabel.search.exact.reaching import Reach, measured_pairs, reaching, scaled_limits
from nearlabel.search.exact.row_arithmetic import points_of
from nearlabel.search.living.arrivals import Reached

_FEW_QUERIES = 8  # are compared with long stripes: Python overhead counts,
_WIDE = 2**14  # rows per long stripe
_SIDE_UNKEPT = 4096  # rows of a block if rows are packed for each block: packing must not dominate


def compiled_index(vectors: Any, metric: str, rows: Any, block_bytes: int) -> CompiledIndex | None:
    """An index of base rows if the core can bound their distances, else None.

    `rows` are the base rows in the form that the core measures.
    """
    bounds = bounds_for(vectors, metric)
    if bounds is None:
        return None
    is_small = 8 * vectors.shape[0] * vectors.shape[1] <= KEPT_BYTES
    if is_small and isinstance(bounds, DenseBounds) and bounds.are_vague(rows):
        side = max(1, min(bounds.side, isqrt(block_bytes // 4)))
        points = points_of(vectors, metric)
        stripes = near_rows(points, bounds.center, side)
        if stripes is not None:
            order = np.concatenate(stripes)
            bounds = bounds.centered_at(np.array([points[some].mean(axis=0) for some in stripes]))
            ordered = vectors[order]
            rows = core_rows(ordered, metric)
            starts = np.cumsum([0, *map(len, stripes)])
            return CompiledIndex(
                *(ordered, metric, rows, bounds, block_bytes),
                starts=starts,
                order=order,
                kept_bytes=KEPT_BYTES,
            )
    return CompiledIndex(vectors, metric, rows, bounds, block_bytes, kept_bytes=KEPT_BYTES)


class PackedStripes(Protocol):
    """Packed stripes of base rows, by number, each packed on first use.

    From then on the errors of its rows, (n,) in all, are known.
    """

    errors: Array

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Any: ...


class CompiledIndex:
    """Base rows that the core searches, in stripes.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
        Rows in the order of the stripes.
    metric : str
    rows : Rows of the core
        The same rows for the core.
    bounds : PackedBounds
    block_bytes : int
        Approximate memory of the blocks of all threads.
    starts : ndarray of int, shape (n_stripes + 1,), optional
        Where the stripes start, and n; by default they are even and of the fastest size.
    order : ndarray of int, shape (n,), optional
        Numbers of the rows, which break ties between distances; by default their places.
    kept_bytes : int
        Packed rows are cached up to this size.
    packed : PackedStripes, optional
        The stripes of `starts`, already packed.
    """

    def __init__(
        self,
        vectors: Any,
        metric: str,
        rows: Any,
        bounds: PackedBounds,
        block_bytes: int,
        *,
        starts: Array | None = None,
        order: Array | None = None,
        kept_bytes: int = 0,
        packed: PackedStripes | None = None,
    ) -> None:
        self.rows = rows
        self._vectors, self._metric, self._bounds = vectors, metric, bounds
        self._block_bytes = block_bytes
        self._order = np.empty(0, np.int32) if order is None else order.astype(np.int32)
        self._packed_bytes = bounds.bytes_of(vectors)
        self._is_kept = self._packed_bytes <= kept_bytes
        # The size of even stripes that are not kept depends on the number of threads.
        if starts is None:
            self._stripes = self._even(1)
        else:
            self._stripes = [slice(*ends) for ends in pairwise(starts.tolist())]
        self._is_fixed = self._is_kept or starts is not None
        self._kept: PackedStripes | list[Any]
        self._whole: Array | None = None  # all packed rows; the stripes are views
        if packed is not None:
            self._kept, self._errors = packed, packed.errors
            return
        self._kept, errors = [], []
        for number, stripe in enumerate(self._stripes):
            factors, its_errors = bounds.pack(vectors, rows, stripe, number)
            errors.append(its_errors)
            if self._is_kept and starts is None and isinstance(factors, np.ndarray):
                if self._whole is None:
                    self._whole = np.empty((len(rows), factors.shape[1]), factors.dtype)
                self._whole[stripe] = factors
                factors = self._whole[stripe]
            if self._is_kept:
                self._kept.append(factors)
        self._errors = np.concatenate(errors)

    def _even(self, n_jobs: int) -> list[slice]:
        """Stripes of equal size; if they are packed repeatedly, packing must not dominate."""
        n, most = len(self.rows), self._block_bytes // n_jobs
        side = min(self._bounds.side, isqrt(self._block_bytes // 4))
        if not self._is_kept:
            bytes_a_row = max(1, 2 * self._packed_bytes // n)
            side = min(_SIDE_UNKEPT, isqrt(most // 4), max(64, most // bytes_a_row))
        size = -(-n // -(-n // max(1, side)))
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _shortlist(
        self,
        queries: Any,
        errors: Array,
        k: int,
        itself: int,
        starts: list[int],
        limits: Array | None = None,
    ) -> Any:
        """Empty lists for the k nearest base rows of some queries, with some room above k.

        Query i is the base row `itself` + i and excluded from its own list, unless `itself` is -1.
        One thread at a time writes to the queries from each of `starts` to the next. With `limits`,
        in the scale of the bounds, rows beyond are not listed, and lists may be shorter than k.
        """
        return engine.core().Shortlist(
            queries=queries,
            base=self.rows,
            k=k,
            room=min(2 * k + 16, len(self.rows) - (itself >= 0)),
            query_errors=errors,
            base_errors=self._errors,
            scale=self._bounds.scale,
            itself=itself,
            starts=starts,
            names=self._order,
            relative=self._bounds.relative,
            apart=self._bounds.marks_apart,
            limits=limits,
        )

    def fill_among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        """Fill the graph of the base rows, each excluded from its own neighbors; see `fill`."""
        bounds, stripes = self._bounds, self._stripes if self._is_fixed else self._even(n_jobs)
        starts, count, kept = [stripe.start for stripe in stripes], len(stripes), self._kept
        lists = self._shortlist(self.rows, self._errors, found.k, 0, starts)
        widest = max([stripe.stop - stripe.start for stripe in stripes])
        indices, distances = found.indices, found.distances
        if len(self._order):
            indices, distances = np.zeros_like(indices), np.empty_like(distances)

        def compare_within(mine: slice) -> None:
            own = starts.index(mine.start)
            base = kept[own] if kept else self._packed(mine, own)
            memory = np.empty(len(base) ** 2, np.float32)
            block = bounds.block(bounds.as_queries(base), base, memory)
            lists.offer(block, mine.start, mine.start, False)

        def compare(mine: slice) -> Iterator[None]:
            own = starts.index(mine.start)
            left = bounds.as_queries(kept[own] if kept else self._packed(mine, own))
            memory = np.empty(len(left) * widest, np.float32)
            for step in range(1, count // 2 + 1):
                if 2 * step == count and own >= step:
                    break  # the other stripe of the pair does it
                number = (own + step) % count
                base = kept[number] if kept else self._packed(stripes[number], number)
                if bounds.centers is not None:
                    left = bounds.as_queries(self._packed(mine, number))
                block = bounds.block(left, base, memory)
                lists.offer(block, mine.start, starts[number], True)
                yield

        def finish(mine: slice) -> None:
            lists.finish(mine.start, indices[mine], distances[mine])

        run_slices(compare_within, stripes, n_jobs, None)  # gives every row a tight limit
        run_slices(compare, stripes, n_jobs, progress)  # each pair of stripes once
        run_slices(finish, stripes, n_jobs, None)
        given_up = np.empty(len(found), bool)
        lists.given_up(given_up)
        left = np.flatnonzero(given_up)
        if not len(self._order):
            return left
        found.indices[self._order] = self._order[indices]
        found.distances[self._order] = distances
        return np.sort(self._order[left])

    def fill_between(self, first: int, limits: Array, places: Array, distances: Array) -> Array:
        """Write the nearest rows of the other of two parts; see `neighbors_between`.

        The stripes of the first part hold the rows up to `first`. Returns which rows, of those with
        a limit that is not negative, are left to do.
        """
        bounds, kept, stripes = self._bounds, self._kept, self._stripes
        starts = [stripe.start for stripe in stripes]
        # What is as far as the limit is wanted, too: its number may be lower.
        scaled = self.scaled_limits(np.where(limits >= 0, np.nextafter(limits, np.inf), -1.0))
        lists = self._shortlist(self.rows, self._errors, places.shape[1], 0, starts, scaled)
        split = starts.index(first)
        memory = np.empty(bounds.side**2, np.float32)
        for number, stripe in enumerate(stripes[:split]):
            left = bounds.as_queries(kept[number] if kept else self._packed(stripe, number))
            for other, its in enumerate(stripes[split:], split):
                base = kept[other] if kept else self._packed(its, other)
                lists.offer(bounds.block(left, base, memory), stripe.start, its.start, True)
        lists.finish(0, places, distances)
        given_up = np.empty(len(places), bool)
        lists.given_up(given_up)
        return given_up

    def fill(
        self,
        queries: Any,
        found: NeighborGraph,
        n_jobs: int,
        progress: Progress | None,
        reach: Reach | None = None,
    ) -> Array:
        """Fill the graph of queries; see `search` for `reach`.

        Returns
        -------
        ndarray of int
            Queries left to do: float32 cannot separate their distances.
        """
        stripes = self._stripes if self._is_fixed else self._even(n_jobs)
        given_up = np.empty(len(found), bool)

        def search(rows: slice) -> Iterator[None]:
            part, centers, near = queries[rows], self._bounds.centers, None
            if centers is not None:  # all stripes, starting with the nearest center
                points = points_of(part, self._metric)
                with np.errstate(over="ignore", invalid="ignore"):
                    far = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
                near = (np.argmin(far, axis=1)[:, None] + np.arange(len(centers))) % len(centers)
            indices, distances = found.indices[rows], found.distances[rows]
            its_reach = None if reach is None else reach.of(np.arange(rows.start, rows.stop))
            how: dict[str, Any] = {"stripes": stripes, "reach": its_reach}
            yield from self.search(part, near, indices, distances, given_up[rows], **how)
            if len(self._order):
                indices[:] = self._order[np.where(given_up[rows, None], 0, indices)]

        side = self._bounds.side if len(self._order) else stripes[0].stop
        run_blocks(search, len(found), min(side, -(-len(found) // n_jobs)), n_jobs, progress)
        return np.flatnonzero(given_up)

    def search(
        self,
        queries: Any,
        near: Array | None,
        indices: Array,
        distances: Array,
        given_up: Array,
        *,
        itself: int = -1,
        stripes: list[slice] | None = None,
        reach: Reach | None = None,
    ) -> Iterator[None]:
        """Write the nearest base rows of some queries, by place; one step per stripe.

        A dense query is compared with the stripes `near`, (m, p), nearest first; None means all.
        Nothing is written for queries that are `given_up`, (m,). Query i is the base row at place
        `itself` + i and excluded, unless `itself` is -1. `stripes` replaces the default stripes.
        `reach` collects the pairs within its limits.
        """
        bounds, rows = self._bounds, core_rows(queries, self._metric)
        stripes = self._stripes if stripes is None else stripes
        everyone = np.arange(len(rows), dtype=np.int32)
        packed, errors = bounds.pack(queries, rows, everyone)
        everyones: Any = bounds.as_queries(packed)
        if bounds.centers is not None:  # which make the errors of queries unnecessary
            errors[np.isfinite(errors)] = 0
        lists = self._shortlist(rows, errors, indices.shape[1], itself, [0])
        near_enough = None if reach is None else reaching(rows, self.rows, reach)
        kept, memory = self._kept, np.empty(0, np.float32)
        if self._whole is not None and stripes is self._stripes and len(rows) <= _FEW_QUERIES:
            n = len(self.rows)
            stripes = [slice(start, min(start + _WIDE, n)) for start in range(0, n, _WIDE)]
            kept = [self._whole[stripe] for stripe in stripes]
        step = len(rows) if near is None else bounds.side
        for number, chosen in _by_stripe(near, everyone, len(stripes)):
            base = kept[number] if kept else self._packed(stripes[number], number)
            if reach is not None and reach.prepare is not None:
                reach.prepare(stripes[number])
            for start in range(0, len(chosen) if len(base) else 0, step):
                some = chosen[start : start + step]
                left = everyones
                if bounds.centers is not None:
                    left = bounds.as_queries(bounds.pack(queries, rows, some, number)[0])
                elif len(some) < len(everyone):
                    left = everyones[some]
                if len(memory) < len(some) * len(base):
                    memory = np.empty(len(some) * len(base), np.float32)
                block = bounds.block(left, base, memory)
                lists.offer_to(block, some, stripes[number].start)
                if near_enough is not None:
                    near_enough.offer(block, some, stripes[number].start)
            yield
        lists.finish(0, indices, distances)
        lists.given_up(given_up)
        if reach is not None:
            query, place, distance = measured_pairs(near_enough)
            kept_ones = ~given_up[query]
            reach.keep(query[kept_ones], place[kept_ones], distance[kept_ones])

    def fill_and_reach(
        self,
        queries: Any,
        found: NeighborGraph,
        limits: Array,
        n_jobs: int,
        progress: Progress | None,
    ) -> tuple[Array, Reached]:
        """Fill the graph of queries, and find the base rows with a query within their limits.

        Returns
        -------
        left : ndarray of int
            Queries without a result; see `fill`.
        reached : Reached
        """
        ordered = limits[self._order] if len(self._order) else limits
        reach = Reach(ordered, np.float64, self.scaled_limits(ordered))
        left = self.fill(queries, found, n_jobs, progress, reach)
        query, place, distance = reach.pairs()
        row = self._order[place] if len(self._order) else place
        return left, Reached(row, query, distance)

    def scaled_limits(self, limits: Array) -> Array:
        """Limits of the distances to base rows, by place, on the scale of their bounds."""
        apart = self._bounds.marks_apart
        return scaled_limits(limits, self._metric, self._bounds.scale, marks_apart=apart)

    def _packed(self, stripe: slice, number: int) -> Any:
        """A stripe of the base rows, packed for comparison with another stripe."""
        return self._bounds.pack(self._vectors, self.rows, stripe, number)[0]


def _by_stripe(near: Array | None, everyone: Array, count: int) -> Iterator[tuple[int, Array]]:
    """The stripes with the queries compared with each, starting with those nearest to a query.

    So every query has a tight limit before it meets the others.
    """
    if near is None:
        yield from ((number, everyone) for number in range(count))
        return
    for stripes in (near[:, :1], near[:, 1:]):
        order = np.argsort(stripes, axis=None, kind="stable")
        numbers, first = np.unique(stripes.ravel()[order], return_index=True)
        if len(numbers):
            queries = (order // stripes.shape[1]).astype(np.int32)
            yield from zip(numbers.tolist(), np.split(queries, first[1:]), strict=True)
