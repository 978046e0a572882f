"""Exact search by the compiled core: bounds in bytes or float32, canonical distances for the rest.

Base rows are divided into stripes, which are packed for the bounds; see `packed_bounds.py`, and
`byte_bounds.py` for processors that multiply bytes faster. The lower bounds between some queries
and a stripe are one matrix product. The core's `Shortlist` keeps, for each query, the rows that may
be among its k nearest, and measures canonical distances of these only. For the rows themselves each
block is computed once, and serves both its rows and its columns.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import pairwise
from math import ceil, isqrt, sqrt
from typing import Any, Protocol

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Matrix, is_sparse
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.graph import NeighborGraph
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.byte_bounds import fastest_bounds
from nearlabel.search.exact.far_clusters import near_rows
from nearlabel.search.exact.packed_bounds import (
    BlockBounds,
    Packed,
    SparseBounds,
    bounds_for,
)
from nearlabel.search.exact.reaching import Reach, scaled_limits
from nearlabel.search.exact.row_arithmetic import CoreObject, core_rows, points_of
from nearlabel.search.interfaces import Reached

_NEAREST = 1, 3  # stripes that are compared before the next ones
_AT_ONCE = 2**18  # bounds that stay in a cache
_EXPECTED = 8  # of the k nearest rows in the sample: more take longer to compare than they save
_RANK = ceil(_EXPECTED + 3 * sqrt(_EXPECTED) + 3)


class ExpectedLimits:
    """Limits that the k-th nearest rows of queries hardly ever exceed, from a sample of the rows.

    A search lists the rows within the limit of a query, which falls as more rows are seen. Until
    then far more rows are listed than are needed. A sample tells the limit in advance: if its r-th
    nearest row is nearer than the k-th nearest of all, then r of the k - 1 nearest are in the
    sample. Of these the sample has `_EXPECTED` on average, and r is so much larger that this is
    rare. It is noticed, because fewer than k rows are within the limit, and the query is searched
    again without one. A graph with 100 neighbors takes two thirds of the time: see
    `benchmarks/before_and_after.py`.

    Parameters
    ----------
    bounds : BlockBounds
    vectors : ndarray or csr_array, shape (n, d)
    rows : Rows of the core
        The same rows.
    k : int
    """

    def __init__(self, bounds: BlockBounds, vectors: Matrix, rows: CoreObject, k: int) -> None:
        n = len(rows)
        sample = np.random.default_rng(0).choice(n, _EXPECTED * n // k, replace=False)
        self._bounds = bounds
        self._base, errors = bounds.pack(vectors, rows, np.sort(sample).astype(np.int32))
        self._error = float(np.mean(errors))

    def of(self, queries: Packed, errors: Array, *, are_base_rows: bool) -> Array:
        """The limits of packed queries with these errors, on the scale of the bounds."""
        rank = _RANK + are_base_rows  # a query may be in the sample itself
        limits = np.empty(len(queries), np.float32)
        # Blocks stay in the processor's cache.
        step = max(1, 2**20 // len(self._base))
        memory = np.empty(min(step, len(queries)) * len(self._base), np.float32)
        for start in range(0, len(queries), step):
            chosen = np.arange(start, min(start + step, len(queries)), dtype=np.int32)
            block = self._bounds.block(queries[chosen], self._base, memory)
            engine.core().row_limits(block, rank, limits[start : start + step])
        # A bound is below the distance by half of the errors on average.
        return limits + np.float32(0.5) * (errors + np.float32(self._error))


def expected_limits(
    bounds: BlockBounds, vectors: Matrix, rows: CoreObject, k: int
) -> ExpectedLimits | None:
    """A sample for limits, or None if it would not save time."""
    # A sample of few rows says little.
    if k < bounds.many_neighbors or len(rows) < 32 * k:
        return None
    if not bounds.is_divisible or bounds.centers is not None:
        return None
    return ExpectedLimits(bounds, vectors, rows, k)


def compiled_index(
    vectors: Matrix, metric: str, rows: CoreObject, block_bytes: int
) -> CompiledIndex | None:
    """An index of base rows if the core can bound their distances, else None.

    `rows` are the base rows in the form that the core measures.
    """
    bounds = bounds_for(vectors, metric)
    if bounds is None:
        return None
    if isinstance(bounds, SparseBounds):
        return CompiledIndex(vectors, metric, rows, bounds, block_bytes, kept_bytes=KEPT_BYTES)
    is_small = 8 * vectors.shape[0] * vectors.shape[1] <= KEPT_BYTES
    if is_small and bounds.are_vague(rows):
        points = points_of(vectors, metric)
        side = max(1, min(bounds.side, isqrt(block_bytes // 4)))
        stripes = near_rows(points, bounds.center, side)
        if stripes is not None:
            order = np.concatenate(stripes)
            centers = np.array([points[stripe].mean(axis=0) for stripe in stripes])
            return CompiledIndex(
                vectors[order],
                metric,
                core_rows(vectors[order], metric),
                bounds.centered_at(centers),
                block_bytes,
                starts=np.cumsum([0, *map(len, stripes)]),
                order=order,
                kept_bytes=KEPT_BYTES,
            )
    fastest = bounds if is_sparse(vectors) else fastest_bounds(bounds, rows)
    return CompiledIndex(vectors, metric, rows, fastest, block_bytes, kept_bytes=KEPT_BYTES)


class PackedStripes(Protocol):
    """Packed stripes of base rows, by number, each packed on first use.

    From then on the errors of its rows, (n,) in all, are known.
    """

    errors: Array

    def __len__(self) -> int: ...

    def __getitem__(self, number: int) -> Packed: ...


class CompiledIndex:
    """Base rows that the core searches, in stripes.

    Parameters
    ----------
    vectors : ndarray or csr_array, shape (n, d)
        Rows in the order of the stripes.
    metric : str
    rows : Rows of the core
        The same rows for the core.
    bounds : BlockBounds
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
        vectors: Matrix,
        metric: str,
        rows: CoreObject,
        bounds: BlockBounds,
        block_bytes: int,
        *,
        starts: Array | None = None,
        order: Array | None = None,
        kept_bytes: int = 0,
        packed: PackedStripes | None = None,
    ) -> None:
        self.rows = rows
        self.vectors, self._metric, self._bounds = vectors, metric, bounds
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
        self._whole: Packed = None
        self._kept: PackedStripes | list[Packed]
        if packed is not None:
            self._kept, self._errors = packed, packed.errors
            return
        if self._is_kept and starts is None and bounds.is_divisible:
            self._whole, self._errors = bounds.pack(vectors, rows, slice(0, len(rows)))
            self._kept = [self._whole[stripe] for stripe in self._stripes]
            return
        self._kept, errors = [], []
        for number, stripe in enumerate(self._stripes):
            factors, errors_of_stripe = bounds.pack(vectors, rows, stripe, number)
            errors.append(errors_of_stripe)
            if self._is_kept:
                self._kept.append(factors)
        self._errors = np.concatenate(errors)

    def _even(self, n_jobs: int) -> list[slice]:
        """Stripes of equal size; if they are packed repeatedly, packing must not dominate."""
        n, most = len(self.rows), self._block_bytes // n_jobs
        side = min(self._bounds.side, isqrt(self._block_bytes // 4))
        if not self._is_kept:
            bytes_a_row = max(1, 2 * self._packed_bytes // n)
            # Rows are packed for each block, which must not dominate: large blocks.
            side = min(4096, isqrt(most // 4), max(64, most // bytes_a_row))
        size = -(-n // -(-n // max(1, side)))
        size = -(-size // self._bounds.panel) * self._bounds.panel
        return [slice(start, min(start + size, n)) for start in range(0, n, size)]

    def _shortlist(
        self,
        queries: CoreObject,
        errors: Array,
        k: int,
        itself: int,
        starts: list[int],
        limits: Array | None = None,
    ) -> CoreObject:
        """Empty lists for the k nearest base rows of some queries, with some room above k.

        Query i is the base row `itself` + i and excluded from its own list, unless `itself` is -1.
        One thread at a time writes to the queries from each of `starts` to the next. With `limits`,
        in the scale of the bounds, rows beyond are not listed, and lists may be shorter than k.
        """
        is_refined = self._bounds.sharper is not None
        # A tight limit saves more where bounds are refined.
        spare = k // 2 + 4 if is_refined else k + 16
        room = min(k + spare, len(self.rows) - (itself >= 0))
        return engine.core().Shortlist(
            queries=queries,
            base=self.rows,
            k=k,
            room=room,
            query_errors=errors,
            base_errors=self._errors,
            scale=self._bounds.scale,
            itself=itself,
            starts=starts,
            names=self._order,
            relative=self._bounds.relative,
            apart=self._bounds.marks_apart,
            limits=limits,
            refined=is_refined,
        )

    def fill_among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        """Fill the graph of the base rows, each excluded from its own neighbors; see `fill`."""
        bounds, stripes = self._bounds, self._stripes if self._is_fixed else self._even(n_jobs)
        starts, count, packed = [stripe.start for stripe in stripes], len(stripes), self._kept
        limits = self._limits_among(stripes, found.k, n_jobs)
        lists = self._shortlist(self.rows, self._errors, found.k, 0, starts, limits)
        widest = max([stripe.stop - stripe.start for stripe in stripes])
        indices, distances = found.indices, found.distances
        if len(self._order):
            indices, distances = np.zeros_like(indices), np.empty_like(distances)

        def compare_within(mine: slice) -> None:
            own = starts.index(mine.start)
            base = packed[own] if packed else self._packed(mine, own)
            memory = np.empty(len(base) ** 2, np.float32)
            queries = bounds.as_queries(base)
            bounds.offer(lists, queries, base, memory, mine.start, mine.start)

        def compare(mine: slice) -> Iterator[None]:
            own = starts.index(mine.start)
            left = bounds.as_queries(packed[own] if packed else self._packed(mine, own))
            memory = np.empty(len(left) * widest, np.float32)
            for step in range(1, count // 2 + 1):
                if 2 * step == count and own >= step:
                    break  # the other stripe of the pair does it
                number = (own + step) % count
                base = packed[number] if packed else self._packed(stripes[number], number)
                if bounds.centers is not None:
                    left = bounds.as_queries(self._packed(mine, number))
                bounds.offer(lists, left, base, memory, mine.start, starts[number])
                yield

        def finish(mine: slice) -> None:
            lists.finish(mine.start, indices[mine], distances[mine])

        run_slices(compare_within, stripes, n_jobs, None)  # gives every row a tight limit
        run_slices(compare, stripes, n_jobs, progress)  # each pair of stripes once
        run_slices(finish, stripes, n_jobs, None)
        given_up = np.empty(len(found), bool)
        lists.given_up(given_up)
        left = np.flatnonzero(given_up)
        places = NeighborGraph.unchecked(indices, distances, len(found))
        if limits is not None:
            short = np.flatnonzero(~given_up & self._are_beyond(limits, indices, distances))
            left = np.union1d(left, _fill_again(self, None, short, places, n_jobs))
        if len(left) and self._sharper is not None:
            left = _fill_again(self._sharper, None, left, places, n_jobs)
        if not len(self._order):
            return left
        found.indices[self._order] = self._order[indices]
        found.distances[self._order] = distances
        return np.sort(self._order[left])

    def _limits_among(self, stripes: list[slice], k: int, n_jobs: int) -> Array | None:
        """Limits of the base rows as queries, or None if they would not save time."""
        bounds, rows = self._bounds, self.rows
        expected = expected_limits(bounds, self.vectors, rows, k)
        if expected is None:
            return None
        limits, packed = np.empty(len(rows), np.float32), self._kept

        starts = [stripe.start for stripe in stripes]

        def expect(mine: slice) -> None:
            own = starts.index(mine.start)
            queries = bounds.as_queries(packed[own] if packed else self._packed(mine, own))
            limits[mine] = expected.of(queries, self._errors[mine], are_base_rows=True)

        run_slices(expect, stripes, n_jobs, None)
        return limits

    def _are_beyond(self, limits: Array, indices: Array, distances: Array) -> Array:
        """Which queries may have missed neighbors: their k-th is not within its limit."""
        farthest = np.maximum(self.scaled_limits(distances[:, -1]), 0)
        return (indices[:, -1] < 0) | ~(farthest <= limits)

    @cached_property
    def _sharper(self) -> CompiledIndex | None:
        """The same rows with sharper bounds, if there are any, prepared on first use."""
        if self._bounds.sharper is None:
            return None
        how = self.vectors, self._metric, self.rows, self._bounds.sharper, self._block_bytes
        return CompiledIndex(*how, kept_bytes=KEPT_BYTES)

    def fill_between(self, first: int, limits: Array, places: Array, distances: Array) -> Array:
        """Write the nearest rows of the other of two parts; see `neighbors_between`.

        The stripes of the first part hold the rows up to `first`. Returns which rows, of those with
        a limit that is not negative, are left to do.
        """
        bounds, packed, stripes = self._bounds, self._kept, self._stripes
        starts = [stripe.start for stripe in stripes]
        # What is as far as the limit is wanted, too: its number may be lower.
        scaled = self.scaled_limits(np.where(limits >= 0, np.nextafter(limits, np.inf), -1.0))
        lists = self._shortlist(self.rows, self._errors, places.shape[1], 0, starts, scaled)
        split = starts.index(first)
        memory = np.empty(bounds.side**2, np.float32)
        for number, stripe in enumerate(stripes[:split]):
            left = bounds.as_queries(packed[number] if packed else self._packed(stripe, number))
            for other, second in enumerate(stripes[split:], split):
                base = packed[other] if packed else self._packed(second, other)
                bounds.offer(lists, left, base, memory, stripe.start, second.start)
        lists.finish(0, places, distances)
        given_up = np.empty(len(places), bool)
        lists.given_up(given_up)
        return given_up

    def fill(
        self,
        queries: Matrix,
        found: NeighborGraph,
        n_jobs: int,
        progress: Progress | None,
        reach: Reach | None = None,
        *,
        is_again: bool = False,
    ) -> Array:
        """Fill the graph of queries; see `search` for `reach`.

        With `is_again`, nothing is expected of them: their limits have been wrong before.

        Returns
        -------
        ndarray of int
            Queries left to do: float32 cannot separate their distances.
        """
        stripes = self._stripes if self._is_fixed else self._even(n_jobs)
        given_up, is_short = np.empty(len(found), bool), np.zeros(len(found), bool)
        expected = None
        # For few queries, a sample takes longer than it saves.
        if not is_again and len(found) > 8:
            expected = expected_limits(self._bounds, self.vectors, self.rows, found.k)

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
            if expected is not None:
                how |= {"expected": expected, "is_short": is_short[rows]}
            yield from self.search(part, near, indices, distances, given_up[rows], **how)
            if len(self._order):
                places = np.where(given_up[rows, None], 0, indices)
                indices[:] = self._order[places]

        side = self._bounds.side if len(self._order) else stripes[0].stop
        run_blocks(search, len(found), min(side, -(-len(found) // n_jobs)), n_jobs, progress)
        left = np.flatnonzero(given_up)
        short = np.flatnonzero(is_short & ~given_up)
        left = np.union1d(left, _fill_again(self, queries, short, found, n_jobs, reach))
        if len(left) and self._sharper is not None:
            left = _fill_again(self._sharper, queries, left, found, n_jobs, reach)
        return left

    def search(
        self,
        queries: Matrix,
        near: Array | None,
        indices: Array,
        distances: Array,
        given_up: Array,
        *,
        itself: int = -1,
        stripes: list[slice] | None = None,
        reach: Reach | None = None,
        expected: ExpectedLimits | None = None,
        is_short: Array | None = None,
    ) -> Iterator[None]:
        """Write the nearest base rows of some queries, by place; one step per stripe.

        A dense query is compared with the stripes `near`, (m, p), nearest first; None means all,
        and a number that no stripe has stands for none.
        Nothing is written for queries that are `given_up`, (m,). Query i is the base row at place
        `itself` + i and excluded, unless `itself` is -1. `stripes` replaces the default stripes.
        `reach` collects the pairs within its limits. With `expected`, results may be incomplete for
        the queries that are marked in `is_short`, (m,).
        """
        bounds, rows = self._bounds, core_rows(queries, self._metric)
        stripes = self._stripes if stripes is None else stripes
        everyone = np.arange(len(rows), dtype=np.int32)
        packed, errors = bounds.pack(queries, rows, everyone)
        everyones: Packed = bounds.as_queries(packed)
        if bounds.centers is not None:  # which make the errors of queries unnecessary
            errors[np.isfinite(errors)] = 0
        limits = None
        if expected is not None:
            limits = expected.of(everyones, errors, are_base_rows=False)
        lists = self._shortlist(rows, errors, indices.shape[1], itself, [0], limits)
        near_pairs: list[tuple[Array, Array]] = []
        reach_of_stripes = reach
        packed_stripes, memory = self._kept, np.empty(0, np.float32)
        if reach is not None and near is None and self._whole is not None:
            size = len(rows) * len(self.rows)
            if size <= _AT_ONCE:
                every = bounds.block(everyones, self._whole, np.empty(size, np.float32))
                near_pairs, reach_of_stripes = reach.near_pairs(every, everyone, 0), None
        if len(rows) == 1 and near is not None and bounds.sharper is not None and reach is None:
            numbers = near[0, near[0] < len(stripes)].tolist()
            parts = [(packed_stripes[number], stripes[number].start) for number in numbers]
            lists.offer_bytes_one(everyones, *map(list, zip(*parts, strict=True)))
            near = np.empty((1, 0), np.int32)
            yield
        step = len(rows) if near is None else bounds.side
        for number, chosen in _by_stripe(near, everyone, len(stripes)):
            base = (
                packed_stripes[number] if packed_stripes else self._packed(stripes[number], number)
            )
            if reach is not None and reach.prepare is not None:
                reach.prepare(stripes[number])
            for start in range(0, len(chosen) if len(base) else 0, step):
                asked = chosen[start : start + step]
                left = everyones
                if bounds.centers is not None:
                    left = bounds.as_queries(bounds.pack(queries, rows, asked, number)[0])
                if len(memory) < len(asked) * len(base):
                    memory = np.empty(len(asked) * len(base), np.float32)
                first = stripes[number].start
                block = bounds.offer_to(lists, left, base, memory, asked, first)
                if reach_of_stripes is not None:
                    if block is None:
                        block = bounds.block(left[asked], base, memory)
                    near_pairs += reach_of_stripes.near_pairs(block, asked, first)
            yield
        lists.finish(0, indices, distances)
        lists.given_up(given_up)
        if limits is not None and is_short is not None:
            is_short[:] = self._are_beyond(limits, indices, distances)
        if reach is not None:
            # Some queries are searched again.
            is_done = ~given_up if is_short is None else ~given_up & ~is_short
            reach.measure(rows, self.rows, near_pairs, is_done)

    def fill_and_reach(
        self,
        queries: Matrix,
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

    def _packed(self, stripe: slice, number: int) -> Packed:
        """A stripe of the base rows, packed for comparison with another stripe."""
        return self._bounds.pack(self.vectors, self.rows, stripe, number)[0]


def _fill_again(
    index: CompiledIndex,
    queries: Matrix,
    some: Array,
    found: NeighborGraph,
    n_jobs: int,
    reach: Reach | None = None,
) -> Array:
    """Fill a part of a graph by an index, of the base rows as queries if these are None.

    Returns what is still left.
    """
    if not len(some):
        return some
    alone = queries is None
    asked = (index.vectors if alone else queries)[some]
    shape = len(some), found.k + alone
    again = NeighborGraph.unchecked(np.zeros(shape, np.int32), np.empty(shape), found.n_base)
    its_reach = None if reach is None else reach.of(some)
    still = index.fill(asked, again, n_jobs, None, its_reach, is_again=True)
    if alone:
        again.indices[still] = np.arange(again.k)
        again = again.without(some)
    found.indices[some], found.distances[some] = again.indices, again.distances
    return some[still]


def _by_stripe(near: Array | None, everyone: Array, count: int) -> Iterator[tuple[int, Array]]:
    """The stripes with the queries compared with each, starting with those nearest to a query.

    So every query has a tight limit before it meets the others.
    """
    if near is None:
        yield from ((number, everyone) for number in range(count))
        return
    ends = [0, *(end for end in _NEAREST if end < near.shape[1]), near.shape[1]]
    for start, stop in pairwise(ends):
        stripes = near[:, start:stop]
        kind = np.uint16 if count < 2**16 else stripes.dtype  # for which sorting is fast
        order = np.argsort(stripes.astype(kind), axis=None, kind="stable")
        numbers, first = np.unique(stripes.ravel()[order], return_index=True)
        if len(numbers):
            queries = (order // (stop - start)).astype(np.int32)
            for number, members in zip(numbers.tolist(), np.split(queries, first[1:]), strict=True):
                if number < count:
                    yield number, members
