"""What methods count on all training rows, counted on blocks of them that never stand together.

A block needs the labels of its rows and of their neighbors, and no others.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, Matrix
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import neighbor_counts
from nearlabel.labels.histograms import LabelHistograms, add_to_histograms


@dataclass(frozen=True)
class BlockCounts(ABC):
    """Counts of n training rows with k neighbors; `totals` (q,) of them carry each label."""

    totals: Array
    n: int
    k: int

    @abstractmethod
    def counted(self, graph: NeighborGraph, rows: Array, Y: Csr) -> Matrix:
        """Count the rows of a graph, which are those of `rows` in Y, as all neighbors are."""

    @staticmethod
    @abstractmethod
    def joined(parts: Sequence[Matrix]) -> Matrix:
        """What was counted on several runs of rows, in their order, as if on one."""

    def learned(self, counted: Matrix) -> LabelHistograms | Csr:
        """What was counted on all rows, as a method learns it."""
        return counted


class BlockHistograms(BlockCounts):
    """`LabelHistograms`: the parts are cells, which are added."""

    def counted(self, graph: NeighborGraph, rows: Array, Y: Csr) -> Array:
        tables = self._tables()
        cells = tables.with_label, tables.without_label
        add_to_histograms(graph.indices, rows, Y, tables.start, *cells)
        return np.stack(cells)

    @staticmethod
    def joined(parts: Sequence[Matrix]) -> Matrix:
        return np.asarray(np.sum(parts, axis=0))

    def learned(self, counted: Matrix) -> LabelHistograms:
        return self._tables((counted[0], counted[1])).with_rows_at_0()

    def _tables(self, cells: tuple[Array, Array] | None = None) -> LabelHistograms:
        return LabelHistograms.of_totals(np.array([self.n]), self.totals[None], self.k, cells)


class BlockNeighborCounts(BlockCounts):
    """`neighbor_counts` of all rows: the parts stand one below the other."""

    def counted(self, graph: NeighborGraph, rows: Array, Y: Csr) -> Matrix:  # noqa: ARG002
        return neighbor_counts(graph, Y)

    @staticmethod
    def joined(parts: Sequence[Matrix]) -> Matrix:
        return sparse.vstack(parts, format="csr")
