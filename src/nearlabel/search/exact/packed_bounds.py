"""Lower bounds on distances for blocks of rows, in float32, from products of packed rows.

A packed row has factors p, an offset o and an error e. For any two of them

    lower = factor p·p' + o + o'  <=  distance  <=  (lower + e + e') (1 + relative)

where the distance is scaled, and squared for euclidean; for manhattan the sum of |p - p'| stands in
place of the product. All rounding errors are inside.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nearlabel.common.arrays import Array, Floats

_UNIT = 2.0**-24  # unit roundoff of float32
_TINY = 2.0**-124  # covers what underflow, to zero even, can take from one term in float32
FAR = 2.0**40  # queries may be so much larger than the base rows


@dataclass(frozen=True)
class Packed:
    """Rows as the products take them; see the head of this file."""

    factors: Any  # float32, dense or CSR
    offsets: Array  # float32
    errors: Array  # float32


class Products(ABC):
    """How the lower bounds of one metric come from products of packed rows."""

    side: ClassVar[int]  # rows of a block, as measured
    share: ClassVar[float] = 1.0  # of the sizes of two rows in their bound, beside the product

    tells_apart: ClassVar[bool] = False  # whether its blocks mark rows that share nothing
    relative = 0.0  # see the head of this file
    _margins = 2 + 1e-5  # between a lower and an upper bound

    def __init__(self, scale: float, terms: int) -> None:
        self.scale = scale  # from a distance, squared for euclidean, to the products
        # With S the size (the squared length) of both rows together: the rounding of the factors,
        # of the offsets and of a sum of `terms` products err by less than (2 terms + 10) units of
        # S. Twice that is taken.
        self._slack = 4 * (terms + 8) * _UNIT
        self._tiny = (terms + 8) * _TINY

    def reaches(self, queries: Any) -> bool:  # noqa: ARG002 - unit rows never overflow
        """Whether the products of these queries are safe from overflow."""
        return True

    @abstractmethod
    def pack(self, rows: Any) -> Packed:
        """Base rows as the products take them."""

    def pack_queries(self, rows: Packed) -> Packed:
        """Packed rows as they enter products from the left."""
        return rows

    @abstractmethod
    def fill(self, block: Array, queries: Packed, base: Packed) -> None:
        """Write the lower bounds of all pairs of a query and a base row."""

    @abstractmethod
    def bytes_of(self, rows: Any) -> int:
        """Memory of rows when they are packed."""

    def _packed(self, factors: Any, sizes: Floats) -> Packed:
        margin = self._slack * sizes + self._tiny
        offsets = (self.share * sizes - margin).astype(np.float32)
        return Packed(factors, offsets, (self._margins * margin).astype(np.float32))


def power_of_two_near(reach: float) -> float:
    """A power of two that brings `reach` to at most 1."""
    return float(np.ldexp(1.0, -int(np.frexp(reach)[1])))
