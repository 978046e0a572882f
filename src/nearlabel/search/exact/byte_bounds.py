"""Lower bounds on distances for blocks of rows, from products of 8-bit integers.

A centered row x is rounded to x' = s a, with whole numbers a from -127 to 127, and e = x - x' is
what is left. Then x·y = x'·y' + x'·e_y + e_x·y' + e_x·e_y, where

    2 |x'| |e_y|  <=  r |x'|² + |e_y|² / r        for every r > 0,

so that x·y and x'·y' differ by at most E_x + E_y with 2 E = r |x'|² + (1 + 1 / r) |e|². With r the
usual ratio of |e| and |x'|, this is hardly more than the Cauchy-Schwarz inequality gives, and each
row has its own part: |x|² - 2 E_x + |y|² - 2 E_y - 2 s_x s_y a·b is a lower bound, and an upper one
is 4 (E_x + E_y) above it. So the bounds have the form of `packed_bounds.py`, and lists of what may
be near are kept in the same way; what they leave open is bounded again, from the rows themselves.

A product of bytes takes a quarter of the time of one in float32 on processors that multiply them
(AVX-512 VNNI). Where bytes leave too much open, float32 bounds are used: decided by a sample for
all rows, and by what was measured in vain for each query.
"""

from __future__ import annotations

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Matrix
from nearlabel.search.exact.packed_bounds import UNIT, BlockBounds, DenseBounds, Packed
from nearlabel.search.exact.row_arithmetic import CoreObject

_TINY = 2.0**-120  # covers underflow of these, even to zero
_LEAST_WIDTH = 16  # features above which bytes are faster
MOST_FEATURES = 2**16  # whose products add up to less than 2^31, as in the core
_SAMPLE = 64, 512  # queries and base rows on which bounds are tested
_MOST_OPEN = 12  # rows left open in the sample, of which one is the nearest
RATIOS = 1e-6, 0.5  # of what rounding leaves and what it keeps


class ByteBounds(BlockBounds):
    """Bounds of dense rows from products of bytes; see `DenseBounds` for float32.

    Parameters
    ----------
    sharper : DenseBounds
        Bounds of the same rows in float32.
    share : float
        The usual ratio of what rounding leaves and what it keeps, r in the formulas.
    """

    side = 1024
    many_neighbors = 64  # for which comparing a sample takes less time than it saves

    def __init__(self, sharper: DenseBounds, share: float) -> None:
        self.sharper, self.share = sharper, share
        self.metric, self.scale = sharper.metric, sharper.scale
        self._center, self._unit = sharper.center, sharper.unit
        self.panel = int(engine.core().PANEL_ROWS)
        self._factor = -1.0 if self.metric == "cosine" else -2.0

    def pack(
        self,
        _: Matrix | None,
        rows: CoreObject,
        chosen: slice | Array,
        stripe: int | None = None,  # noqa: ARG002
    ) -> tuple[Packed, Array]:
        """Some of the core's rows as bytes, and their errors."""
        if isinstance(chosen, slice):
            chosen = np.arange(chosen.start, chosen.stop, dtype=np.int32)
        errors = np.empty(len(chosen), np.float32)
        center, unit = self._center, self._unit
        # Covers rounding in float32 of a product, two offsets and their sum, with a reserve.
        packed = engine.core().ByteRows(
            rows, chosen, center, unit, self.share, 32 * UNIT, _TINY, errors
        )
        return packed, errors

    def as_queries(self, packed: Packed) -> Packed:
        """Rows as they enter products from the left."""
        return packed.as_queries(self._factor)

    def block(self, queries: Packed, base: Packed, memory: Array) -> Array:
        """The lower bounds of all pairs of a query and a base row, written to given memory."""
        block = memory[: len(queries) * len(base)].reshape(len(queries), len(base))
        base.block(queries, block)
        return block

    def offer(
        self, lists: CoreObject, queries: Packed, base: Packed, memory: Array, query: int, row: int
    ) -> None:
        """Let a `Shortlist` take the near pairs of a block."""
        del memory
        lists.offer_bytes(queries, base, query, row, query != row)

    def offer_to(
        self,
        lists: CoreObject,
        queries: Packed,
        base: Packed,
        memory: Array,
        chosen: Array,
        row: int,
    ) -> None:
        """Let a `Shortlist` take the near pairs of the chosen queries."""
        del memory
        lists.offer_bytes_to(queries, base, chosen, row)


def byte_bounds(
    bounds: DenseBounds, rows: CoreObject, sample: Array | None = None
) -> ByteBounds | None:
    """Bounds from bytes, or None if those in float32 are faster for the core's rows.

    Whether this processor multiplies bytes is not considered; see `multiplies_bytes`. The sample
    should have rows that are usually compared with each other; by default they are random.
    """
    if (
        bounds.metric == "manhattan"
        or bounds.centers is not None
        or len(rows) < sum(_SAMPLE)
        or not _LEAST_WIDTH <= len(bounds.center) <= MOST_FEATURES
    ):
        return None
    if sample is None:
        sample = np.random.default_rng(0).choice(len(rows), sum(_SAMPLE), replace=False)
    sample = sample.astype(np.int32)
    by_bytes = ByteBounds(bounds, _usual_ratio(bounds, rows, sample))
    # Beyond this, float32 is faster.
    return None if by_bytes.left_open(rows, sample, _SAMPLE[0]) > _MOST_OPEN else by_bytes


def fastest_bounds(bounds: DenseBounds, rows: CoreObject) -> DenseBounds | ByteBounds:
    """Bounds from bytes if these are faster for the core's rows on this processor."""
    return (byte_bounds(bounds, rows) if multiplies_bytes() else None) or bounds


def multiplies_bytes() -> bool:
    """Whether products of bytes are faster than those of float32 on this processor."""
    return bool(engine.core().multiplies_bytes())


def side_by_side(n: int) -> Array:
    """A sample of rows that are next to each other, in random order."""
    size, random = sum(_SAMPLE), np.random.default_rng(0)
    return int(random.integers(max(1, n - size))) + random.permutation(min(n, size))


def _usual_ratio(bounds: DenseBounds, rows: CoreObject, sample: Array) -> float:
    """The median ratio of what rounding leaves and what it keeps, of a sample."""
    factors = bounds.pack(None, rows, sample)[0][:, :-2].astype(np.float64)
    scales = np.abs(factors).max(axis=1, keepdims=True) / 127
    rounded = np.rint(np.divide(factors, scales, out=np.zeros_like(factors), where=scales > 0))
    rounded *= scales
    lengths = np.sqrt((rounded**2).sum(axis=1))
    left = np.sqrt(((factors - rounded) ** 2).sum(axis=1))
    ratios = left[lengths > 0] / lengths[lengths > 0]
    return float(np.clip(np.median(ratios) if len(ratios) else 1.0, *RATIOS))
