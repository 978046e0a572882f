"""Base rows with a query within their own limit, found during a search."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from nearlabel.common.arrays import Array, Floats, kernel_array
from nearlabel.search.exact.row_arithmetic import CoreObject
from nearlabel.search.interfaces import Reached

_ROUNDING = 1e-6  # of limits, in float32


@dataclass(frozen=True)
class Reach:
    """Limits of base rows, and the pairs of a query and a base row within them.

    Attributes
    ----------
    limits : ndarray of float, shape (n,)
        By place.
    kind : type
        The type of the distances that are returned and compared with the limits: below is within.
    scaled : ndarray of float32, shape (n,), optional
        Limits of the lower bounds on these distances; see `scaled_limits`.
    prepare : callable, optional
        Called with the places of base rows before their limits are read, if these are not known in
        advance: few queries meet few rows.
    queries : ndarray of int, optional
        Numbers of the queries; by default their places.
    parts : list
        Queries, places of base rows and distances, as found.
    """

    limits: Array
    kind: type[np.floating]
    scaled: Array | None = None
    prepare: Callable[[slice], None] | None = None
    queries: Array | None = None
    parts: list[tuple[Array, Array, Array]] = field(default_factory=list)

    def of(self, some: Array) -> Reach:
        """The same for some of the queries."""
        return replace(self, queries=some if self.queries is None else self.queries[some])

    def near_pairs(self, block: Array, queries: Array, first: int) -> list[tuple[Array, Array]]:
        """The pairs of a block of bounds that may be within the limits, if any.

        Its columns are base rows from the place `first` on.
        """
        assert self.scaled is not None
        width = block.shape[1]
        near = (block <= self.scaled[first : first + width]).ravel().nonzero()[0]
        return [(queries[near // width], near % width + first)] if len(near) else []

    def measure(
        self,
        queries: CoreObject,
        base: CoreObject,
        pairs: Sequence[tuple[Array, Array]],
        is_done: Array,
    ) -> None:
        """Keep those of some pairs of the core's rows that are within the limits.

        Only of the queries, (m,), that are done.
        """
        if not pairs:
            return
        query, place = map(np.concatenate, zip(*pairs, strict=True))
        chosen = is_done[query]
        query, place = query[chosen], place[chosen]
        self.keep(query, place, measured(queries, base, query, place))

    def keep(self, query: Array, place: Array, distance: Floats) -> None:
        """Keep those of some pairs that are within the limits."""
        with np.errstate(over="ignore"):
            rounded = distance.astype(self.kind, copy=False)
        within = rounded < self.limits[place]
        query = query[within] if self.queries is None else self.queries[query[within]]
        self.parts.append((query, place[within], rounded[within]))

    def pairs(self) -> tuple[Array, Array, Array]:
        """All pairs: queries, places and distances, sorted by (query, place)."""
        nothing = np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, self.kind)
        query, place, distance = map(np.concatenate, zip(nothing, *self.parts, strict=True))
        order = np.argsort(query.astype(np.int64) * len(self.limits) + place)
        return query[order], place[order], distance[order]


def scaled_limits(limits: Array, metric: str, scale: float, *, marks_apart: bool = False) -> Array:
    """Limits of lower bounds, on the scale of products; see `packed_bounds.py`."""
    with np.errstate(over="ignore"):
        scaled = limits.astype(np.float64) * (1 + _ROUNDING)
        scaled = (scaled * scaled if metric == "euclidean" else scaled) * (scale * (1 + _ROUNDING))
        scaled = scaled.astype(np.float32)
    scaled[~(limits > 0)] = -np.inf
    if marks_apart:  # with a bound above their distance of 1
        scaled[limits > 1] = np.inf
    return np.where(limits > 0, np.maximum(scaled, np.finfo(np.float32).tiny), scaled)


def measured(queries: CoreObject, base: CoreObject, query: Array, row: Array) -> Floats:
    """The canonical distances of pairs of the core's rows."""
    distances = np.empty(len(query))
    pairs = kernel_array(query, np.int32), kernel_array(row, np.int32)
    base.measure(queries, *pairs, distances)
    return distances


def all_reached(queries: CoreObject, base: CoreObject, limits: Array) -> Reached:
    """The base rows with a query within their limits, by measuring all of the core's rows."""
    query, row = np.nonzero(np.broadcast_to(limits > 0, (len(queries), len(base))))
    distance = measured(queries, base, query, row)
    within = distance < limits[row]
    return Reached(row[within], query[within], distance[within])
