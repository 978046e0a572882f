"""Training rows by label and number of neighbors that carry it, as learned by ML-kNN.

Tables are ragged: a label that n_l rows carry occurs at most min(k, n_l) times in a neighborhood
and has that many cells, plus one for the count 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, kernel_places, kernel_rows, runs
from nearlabel.common.progress import Progress, Stages
from nearlabel.common.threads import run_blocks
from nearlabel.common.validation import check_dense_size, check_same_length
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import blocks_of_votes, counts_and_own, group_totals, rows_a_call

# Rows, those that carry the label, and those of either kind with a given count: n, n_l, c[j],
# c'[j].
Counts = tuple[Array, Array, Array, Array]
_CELLS_AT_ONCE = 2**14  # of tables, so that temporaries stay small


class CountedRows(ABC):
    """Queries on tables of rows by label and count, however they are stored.

    There may be several tables, one for each group of rows: when all labels are returned at once,
    label l of group g is number ``g * q + l``.
    """

    groups: int

    @property
    @abstractmethod
    def q(self) -> int:
        """The number of labels of one table."""

    @abstractmethod
    def counts(self, label: Array | int, count: Array | int, group: Array | int = 0) -> Counts:
        """n, n_l, c[j] and c'[j] of labels and counts, in the tables of some groups.

        A count is at most min(k, n_l), where n_l is over all groups.
        """

    @abstractmethod
    def carriers(self, label: Array | int) -> Array:
        """The number of rows of all groups that carry each label."""

    @property
    def every_label(self) -> tuple[Array, Array]:
        """Every label of every group, and the groups."""
        group, label = np.divmod(np.arange(self.groups * self.q), self.q or 1)
        return label, group

    def at_0(self) -> Counts:
        """`counts` of every label of every group at count 0."""
        label, group = self.every_label
        return self.counts(label, 0, group)

    @abstractmethod
    def compacted(self) -> LabelHistograms:
        """The tables in the form used for counting."""


@dataclass(frozen=True)
class LabelHistograms(CountedRows):
    """For each label, rows by the number of their neighbors that carry it.

    The cells of label l begin at ``start[l]``, one for each count from 0 to min(k, n_l).
    """

    n: Array  # (q,): rows that were counted, the same for all labels of one table
    totals: Array  # (q,): how many of them carry the label
    start: Array  # (q + 1,)
    with_label: Array  # (start[-1],): rows that carry the label, c[j] of the ML-kNN paper
    without_label: Array  # (start[-1],): rows that do not, c'[j]
    groups: int = 1  # tables, one after another

    @classmethod
    def of_totals(
        cls, n: Array, totals: Array, k: int, cells: tuple[Array, Array] | None = None
    ) -> LabelHistograms:
        """Tables of rows with k neighbors, from cells with and without the label; empty if None.

        Group g has n[g] rows, of which totals[g, l] carry label l.
        """
        groups, q = totals.shape
        sizes = np.tile(np.minimum(totals.sum(axis=0), k) + 1, groups)
        start = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
        if cells is None:
            cells = np.zeros(start[-1], np.int64), np.zeros(start[-1], np.int64)
        if any(len(part) != start[-1] for part in cells):
            raise ValueError(
                f"with_label and without_label must have {start[-1]} cells; "
                f"got {len(cells[0])} and {len(cells[1])}"
            )
        return cls(np.repeat(n, q), totals.ravel(), start, *cells, groups)

    @property
    def q(self) -> int:
        return len(self.totals) // self.groups

    def compacted(self) -> LabelHistograms:
        return self

    def cells(self, label: Array | int, count: Array | int) -> Array:
        """The position of a label and a count; a count is at most min(k, n_l)."""
        return np.asarray(self.start[label] + count)

    def counts(self, label: Array | int, count: Array | int, group: Array | int = 0) -> Counts:
        stacked = label + group * self.q
        cell = self.cells(stacked, count)
        return (
            self.n[stacked],
            self.totals[stacked],
            self.with_label[cell],
            self.without_label[cell],
        )

    def with_rows_at_0(self) -> LabelHistograms:
        """These tables with the rows that `add_to_histograms` does not visit.

        They have neither the label nor a neighbor that carries it.
        """
        start = self.start[:-1]
        self.without_label[start] = 0
        never = self.n - self.totals - np.add.reduceat(self.without_label, start)
        self.without_label[start] = never
        return self

    def carriers(self, label: Array | int) -> Array:
        return np.asarray(self.totals.reshape(self.groups, -1)[:, label].sum(axis=0))

    def dense(self, k: int) -> Counts:
        """`counts` of all labels for counts from 0 to k, broadcastable to (groups q, k + 1)."""
        q = len(self.totals)
        check_dense_size("the counts of all labels", (2 * q, k + 1), 8, "explain")
        inside = np.arange(k + 1) < np.diff(self.start)[:, None]  # no count is above n_l
        c, c_prime = np.zeros((2, q, k + 1), np.int64)
        c[inside], c_prime[inside] = self.with_label, self.without_label
        return self.n[:, None], self.totals[:, None], c, c_prime

    def runs(self) -> Iterator[tuple[slice, Array, Array]]:
        """Yield the cells in blocks of whole labels, with the label and the count of each cell.

        So computations over all cells need small temporaries only.
        """
        sizes, is_small = np.diff(self.start), self.start[-1] <= _CELLS_AT_ONCE
        for labels in [slice(0, len(sizes))] if is_small else runs(sizes, _CELLS_AT_ONCE):
            cells = slice(self.start[labels.start], self.start[labels.stop])
            label = np.repeat(np.arange(labels.start, labels.stop), sizes[labels])
            yield cells, label, np.arange(cells.start, cells.stop) - self.start[label]


def cell_values(table: Floats, start: Array, label: Array, count: Array) -> Floats:
    """The entries of a ragged table, whose labels start at `start`, for each label and count."""
    core = engine.core()
    if core is None:
        return np.asarray(table[start[label] + count])
    values = np.empty(len(label))
    core.look_up(table, start, label, count, values)
    return values


def label_histograms(
    graph: NeighborGraph,
    Y: Csr,
    *,
    group: Array | None = None,
    groups: int = 1,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelHistograms:
    """Count training rows by label and number of neighbors with it, in one streaming pass.

    The graph has the k neighbors of each training row, excluding itself. `group` has the group of
    each row, if there are several. Each of `n_jobs` threads has its own tables.
    """
    near = graph.indices
    n, k = near.shape
    check_same_length(graph=n, Y=Y.shape[0])
    step, totals = rows_a_call(graph, Y), group_totals(Y, group, groups)
    result = LabelHistograms.of_totals(*totals, k)
    stages = None if progress is None else Stages(progress, n)
    with_label, without_label = (
        cells.reshape(groups, -1) for cells in (result.with_label, result.without_label)
    )
    start = result.start[: Y.shape[1] + 1]
    for g in range(groups):
        own = np.arange(n) if group is None else np.flatnonzero(group == g)
        tables = with_label[g], without_label[g]
        spare = [tables]  # not in use by any thread

        def count(block: slice, own: Array = own, spare: list[tuple[Array, Array]] = spare) -> None:
            rows = own[block]
            try:
                cells = spare.pop()
            except IndexError:
                cells = np.zeros_like(with_label[0]), np.zeros_like(without_label[0])
            add_to_histograms(near[block if group is None else rows], rows, Y, start, *cells)
            spare.append(cells)

        each = None if stages is None else stages.next(len(own))
        run_blocks(count, len(own), step, n_jobs, each)
        for further in spare:
            if further[0] is not tables[0]:
                for table, part in zip(tables, further, strict=True):
                    table += part
    return result.with_rows_at_0()


def add_to_histograms(
    near: Array, rows: Array, Y: Csr, start: Array, with_label: Array, without: Array
) -> None:
    """Add training rows `rows`, whose neighbors are `near` (r, k), to the cells of tables.

    Only labels that a row or a neighbor carries are visited.
    """
    core = engine.core()
    if core is not None:
        labels = kernel_rows(Y)
        core.add_to_histograms(kernel_places(near), rows, *labels, start, with_label, without)
        return
    graph = NeighborGraph.unchecked(near, near, Y.shape[0])
    for place, block in blocks_of_votes(graph, Y):
        codes = counts_and_own(block, Y, rows[place])
        carried, count = np.divmod(codes.data, graph.k + 1)
        cell = start[codes.indices] + count
        np.add.at(with_label, cell[carried == 1], 1)
        np.add.at(without, cell[carried == 0], 1)
