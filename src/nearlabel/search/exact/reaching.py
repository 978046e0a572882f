"""Base rows with a query within their own limit, found during a search."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Floats
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
        Limits of the bounds of these distances; see `scaled_limits`.
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


def measured_pairs(found: CoreObject) -> tuple[Array, Array, Floats]:
    """The pairs of the core's `Reaching`."""
    count = len(found)
    pairs = np.empty(count, np.int32), np.empty(count, np.int32), np.empty(count)
    found.write(*pairs)
    return pairs


def reaching(queries: CoreObject, base: CoreObject, reach: Reach) -> CoreObject:
    """The core's collector for blocks of bounds."""
    return engine.core().Reaching(queries, base, reach.scaled)


def all_reached(queries: CoreObject, base: CoreObject, limits: Array) -> Reached:
    """The base rows with a query within their limits, by measuring all of the core's rows."""
    reach = Reach(limits, np.float64, np.where(limits > 0, 0, -np.inf).astype(np.float32))
    pairs = reaching(queries, base, reach)
    nothing_known = np.zeros((len(queries), len(base)), np.float32)
    pairs.offer(nothing_known, np.arange(len(queries), dtype=np.int32), 0)
    reach.keep(*measured_pairs(pairs))
    query, row, distance = reach.pairs()
    return Reached(row, query, distance)
