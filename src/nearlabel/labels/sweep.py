"""Neighbor counts of all rows for successive k: each step adds one neighbor."""

from __future__ import annotations

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, kernel_array, kernel_rows, row_numbers
from nearlabel.common.validation import check_same_length
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import label_totals


def bytes_of_sweep(Y: Csr, k: int) -> float:
    """About how much memory a sweep up to k takes; infinite if k is too large to count."""
    if k > np.iinfo(np.uint16).max:
        return float("inf")
    n, q = Y.shape
    # Rows x labels: a count, whether it is carried, a score. Tables: cells, and ten temporaries.
    return float(11 * n * q + 2 * 11 * 8 * q * (k + 1))


class CountSweep:
    """How many of the first k neighbors of each row carry each label, for k = 1, 2, …

    Dense in rows x labels, unlike `label_histograms`: for data of moderate size, where a sweep over
    many k should cost no more than one of them. The graph is of n rows among themselves.
    """

    def __init__(self, graph: NeighborGraph, Y: Csr) -> None:
        check_same_length(graph=len(graph), base=graph.n_base, Y=Y.shape[0])
        n, q = Y.shape
        self._graph, self._Y = graph, Y
        self.k = 0  # neighbors counted so far
        self.counts: Array = np.zeros((n, q), np.uint16)
        self.own: Array = Y.toarray().astype(np.uint8)  # whether the row itself carries the label
        # For each label and count, the rows that do not carry the label and those that do.
        self.cells: Array = np.zeros((2, q, graph.k + 1), np.int64)
        self._values: Floats = np.empty((n, q))
        self.cells[1, :, 0] = label_totals(Y)
        self.cells[0, :, 0] = n - self.cells[1, :, 0]

    def add_neighbor(self) -> None:
        """Count the next neighbor of every row."""
        neighbor = self._graph.indices[:, self.k]
        core = engine.core()
        if core is None:
            votes = self._Y[neighbor]
            row, label = row_numbers(votes), votes.indices
            own, count = self.own[row, label], self.counts[row, label]
            np.subtract.at(self.cells, (own, label, count), 1)
            np.add.at(self.cells, (own, label, count + 1), 1)
            self.counts[row, label] += 1
        else:
            of_each = kernel_array(neighbor, np.int64)
            core.add_neighbor(of_each, *kernel_rows(self._Y), self.own, self.counts, self.cells)
        self.k += 1

    def look_up(self, table: Floats) -> Floats:
        """The entries of a table of the shape of `cells`, or narrower, for each row and label.

        Valid until the next call: allocating memory for each would take as long as the counting.
        """
        core = engine.core()
        if core is None:
            self._values[:] = table[self.own, np.arange(table.shape[1])[None], self.counts]
        else:
            table = kernel_array(table, np.float64)
            core.values_of_counts(table, self.own, self.counts, self._values)
        return self._values
