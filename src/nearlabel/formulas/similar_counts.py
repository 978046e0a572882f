"""Training rows whose neighborhoods resemble a query's in all labels at once.

C_il is how many neighbors of training row i have label l, c_l the same for a query. A row is
admissible if each of its q counts is within the tolerance of the query's. Comparing all rows in all
labels would take n q steps per query. Two observations make it cheap and keep it exact:

- A count is heavy if it is above the tolerance. If neither count of a label is heavy, they are
  within the tolerance. So a query without heavy counts admits every row without heavy counts: these
  light rows are counted by label and count beforehand.
- If one of the two counts is heavy, the other must not be 0. So heavy rows are found in lists of
  rows by label and count, at labels that the query's neighbors have; and a query with a heavy count
  finds all its rows there. If most rows are in the list, it is faster to subtract the few light
  rows that are not in it from the counts made beforehand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from nearlabel.common import engine
from nearlabel.common.arrays import Array, Csr, csr_of_known, kernel_array, kernel_rows, row_numbers
from nearlabel.labels.counts import group_totals
from nearlabel.labels.histograms import LabelHistograms

_CELLS_AT_ONCE = 2**19  # of the tally of some queries: most of it stays in the cache
_ENTRIES_A_CALL = 2**28  # of training rows that some queries visit at worst: a second


class Tally(NamedTuple):
    """The admissible rows of m queries."""

    admissible: Array  # (m,), |A|: how many there are
    with_label: Array  # (m, q), V_l: of these with the query's count of label l, those that have it
    without_label: Array  # (m, q), U_l: those that do not


@dataclass(frozen=True)
class AdmissibleRows:
    """Training rows, arranged so that those near a query's counts are found."""

    tolerance: int  # greatest difference of the counts of a label; at most k, which admits all rows
    entries: Csr  # (n, q), int32: 2 C_il + y_il, the count and whether the row has the label
    is_light: Array  # (n,): rows without a heavy count
    light: LabelHistograms  # these rows by label and count
    # (cells of the histograms, n): for each label and count, the rows that have it; empty for count
    # 0, and for labels that are too rare to have a heavy count.
    postings: Csr

    @classmethod
    def of(cls, C: Csr, Y: Csr, k: int, tolerance: int) -> AdmissibleRows:
        """Arrange rows with labels Y; C_il of row i's k neighbors have label l, no zeros stored."""
        tolerance = min(tolerance, k)
        entries = 2 * C + Y
        label, count, carries = entries.indices, entries.data >> 1, entries.data & 1 == 1
        light = LabelHistograms.of_totals(*group_totals(Y, None), k)
        cell = light.cells(label, count)

        is_light = np.ones(Y.shape[0], bool)
        is_light[row_numbers(entries)[count > tolerance]] = False
        n_cells = len(light.with_label)
        counted = np.repeat(is_light, np.diff(entries.indptr))
        light.with_label[:] = np.bincount(cell[counted & carries], minlength=n_cells)
        light.without_label[:] = np.bincount(cell[counted & ~carries], minlength=n_cells)
        # Light rows without the label and without a neighbor that has it have no entry.
        start = light.start[:-1]
        seen = np.add.reduceat(light.with_label + light.without_label, start)
        light.without_label[start] = is_light.sum() - seen

        can_be_heavy = np.diff(light.start) - 1 > tolerance
        listed = can_be_heavy[label] & (count > 0)
        indptr = np.concatenate([[0], np.cumsum(listed)])[entries.indptr]
        ones = np.ones(indptr[-1], np.int8)
        cells_of_rows = csr_of_known(ones, cell[listed], indptr, (Y.shape[0], n_cells))
        return cls(tolerance, entries, is_light, light, cells_of_rows.T.tocsr())

    def tallies(self, counts: Csr) -> Iterator[tuple[slice, Tally]]:
        """Count the admissible rows of queries with int32 counts (m, q), some at a time."""
        m, q = counts.shape
        core = engine.core()
        at_once = max(1, min(_CELLS_AT_ONCE // q, _ENTRIES_A_CALL // (self.entries.nnz + 1)))
        for start in range(0, m, at_once):
            rows = slice(start, min(start + at_once, m))
            size = rows.stop - start
            tally = Tally(np.empty(size, np.int64), *np.empty((2, size, q), np.int32))
            if core is None:
                self._tally_by_numpy(counts[rows], tally)
            else:
                self._tally_by_core(counts[rows], tally)
            yield rows, tally

    def _tally_by_core(self, counts: Csr, tally: Tally) -> None:
        indptr, indices = kernel_rows(self.entries)
        light = self.light
        engine.core().tally_admissible(
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
        q, heavy_rows = counts.shape[1], self.entries[np.flatnonzero(~self.is_light)]
        for query in range(counts.shape[0]):
            c = counts[[query]].toarray().ravel()
            heavy = np.flatnonzero(c > self.tolerance)
            rows = self.entries[self._shortest_list(heavy, c)] if len(heavy) else heavy_rows
            row, label, own = row_numbers(rows), rows.indices, c[rows.indices]
            theirs, carries = rows.data >> 1, rows.data & 1 == 1
            # A row has an entry for every heavy label, and none outside the tolerance.
            is_heavy = own > self.tolerance
            admits = np.bincount(row[is_heavy], minlength=rows.shape[0]) == len(heavy)
            admits[row[np.abs(theirs - own) > self.tolerance]] = False
            admitted = admits[row]
            same = admitted & (theirs == own)
            A, absent = admits.sum(), admits.sum() - np.bincount(label[admitted], minlength=q)
            V = np.bincount(label[same & carries], minlength=q)
            U = np.bincount(label[same & ~carries], minlength=q) + (c == 0) * absent
            if not len(heavy):  # all light rows are admissible, and were counted beforehand
                cell = self.light.start[:-1] + c
                A += self.is_light.sum()
                V += self.light.with_label[cell]
                U += self.light.without_label[cell]
            tally.admissible[query], tally.with_label[query], tally.without_label[query] = A, V, U

    def _shortest_list(self, heavy: Array, c: Array) -> Array:
        """The rows with a count near the query's, for the heavy label with the fewest such rows."""
        cell, stop = self.light.start[heavy] + c[heavy], self.light.start[heavy + 1]
        begin = self.postings.indptr[cell - self.tolerance]
        end = self.postings.indptr[np.minimum(cell + self.tolerance + 1, stop)]
        shortest = np.argmin(end - begin)
        return np.asarray(self.postings.indices[begin[shortest] : end[shortest]])
