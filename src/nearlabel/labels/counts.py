"""What is read off a neighbor graph and a label matrix, sparse in the labels.

Nothing here allocates rows x labels, nor labels x (k + 1): a label that n_l rows carry is counted
at most min(k, n_l) times in a neighborhood, and the tables have that many cells for it.

The compiled core counts where it is there, else NumPy and SciPy; both give the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    csr_of_known,
    kernel_array,
    kernel_rows,
    runs,
    with_data,
)
from nearlabel.common.progress import Progress
from nearlabel.common.threads import run_blocks
from nearlabel.common.validation import check_same_length
from nearlabel.graph import NeighborGraph

_ROWS_AT_ONCE = 2**14
_VOTES_A_CALL = 2**23  # labels of neighbors in a call of the core: a tenth of a second
_DIGITS = 2.0**40
_VOTES_AT_ONCE = 2**21  # labels of neighbors that are counted together: some 50 MiB of temporaries
_ENTRIES_AT_ONCE = 2**18  # of a label matrix or a table, beside which temporaries stay small


def label_totals(Y: Csr) -> Array:
    """Number of rows that carry each label, shape (q,)."""
    totals = np.zeros(Y.shape[1], np.int64)
    for start in range(0, Y.nnz, _ENTRIES_AT_ONCE):  # NumPy makes them 64 bits wide to count
        totals += np.bincount(Y.indices[start : start + _ENTRIES_AT_ONCE], minlength=len(totals))
    return totals


def neighbor_counts(graph: NeighborGraph, Y: Csr) -> Csr:
    """How many neighbors of each row carry each label: C of the papers.

    Parameters
    ----------
    graph : NeighborGraph of n rows over n_base
    Y : csr_array, shape (n_base, q)
        Labels of the base rows.

    Returns
    -------
    csr_array of int32, shape (n, q)
        Counts of the labels that occur among a row's neighbors, in order of the columns.
    """
    _check_base(graph, Y)
    core = engine.core()
    return _counts_by_numpy(graph, Y) if core is None else _counts_by_core(core, graph, Y)


def neighbor_sums(graph: NeighborGraph, Y: Csr, weights: Floats) -> Csr:
    """For each label of a row's neighbors, the sum of the weights of those that carry it.

    Parameters
    ----------
    graph : NeighborGraph of n rows over n_base
    Y : csr_array, shape (n_base, q)
    weights : ndarray of float, shape (n, k)
        One a neighbor.

    Returns
    -------
    csr_array of float, shape (n, q)
        Stored for the labels that `neighbor_counts` stores, zero or not. The nearest neighbor is
        added first.
    """
    _check_base(graph, Y)
    core = engine.core()
    if core is None:
        return _sums_by_numpy(graph, Y, weights)
    return _sums_by_core(core, graph, Y, weights)


def neighbor_shares(graph: NeighborGraph, Y: Csr, shares: Floats) -> Csr:
    """`neighbor_sums` of shares that add up to 1 in each row.

    A sum is told to 40 binary digits, fewer than it has. So what is equal but for rounding is
    equal: a label that all neighbors carry has 1, and one with half of the shares just 1/2.
    """
    sums = neighbor_sums(graph, Y, shares)
    return with_data(sums, np.rint(sums.data * _DIGITS) / _DIGITS)


def _counts_by_core(core: Any, graph: NeighborGraph, Y: Csr) -> Csr:
    labels = *kernel_rows(Y), Y.shape[1]
    return _joined(graph, Y, lambda _, block: core.neighbor_counts(_kernel_graph(block), *labels))


def _sums_by_core(core: Any, graph: NeighborGraph, Y: Csr, weights: Floats) -> Csr:
    labels = *kernel_rows(Y), Y.shape[1]
    weights = kernel_array(weights, np.float64)
    return _joined(
        graph,
        Y,
        lambda rows, block: core.neighbor_sums(_kernel_graph(block), weights[rows], *labels),
    )


def _joined(graph: NeighborGraph, Y: Csr, count: Callable[[slice, NeighborGraph], Any]) -> Csr:
    """One matrix of what `count` gives for runs of rows: data, columns and indptr."""
    parts = [count(*block) for block in graph.blocks(_rows_a_call(graph, Y))]
    parts = parts or [count(slice(0, 0), graph)]
    *entries, ends = zip(*parts, strict=True)
    data, columns = (some[0] if len(some) == 1 else np.concatenate(some) for some in entries)
    indptr = np.cumsum(np.concatenate([[0], *map(np.diff, ends)]))
    return csr_of_known(data, columns, indptr, (len(graph), Y.shape[1]))


def _rows_a_call(graph: NeighborGraph, Y: Csr) -> int:
    votes_a_row = int(graph.k * (1 + Y.nnz // max(1, Y.shape[0])))
    return max(1, min(_ROWS_AT_ONCE, _VOTES_A_CALL // votes_a_row))


def _counts_by_numpy(graph: NeighborGraph, Y: Csr) -> Csr:
    return _product(graph, np.ones(graph.indices.shape, np.int32), Y)


def _sums_by_numpy(graph: NeighborGraph, Y: Csr, weights: Floats) -> Csr:
    # SciPy drops sums that are zero: the imaginary part counts the votes and keeps them.
    sums = _product(graph, weights + 1j, Y)
    return with_data(sums, sums.data.real.copy())


def _product(graph: NeighborGraph, weights: Array, Y: Csr) -> Csr:
    n, k = graph.indices.shape
    parts = (weights.ravel(), graph.indices.ravel(), np.arange(0, n * k + 1, k))
    product = sparse.csr_array(parts, shape=(n, graph.n_base)) @ Y
    product.sort_indices()
    return product


def _kernel_graph(graph: NeighborGraph) -> Array:
    """The neighbors as the compiled core takes them: a slice stays one."""
    kind = graph.indices.dtype if graph.indices.dtype in (np.int32, np.int64) else np.int64
    return np.require(graph.indices, kind, "A")


def _check_base(graph: NeighborGraph, Y: Csr) -> None:
    if graph.n_base != Y.shape[0]:
        raise ValueError(f"graph is over {graph.n_base} rows; Y has {Y.shape[0]} rows")


def blocks_of_votes(graph: NeighborGraph, Y: Csr) -> Iterator[tuple[slice, NeighborGraph]]:
    """Yield the graph in runs of rows whose neighbors carry a bounded number of labels in all."""
    begin, end = Y.indptr[:-1], Y.indptr[1:]
    # For a few queries it would take long to look at all base rows.
    sizes = end - begin if graph.indices.size > len(begin) else None
    for chunk, part in graph.blocks(_ROWS_AT_ONCE):
        near = part.indices
        votes = end[near] - begin[near] if sizes is None else sizes[near]
        for run in runs(votes.sum(axis=1, dtype=np.int64), _VOTES_AT_ONCE):
            yield (
                slice(chunk.start + run.start, chunk.start + run.stop),
                part.rows(run.start, run.stop),
            )


@dataclass(frozen=True)
class LabelHistograms:
    """For each label, training rows by the number of their neighbors that carry it.

    The rows may be divided into groups, each with tables of its own. The cells of label l in group
    g stand from ``start[g * q + l]`` on, one for each count from 0 to min(k, n_l).

    Attributes
    ----------
    n : ndarray of shape (n_groups,)
        Rows of each group.
    totals : ndarray of shape (n_groups, q)
        How many of them carry each label.
    start : ndarray of shape (n_groups * q + 1,)
    with_label, without_label : ndarray of shape (start[-1],)
        Rows that carry the label, and rows that do not: c[j] and c'[j] of the ML-kNN paper.
    """

    n: Array
    totals: Array
    start: Array
    with_label: Array
    without_label: Array

    @classmethod
    def of_cells(
        cls,
        Y: Csr,
        k: int,
        with_label: Array | None = None,
        without_label: Array | None = None,
        *,
        group: Array | None = None,
        n_groups: int = 1,
    ) -> LabelHistograms:
        """Histograms of all rows of Y and k neighbors: of given counts, or empty.

        Parameters
        ----------
        Y : csr_array, shape (n, q)
        k : int
        with_label, without_label : ndarray, optional
            The counts of all cells; by default zeros.
        group : ndarray of int, shape (n,), optional
            The group of each row; by default one for all.
        n_groups : int, default=1
        """
        everywhere = label_totals(Y)
        cells = np.tile(np.minimum(everywhere, k) + 1, n_groups)
        start = np.concatenate([[0], np.cumsum(cells, dtype=np.int64)])
        if group is None:
            n, totals = np.array([Y.shape[0]]), everywhere[None]
        else:
            n = np.bincount(group, minlength=n_groups)
            totals = np.array(
                [label_totals(Y[np.flatnonzero(group == g)]) for g in range(n_groups)]
            )
        if with_label is None or without_label is None:
            with_label, without_label = np.zeros((2, start[-1]), np.int64)
        if not len(with_label) == len(without_label) == start[-1]:
            raise ValueError(
                f"with_label and without_label must have {start[-1]} cells; "
                f"got {len(with_label)} and {len(without_label)}"
            )
        return cls(n, totals, start, with_label, without_label)

    def table(self, formula: Callable[[Array, Array, Array, Array], Floats]) -> Floats:
        """What a formula gives for each cell, by runs of labels so that temporaries stay small.

        It is called with arrays of one entry a cell: the rows of the group, how many of them carry
        the label, and c[j] and c'[j].
        """
        sizes, totals = np.diff(self.start), self.totals.ravel()
        n = np.repeat(self.n, self.totals.shape[1])
        result = np.empty(self.start[-1])
        for labels in runs(sizes, _ENTRIES_AT_ONCE):
            cells = slice(self.start[labels.start], self.start[labels.stop])
            here = np.repeat(np.arange(labels.start, labels.stop), sizes[labels])
            counts = self.with_label[cells], self.without_label[cells]
            result[cells] = formula(n[here], totals[here], *counts)
        return result

    def starts(self, group: int) -> Array:
        """Where the cells of the labels of one group stand, shape (q + 1,)."""
        q = self.totals.shape[1]
        return self.start[group * q : (group + 1) * q + 1]

    def cells(self, label: Array | int, count: Array | int, group: Array | int = 0) -> Array:
        """Where a label and a count stand in a group; a count is at most min(k, n_l)."""
        return np.asarray(self.start[group * self.totals.shape[1] + label] + count)

    def values_at(self, counts: Csr, table: Floats, group: Array | None = None) -> Floats:
        """The entries of `table`, one a cell, for the label and the count of each entry.

        `group` has the group of each row of `counts`; by default the first.
        """
        label = kernel_rows(counts)[1]
        if group is not None:
            label = label + np.repeat(group * counts.shape[1], np.diff(counts.indptr))
        core = engine.core()
        if core is None:
            return table[self.cells(label, counts.data)]
        values = np.empty(counts.nnz)
        core.look_up(table, self.start, label, counts.data, values)
        return values


def label_histograms(
    graph: NeighborGraph,
    Y: Csr,
    *,
    group: Array | None = None,
    n_groups: int = 1,
    n_jobs: int = 1,
    progress: Progress | None = None,
) -> LabelHistograms:
    """Count the training rows by label and number of neighbors with it, in one streaming pass.

    Parameters
    ----------
    graph : NeighborGraph
        The k neighbors of each training row, itself left out.
    Y : csr_array, shape (n, q)
    group : ndarray of int, shape (n,), optional
        The group of each row, from 0 to `n_groups` - 1; by default one for all. The neighbors of a
        row are of any group.
    n_groups : int, default=1
    n_jobs : int, default=1
        Threads, each with tables of its own. The result is the same.
    progress : callable, optional
        Called with (rows done, rows in all) after each block.
    """
    _check_base(graph, Y)
    check_same_length(graph=len(graph), Y=Y.shape[0])
    result = LabelHistograms.of_cells(Y, graph.k, group=group, n_groups=n_groups)
    order = None if group is None else np.argsort(group, kind="stable")
    add = _adding(Y)
    with_label, without_label = result.with_label, result.without_label
    spare = [(with_label, without_label)]  # tables that no thread adds to just now

    def count(block: slice) -> None:
        try:
            tables = spare.pop()
        except IndexError:
            tables = np.zeros_like(with_label), np.zeros_like(without_label)
        if group is None or order is None:
            rows = np.arange(block.start, block.stop)
            add(graph.rows(block.start, block.stop), rows, result.starts(0), *tables)
        else:
            of_block = order[block]
            for g in np.unique(group[of_block]):
                rows = of_block[group[of_block] == g]
                add(graph.take(rows), rows, result.starts(g), *tables)
        spare.append(tables)

    run_blocks(count, len(graph), _rows_a_call(graph, Y), n_jobs, progress)
    for more_with, more_without in spare:
        if more_with is not with_label:
            with_label += more_with
            without_label += more_without
    # Rows without the label and without a neighbor that carries it were never visited.
    start = result.start[:-1]
    without_label[start] = 0
    never = (result.n[:, None] - result.totals).ravel() - np.add.reduceat(without_label, start)
    without_label[start] = never
    return result


def _adding(Y: Csr) -> Callable[..., None]:
    """What adds some rows of the graph, with their places in Y, to tables."""
    core = engine.core()
    if core is None:
        return lambda block, rows, *tables: _add_by_numpy(block, rows, Y, *tables)
    labels = kernel_rows(Y)
    return lambda block, rows, *tables: core.add_to_histograms(
        _kernel_graph(block), rows, *labels, *tables
    )


def _add_by_numpy(
    graph: NeighborGraph, rows: Array, Y: Csr, start: Array, with_label: Array, without: Array
) -> None:
    for place, block in blocks_of_votes(graph, Y):
        both = counts_and_own(block, Y, rows[place])
        carried, count = np.divmod(both.data, graph.k + 1)
        cell = start[both.indices] + count
        np.add.at(with_label, cell[carried == 1], 1)
        np.add.at(without, cell[carried == 0], 1)


def counts_and_own(graph: NeighborGraph, Y: Csr, rows: Array) -> Csr:
    """For each of `rows`, the counts among its neighbors, plus k + 1 for a label of its own.

    One sparse sum holds both: an entry for every label that the row or a neighbor carries.
    """
    return neighbor_counts(graph, Y) + (graph.k + 1) * Y[rows].astype(np.int32)
