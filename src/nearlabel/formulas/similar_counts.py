"""Training rows whose neighborhoods resemble a query's in all labels at once.

C_il is how many neighbors of training row i carry label l, c_l the same of a query. A row is
admissible where none of its q counts is further than the tolerance from the query's. To compare all
rows in all labels would take n q steps a query. Two observations make it cheap and keep it exact:

- A count is heavy if it is above the tolerance. Where neither count of a label is heavy, they are
  near each other. So a query without heavy counts admits every row without: these light rows were
  counted by label and count beforehand.
- Where one of the two counts is heavy, the other must not be 0. So heavy rows are found in lists of
  rows by label and count, at labels that the query touches; and a query with a heavy count finds
  all its rows there. If most rows are in the list, it is shorter to take the few light rows that
  are not from what was counted beforehand.

The compiled core counts where it is there, else NumPy and SciPy; both give the same.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, csr_of_known, kernel_array, kernel_rows, row_numbers
from nearlabel.labels.histograms import LabelHistograms

_CELLS_AT_ONCE = 2**19  # of a tally of some queries: most of it stays in the cache
_ENTRIES_A_CALL = 2**28  # of training rows that some queries look at, at worst: a second


class Tally(NamedTuple):
    """The admissible rows of m queries.

    Attributes
    ----------
    admissible : ndarray of int64, shape (m,)
        |A|: how many there are.
    with_label, without_label : ndarray of int32, shape (m, q)
        V_l and U_l: how many of them have the query's count of label l, and carry it or not.
    """

    admissible: Array
    with_label: Array
    without_label: Array


@dataclass(frozen=True)
class AdmissibleRows:
    """Training rows, arranged so that those near a query's counts are found.

    Attributes
    ----------
    tolerance : int
        Most that the counts of a label may differ; k at most, which allows everything.
    entries : csr_array of int32, shape (n, q)
        2 C_il + y_il: the count, and whether the row carries the label.
    is_light : ndarray of bool, shape (n,)
        Rows without a heavy count.
    light : LabelHistograms
        These rows by label and count.
    postings : csr_array, shape (cells of the histograms, n)
        For each label and count, the rows that have it; empty for count 0, and for labels that are
        too rare to have a heavy count.
    """

    tolerance: int
    entries: Csr
    is_light: Array
    light: LabelHistograms
    postings: Csr

    @classmethod
    def of(cls, C: Csr, Y: Csr, k: int, tolerance: int) -> AdmissibleRows:
        """Arrange rows with labels Y, of whose k neighbors C_il carry label l.

        Parameters
        ----------
        C : csr_array of int32, shape (n, q)
            From 1 to min(k, n_l) where it stores something.
        Y : csr_array of ones, shape (n, q)
        k, tolerance : int
        """
        tolerance = min(tolerance, k)
        entries = 2 * C + Y
        label, count, carries = entries.indices, entries.data >> 1, entries.data & 1 == 1
        light = LabelHistograms.of_cells(Y, k)
        cell = light.cells(label, count)

        is_light = np.ones(Y.shape[0], bool)
        is_light[row_numbers(entries)[count > tolerance]] = False
        n_cells = len(light.with_label)
        counted = np.repeat(is_light, np.diff(entries.indptr))
        light.with_label[:] = np.bincount(cell[counted & carries], minlength=n_cells)
        light.without_label[:] = np.bincount(cell[counted & ~carries], minlength=n_cells)
        # Light rows without the label and without a neighbor that carries it have no entry.
        start = light.start[:-1]
        seen = np.add.reduceat(light.with_label + light.without_label, start)
        light.without_label[start] = is_light.sum() - seen

        can_be_heavy = np.diff(light.start) - 1 > tolerance
        listed = can_be_heavy[label] & (count > 0)
        indptr = np.concatenate([[0], np.cumsum(listed)])[entries.indptr]
        ones = np.ones(indptr[-1], np.int8)
        cells_of_rows = csr_of_known(ones, cell[listed], indptr, (Y.shape[0], n_cells))
        return cls(tolerance, entries, is_light, light, cells_of_rows.T.tocsr())

    @property
    def counts(self) -> Csr:
        """C, as it was given."""
        count = self.entries.data >> 1
        kept = count > 0
        indptr = np.concatenate([[0], np.cumsum(kept)])[self.entries.indptr]
        return csr_of_known(count[kept], self.entries.indices[kept], indptr, self.entries.shape)

    def tallies(self, counts: Csr) -> Iterator[tuple[slice, Tally]]:
        """Count the admissible rows of queries, some queries at a time.

        Parameters
        ----------
        counts : csr_array of int32, shape (m, q)
            Of the queries, from 1 to min(k, n_l) where it stores something.
        """
        m, q = counts.shape
        core = engine.core()
        at_once = max(1, min(_CELLS_AT_ONCE // q, _ENTRIES_A_CALL // (self.entries.nnz + 1)))
        for start in range(0, m, at_once):
            rows = slice(start, min(start + at_once, m))
            tally = Tally(
                np.empty(rows.stop - start, np.int64),
                *np.empty((2, rows.stop - start, q), np.int32),
            )
            if core is None:
                self._tally_by_numpy(counts[rows], tally)
            else:
                self._tally_by_core(core, counts[rows], tally)
            yield rows, tally

    def _tally_by_core(self, core: Any, counts: Csr, tally: Tally) -> None:
        indptr, indices = kernel_rows(self.entries)
        light = self.light
        core.tally_admissible(
            kernel_array(counts.indptr, np.int64),
            kernel_array(counts.indices, np.int64),
            kernel_array(counts.data, np.int32),
            *(indptr, indices, self.entries.data),
            *(light.start, light.with_label, light.without_label),
            self.is_light.view(np.uint8),
            kernel_array(self.postings.indptr, indptr.dtype),
            kernel_array(self.postings.indices, indptr.dtype),
            self.tolerance,
            *tally,
        )

    def _tally_by_numpy(self, counts: Csr, tally: Tally) -> None:
        light, c = self.light, np.zeros(counts.shape[1], np.int32)
        none = light.start[:-1]  # the cells of count 0
        for query, (begin, end) in enumerate(pairwise(counts.indptr)):
            label, count = counts.indices[begin:end], counts.data[begin:end]
            c[label] = count
            tables, added, removed = self._found(c, label, count)
            more = len(added) - len(removed)
            tally.admissible[query] = tables * self.is_light.sum() + more
            # First the tables, and the other rows as if they had no entries; then their entries.
            V, U = tally.with_label[query], tally.without_label[query]
            cell = light.cells(label, count)
            V[:], V[label] = tables * light.with_label[none], tables * light.with_label[cell]
            U[:], U[label] = tables * light.without_label[none], tables * light.without_label[cell]
            U[c == 0] += more
            rows = self.entries[np.concatenate([added, removed])]
            own, carries = c[rows.indices], rows.data & 1
            is_same, was_counted = rows.data >> 1 == own, own == 0
            times = np.where(row_numbers(rows) < len(added), np.int32(1), np.int32(-1))
            np.add.at(V, rows.indices, times * (is_same * carries))
            np.add.at(U, rows.indices, times * (is_same * (1 - carries) - was_counted))
            c[label] = 0

    def _found(self, c: Array, label: Array, count: Array) -> tuple[bool, Array, Array]:
        """Whether to begin with the light rows; the rows to add, and the light rows to remove."""
        tolerance, is_heavy = self.tolerance, count > self.tolerance
        nothing = np.empty(0, np.intp)
        if not is_heavy.any():
            lists = self._listed(label, np.full_like(count, tolerance + 1), count + tolerance)
            return True, self._admitted(np.unique(np.concatenate([nothing, *lists])), c), nothing
        label, count = label[is_heavy], count[is_heavy]
        lists = self._listed(label, count - tolerance, count + tolerance)
        shortest = min(lists, key=len)
        n = len(self.is_light)
        if 2 * len(shortest) <= n:
            return False, self._admitted(shortest, c), nothing
        in_all = np.bincount(np.concatenate(lists), minlength=n) == len(lists)
        heavy_rows = np.flatnonzero(in_all & ~self.is_light)
        return True, self._admitted(heavy_rows, c), np.flatnonzero(self.is_light & ~in_all)

    def _admitted(self, candidates: Array, c: Array) -> Array:
        """Those of some rows that are admissible for counts c."""
        rows = self.entries[candidates]
        row, own, theirs = row_numbers(rows), c[rows.indices], rows.data >> 1
        is_near = (own > self.tolerance) & (theirs >= own - self.tolerance)
        heavy = np.count_nonzero(c > self.tolerance)
        admits = np.bincount(row[is_near], minlength=len(candidates)) == heavy
        admits[row[theirs > own + self.tolerance]] = False
        admitted: Array = candidates[admits]
        return admitted

    def _listed(self, label: Array, low: Array, high: Array) -> list[Array]:
        """For each label, the rows with a count from `low` to `high`."""
        start, stop = self.light.start[label], self.light.start[label + 1]
        begin = self.postings.indptr[np.minimum(start + low, stop)]
        end = self.postings.indptr[np.minimum(start + high + 1, stop)]
        return [self.postings.indices[a:b] for a, b in zip(begin, end, strict=True)]
