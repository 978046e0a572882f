"""Counts and weighted sums of the labels of a row's neighbors, always sparse."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    csr_of_known,
    kernel_array,
    kernel_places,
    kernel_rows,
    runs,
    with_data,
)
from nearlabel.graph import NeighborGraph

_ROWS_AT_ONCE = 2**14
_VOTES_AT_ONCE = 2**21  # labels of neighbors counted at once: about 50 MiB of temporaries
_ENTRIES_AT_ONCE = 2**18  # of a label matrix, so that temporaries stay small
Parts = tuple[Array, Array, Array]  # of a CSR matrix: data, indices and indptr


def label_totals(Y: Csr) -> Array:
    """The number of rows that carry each label, shape (q,)."""
    totals = np.zeros(Y.shape[1], np.int64)
    for start in range(0, Y.nnz, _ENTRIES_AT_ONCE):  # NumPy converts them to 64 bits to count
        totals += np.bincount(Y.indices[start : start + _ENTRIES_AT_ONCE], minlength=len(totals))
    return totals


def group_totals(Y: Csr, group: Array | None, groups: int = 1) -> tuple[Array, Array]:
    """The rows of each group, and how many of them carry each label, shape (groups, q)."""
    if group is None:
        return np.array([Y.shape[0]]), label_totals(Y)[None]
    totals = [label_totals(Y[group == g]) for g in range(groups)]
    return np.bincount(group, minlength=groups), np.stack(totals)


def neighbor_counts(graph: NeighborGraph, Y: Csr) -> Csr:
    """How many neighbors of each row carry each label, C in the papers: int32, shape (n, q).

    Y has the labels of the base rows. The labels that occur among a row's neighbors are stored, in
    the order of the columns.
    """
    core = engine.core()
    if core is None:
        return _product(graph, np.ones(graph.indices.shape, np.int32), Y)
    return _by_core(core.neighbor_counts, graph, Y)


def vote_shares(graph: NeighborGraph, Y: Csr) -> Csr:
    """The share of each row's neighbors that carry each label: `neighbor_counts` divided by k."""
    counts = neighbor_counts(graph, Y)
    return with_data(counts, counts.data / graph.k)


def neighbor_sums(graph: NeighborGraph, Y: Csr, weights: Floats) -> Csr:
    """For each label of a row's neighbors, the sum of the weights (n, k) of those that carry it.

    Stored for the labels that `neighbor_counts` stores, including zeros. The nearest neighbor is
    added first.
    """
    core = engine.core()
    if core is None:
        # SciPy drops zero sums: the imaginary part counts the votes and keeps them.
        sums = _product(graph, weights + 1j, Y)
        return with_data(sums, sums.data.real.copy())
    return _by_core(core.neighbor_sums, graph, Y, kernel_array(weights, np.float64))


def neighbor_shares(graph: NeighborGraph, Y: Csr, shares: Floats) -> Csr:
    """`neighbor_sums` of shares that add up to 1 in each row, rounded to 40 binary digits.

    Values that differ only by rounding errors thus become equal: a label that all neighbors carry
    has 1, and one with half of the shares exactly 1/2.
    """
    sums = neighbor_sums(graph, Y, shares)
    return with_data(sums, np.rint(sums.data * 2.0**40) / 2.0**40)


def counts_and_own(graph: NeighborGraph, Y: Csr, rows: Array) -> Csr:
    """For each of `rows`, the counts among its neighbors, plus k + 1 for its own labels.

    One sparse sum has both: an entry for every label that the row or a neighbor carries.
    """
    return neighbor_counts(graph, Y) + (graph.k + 1) * Y[rows].astype(np.int32)


def blocks_of_votes(graph: NeighborGraph, Y: Csr) -> Iterator[tuple[slice, NeighborGraph]]:
    """Yield the graph in blocks of rows whose neighbors have a bounded total number of labels."""
    begin, end = Y.indptr[:-1], Y.indptr[1:]
    # For a few queries it would take too long to read all base rows.
    sizes = end - begin if graph.indices.size > len(begin) else None
    for chunk, part in graph.blocks(_ROWS_AT_ONCE):
        near = part.indices
        votes = end[near] - begin[near] if sizes is None else sizes[near]
        for run in runs(votes.sum(axis=1, dtype=np.int64), _VOTES_AT_ONCE):
            yield (
                slice(chunk.start + run.start, chunk.start + run.stop),
                part.rows(run.start, run.stop),
            )


def rows_a_call(graph: NeighborGraph, Y: Csr) -> int:
    """The number of rows per call of a kernel, so that an interrupt takes effect soon."""
    votes_a_row = int(graph.indices.shape[1] * (1 + Y.nnz // max(1, Y.shape[0])))
    # 2^23 labels of neighbors take a tenth of a second.
    return max(1, min(_ROWS_AT_ONCE, 2**23 // max(1, votes_a_row)))


def _by_core(kernel: Callable[..., Parts], graph: NeighborGraph, Y: Csr, *weights: Floats) -> Csr:
    """One matrix from a kernel's results for blocks of rows: data, columns and indptr."""
    near, labels, q = kernel_places(graph.indices), kernel_rows(Y), Y.shape[1]
    n, step = near.shape[0], rows_a_call(graph, Y)
    runs_of_rows = [slice(start, start + step) for start in range(0, max(n, 1), step)]
    parts = [kernel(near[run], *(w[run] for w in weights), *labels, q) for run in runs_of_rows]
    data, columns, ends = parts[0]
    if len(parts) > 1:
        data, columns = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
        ends = np.cumsum(np.concatenate([[0], *(np.diff(part[2]) for part in parts)]))
    return csr_of_known(data, columns, ends, (n, q))


def _product(graph: NeighborGraph, weights: Array, Y: Csr) -> Csr:
    n, k = graph.indices.shape
    parts = (weights.ravel(), graph.indices.ravel(), k * np.arange(n + 1))
    product = sparse.csr_array(parts, shape=(n, graph.n_base)) @ Y
    product.sort_indices()
    return product
