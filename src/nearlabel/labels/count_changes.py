"""Training rows whose numbers of neighbors with a label have changed, to update tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import cast

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    entries_at,
    kernel_array,
    kernel_places,
    kernel_rows,
    row_numbers,
)
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph, index_type
from nearlabel.labels.counts import counts_and_own

_ROWS_AT_ONCE = 2**14
_ROWS_A_THREAD = 2**10  # fewer do not pay for another thread
# Labels, counts and own labels of `CountChanges`, and the number of entries of each row.
_Entries = tuple[Array, Array, Array, Array]


@dataclass(frozen=True, eq=False)
class CountChanges:
    """Training rows that move from one cell of the tables to another.

    Entries come in pairs, for one row and one label: first the old cell, then the new one.

    Attributes
    ----------
    label : ndarray of int32
        The label of the table.
    count : ndarray of int32
        How many of the row's neighbors carry the label.
    own : ndarray of int8
        1 if the row carries it, else 0.
    rows : ndarray of int, shape (r,)
        The places of the rows.
    entries : ndarray of int, shape (r,)
        The number of entries of each row.
    """

    label: Array
    count: Array
    own: Array
    rows: Array
    entries: Array

    @property
    def row(self) -> Array:
        """The place of the row of each entry."""
        return np.repeat(self.rows, self.entries)

    @property
    def change(self) -> Array:
        """-1 for each entry where a row leaves its cell, 1 where it enters one."""
        return np.tile(np.array([-1, 1], np.int8), len(self.label) // 2)

    @classmethod
    def joined(cls, parts: Sequence[CountChanges]) -> CountChanges:
        """Several changes as one."""
        names = [field.name for field in fields(cls)]
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


def count_changes(
    rows: Array,
    before: Array | None,
    after: Array | None,
    Y_before: Csr,
    Y_after: Csr,
    *,
    relabelled: Array | None = None,
    n_jobs: int = 1,
) -> list[CountChanges]:
    """For each of `rows`, the labels whose count among its neighbors, or itself, has changed.

    Parameters
    ----------
    rows : ndarray of int, shape (r,)
        Places of training rows.
    before, after : ndarray of int, shape (r, k), or None
        Places of their neighbors. None if the rows did not exist before, or are removed: they are
        counted as if they had no neighbors and no labels.
    Y_before, Y_after : csr_array, shape (n, q) and (n', q')
        Labels of all places; there may be more of both afterwards.
    relabelled : ndarray of int, optional
        Places where the two differ; by default nowhere.
    n_jobs : int
        Threads.

    Returns
    -------
    list of CountChanges
        By blocks of rows: a single one would require a copy.
    """
    # A list without columns stands for rows that do not exist.
    nobody = np.empty((len(rows), 0), np.int32)
    old, new = (kernel_places(nobody if part is None else part) for part in (before, after))
    if old.dtype != new.dtype:
        old, new = old.astype(np.int64), new.astype(np.int64)
    differences = _differences(Y_before, Y_after, relabelled)
    places = rows.astype(index_type(Y_after.shape[0]))
    parts: dict[int, CountChanges] = {}

    def look(block: slice) -> None:
        label, count, own, entries = differences(rows[block], old[block], new[block])
        parts[block.start] = CountChanges(label, count, own, places[block], entries)

    step = min(_ROWS_AT_ONCE, max(_ROWS_A_THREAD, -(-len(rows) // n_jobs)))
    run_blocks(look, len(rows), step, n_jobs, None)
    if not parts:
        look(slice(0, 0))
    return [parts[start] for start in sorted(parts)]


def _differences(Y_before: Csr, Y_after: Csr, relabelled: Array | None) -> Callable[..., _Entries]:
    """A function that finds the changes of a block of rows, some of which may be relabelled."""
    core = engine.core()
    if core is None:
        return partial(_by_scipy, Y_before, Y_after)
    labels = [*kernel_rows(Y_before), *kernel_rows(Y_after)]
    if len({part.dtype for part in labels}) > 1:
        labels = [part.astype(np.int64) for part in labels]
    is_other = np.zeros(0, np.uint8)
    if relabelled is not None and len(relabelled):
        is_other = np.zeros(Y_before.shape[0], np.uint8)
        is_other[relabelled] = 1

    def by_core(rows: Array, before: Array, after: Array) -> _Entries:
        places = kernel_array(rows, np.int64)
        entries = core.count_changes(places, before, after, *labels, is_other, Y_after.shape[1])
        return cast(_Entries, entries)

    return by_core


def _by_scipy(Y_before: Csr, Y_after: Csr, rows: Array, before: Array, after: Array) -> _Entries:
    q, k = Y_after.shape[1], max(before.shape[1], after.shape[1])
    old, new = _codes(rows, before, Y_before, q), _codes(rows, after, Y_after, q)
    changed = new - old  # SciPy drops zeros
    row, label = row_numbers(changed), changed.indices
    codes = np.zeros((len(label), 2), np.int32)
    for column, stored in enumerate((old, new)):
        is_stored, value = entries_at(stored, row, label)
        codes[is_stored, column] = value[is_stored]
    own, count = np.divmod(codes.ravel(), k + 1)
    entries = 2 * np.diff(changed.indptr).astype(np.int64)
    return np.repeat(label, 2).astype(np.int32), count, own.astype(np.int8), entries


def _codes(rows: Array, near: Array, Y: Csr, q: int) -> Csr:
    """`counts_and_own` of rows, over q labels; nothing for rows that do not exist."""
    if not near.shape[1]:
        return sparse.csr_array((len(rows), q), dtype=np.int32)
    graph = NeighborGraph.unchecked(near, near, Y.shape[0])
    codes = sparse.csr_array(counts_and_own(graph, Y, rows))
    codes.resize((len(rows), q))
    codes.sort_indices()
    return codes
