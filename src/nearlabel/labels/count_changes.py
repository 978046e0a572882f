"""Training rows whose numbers of neighbors with a label have changed: what repairs tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from scipy import sparse

from nearlabel.common.arrays import Array, Csr, entries_at, row_numbers
from nearlabel.common.threads import run_blocks
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own

_ROWS_AT_ONCE = 2**12


@dataclass(frozen=True, eq=False)
class CountChanges:
    """Training rows that leave a cell of the tables, and enter another: arrays of one length.

    Attributes
    ----------
    label : ndarray of int
        The label of the table.
    count : ndarray of int
        How many of the row's neighbors carry the label.
    own : ndarray of int
        1 where the row carries it, else 0.
    change : ndarray of int
        -1 where the row leaves this cell, 1 where it enters it.
    row : ndarray of int
        The place of the row.
    """

    label: Array
    count: Array
    own: Array
    change: Array
    row: Array

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
    n_jobs: int = 1,
) -> CountChanges:
    """For each of `rows`, the labels whose count among its neighbors, or itself, has changed.

    Parameters
    ----------
    rows : ndarray of int, shape (r,)
        Places of training rows.
    before, after : ndarray of int, shape (r, k), or None
        Places of their neighbors. None where the rows were not there before, or are gone: they are
        counted as if they had no neighbors and no labels.
    Y_before, Y_after : csr_array, shape (n, q) and (n', q')
        Labels of all places; there may be more of both after.
    n_jobs : int
        Threads.

    Returns
    -------
    CountChanges
        Two entries for each row and label, in this order: where the row was, and where it is.
    """
    _check(rows, before, after, Y_before, Y_after)
    parts: dict[int, tuple[Array, ...]] = {}

    def look(block: slice) -> None:
        old = None if before is None else before[block]
        new = None if after is None else after[block]
        parts[block.start] = _differences(rows[block], old, new, Y_before, Y_after)

    run_blocks(look, len(rows), _ROWS_AT_ONCE, n_jobs, None)
    ordered = [parts[start] for start in sorted(parts)]
    if not ordered:
        ordered = [_differences(rows, None, None, Y_before, Y_after)]
    label, count, own, entries = (np.concatenate(part) for part in zip(*ordered, strict=True))
    change = np.tile(np.array([-1, 1], np.int8), len(label) // 2)
    return CountChanges(label, count, own, change, np.repeat(rows, entries))


def _differences(
    rows: Array, before: Array | None, after: Array | None, Y_before: Csr, Y_after: Csr
) -> tuple[Array, Array, Array, Array]:
    """Labels, counts and own labels of `CountChanges`, and how many entries each row has."""
    q = Y_after.shape[1]
    old, new = _codes(rows, before, Y_before, q), _codes(rows, after, Y_after, q)
    changed = new - old  # SciPy drops what is zero
    row, label = row_numbers(changed), changed.indices
    k = next((part.shape[1] for part in (before, after) if part is not None), 0)
    codes = np.zeros((len(label), 2), np.int32)
    for column, stored in enumerate((old, new)):
        found, value = entries_at(stored, row, label)
        codes[found, column] = value[found]
    own, count = np.divmod(codes.ravel(), k + 1)
    entries = 2 * np.diff(changed.indptr)
    return np.repeat(label, 2).astype(np.int32), count, own.astype(np.int8), entries


def _codes(rows: Array, near: Array | None, Y: Csr, q: int) -> Csr:
    """`counts_and_own` of rows, over q labels; nothing for rows that are not there."""
    if near is None:
        return sparse.csr_array((len(rows), q), dtype=np.int32)
    graph = NeighborGraph.unchecked(near, near, Y.shape[0])
    codes = sparse.csr_array(counts_and_own(graph, Y, rows))
    codes.resize((len(rows), q))
    codes.sort_indices()
    return codes


def _check(
    rows: Array, before: Array | None, after: Array | None, Y_before: Csr, Y_after: Csr
) -> None:
    """Refuse arrays that do not belong together."""
    given = [part.shape for part in (before, after) if part is not None]
    if any(shape != given[0] for shape in given) or any(shape[0] != len(rows) for shape in given):
        raise ValueError(
            "rows, before and after must be of one length, and before and after have the same "
            f"number of neighbors; got {len(rows)} rows and the shapes {given}"
        )
    if Y_after.shape[1] < Y_before.shape[1]:
        raise ValueError(
            f"Y_after must have the labels of Y_before, {Y_before.shape[1]}; got {Y_after.shape[1]}"
        )
    for near, Y, name in ((before, Y_before, "before"), (after, Y_after, "after")):
        for places, what in ((near, name), (rows, "rows")):
            if near is not None and places is not None and places.size:
                low, high = places.min(), places.max()
                if low < 0 or high >= Y.shape[0]:
                    raise ValueError(
                        f"{what} must be rows of Y_{name}, 0 to {Y.shape[0] - 1}; "
                        f"got {low} to {high}"
                    )
