"""What is read off a neighbor graph and a label matrix, sparse in the labels.

Nothing here allocates rows x labels, nor labels x (k + 1): a label that n_l rows carry is counted
at most min(k, n_l) times in a neighborhood, and the tables have that many cells for it.

The compiled core counts where it is there, else NumPy and SciPy; both give the same.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel import engine
from nearlabel.arrays import Array, Csr, Floats, csr_of_known, kernel_rows, runs
from nearlabel.graph import NeighborGraph
from nearlabel.validation import check_same_length

_ROWS_AT_ONCE = 2**16
_VOTES_A_CALL = 2**25  # labels of neighbors in a call of the core: tenths of a second
_VOTES_AT_ONCE = 2**21  # labels of neighbors that are counted together: some 50 MiB of temporaries


def label_totals(Y: Csr) -> Array:
    """Number of rows that carry each label, shape (q,)."""
    return np.bincount(Y.indices, minlength=Y.shape[1])


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


def _counts_by_core(core: Any, graph: NeighborGraph, Y: Csr) -> Csr:
    indptr, indices = kernel_rows(Y)
    blocks = [block for _, block in graph.blocks(_rows_a_call(graph, Y))] or [graph]
    parts = [
        core.neighbor_counts(_kernel_graph(block), indptr, indices, Y.shape[1]) for block in blocks
    ]
    data, columns, ends = zip(*parts, strict=True)
    indptr = np.cumsum(np.concatenate([[0], *map(np.diff, ends)]))
    return csr_of_known(_joined(data), _joined(columns), indptr, (len(graph), Y.shape[1]))


def _rows_a_call(graph: NeighborGraph, Y: Csr) -> int:
    votes_a_row = int(graph.k * (1 + Y.nnz // max(1, Y.shape[0])))
    return max(1, min(_ROWS_AT_ONCE, _VOTES_A_CALL // votes_a_row))


def _joined(parts: Sequence[Array]) -> Array:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _counts_by_numpy(graph: NeighborGraph, Y: Csr) -> Csr:
    n, k = graph.indices.shape
    votes = sparse.csr_array(
        (np.ones(n * k, np.int32), graph.indices.ravel(), np.arange(0, n * k + 1, k)),
        shape=(n, graph.n_base),
    )
    counts = votes @ Y
    counts.sort_indices()
    return counts


def _kernel_graph(graph: NeighborGraph) -> Array:
    """The neighbors as the compiled core takes them: a slice stays one."""
    kind = graph.indices.dtype if graph.indices.dtype in (np.int32, np.int64) else np.int64
    return np.require(graph.indices, kind, "A")


def _check_base(graph: NeighborGraph, Y: Csr) -> None:
    if graph.n_base != Y.shape[0]:
        raise ValueError(f"graph is over {graph.n_base} rows; Y has {Y.shape[0]} rows")


def blocks_of_votes(graph: NeighborGraph, Y: Csr) -> Iterator[tuple[slice, NeighborGraph]]:
    """Yield the graph in runs of rows whose neighbors carry a bounded number of labels in all."""
    sizes = np.diff(Y.indptr)
    for chunk, part in graph.blocks(_ROWS_AT_ONCE):
        for run in runs(sizes[part.indices].sum(axis=1), _VOTES_AT_ONCE):
            yield (
                slice(chunk.start + run.start, chunk.start + run.stop),
                part.rows(run.start, run.stop),
            )


@dataclass(frozen=True)
class LabelHistograms:
    """For each label, the training rows by the number of their neighbors that carry it.

    The cells of label l stand from ``start[l]`` on, one for each count from 0 to min(k, n_l).

    Attributes
    ----------
    n : int
        Training rows.
    totals : ndarray of shape (q,)
        n_l: rows that carry label l.
    start : ndarray of shape (q + 1,)
    with_label, without_label : ndarray of shape (start[-1],)
        Rows that carry the label, and rows that do not: c[j] and c'[j] of the paper.
    """

    n: int
    totals: Array
    start: Array
    with_label: Array
    without_label: Array

    @classmethod
    def of_cells(cls, Y: Csr, k: int, with_label: Array, without_label: Array) -> LabelHistograms:
        """The histograms of labels Y and k neighbors, from the counts in all their cells."""
        totals = label_totals(Y)
        start = np.concatenate([[0], np.cumsum(np.minimum(totals, k) + 1, dtype=np.int64)])
        if not len(with_label) == len(without_label) == start[-1]:
            raise ValueError(
                f"with_label and without_label must have {start[-1]} cells; "
                f"got {len(with_label)} and {len(without_label)}"
            )
        return cls(Y.shape[0], totals, start, with_label, without_label)

    @property
    def label(self) -> Array:
        """The label that each cell belongs to."""
        return np.repeat(np.arange(len(self.totals)), np.diff(self.start))

    def cells(self, label: Array | int, count: Array | int) -> Array:
        """Where pairs of a label and a count stand; a count is at most min(k, n_l)."""
        return np.asarray(self.start[label] + count)

    def values_at(self, counts: Csr, table: Floats) -> Floats:
        """The entries of `table`, one a cell, for the label and the count of each entry."""
        core = engine.core()
        if core is None:
            return table[self.cells(counts.indices, counts.data)]
        values = np.empty(counts.nnz)
        core.look_up(table, self.start, kernel_rows(counts)[1], counts.data, values)
        return values


def label_histograms(graph: NeighborGraph, Y: Csr) -> LabelHistograms:
    """Count the training rows by label and number of neighbors with it, in one streaming pass.

    Parameters
    ----------
    graph : NeighborGraph
        The k neighbors of each training row, itself left out.
    Y : csr_array, shape (n, q)
    """
    _check_base(graph, Y)
    check_same_length(graph=len(graph), Y=Y.shape[0])
    n, k = Y.shape[0], graph.k
    cells = int(np.minimum(label_totals(Y), k).sum()) + Y.shape[1]
    with_label, without_label = np.zeros((2, cells), np.int64)
    result = LabelHistograms.of_cells(Y, k, with_label, without_label)
    core = engine.core()
    if core is None:
        _histograms_by_numpy(graph, Y, result)
    else:
        _histograms_by_core(core, graph, Y, result)
    # Rows without the label and without a neighbor that carries it were never visited.
    start = result.start[:-1]
    without_label[start] = 0
    without_label[start] = n - result.totals - np.add.reduceat(without_label, start)
    return result


def _histograms_by_core(core: Any, graph: NeighborGraph, Y: Csr, result: LabelHistograms) -> None:
    indptr, indices = kernel_rows(Y)
    tables = result.start, result.with_label, result.without_label
    for place, block in graph.blocks(_rows_a_call(graph, Y)):
        core.add_to_histograms(_kernel_graph(block), place.start, indptr, indices, *tables)


def _histograms_by_numpy(graph: NeighborGraph, Y: Csr, result: LabelHistograms) -> None:
    k = graph.k
    for place, block in blocks_of_votes(graph, Y):
        # One sparse sum holds both: k + 1 for a label that the row carries, plus the count.
        both = _counts_by_numpy(block, Y) + (k + 1) * Y[place].astype(np.int32)
        carried, count = np.divmod(both.data, k + 1)
        cell = result.cells(both.indices, count)
        np.add.at(result.with_label, cell[carried == 1], 1)
        np.add.at(result.without_label, cell[carried == 0], 1)
