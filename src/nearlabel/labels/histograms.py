"""Training rows by label and number of neighbors that carry it, as learned by ML-kNN.

Tables are ragged: a label that n_l rows carry occurs at most min(k, n_l) times in a neighborhood
and has that many cells, plus one for the count 0.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, Floats, kernel_rows, runs
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.common.validation import check_dense_size, check_same_length
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import (
    blocks_of_votes,
    counts_and_own,
    kernel_graph,
    label_totals,
    rows_a_call,
)

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
    def counts(self, label: Any, count: Any, group: Any = 0) -> Counts:
        """n, n_l, c[j] and c'[j] of labels and counts, in the tables of some groups.

        A count is at most min(k, n_l), where n_l is over all groups.
        """

    @abstractmethod
    def carriers(self, label: Any) -> Array:
        """The number of rows of all groups that carry each label."""

    def at_0(self) -> Counts:
        """`counts` of every label of every group at count 0."""
        group, label = np.divmod(np.arange(self.groups * self.q), self.q or 1)
        return self.counts(label, 0, group)

    def without_own(self, label: Any, count: Any, own: Array, group: Any = 0) -> Counts:
        """`counts` without a given row; `own` is 1 if that row carries the label."""
        n, n_l, c, c_prime = self.counts(label, count, group)
        return n - 1, n_l - own, c - own, c_prime - (1 - own)

    def without_one_at_0(self) -> Counts:
        """`at_0` with one row less that does not carry the label."""
        n, n_l, c, c_prime = self.at_0()
        return n - 1, np.minimum(n_l, n - 1), c, np.maximum(c_prime - 1, 0)

    @abstractmethod
    def compacted(self) -> LabelHistograms:
        """The tables in the form used for counting."""

    @abstractmethod
    def dense(self, k: int) -> Counts:
        """`counts` of all labels for counts from 0 to k, broadcastable to (groups q, k + 1)."""


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
    def of_cells(
        cls,
        Y: Csr,
        k: int,
        with_label: Array | None = None,
        without_label: Array | None = None,
        *,
        rows: Array | None = None,
    ) -> LabelHistograms:
        """Histograms of `rows`, all if None, over labels Y and k neighbors: given, or empty."""
        everywhere = label_totals(Y)
        start = first_cells(everywhere, k)
        totals = everywhere if rows is None else label_totals(Y[rows])
        n = np.full(len(totals), Y.shape[0] if rows is None else len(rows))
        if with_label is None or without_label is None:
            with_label, without_label = np.zeros((2, start[-1]), np.int64)
        if not len(with_label) == len(without_label) == start[-1]:
            raise ValueError(
                f"with_label and without_label must have {start[-1]} cells; "
                f"got {len(with_label)} and {len(without_label)}"
            )
        return cls(n, totals, start, with_label, without_label)

    @classmethod
    def stacked(cls, tables: Sequence[LabelHistograms]) -> LabelHistograms:
        """Several tables as one: label l of table g is label ``g * q + l``."""
        ends = np.cumsum([0, *(table.start[-1] for table in tables)])
        starts = [table.start[:-1] + end for table, end in zip(tables, ends, strict=False)]
        return cls(
            np.concatenate([table.n for table in tables]),
            np.concatenate([table.totals for table in tables]),
            np.append(np.concatenate(starts), ends[-1]),
            np.concatenate([table.with_label for table in tables]),
            np.concatenate([table.without_label for table in tables]),
            len(tables),
        )

    @property
    def q(self) -> int:
        """The number of labels of one table."""
        return len(self.totals) // self.groups

    def compacted(self) -> LabelHistograms:
        """The tables themselves."""
        return self

    def cells(self, label: Array | int, count: Array | int) -> Array:
        """The position of a label and a count; a count is at most min(k, n_l)."""
        return np.asarray(self.start[label] + count)

    def rows_of(self, label: Array | int, cell: Any) -> Counts:
        """n, n_l, c[j] and c'[j] of cells, given their labels."""
        return self.n[label], self.totals[label], self.with_label[cell], self.without_label[cell]

    def counts(self, label: Any, count: Any, group: Any = 0) -> Counts:
        """n, n_l, c[j] and c'[j] of labels and counts, in the tables of some groups."""
        stacked = label + group * self.q
        return self.rows_of(stacked, self.cells(stacked, count))

    def carriers(self, label: Any) -> Array:
        """The number of rows of all groups that carry each label."""
        return np.asarray(self.totals.reshape(self.groups, -1)[:, label].sum(axis=0))

    def dense(self, k: int) -> Counts:
        """`counts` of all labels for counts from 0 to k, broadcastable to (groups q, k + 1)."""
        q = len(self.totals)
        check_dense_size("the counts of all labels", (2 * q, k + 1), 8, "explain")
        inside = np.arange(k + 1) < np.diff(self.start)[:, None]  # no count is above n_l
        c, c_prime = np.zeros((2, q, k + 1), np.int64)
        c[inside], c_prime[inside] = self.with_label, self.without_label
        return self.n[:, None], self.totals[:, None], c, c_prime

    def runs(self) -> Iterator[tuple[slice, Array]]:
        """Yield the cells in blocks of whole labels, with the label of each cell.

        So computations over all cells need small temporaries only.
        """
        sizes = np.diff(self.start)
        for labels in runs(sizes, _CELLS_AT_ONCE):
            label = np.repeat(np.arange(labels.start, labels.stop), sizes[labels])
            yield slice(self.start[labels.start], self.start[labels.stop]), label


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
    rows: Array | None = None,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelHistograms:
    """Count training rows by label and number of neighbors with it, in one streaming pass.

    The graph has the k neighbors of each training row, excluding itself. Only `rows`, all if None,
    are counted; their neighbors are any rows. Each of `n_jobs` threads has its own tables.
    """
    check_same_length(graph=len(graph), Y=Y.shape[0])
    result = LabelHistograms.of_cells(Y, graph.k, rows=rows)
    own = np.arange(Y.shape[0]) if rows is None else rows
    with_label, without_label = result.with_label, result.without_label
    spare = [(with_label, without_label)]  # tables not in use by any thread

    def count(block: slice) -> None:
        try:
            tables = spare.pop()
        except IndexError:
            tables = np.zeros_like(with_label), np.zeros_like(without_label)
        near = graph.take(block if rows is None else rows[block])
        add_to_histograms(near, own[block], Y, result.start, *tables)
        spare.append(tables)

    run_blocks(count, len(own), rows_a_call(graph, Y), n_jobs, progress)
    for more_with, more_without in spare:
        if more_with is not with_label:
            with_label += more_with
            without_label += more_without
    return with_rows_at_0(result)


def first_cells(totals: Array, k: int) -> Array:
    """Where the cells of each label begin, and their number: see `LabelHistograms`."""
    return np.concatenate([[0], np.cumsum(np.minimum(totals, k) + 1, dtype=np.int64)])


def with_rows_at_0(counted: LabelHistograms) -> LabelHistograms:
    """Tables to which all rows were added, with those that `add_to_histograms` does not visit.

    These are rows without the label and without a neighbor that carries it.
    """
    start, without_label = counted.start[:-1], counted.without_label
    without_label[start] = 0
    never = counted.n - counted.totals - np.add.reduceat(without_label, start)
    without_label[start] = never
    return counted


def add_to_histograms(
    graph: NeighborGraph, rows: Array, Y: Csr, start: Array, with_label: Array, without: Array
) -> None:
    """Add training rows `rows`, whose neighbors are in the graph, to the cells of tables.

    Only labels that a row or a neighbor carries are visited.
    """
    core = engine.core()
    if core is not None:
        labels = kernel_rows(Y)
        core.add_to_histograms(kernel_graph(graph), rows, *labels, start, with_label, without)
        return
    for place, block in blocks_of_votes(graph, Y):
        both = counts_and_own(block, Y, rows[place])
        carried, count = np.divmod(both.data, graph.k + 1)
        cell = start[both.indices] + count
        np.add.at(with_label, cell[carried == 1], 1)
        np.add.at(without, cell[carried == 0], 1)
