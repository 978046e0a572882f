"""Scores of all labels for many rows, without a rows x labels matrix.

A neighbor method scores few labels by what it found near a row: the touched labels. All others have
a default score that does not depend on the row, or only on the group of rows that it belongs to. So
`LabelScores` keeps the touched labels of each row and one row of defaults a group, and ranks over
all q labels from these. The compiled core does so where it is there, else NumPy: to the same end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    canonical_csr,
    entries_at,
    kernel_array,
    kernel_rows,
    row_numbers,
    runs,
    with_data,
)
from nearlabel.common.validation import (
    check_dense_size,
    check_integer,
    check_same_length,
    label_matrix,
)
from nearlabel.labels.ranks import DefaultScores, Places, Ties, standing_in_rows

_ENTRIES_AT_ONCE = 2**20  # scores that are ranked together
_CELLS_AT_ONCE = 2**24  # cells of a dense matrix that are filled together


@dataclass(frozen=True, eq=False)
class RankedLabels:
    """The best labels of each row, best first; equal scores in the order of the columns.

    Attributes
    ----------
    labels : ndarray of int, shape (n, top)
        Columns of the labels.
    scores : ndarray of float, shape (n, top)
    label_names : ndarray of str or None
        Names of all columns, where they have some.
    """

    labels: Array
    scores: Floats
    label_names: Array | None

    @cached_property
    def names(self) -> Array:
        """Names of the labels, shape (n, top); their columns where they have none.

        Made when they are first asked for: those of many rows are much longer than the columns.
        """
        return self.labels if self.label_names is None else self.label_names[self.labels]

    def __len__(self) -> int:
        return len(self.labels)


class LabelScores:
    """Scores of q labels for n rows; greater is better.

    Parameters
    ----------
    touched : sparse matrix of float, shape (n, q)
        Scores that belong to a row. Every stored entry counts, zeros included.
    defaults : float, array of shape (q,) or (n_groups, q)
        Scores of all other labels.
    group : array of int, shape (n,), optional
        The row of `defaults` for each row; not needed for one group.
    label_names : sequence of str, shape (q,), optional

    Examples
    --------
    >>> touched = sparse.csr_array(([0.9, 0.2], [2, 0], [0, 2]), shape=(1, 4))
    >>> scores = LabelScores(touched, defaults=[0.5, 0.3, 0.1, 0.3])
    >>> scores.toarray().tolist()
    [[0.2, 0.3, 0.9, 0.3]]
    >>> scores.top(3)[0].tolist()
    [[2, 1, 3]]
    """

    def __init__(
        self,
        touched: Any,
        defaults: Any = 0.0,
        *,
        group: Any = None,
        label_names: Any = None,
    ) -> None:
        touched = canonical_csr(sparse.csr_array(touched, dtype=np.float64))
        n, q = touched.shape
        if not isinstance(defaults, DefaultScores):
            values = np.atleast_2d(np.asarray(defaults, dtype=np.float64))
            if values.size == 1:
                values = np.broadcast_to(values, (1, q))
            defaults = DefaultScores(values)
        if defaults.values.ndim != 2 or defaults.values.shape[1] != q:
            raise ValueError(f"defaults must have {q} columns; got shape {defaults.values.shape}")
        if q == 0:
            raise ValueError("touched must have at least one label")
        n_groups = len(defaults.values)
        if group is None and n_groups > 1:
            raise ValueError(f"group must say which of {n_groups} rows of defaults each row takes")
        group = np.zeros(n, np.intp) if group is None else np.asarray(group)
        if group.ndim != 1 or group.dtype.kind not in "iu":
            raise ValueError(f"group must be a 1-d array of integers; got {group.dtype}")
        check_same_length(touched=n, group=len(group))
        if n and not 0 <= group.min() <= group.max() < n_groups:
            raise ValueError(
                f"group must hold rows of defaults, 0 to {n_groups - 1}; "
                f"got {group.min()} to {group.max()}"
            )
        if not np.isfinite(touched.data).all():
            raise ValueError("touched must hold finite scores")
        self._touched = touched
        self._dense: Floats | None = None
        self.defaults: DefaultScores | None = defaults
        self.group = group
        self.label_names = _names(label_names, q)

    @classmethod
    def from_dense(cls, scores: Any, label_names: Any = None) -> LabelScores:
        """Scores of a dense matrix, for methods that have no default score."""
        from sklearn.utils import check_array

        result = cls.unchecked(check_array(scores, dtype=np.float64, input_name="scores"))
        result.label_names = _names(label_names, result.shape[1])
        return result

    @classmethod
    def unchecked(cls, dense: Floats) -> LabelScores:
        """Scores of a dense matrix of finite floats, without looking at them."""
        result = cls.__new__(cls)
        result._touched, result._dense = None, dense
        result.defaults, result.label_names = None, None
        result.group = np.zeros(len(dense), np.intp)
        return result

    @classmethod
    def joined(cls, parts: Sequence[LabelScores]) -> LabelScores:
        """The scores of all rows of several parts, which have the same default scores."""
        first = parts[0]
        if len(parts) == 1:
            return first
        if first.defaults is None:
            result = cls.unchecked(np.concatenate([part._dense for part in parts]))
            result.label_names = first.label_names
            return result
        for part in parts:
            if part.defaults is not first.defaults and (
                part.defaults is None
                or not np.array_equal(part.defaults.values, first.defaults.values)
            ):
                raise ValueError("parts must have the same default scores")
        touched = sparse.vstack([part._touched for part in parts], format="csr")
        group = np.concatenate([part.group for part in parts])
        return cls(touched, first.defaults, group=group, label_names=first.label_names)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of rows and labels."""
        n, q = (self._touched if self._dense is None else self._dense).shape
        return int(n), int(q)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, q = self.shape
        if self.defaults is None:
            return f"LabelScores(n={n}, q={q}, dense)"
        groups = len(self.defaults.values)
        return f"LabelScores(n={n}, q={q}, touched={self._touched.nnz}, groups={groups})"

    def touched(self, rows: slice | None = None) -> Csr:
        """Scores of the touched labels of some rows, shape (n, q); all labels of dense scores."""
        if self._dense is None:
            return self._touched if rows is None else self._touched[rows]
        dense = self._dense if rows is None else self._dense[rows]
        n, q = dense.shape
        columns = np.tile(np.arange(q), n)
        return sparse.csr_array((dense.ravel(), columns, np.arange(0, n * q + 1, q)), shape=(n, q))

    def toarray(self) -> Floats:
        """All scores as a dense matrix, shape (n, q)."""
        if self._dense is not None:
            return self._dense.copy()
        assert self.defaults is not None
        check_dense_size("toarray()", self.shape, 8, "top(r) or rank(top)")
        core = engine.core()
        return self._dense_by_numpy() if core is None else self._dense_by_core(core)

    def _dense_by_core(self, core: Any) -> Floats:
        indptr, *entries, group, values = self._kernel_arrays()
        n, q = self.shape
        dense = np.empty((n, q))
        for rows in runs(np.full(n, q), _CELLS_AT_ONCE):
            ends = indptr[rows.start : rows.stop + 1]
            core.fill_scores(ends, *entries, group[rows], values, dense[rows])
        return dense

    def _dense_by_numpy(self) -> Floats:
        assert self.defaults is not None
        dense: Floats = self.defaults.values[self.group]
        dense[row_numbers(self._touched), self._touched.indices] = self._touched.data
        return dense

    def _kernel_arrays(self) -> tuple[Array, Array, Floats, Array, Floats]:
        """What kernels read: indptr, indices and data of the touched; groups and defaults."""
        assert self.defaults is not None
        return (
            *kernel_rows(self._touched),
            kernel_array(self._touched.data, np.float64),
            kernel_array(self.group, np.int64),
            kernel_array(self.defaults.values, np.float64),
        )

    def at(self, row: Array, label: Array) -> Floats:
        """Scores of pairs of a row and a label, each an array of shape (p,)."""
        return self._score_at(self.touched(), self.group, row, label)

    def _score_at(self, touched: Csr, group: Array, row: Array, label: Array) -> Floats:
        """Scores of pairs within rows whose touched labels and groups are given."""
        found, score = entries_at(touched, row, label)
        if self.defaults is not None:
            score[~found] = self.defaults.values[group[row[~found]], label[~found]]
        return score

    def take(self, rows: Array) -> LabelScores:
        """The scores of some rows, in the order given."""
        if self._dense is not None:
            return LabelScores.from_dense(self._dense[rows], self.label_names)
        group, names = self.group[rows], self.label_names
        return LabelScores(self._touched[rows], self.defaults, group=group, label_names=names)

    def with_columns(self, order: Array) -> LabelScores:
        """The scores of all labels in another order of columns: column j is label order[j]."""
        names = None if self.label_names is None else self.label_names[order]
        if self.defaults is None:
            assert self._dense is not None
            return LabelScores.from_dense(self._dense[:, order], names)
        place = np.empty(len(order), self._touched.indices.dtype)
        place[order] = np.arange(len(order))
        parts = (self._touched.data, place[self._touched.indices], self._touched.indptr)
        touched = sparse.csr_array(parts, shape=self.shape)
        values = self.defaults.values[:, order]
        return LabelScores(touched, values, group=self.group, label_names=names)

    def rank(self, top: int | None = None) -> RankedLabels:
        """The `top` best labels of each row, or all of them, with their names."""
        top = self.shape[1] if top is None else top
        return RankedLabels(*self.top(top), self.label_names)

    def top(self, r: int) -> tuple[Array, Floats]:
        """The r best labels of each row, or all if there are fewer.

        Returns
        -------
        labels : ndarray of int, shape (n, r)
            Best first; equal scores in the order of the columns.
        scores : ndarray of float, shape (n, r)
        """
        n, q = self.shape
        r = min(check_integer(r, "r", low=1), q)
        check_dense_size(f"the {r:,} best labels", (n, r), 12, "top(r) or rank(top) of fewer")
        labels, scores = np.empty((n, r), np.int32), np.empty((n, r))
        core = engine.core()
        if core is None:
            for rows in self._blocks(r):
                labels[rows], scores[rows] = self._top_by_numpy(rows, r)
        else:
            self._top_by_core(core, labels, scores)
        return labels, scores

    def _top_by_core(self, core: Any, labels: Array, scores: Floats) -> None:
        r = labels.shape[1]
        if self._dense is not None:
            dense = kernel_array(self._dense, np.float64)
            for rows in self._blocks(r):
                core.top_of_dense(dense[rows], labels[rows], scores[rows])
            return
        assert self.defaults is not None
        indptr, *entries, group, values = self._kernel_arrays()
        order = kernel_array(self.defaults.order, np.int64)
        for rows in self._blocks(r):
            ends = indptr[rows.start : rows.stop + 1]
            best = labels[rows], scores[rows]
            core.top_labels(ends, *entries, group[rows], values, order, *best)

    def _top_by_numpy(self, rows: slice, r: int) -> tuple[Array, Floats]:
        touched = self.touched(rows)
        row, label, score = row_numbers(touched), touched.indices, touched.data
        if self.defaults is not None:
            more = self._best_untouched(touched, self.group[rows], r)
            row, label, score = (
                np.concatenate(pair) for pair in zip((row, label, score), more, strict=True)
            )
        order = np.lexsort((label, -score, row))
        first = np.searchsorted(row[order], np.arange(touched.shape[0]))
        best = order[first[:, None] + np.arange(r)]
        return label[best], score[best]

    def _best_untouched(self, touched: Csr, group: Array, r: int) -> tuple[Array, Array, Floats]:
        """The r best labels by default of each row, those it touches left out, as triples."""
        assert self.defaults is not None
        n, q = touched.shape
        # A row that touches t labels finds its r best others within the first r + t of the order.
        depth = np.minimum(q, r + np.diff(touched.indptr))
        end = np.cumsum(depth)
        begin = end - depth
        free = np.ones(end[-1], bool)
        row = row_numbers(touched)
        place = self.defaults.place[group[row], touched.indices]
        near = place < depth[row]
        free[begin[row[near]] + place[near]] = False
        row = np.repeat(np.arange(n), depth)
        order = np.cumsum(free)  # of the free places, from 1 on in each row
        order -= (order - free)[begin][row]
        taken = np.flatnonzero(free & (order <= r))
        row, place = row[taken], taken - begin[row[taken]]
        label = self.defaults.order[group[row], place]
        return row, label, self.defaults.values[group[row], label]

    def ranks_of(self, Y: Any, ties: Ties = "max") -> Csr:
        """The ranks, from 1, of the labels that Y names.

        Parameters
        ----------
        Y : 0/1 matrix, shape (n, q)
        ties : {"max", "min", "higher", "lower"}, default="max"
            The rank of labels with equal scores: the worst or the best place among them for all, or
            places of their own with the higher or the lower column first.

        Returns
        -------
        csr_array of int, shape (n, q)
            The rank wherever Y has a 1.
        """
        Y = label_matrix(Y, "Y")
        ranks = self.places_of(Y).ranks(ties)
        return with_data(Y, ranks)

    def places_of(self, Y: Csr) -> Places:
        """Where the labels of Y stand; Y a checked ``csr_array`` of shape (n, q)."""
        if Y.shape != self.shape:
            raise ValueError(f"Y must have the shape of the scores, {self.shape}; got {Y.shape}")
        core = engine.core()
        if core is not None:
            return Places(*self._places_by_core(core, Y))
        parts = [self._places_by_numpy(rows, Y[rows]) for rows in self._blocks(0)]
        standing = [np.concatenate(column) for column in zip(*parts, strict=True)]
        return Places(*standing)

    def _places_by_core(self, core: Any, truth: Csr) -> tuple[Array, Array, Array]:
        indptr, labels = (kernel_array(part, np.int64) for part in (truth.indptr, truth.indices))
        above, lower, higher = standing = tuple(np.empty(truth.nnz, np.int64) for _ in range(3))
        if self._dense is not None:
            dense = kernel_array(self._dense, np.float64)
            for rows in self._blocks(0):
                ends = indptr[rows.start : rows.stop + 1]
                core.places_in_dense(dense[rows], ends, labels, *standing)
            return above, lower, higher
        assert self.defaults is not None
        touched, *entries, group, values = self._kernel_arrays()
        order = kernel_array(self.defaults.order, np.int64)
        for rows in self._blocks(0):
            inside = slice(rows.start, rows.stop + 1)
            core.places_in_touched(
                touched[inside],
                *entries,
                group[rows],
                values,
                order,
                indptr[inside],
                labels,
                *standing,
            )
        return above, lower, higher

    def _places_by_numpy(self, rows: slice, truth: Csr) -> tuple[Array, Array, Array]:
        touched, group = self.touched(rows), self.group[rows]
        row, label = row_numbers(truth), truth.indices
        score = self._score_at(touched, group, row, label)
        if self.defaults is None:
            return standing_in_rows(touched, touched.data, row, score, label)
        # All labels by their defaults, less the touched by theirs, and the touched by their scores.
        by_default = self.defaults.values[group[row_numbers(touched)], touched.indices]
        everywhere = self.defaults.standing(group[row], score, label)
        replaced = standing_in_rows(touched, by_default, row, score, label)
        touched_ones = standing_in_rows(touched, touched.data, row, score, label)
        above, lower, higher = (
            a - b + c for a, b, c in zip(everywhere, replaced, touched_ones, strict=True)
        )
        return above, lower, higher

    def _blocks(self, extra: int) -> Iterator[slice]:
        """Runs of rows that hold a bounded number of scores, `extra` more in each row."""
        n, q = self.shape
        stored = np.full(n, q) if self._dense is not None else np.diff(self._touched.indptr)
        return runs(stored + extra + 1, _ENTRIES_AT_ONCE)


def as_label_scores(scores: Any) -> LabelScores:
    """Scores in any form: LabelScores, a dense matrix, or a sparse one with default 0."""
    if isinstance(scores, LabelScores):
        return scores
    return LabelScores(scores) if sparse.issparse(scores) else LabelScores.from_dense(scores)


def _names(label_names: Any, q: int) -> Array | None:
    if label_names is None:
        return None
    names = np.asarray(label_names)
    if names.shape != (q,):
        raise ValueError(f"label_names must hold {q} names; got shape {names.shape}")
    return names
