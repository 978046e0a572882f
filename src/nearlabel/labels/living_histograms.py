"""Tables of rows by label and count that change in few places, while old states stay readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, kernel_array, runs
from nearlabel.common.threads import run_slices
from nearlabel.labels.count_changes import CountChanges
from nearlabel.labels.histograms import CountedRows, Counts, LabelHistograms

_ENTRIES_AT_ONCE = 2**20  # of changes, so that temporaries stay small; even, since they are pairs
_CELLS_AT_ONCE = 2**16  # copied at once


class _Pool:
    """Memory for the cells of tables, in which used cells are never overwritten."""

    def __init__(self, cells: int) -> None:
        # Rows that carry the label, and rows that do not; twice the current size.
        self.cells = np.zeros((2 * cells, 2), np.int64)
        self.used = 0

    def take(self, sizes: Array) -> Array:
        """Where new tables of these sizes begin."""
        ends = self.used + np.cumsum(sizes)
        self.used = int(ends[-1]) if len(ends) else self.used
        return ends - sizes


@dataclass(frozen=True, eq=False)
class LivingHistograms(CountedRows):
    """Immutable `LabelHistograms` from which changed ones are made cheaply.

    The cells of label l in the table of group g are those of the pool from ``start[g, l]`` on,
    ``room[l]`` of them. A change copies the cells of the labels that it touches to the end of the
    pool; all others are shared by both states.

    For rows at count 0 that do not carry the label, their number minus that of all rows is stored,
    so that it does not change for labels unrelated to a new row.
    """

    k: int
    groups: int
    rows: Array  # (groups,): rows that were counted
    totals: Array  # (groups, q): how many of them carry the label
    start: Array  # (groups, q)
    room: Array  # (q,)
    pool: _Pool

    @classmethod
    def of(cls, tables: LabelHistograms, q: int, k: int, groups: int = 1) -> LivingHistograms:
        """Tables of q labels and k neighbors, stacked if there are several groups."""
        rows, totals = tables.n.reshape(groups, q)[:, 0], tables.totals.reshape(groups, q)
        room, end = np.diff(tables.start[: q + 1]), int(tables.start[-1])
        start, pool = tables.start[:-1].reshape(groups, q), _Pool(end)
        pool.cells[:end, 0], pool.cells[:end, 1] = tables.with_label, tables.without_label
        pool.cells[start, 1] -= rows[:, None]
        pool.used = end
        return cls(k, groups, rows, totals, start, room, pool)

    def __reduce__(self) -> tuple[object, ...]:  # without the cells of other states
        return LivingHistograms.of, (self.compacted(), self.q, self.k, self.groups)

    @property
    def q(self) -> int:
        return len(self.room)

    def counts(self, label: Any, count: Any, group: Any = 0) -> Counts:
        table = label if self.groups == 1 else label + group * np.int64(self.q)
        cell, n_l = self.start.take(table) + count, self.totals.take(table)
        n = np.full(np.shape(n_l), self.rows[group])
        c, c_prime = self.pool.cells[cell, 0], self.pool.cells[cell, 1]
        return n, n_l, c, c_prime + n * (np.asarray(count) == 0)

    def carriers(self, label: Any) -> Array:
        return np.asarray(self.totals[:, label].sum(axis=0))

    def compacted(self) -> LabelHistograms:
        tables = LabelHistograms.of_totals(self.rows, self.totals, self.k)
        for cells, stacked, count in tables.runs():
            group, label = np.divmod(stacked, self.q)
            parts = self.counts(label, count, group)
            tables.with_label[cells], tables.without_label[cells] = parts[2:]
        return tables

    def changed(
        self,
        changes: Sequence[CountChanges],
        n: Array,
        q: int,
        group: Array | None = None,
        *,
        n_jobs: int = 1,
    ) -> LivingHistograms:
        """The tables after some changes.

        Parameters
        ----------
        changes : sequence of CountChanges
            Training rows that move between cells.
        n : ndarray of int, shape (groups,)
            The new number of rows of each group.
        q : int
            The new number of labels: there may be more at the end.
        group : ndarray of int, optional
            The group of each change, one sequence for all; by default the first group.
        n_jobs : int
            Threads.
        """
        rows = np.array(n)
        if rows.shape != (self.groups,) or q < self.q:
            raise ValueError(
                f"n must have {self.groups} entries, and q must be at least {self.q}; "
                f"got the shape {rows.shape} and {q}"
            )
        parts = list(_parts(changes, group, q))
        totals = np.zeros((self.groups, q), np.int64)
        totals[:, : self.q] = self.totals
        for part in parts:
            part.add_to_totals(totals.reshape(-1))
        state = self._with_own_tables(rows, totals, [part.table for part in parts])

        def add(tables: slice) -> None:
            for part in parts:
                part.add_to_cells(state, tables)

        shares = [slice(0, totals.size)]
        if sum(len(part.table) for part in parts) > _ENTRIES_AT_ONCE:
            changes_of = totals.reshape(-1) + 1  # a label has about as many changes as rows
            shares = list(runs(changes_of, int(changes_of.sum()) // n_jobs + 1))
        run_slices(add, shares, n_jobs, None)
        return state

    def _with_own_tables(
        self, rows: Array, totals: Array, touched: Sequence[Array]
    ) -> LivingHistograms:
        """The state with copies of the touched tables, and with room for more counts."""
        groups, q = totals.shape
        start, room = np.zeros((groups, q), np.int64), np.zeros(q, np.int64)
        start[:, : self.q], room[: self.q] = self.start, self.room
        is_own = np.zeros((groups, q), bool)
        is_own[:, self.q :] = True
        for tables in touched:
            is_own.reshape(-1)[tables] = True
        label = np.flatnonzero(is_own.any(axis=0))
        needed = _cells_of(totals[:, label], self.k)
        grows = needed > room[label]
        label, needed = label[grows], needed[grows]
        is_own[:, label] = True
        room[label] = np.minimum(np.maximum(needed, 2 * room[label]), self.k + 1)
        pool, (group, label) = self.pool, np.nonzero(is_own)
        if pool.used + int(room[label].sum()) > len(pool.cells):  # live tables only, into a new one
            pool = _Pool(groups * int(room.sum()))
            group, label = np.nonzero(np.ones_like(is_own))
        start[group, label] = pool.take(room[label])
        known = label < self.q  # others are new labels
        group, label = group[known], label[known]
        old, new = self.start[group, label], start[group, label]
        _copy_tables(self.pool.cells, old, self.room[label], pool.cells, new)
        return replace(self, rows=rows, totals=totals, start=start, room=room, pool=pool)


def _copy_tables(cells: Array, begin: Array, size: Array, target: Array, to: Array) -> None:
    """Copy tables, which begin at some cells and have some sizes, to other cells."""
    core = engine.core()
    if core is not None:
        core.copy_tables(begin, size, to, cells.reshape(-1), target.reshape(-1))
        return
    for run in runs(size, _CELLS_AT_ONCE):
        many = size[run]
        place = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
        target[np.repeat(to[run], many) + place] = cells[np.repeat(begin[run], many) + place]


def _cells_of(totals: Array, k: int) -> Array:
    """Cells of each label in the tables of a group: see `LabelHistograms`."""
    return np.asarray(np.minimum(totals.sum(axis=0), k) + 1)


@dataclass(frozen=True, eq=False)
class _CellChanges:
    """A block of pairs of changes; `table` numbers the labels of all groups."""

    table: Array
    count: Array
    own: Array

    def add_to_totals(self, totals: Array) -> None:
        """Count the rows that carry the label."""
        core = engine.core()
        if core is not None:
            core.add_to_totals(self.table, self.own, totals)
            return
        is_own = self.own == 1
        np.add.at(totals, self.table[is_own], self._signs()[is_own])

    def add_to_cells(self, state: LivingHistograms, tables: slice) -> None:
        """Move the rows between cells of some tables."""
        core, start = engine.core(), state.start.reshape(-1)
        if core is not None:
            cells = start, state.room, state.pool.cells.reshape(-1)
            core.add_to_cells(self.table, self.count, self.own, *cells, tables.start, tables.stop)
            return
        chosen = (self.table >= tables.start) & (self.table < tables.stop)
        table, count = self.table[chosen], self.count[chosen]
        cell = start[table] + count
        column = (self.own[chosen] == 0).astype(np.intp)
        np.add.at(state.pool.cells, (cell, column), self._signs()[chosen])

    def _signs(self) -> Array:
        return np.tile([-1, 1], len(self.table) // 2)


def _parts(changes: Sequence[CountChanges], group: Array | None, q: int) -> Iterator[_CellChanges]:
    """The changes in blocks."""
    seen = 0
    for change in changes:
        size, table = len(change.label), change.label
        if group is not None:
            number = group[seen : seen + size].astype(np.int64)
            table = number * q + table
        seen += size
        kind = np.int32 if table.dtype == np.int32 else np.int64
        for start in range(0, size, _ENTRIES_AT_ONCE):
            run = slice(start, start + _ENTRIES_AT_ONCE)
            yield _CellChanges(
                kernel_array(table[run], kind),
                kernel_array(change.count[run], np.int32),
                kernel_array(change.own[run], np.int8),
            )
