"""Exact search by the compiled core: bounds in bytes or float32, canonical distances for the rest.

Base rows are divided into stripes, which are packed for the bounds; see `packed_bounds.py`, and
`byte_bounds.py` for processors that multiply bytes faster. The lower bounds between some queries
and a stripe are one matrix product. The core's `Shortlist` keeps, for each query, the rows that may
be among its k nearest, and measures canonical distances of these only. For the rows themselves each
block is computed once, and serves both its rows and its columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Matrix, is_sparse
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.graph import NeighborGraph
from nearlabel.search.budgets import KEPT_BYTES
from nearlabel.search.exact.byte_bounds import fastest_bounds
from nearlabel.search.exact.expected_limits import ExpectedLimits
from nearlabel.search.exact.far_clusters import near_rows
from nearlabel.search.exact.packed_bounds import (
    BlockBounds,
    DenseBounds,
    Packed,
    bounds_for,
)
from nearlabel.search.exact.reaching import Reach, scaled_limits
from nearlabel.search.exact.row_arithmetic import CoreObject, core_rows, points_of
from nearlabel.search.interfaces import Reached

_NEAREST = 1, 3  # stripes that are compared before the next ones
_STRIPES_AT_ONCE = 64  # with a single query, by one call: those that are not kept are packed before


def compiled_index(
    vectors: Matrix, metric: str, rows: CoreObject, block_bytes: int
) -> CompiledIndex | None:
    """An index of base rows if the core can bound their distances, else None.

    `rows` are the base rows in the form that the core measures.
    """
    bounds: BlockBounds | None = bounds_for(vectors, metric)
    if bounds is None:
        return None
    side = max(1, isqrt(block_bytes // 4))
    if isinstance(bounds, DenseBounds):
        in_float32, is_small = bounds, 8 * vectors.shape[0] * vectors.shape[1] <= KEPT_BYTES
        if not is_sparse(vectors):
            bounds = fastest_bounds(in_float32, rows)
        if bounds is in_float32 and is_small and in_float32.are_vague(rows):
            points = points_of(vectors, metric)
            parts = near_rows(points, in_float32.center, min(bounds.side, side))
            if parts is not None:
                order = np.concatenate(parts)
                centers = np.array([points[part].mean(axis=0) for part in parts])
                vectors, starts = vectors[order], np.cumsum([0, *map(len, parts)]).tolist()
                rows, bounds = core_rows(vectors, metric), in_float32.centered_at(centers)
                stripes = PackedStripes(bounds, vectors, rows, starts, KEPT_BYTES)
                return CompiledIndex(stripes, metric, order)
    # Stripes that are packed repeatedly are longer, so that packing does not dominate.
    longest = bounds.side if vectors.size <= KEPT_BYTES else 2 * bounds.side
    starts = even_starts(len(rows), min(longest, side), bounds.panel)
    return CompiledIndex(PackedStripes(bounds, vectors, rows, starts, KEPT_BYTES), metric)


def expected_limits(bounds: BlockBounds, rows: CoreObject, k: int) -> ExpectedLimits | None:
    """A sample for limits, or None if it would not save time."""
    # A sample of few rows says little.
    if k < bounds.many_neighbors or len(rows) < 32 * k or bounds.centers is not None:
        return None
    return ExpectedLimits(bounds, rows, k)


def even_starts(n: int, side: int, panel: int) -> list[int]:
    """Where stripes of equal size start, of at most `side` rows as far as panels allow, and n."""
    size = -(-n // -(-n // side))
    size = -(-size // panel) * panel
    return [*range(0, n, size), n]


class PackedStripes:
    """Stripes of base rows, by number, each packed for bounds on first use.

    From then on the errors of its rows, in `errors` (n,), are known.

    Parameters
    ----------
    bounds : BlockBounds
    vectors : ndarray or csr_array, shape (n, d)
    rows : Rows of the core
        The same rows for the core.
    starts : list of int
        Where the stripes start, and n.
    kept_bytes : int
        Packed stripes are kept up to this size.
    touch : callable, optional
        Called with the number of a stripe before its rows are read.
    """

    def __init__(
        self,
        bounds: BlockBounds,
        vectors: Matrix,
        rows: CoreObject,
        starts: list[int],
        kept_bytes: int,
        touch: Callable[[int], None] | None = None,
    ) -> None:
        self.bounds, self.vectors, self.rows, self.starts = bounds, vectors, rows, starts
        self.places = [slice(*ends) for ends in pairwise(starts)]
        self.errors = np.zeros(len(rows), np.float32)
        self._kept: dict[int, Packed] = {}
        self._bytes_left, self._touch = kept_bytes, touch

    def __len__(self) -> int:
        return len(self.places)

    def __getitem__(self, number: int) -> Packed:
        packed = self._kept.get(number)
        if packed is not None:
            return packed
        if self._touch is not None:
            self._touch(number)
        packed, errors = self.seen_from(number, number)
        # Two concurrent threads write the same values.
        self.errors[self.places[number]] = errors
        if packed.nbytes <= self._bytes_left:
            self._kept[number] = packed
            self._bytes_left -= packed.nbytes
        return packed

    def seen_from(self, number: int, other: int) -> tuple[Packed, Array]:
        """A stripe that is packed for comparison with another one, and the errors of its rows."""
        return self.bounds.pack(self.vectors, self.rows, self.places[number], other)

    def all_errors(self) -> Array:
        """The errors of all rows."""
        for number in range(len(self)):
            if number not in self._kept:
                _ = self[number]
        return self.errors

    def sharper(self) -> PackedStripes | None:
        """The same stripes with sharper bounds, if there are any."""
        if self.bounds.sharper is None:
            return None
        of_rows = self.bounds.sharper, self.vectors, self.rows
        return PackedStripes(*of_rows, self.starts, KEPT_BYTES)


class CompiledIndex:
    """Base rows that the core searches, in stripes.

    Parameters
    ----------
    stripes : PackedStripes
    metric : str
    order : ndarray of int, shape (n,), optional
        Numbers of the rows, which break ties between distances; by default their places.
    """

    def __init__(self, stripes: PackedStripes, metric: str, order: Array | None = None) -> None:
        self.stripes, self._metric = stripes, metric
        self.rows, self._bounds = stripes.rows, stripes.bounds
        self._order = np.empty(0, np.int32) if order is None else order.astype(np.int32)

    def _shortlist(
        self,
        queries: CoreObject,
        errors: Array,
        k: int,
        itself: int,
        starts: list[int],
        limits: Array | None = None,
        margin: float = np.inf,
    ) -> CoreObject:
        """Empty lists for the k nearest base rows of some queries, with some room above k.

        Query i is the base row `itself` + i and excluded from its own list, unless `itself` is -1.
        One thread at a time writes to the queries from each of `starts` to the next. With `limits`,
        in the scale of the bounds, rows beyond are not listed, and lists may be shorter than k. So
        may they with `margin`; see `fill`.
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
            base_errors=self.stripes.errors,
            scale=self._bounds.scale,
            itself=itself,
            starts=starts,
            names=self._order,
            relative=self._bounds.relative,
            apart=self._bounds.marks_apart,
            limits=limits,
            refined=is_refined,
            margin=margin,
        )

    def fill_among(self, found: NeighborGraph, n_jobs: int, progress: Progress | None) -> Array:
        """Fill the graph of the base rows, each excluded from its own neighbors; see `fill`."""
        bounds, stripes, places = self._bounds, self.stripes, self.stripes.places
        starts, count, errors = stripes.starts[:-1], len(stripes), stripes.all_errors()
        indices, distances = found.indices, found.distances
        n, k = indices.shape
        limits = self._limits_among(errors, k, n_jobs)
        lists = self._shortlist(self.rows, errors, k, 0, starts, limits)
        widest = max([stripe.stop - stripe.start for stripe in places])
        if len(self._order):
            indices, distances = np.zeros_like(indices), np.empty_like(distances)

        def compare_within(mine: slice) -> None:
            base = stripes[starts.index(mine.start)]
            memory = np.empty(len(base) ** 2, np.float32)
            queries = bounds.as_queries(base)
            bounds.offer(lists, queries, base, memory, mine.start, mine.start)

        def compare(mine: slice) -> Iterator[None]:
            own = starts.index(mine.start)
            left = bounds.as_queries(stripes[own])
            memory = np.empty(len(left) * widest, np.float32)
            for step in range(1, count // 2 + 1):
                if 2 * step == count and own >= step:
                    break  # the other stripe of the pair does it
                number = (own + step) % count
                if bounds.centers is not None:
                    left = bounds.as_queries(stripes.seen_from(own, number)[0])
                bounds.offer(lists, left, stripes[number], memory, mine.start, starts[number])
                yield

        def finish(mine: slice) -> None:
            lists.finish(mine.start, indices[mine], distances[mine])

        run_slices(compare_within, places, n_jobs, None)  # gives every row a tight limit
        run_slices(compare, places, n_jobs, progress)  # each pair of stripes once
        run_slices(finish, places, n_jobs, None)
        given_up = np.empty(n, bool)
        lists.given_up(given_up)
        left = np.flatnonzero(given_up)
        if limits is not None or len(left):
            by_place = NeighborGraph.unchecked(indices, distances, n)
            short = np.zeros(0, np.intp)
            if limits is not None:
                short = np.flatnonzero(~given_up & self._are_beyond(limits, indices, distances))
            left = self._fill_again(None, left, short, by_place, n_jobs)
        if not len(self._order):
            return left
        found.indices[self._order] = self._order[indices]
        found.distances[self._order] = distances
        return np.sort(self._order[left])

    def _limits_among(self, errors: Array, k: int, n_jobs: int) -> Array | None:
        """Limits of the base rows as queries, or None if they would not save time."""
        stripes, limits = self.stripes, np.empty(len(self.rows), np.float32)
        expected = expected_limits(self._bounds, self.rows, k)
        if expected is None:
            return None

        def expect(mine: slice) -> None:
            queries = self._bounds.as_queries(stripes[stripes.starts.index(mine.start)])
            limits[mine] = expected.of(queries, errors[mine], are_base_rows=True)

        run_slices(expect, stripes.places, n_jobs, None)
        return limits

    def _are_beyond(self, limits: Array, indices: Array, distances: Array) -> Array:
        """Which queries may have missed neighbors: their k-th is not within its limit."""
        farthest = np.maximum(self.scaled_limits(distances[:, -1]), 0)
        return (indices[:, -1] < 0) | ~(farthest <= limits)

    @cached_property
    def _sharper(self) -> CompiledIndex | None:
        """The same rows with sharper bounds, if there are any, prepared on first use."""
        stripes = self.stripes.sharper()
        return None if stripes is None else CompiledIndex(stripes, self._metric)

    def fill_between(self, first: int, limits: Array, places: Array, distances: Array) -> Array:
        """Write the nearest rows of the other of two parts; see `neighbors_between`.

        The stripes of the first part hold the rows up to `first`. Returns which rows, of those with
        a limit that is not negative, are left to do.
        """
        bounds, stripes = self._bounds, self.stripes
        starts, errors = stripes.starts[:-1], stripes.all_errors()
        # What is as far as the limit is wanted, too: its number may be lower.
        scaled = self.scaled_limits(np.where(limits >= 0, np.nextafter(limits, np.inf), -1.0))
        lists = self._shortlist(self.rows, errors, places.shape[1], 0, starts, scaled)
        split = starts.index(first)
        memory = np.empty(bounds.side**2, np.float32)
        for number in range(split):
            left = bounds.as_queries(stripes[number])
            for other in range(split, len(stripes)):
                bounds.offer(lists, left, stripes[other], memory, starts[number], starts[other])
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
        margin: float = np.inf,
        is_again: bool = False,
    ) -> Array:
        """Fill the graph of queries; see `search` for `reach`.

        With `is_again`, nothing is expected of them: their limits have been wrong before. Rows that
        are farther than the nearest by more than `margin` may be missing, at infinite distance.

        Returns
        -------
        ndarray of int
            Queries left to do: float32 cannot separate their distances.
        """
        given_up, is_short = np.empty(len(found), bool), np.zeros(len(found), bool)
        expected = None
        # For few queries, a sample takes longer than it saves.
        if not is_again and len(found) > 8 and margin == np.inf:
            expected = expected_limits(self._bounds, self.rows, found.k)

        def search(rows: slice) -> Iterator[None]:
            part, centers, near = queries[rows], self._bounds.centers, None
            if centers is not None:  # all stripes, starting with the nearest center
                points = points_of(part, self._metric)
                with np.errstate(over="ignore", invalid="ignore"):
                    far = np.einsum("ij,ij->i", centers, centers) - 2 * points @ centers.T
                near = (np.argmin(far, axis=1)[:, None] + np.arange(len(centers))) % len(centers)
            indices, distances = found.indices[rows], found.distances[rows]
            its_reach = None if reach is None else reach.of(np.arange(rows.start, rows.stop))
            how: dict[str, Any] = {"reach": its_reach, "margin": margin}
            if expected is not None:
                how |= {"expected": expected, "is_short": is_short[rows]}
            yield from self.search(part, near, indices, distances, given_up[rows], **how)
            if len(self._order):
                places = np.where(given_up[rows, None], 0, indices)
                indices[:] = self._order[places]

        side = self._bounds.side if len(self._order) else self.stripes.starts[1]
        run_blocks(search, len(found), min(side, -(-len(found) // n_jobs)), n_jobs, progress)
        left, short = np.flatnonzero(given_up), np.flatnonzero(is_short & ~given_up)
        return self._fill_again(queries, left, short, found, n_jobs, reach)

    def _fill_again(
        self,
        queries: Matrix | None,
        left: Array,
        short: Array,
        found: NeighborGraph,
        n_jobs: int,
        reach: Reach | None = None,
    ) -> Array:
        """Fill a graph where limits were wrong, and where sharper bounds may do; see `_filled`.

        Returns what is still left.
        """
        if len(short):
            left = np.union1d(left, _filled(self, queries, short, found, n_jobs, reach))
        if len(left) and self._sharper is not None:
            left = _filled(self._sharper, queries, left, found, n_jobs, reach)
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
        reach: Reach | None = None,
        margin: float = np.inf,
        expected: ExpectedLimits | None = None,
        is_short: Array | None = None,
    ) -> Iterator[None]:
        """Write the nearest base rows of some queries, by place; one step per stripe.

        A dense query is compared with the stripes `near`, (m, p), nearest first; None means all,
        and a number that no stripe has stands for none.
        Nothing is written for queries that are `given_up`, (m,). Query i is the base row at place
        `itself` + i and excluded, unless `itself` is -1. `reach` collects the pairs within its
        limits; for `margin`, see `fill`. With `expected`, results may be incomplete for the queries
        that are marked in `is_short`, (m,).
        """
        bounds, rows, stripes = self._bounds, core_rows(queries, self._metric), self.stripes
        everyone = np.arange(len(rows), dtype=np.int32)
        packed, errors = bounds.pack(queries, rows, everyone)
        everyones: Packed = bounds.as_queries(packed)
        if bounds.centers is not None:  # which make the errors of queries unnecessary
            errors[np.isfinite(errors)] = 0
        limits = None
        if expected is not None:
            limits = expected.of(everyones, errors, are_base_rows=False)
        lists = self._shortlist(rows, errors, indices.shape[1], itself, [0], limits, margin)
        near_pairs: list[tuple[Array, Array]] = []
        if len(rows) == 1 and bounds.sharper is not None:
            reached = None if reach is None else np.zeros(len(self.rows), bool)
            limits_of_rows = None if reach is None else reach.scaled
            for numbers in _few_at_once(near, len(stripes)):
                if reach is not None and reach.prepare is not None:
                    for number in numbers:
                        reach.prepare(stripes.places[number])
                parts = [stripes[number] for number in numbers]
                first_rows = [stripes.starts[number] for number in numbers]
                lists.offer_bytes_one(everyones, parts, first_rows, limits_of_rows, reached)
                yield
            if reached is not None:
                places = np.flatnonzero(reached)
                near_pairs.append((np.zeros_like(places), places))
            near = np.empty((1, 0), np.int32)
        # The bounds of a single query with all stripes stay side by side.
        is_single = len(rows) == 1 and near is None
        memory = np.empty(len(self.rows) if is_single else 0, np.float32)
        step = len(rows) if near is None else bounds.side
        for number, chosen in _by_stripe(near, everyone, len(stripes)):
            base, first = stripes[number], stripes.starts[number]
            if reach is not None and reach.prepare is not None:
                reach.prepare(stripes.places[number])
            for start in range(0, len(chosen) if len(base) else 0, step):
                asked = chosen[start : start + step]
                left = everyones
                if bounds.centers is not None:
                    left = bounds.as_queries(bounds.pack(queries, rows, asked, number)[0])
                if not is_single and len(memory) < len(asked) * len(base):
                    memory = np.empty(len(asked) * len(base), np.float32)
                room = memory[first:] if is_single else memory
                block = bounds.offer_to(lists, left, base, room, asked, first)
                if reach is None:
                    continue
                if block is None:
                    block = bounds.block(left[asked], base, room)
                if not is_single:
                    near_pairs += reach.near_pairs(block, asked, first)
            yield
        lists.finish(0, indices, distances)
        lists.given_up(given_up)
        if limits is not None and is_short is not None:
            is_short[:] = self._are_beyond(limits, indices, distances)
        if reach is not None:
            if is_single:
                near_pairs = reach.near_pairs(memory[None], everyone, 0)
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


def _filled(
    index: CompiledIndex,
    queries: Matrix | None,
    some: Array,
    found: NeighborGraph,
    n_jobs: int,
    reach: Reach | None = None,
) -> Array:
    """Fill a part of a graph by an index, of the base rows as queries if these are None.

    Returns what is still left.
    """
    alone = queries is None
    asked = (index.stripes.vectors if queries is None else queries)[some]
    shape = len(some), found.k + alone
    again = NeighborGraph.unchecked(np.zeros(shape, np.int32), np.empty(shape), found.n_base)
    its_reach = None if reach is None else reach.of(some)
    still = index.fill(asked, again, n_jobs, None, its_reach, is_again=True)
    if alone:
        again.indices[still] = np.arange(again.k)
        again = again.without(some)
    found.indices[some], found.distances[some] = again.indices, again.distances
    return some[still]


def _few_at_once(near: Array | None, count: int) -> Iterator[list[int]]:
    """The numbers of the stripes that a single query is compared with, in parts."""
    numbers = list(range(count)) if near is None else near[0, near[0] < count].tolist()
    for start in range(0, len(numbers), _STRIPES_AT_ONCE):
        yield numbers[start : start + _STRIPES_AT_ONCE]


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
