"""Tables of rows by label and count that change in few places, while old states stay readable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, kernel_array, runs
from nearlabel.common.threads import run_blocks, run_slices
from nearlabel.labels.count_changes import CountChanges
from nearlabel.labels.histograms import CountedRows, Counts, LabelHistograms

_BITS = 6  # of a cell's position within its block
_BLOCK = 1 << _BITS  # cells
_BLOCKS_AT_ONCE = 2**14  # copied by a thread at once
_ENTRIES_AT_ONCE = 2**20  # of changes, so that temporaries stay small; even, since they are pairs


class _Pool:
    """Memory for blocks of cells; used blocks are never overwritten."""

    def __init__(self, blocks: int) -> None:
        # Rows that carry the label, and rows that do not; twice the current size.
        self.blocks = np.zeros((2 * blocks, _BLOCK, 2), np.int64)
        self.cells, self.numbers = self.blocks.reshape(-1, 2), self.blocks.reshape(-1)
        self.used = 0

    def take(self, blocks: int) -> Array:
        """Allocate some blocks."""
        self.used += blocks
        return np.arange(self.used - blocks, self.used, dtype=np.int32)

    def copy(self, pool: _Pool, blocks: Array, own: Array, n_jobs: int) -> None:
        """Copy blocks of a pool to the first allocated ones."""
        first = int(own[0]) if len(own) else 0

        def copy(run: slice) -> None:
            target = self.blocks[first + run.start : first + run.stop]
            np.take(pool.blocks, blocks[run], axis=0, out=target, mode="clip")

        run_blocks(copy, len(blocks), _BLOCKS_AT_ONCE, n_jobs, None)


@dataclass(frozen=True, eq=False)
class LivingHistograms(CountedRows):
    """Immutable `LabelHistograms` from which changed ones are made cheaply.

    The cells of label l in the table of group g have the addresses from ``start[g, l]`` on,
    ``room[l]`` of them. Addresses are divided into blocks, and `slot` says where a block is in the
    pool. A change copies the blocks that it touches; all others are shared by both states.

    For rows at count 0 that do not carry the label, their number minus that of all rows is stored,
    so that it does not change for labels unrelated to a new row.
    """

    k: int
    groups: int
    rows: Array  # (groups,): rows that were counted
    totals: Array  # (groups, q): how many of them carry the label
    start: Array  # (groups, q)
    room: Array  # (q,)
    end: int  # of the addresses
    slot: Array  # (blocks,)
    pool: _Pool

    @classmethod
    def of(cls, tables: LabelHistograms, q: int, k: int, groups: int = 1) -> LivingHistograms:
        """Tables of q labels and k neighbors, stacked if there are several groups."""
        rows, totals = tables.n.reshape(groups, q)[:, 0], tables.totals.reshape(groups, q)
        room, end = np.diff(tables.start[: q + 1]), int(tables.start[-1])
        start = tables.start[:-1].reshape(groups, q)
        pool = _Pool(_blocks(end))
        pool.cells[:end, 0], pool.cells[:end, 1] = tables.with_label, tables.without_label
        pool.cells[start, 1] -= rows[:, None]
        return cls(k, groups, rows, totals, start, room, end, pool.take(_blocks(end)), pool)

    def __reduce__(self) -> Any:  # without the blocks of other states
        return LivingHistograms.of, (self.compacted(), self.q, self.k, self.groups)

    @property
    def q(self) -> int:
        """The number of labels of one table."""
        return len(self.room)

    def counts(self, label: Any, count: Any, group: Any = 0) -> Counts:
        """n, n_l, c[j] and c'[j] of labels and counts, in the tables of some groups."""
        place = 2 * self._places(label, count, group)
        n_l = self.totals.take(self._number(label, group))
        n = np.full(np.shape(n_l), self.rows[group])
        c, c_prime = self.pool.numbers.take(place), self.pool.numbers.take(place + 1)
        return n, n_l, c, c_prime + n * (np.asarray(count) == 0)

    def carriers(self, label: Any) -> Array:
        """The number of rows of all groups that carry each label."""
        return np.asarray(self.totals[:, label].sum(axis=0))

    def dense(self, k: int) -> Counts:
        """`counts` of all labels for counts from 0 to k, broadcastable to (groups q, k + 1)."""
        return self.compacted().dense(k)

    def compacted(self) -> LabelHistograms:
        """The same tables without room for changes, stacked if there are several groups."""
        sizes = np.tile(_cells_of(self.totals, self.k), self.groups)
        start = np.concatenate([[0], np.cumsum(sizes)])
        n, n_l, *_ = self.at_0()
        with_label, without_label = np.empty((2, start[-1]), np.int64)
        tables = LabelHistograms(n, n_l, start, with_label, without_label, self.groups)
        for cells, stacked in tables.runs():
            group, label = np.divmod(stacked, self.q)
            count = np.arange(cells.start, cells.stop) - start[stacked]
            with_label[cells], without_label[cells] = self.counts(label, count, group)[2:]
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
        parts = list(_parts(changes, group, self.groups, q))
        totals = np.zeros((self.groups, q), np.int64)
        totals[:, : self.q] = self.totals
        for part in parts:
            part.add_to_totals(totals.reshape(-1))
        state, moved = self._with_room(rows, totals)
        touched = np.zeros(_blocks(state.end), np.uint8)
        touched[self.end >> _BITS :] = len(moved) > 0
        entries = sum(len(part.table) for part in parts)
        if entries > 4 * len(touched):  # nearly all of them
            touched[:] = 1
        else:
            for part in parts:
                part.mark_blocks(state, touched)
        state = state._with_own_blocks(np.flatnonzero(touched), _blocks(self.end), n_jobs)
        if len(moved):
            state._move_from(self, moved)

        def add(tables: slice) -> None:
            for part in parts:
                part.add_to_cells(state, tables)

        shares = [slice(0, totals.size)]
        if entries > _ENTRIES_AT_ONCE:  # a label has about as many changes as rows
            rows_of = totals.reshape(-1) + 1
            shares = list(runs(rows_of, int(rows_of.sum()) // n_jobs + 1))
        run_slices(add, shares, n_jobs, None)
        return state

    def _number(self, label: Any, group: Any) -> Any:
        """The number of a label among those of all groups."""
        return label if self.groups == 1 else label + group * np.int64(self.q)

    def _places(self, label: Any, count: Any, group: Any) -> Any:
        """The positions of cells in the pool; a count is below the room of its label."""
        return self._places_of(self._number(label, group), count)

    def _places_of(self, table: Any, count: Any) -> Any:
        address = self.start.take(table) + count
        block = self.slot.take(address >> _BITS)
        return (block.astype(np.int64) << _BITS) + (address & (_BLOCK - 1))

    def _with_room(self, rows: Array, totals: Array) -> tuple[LivingHistograms, Array]:
        """The state with addresses for more counts, and the labels that get new ones."""
        q = totals.shape[1]
        needed = _cells_of(totals, self.k)
        start, room = np.zeros((self.groups, q), np.int64), np.zeros(q, np.int64)
        start[:, : self.q], room[: self.q] = self.start, self.room
        moved = np.flatnonzero(needed > room)
        room[moved] = np.minimum(np.maximum(needed[moved], 2 * room[moved]), self.k + 1)
        sizes = np.tile(room[moved], (self.groups, 1))
        start[:, moved] = self.end + (np.cumsum(sizes) - sizes.ravel()).reshape(sizes.shape)
        end = self.end + int(sizes.sum())
        return replace(self, rows=rows, totals=totals, start=start, room=room, end=end), moved

    def _with_own_blocks(self, touched: Array, known: int, n_jobs: int) -> LivingHistograms:
        """The state with copies of some of its blocks; those from `known` on are new."""
        pool, slot = self.pool, np.zeros(_blocks(self.end), np.int32)
        slot[:known] = self.slot
        if pool.used + len(touched) > len(pool.blocks):  # live blocks only, into a new pool
            pool = _Pool(len(slot) + len(touched))
            own = pool.take(len(slot))
            pool.copy(self.pool, self.slot, own, n_jobs)
            return replace(self, slot=own, pool=pool)
        own = pool.take(len(touched))
        pool.copy(pool, slot[touched[touched < known]], own, n_jobs)
        slot[touched] = own
        return replace(self, slot=slot, pool=pool)

    def _move_from(self, before: LivingHistograms, labels: Array) -> None:
        """Copy the cells of labels with new addresses."""
        labels = labels[labels < before.q]
        sizes = before.room[labels]
        label = np.repeat(labels, sizes)
        count = np.arange(len(label)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        for group in range(self.groups):
            found = before.pool.cells[before._places(label, count, group)]
            self.pool.cells[self._places(label, count, group)] = found


def _blocks(cells: int) -> int:
    """The number of blocks for some cells."""
    return -(-cells // _BLOCK)


def _cells_of(totals: Array, k: int) -> Array:
    """Cells of each label in the tables of a group: see `LabelHistograms`."""
    return np.asarray(np.minimum(totals.sum(axis=0), k) + 1)


@dataclass(frozen=True, eq=False)
class _Part:
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
        _check(self.table, len(totals), "label")
        is_own = self.own == 1
        np.add.at(totals, self.table[is_own], self._signs()[is_own])

    def mark_blocks(self, state: LivingHistograms, touched: Array) -> None:
        """Mark the blocks that are about to change."""
        core, start = engine.core(), state.start.reshape(-1)
        if core is not None:
            core.mark_blocks(self.table, self.count, start, state.room, _BITS, touched)
            return
        _check(self.count, state.room[self.table % state.q], "count")
        touched[(start[self.table] + self.count) >> _BITS] = 1

    def add_to_cells(self, state: LivingHistograms, tables: slice) -> None:
        """Move the rows between cells of some tables."""
        core, numbers = engine.core(), state.pool.numbers
        if core is not None:
            cells = state.start.reshape(-1), state.room, _BITS, state.slot, numbers
            core.add_to_cells(self.table, self.count, self.own, *cells, tables.start, tables.stop)
            return
        chosen = (self.table >= tables.start) & (self.table < tables.stop)
        place = state._places_of(self.table[chosen], self.count[chosen])
        np.add.at(numbers, 2 * place + (self.own[chosen] == 0), self._signs()[chosen])

    def _signs(self) -> Array:
        return np.tile([-1, 1], len(self.table) // 2)


def _parts(
    changes: Sequence[CountChanges], group: Array | None, groups: int, q: int
) -> Iterator[_Part]:
    """The changes in blocks."""
    seen = 0
    for some in changes:
        size, table = len(some.label), some.label
        if group is not None:
            its = group[seen : seen + size].astype(np.int64)
            _check(its, groups, "group")
            _check(table, q, "label")
            table = its * q + table
        seen += size
        kind = np.int32 if table.dtype == np.int32 else np.int64
        for start in range(0, size, _ENTRIES_AT_ONCE):
            run = slice(start, start + _ENTRIES_AT_ONCE)
            yield _Part(
                kernel_array(table[run], kind),
                kernel_array(some.count[run], np.int32),
                kernel_array(some.own[run], np.int8),
            )


def _check(values: Array, end: Any, name: str) -> None:
    """Refuse values outside of the tables."""
    if np.any(values < 0) or np.any(values >= end):
        raise ValueError(f"{name} must be within the tables; got {values.min()} to {values.max()}")
