"""Scores of all labels for many rows, without a rows x labels matrix.

A neighbor method scores a few labels by what it found near a row: the touched labels. All others
have a default score that does not depend on the row, or only on its group. So `LabelScores` stores
the touched labels of each row and one row of defaults per group, and ranks over all q labels from
these. Methods without defaults store a dense matrix; both forms behave alike.

Scores from outside are validated by `LabelScores(…)` and `LabelScores.from_dense`. Scores computed
by a method are trusted: `LabelScores.of` and `DenseScores` check nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from nearlabel.common import engine
from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    LabelsLike,
    MatrixLike,
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
from nearlabel.labels.ranked_labels import RankedLabels
from nearlabel.labels.ranks import Places, Ties, standing

_ENTRIES_AT_ONCE = 2**20  # scores ranked at once


class DefaultScores:
    """Scores of labels that a row does not touch, sorted once: one row of q scores per group."""

    def __init__(self, values: Floats) -> None:
        self.values = values.view()  # (n_groups, q)
        self.values.flags.writeable = False  # sorted once, and shared by all scores of a model

    def __getstate__(self) -> dict[str, Floats]:
        return {"values": self.values}  # the order is cheaper to compute again than to store

    @cached_property
    def order(self) -> Array:
        """Labels of each group, best first, ties by lower column; shape (n_groups, q)."""
        return np.argsort(-self.values, axis=1, kind="stable")


@lru_cache(maxsize=8)
def zero_defaults(q: int) -> DefaultScores:
    """A default score of 0 for each of q labels."""
    return DefaultScores(np.zeros((1, q)))


class LabelScores:
    """Scores of q labels for n rows; larger is better.

    Parameters
    ----------
    touched : sparse matrix of float, shape (n, q)
        Scores specific to a row. Every stored entry counts, including zeros.
    defaults : float, array of shape (q,) or (n_groups, q)
        Scores of all other labels.
    group : array of int, shape (n,), optional
        The row of `defaults` for each row; not needed for a single group.
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

    shape: tuple[int, int]
    label_names: Array | None

    def __init__(
        self,
        touched: MatrixLike,
        defaults: npt.ArrayLike = 0.0,
        *,
        group: npt.ArrayLike | None = None,
        label_names: npt.ArrayLike | None = None,
    ) -> None:
        known: Csr = canonical_csr(sparse.csr_array(touched, dtype=np.float64))
        n, q = known.shape
        if q == 0:
            raise ValueError("touched must have at least one label")
        if not np.isfinite(known.data).all():
            raise ValueError("touched must contain finite scores")
        values = np.atleast_2d(np.asarray(defaults, dtype=np.float64))
        values = np.broadcast_to(values, (1, q)) if values.size == 1 else values
        if values.ndim != 2 or values.shape[1] != q:
            raise ValueError(f"defaults must have {q} columns; got shape {values.shape}")
        if not np.isfinite(values).all():
            raise ValueError("defaults must contain finite scores")
        group = _group(group, n, len(values))
        self._fill(known, DefaultScores(values), group, checked_names(label_names, q))

    def _fill(
        self, touched: Csr, defaults: DefaultScores, group: Array, label_names: Array | None
    ) -> None:
        self._touched, self._defaults, self._group = touched, defaults, group
        self.shape, self.label_names = touched.shape, label_names

    @staticmethod
    def of(
        touched: Csr,
        defaults: DefaultScores | None = None,
        group: Array | None = None,
        label_names: Array | None = None,
    ) -> LabelScores:
        """Scores from a canonical ``csr_array`` of finite floats and defaults, 0 if None."""
        scores = LabelScores.__new__(LabelScores)
        n, q = touched.shape
        defaults = zero_defaults(q) if defaults is None else defaults
        scores._fill(
            touched, defaults, np.zeros(n, np.intp) if group is None else group, label_names
        )
        return scores

    @staticmethod
    def from_dense(scores: MatrixLike, label_names: npt.ArrayLike | None = None) -> LabelScores:
        """Scores from a dense matrix, for methods without a default score."""
        from sklearn.utils import check_array

        dense = check_array(scores, dtype=np.float64, input_name="scores")
        return DenseScores(dense, checked_names(label_names, dense.shape[1]))

    @staticmethod
    def joined(parts: Sequence[LabelScores]) -> LabelScores:
        """The scores of all rows of several parts, of one form and with the same defaults."""
        return parts[0] if len(parts) == 1 else parts[0]._joined(parts)

    def __len__(self) -> int:
        return self.shape[0]

    def __repr__(self) -> str:
        n, q = self.shape
        groups = len(self._defaults.values)
        return f"LabelScores(n={n}, q={q}, touched={self._touched.nnz}, groups={groups})"

    def rank(self, top: int | None = None) -> RankedLabels:
        """The `top` best labels of each row, or all of them, with their names."""
        return RankedLabels(*self.top(self.shape[1] if top is None else top), self.label_names)

    def top(self, r: int) -> tuple[Array, Floats]:
        """The r best labels of each row, or all if there are fewer.

        Returns
        -------
        labels : ndarray of int, shape (n, r)
            Best first; ties in the order of the columns.
        scores : ndarray of float, shape (n, r)
        """
        n, q = self.shape
        r = min(check_integer(r, "r", low=1), q)
        check_dense_size(f"the {r:,} best labels", (n, r), 12, "top(r) or rank(top) of fewer")
        labels, scores = np.empty((n, r), np.int32), np.empty((n, r))
        self.fill_top(labels, scores)
        return labels, scores

    def ranks_of(self, Y: LabelsLike, ties: Ties = "max") -> Csr:
        """The ranks, from 1, of the labels in Y.

        Parameters
        ----------
        Y : 0/1 matrix, shape (n, q)
        ties : {"max", "min", "higher", "lower"}, default="max"
            The rank of labels with equal scores: the worst or the best rank for all of them, or
            separate ranks with the higher or the lower column first.

        Returns
        -------
        csr_array of int, shape (n, q)
            The rank wherever Y is 1.
        """
        truth = label_matrix(Y, "Y")
        return with_data(truth, self.places_of(truth).ranks(ties))

    def places_of(self, Y: Csr) -> Places:
        """The positions of the labels of Y, a validated ``csr_array`` of shape (n, q)."""
        if Y.shape != self.shape:
            raise ValueError(f"Y must have the shape of the scores, {self.shape}; got {Y.shape}")
        places = np.empty((3, Y.nnz), np.int64)
        if engine.core() is not None:
            indptr, labels = (kernel_array(part, np.int64) for part in (Y.indptr, Y.indices))
            self._fill_places(indptr, labels, places)
        else:
            for rows in self._blocks(0):
                wanted = Y[rows]
                inside = slice(Y.indptr[rows.start], Y.indptr[rows.stop])
                block = self.take(rows)
                places[:, inside] = block._standing(row_numbers(wanted), wanted.indices)
        return Places(*places)

    def touched(self) -> Csr:
        """Scores of the touched labels, shape (n, q); all labels for dense scores."""
        return self._touched

    def untouched(self) -> tuple[Floats, Array]:
        """Default scores, shape (n_groups, q), and the group of each row, shape (n,).

        There are no groups if all labels are touched.
        """
        return self._defaults.values, self._group

    def toarray(self) -> Floats:
        """All scores as a dense matrix, shape (n, q)."""
        check_dense_size("toarray()", self.shape, 8, "top(r) or rank(top)")
        core, (n, q) = engine.core(), self.shape
        if core is None:
            dense: Floats = self._defaults.values[self._group]
            dense[row_numbers(self._touched), self._touched.indices] = self._touched.data
            return dense
        dense, step = np.empty((n, q)), max(1, 2**24 // q)
        indptr, indices = kernel_rows(self._touched)
        data = kernel_array(self._touched.data, np.float64)
        group = kernel_array(self._group, np.int64)
        values = kernel_array(self._defaults.values, np.float64)
        for start in range(0, n, step):
            rows, ends = slice(start, start + step), indptr[start : start + step + 1]
            core.fill_scores(ends, indices, data, group[rows], values, dense[rows])
        return dense

    def at(self, row: Array, label: Array) -> Floats:
        """Scores of pairs of a row and a label, each an array of shape (p,)."""
        is_touched, score = entries_at(self._touched, row, label)
        row, label = row[~is_touched], label[~is_touched]
        score[~is_touched] = self._defaults.values[self._group[row], label]
        return score

    def take(self, rows: Array | slice) -> LabelScores:
        """The scores of some rows, in the given order."""
        return self.of(self._touched[rows], self._defaults, self._group[rows], self.label_names)

    def with_columns(self, order: Array) -> LabelScores:
        """The scores with reordered columns: column j is label order[j]."""
        place = np.empty(len(order), self._touched.indices.dtype)
        place[order] = np.arange(len(order))
        parts = (self._touched.data, place[self._touched.indices], self._touched.indptr)
        touched = canonical_csr(sparse.csr_array(parts, shape=self.shape))
        names = None if self.label_names is None else self.label_names[order]
        return self.of(touched, DefaultScores(self._defaults.values[:, order]), self._group, names)

    def runs_of_labels(self) -> Iterator[tuple[slice, LabelScores]]:
        """Blocks of labels with the scores of all rows, bounded in number."""
        work = np.bincount(self._touched.indices, minlength=self.shape[1])
        for labels in runs(work + len(self._defaults.values), _ENTRIES_AT_ONCE):
            defaults = DefaultScores(self._defaults.values[:, labels])
            yield labels, self.of(self._touched[:, labels], defaults, self._group)

    def fill_top(self, labels: Array, scores: Floats) -> None:
        """Fill in the r best labels of each row and their scores, both of shape (n, r)."""
        core, r = engine.core(), labels.shape[1]
        if core is None:
            for rows in self._blocks(r):
                labels[rows], scores[rows] = self.take(rows)._top(r)
        else:
            for rows, given in self._for_kernels(self._blocks(r)):
                core.top_labels(*given, labels[rows], scores[rows])

    def _top(self, r: int) -> tuple[Array, Floats]:
        """The twin of `top_labels`: the best of the touched labels and of the best defaults."""
        touched, (n, q) = self._touched, self.shape
        # A row that touches t labels finds its r best others within the first r + t of the order.
        depth = np.minimum(q, r + np.diff(touched.indptr))
        row, end = np.repeat(np.arange(n), depth), np.cumsum(depth)
        label = self._defaults.order[self._group[row], np.arange(len(row)) - (end - depth)[row]]
        free = ~entries_at(touched, row, label)[0]
        row = np.concatenate([row_numbers(touched), row[free]])
        label = np.concatenate([touched.indices, label[free]])
        score = self.at(row, label)
        order = np.lexsort((label, -score, row))
        first = np.searchsorted(row[order], np.arange(n))
        chosen = order[first[:, None] + np.arange(r)]
        return label[chosen], score[chosen]

    def _fill_places(self, indptr: Array, labels: Array, places: Array) -> None:
        """Fill in the positions of the labels of a CSR matrix with the core; shape (3, p)."""
        for rows, given in self._for_kernels(self._blocks(0)):
            ends = indptr[rows.start : rows.stop + 1]
            engine.core().places_in_touched(*given, ends, labels, *places)

    def _standing(self, row: Array, label: Array) -> Array:
        """The twin of `places_in_touched`: positions of labels in the order of their rows."""
        touched, values, score = self._touched, self._defaults.values, self.at(row, label)
        # All labels by their defaults, minus the touched by theirs, plus the touched by their
        # scores.
        every_label = canonical_csr(np.ones(values.shape))
        everywhere = standing(every_label, values.ravel(), self._group[row], score, label)
        by_default = values[self._group[row_numbers(touched)], touched.indices]
        replaced = standing(touched, by_default, row, score, label)
        by_score = standing(touched, touched.data, row, score, label)
        return np.array(everywhere) - replaced + by_score

    def _for_kernels(self, blocks: Iterator[slice]) -> Iterator[tuple[slice, tuple[Array, ...]]]:
        """Blocks of rows with indptr, indices, data, groups, the defaults and their order."""
        indptr, indices = kernel_rows(self._touched)
        data = kernel_array(self._touched.data, np.float64)
        group = kernel_array(self._group, np.int64)
        values = kernel_array(self._defaults.values, np.float64)
        order = kernel_array(self._defaults.order, np.int64)
        for rows in blocks:
            ends = indptr[rows.start : rows.stop + 1]
            yield rows, (ends, indices, data, group[rows], values, order)

    def _joined(self, parts: Sequence[LabelScores]) -> LabelScores:
        touched = sparse.vstack([part.touched() for part in parts], format="csr")
        group = np.concatenate([part.untouched()[1] for part in parts])
        return self.of(canonical_csr(touched), self._defaults, group, self.label_names)

    def _blocks(self, extra: int) -> Iterator[slice]:
        """Blocks of rows with a bounded number of scores, `extra` more in each row."""
        return runs(np.diff(self._touched.indptr) + extra + 1, _ENTRIES_AT_ONCE)


class DenseScores(LabelScores):
    """Scores from a dense matrix of finite floats, which is stored without checks.

    All labels of a row are touched, so there are no defaults.
    """

    def __init__(self, dense: Floats, label_names: Array | None = None) -> None:
        self._dense, self.label_names = dense, label_names
        self.shape = int(dense.shape[0]), int(dense.shape[1])

    def __repr__(self) -> str:
        return f"LabelScores(n={self.shape[0]}, q={self.shape[1]}, dense)"

    def _joined(self, parts: Sequence[Any]) -> LabelScores:
        return DenseScores(np.concatenate([part._dense for part in parts]), self.label_names)

    def touched(self) -> Csr:
        n, q = self.shape
        parts = (self._dense.ravel(), np.tile(np.arange(q), n), np.arange(n + 1) * q)
        return sparse.csr_array(parts, shape=self.shape)

    def untouched(self) -> tuple[Floats, Array]:
        return np.empty((0, self.shape[1])), np.zeros(self.shape[0], np.intp)

    def toarray(self) -> Floats:
        return self._dense.copy()

    def at(self, row: Array, label: Array) -> Floats:
        return np.asarray(self._dense[row, label])

    def take(self, rows: Array | slice) -> LabelScores:
        return DenseScores(self._dense[rows], self.label_names)

    def with_columns(self, order: Array) -> LabelScores:
        names = None if self.label_names is None else self.label_names[order]
        return DenseScores(self._dense[:, order], names)

    def runs_of_labels(self) -> Iterator[tuple[slice, LabelScores]]:
        n, q = self.shape
        for labels in runs(np.full(q, n), _ENTRIES_AT_ONCE):
            yield labels, DenseScores(self._dense[:, labels])

    def fill_top(self, labels: Array, scores: Floats) -> None:
        core, r = engine.core(), labels.shape[1]
        dense = kernel_array(self._dense, np.float64)
        for rows in self._blocks(r):
            if core is None:
                order = np.argsort(-dense[rows], axis=1, kind="stable")[:, :r]
                labels[rows], scores[rows] = order, np.take_along_axis(dense[rows], order, axis=1)
            else:
                core.top_of_dense(dense[rows], labels[rows], scores[rows])

    def _fill_places(self, indptr: Array, labels: Array, places: Array) -> None:
        dense = kernel_array(self._dense, np.float64)
        for rows in self._blocks(0):
            ends = indptr[rows.start : rows.stop + 1]
            engine.core().places_in_dense(dense[rows], ends, labels, *places)

    def _standing(self, row: Array, label: Array) -> Array:
        scores = self.touched()
        return np.array(standing(scores, scores.data, row, self.at(row, label), label))

    def _blocks(self, extra: int) -> Iterator[slice]:
        n, q = self.shape
        return runs(np.full(n, q + extra + 1), _ENTRIES_AT_ONCE)


def labels_from(scores: LabelScores, cut: float | Floats, *, strict: bool = False) -> Csr:
    """Labels whose score reaches, or if `strict` exceeds, a cut: one for all or one per label.

    Labels that a row does not touch are decided by their default scores.
    """
    reached = np.greater if strict else np.greater_equal
    cuts = np.broadcast_to(cut, scores.shape[1:])
    touched = scores.touched()
    yes = reached(touched.data, cuts[touched.indices])
    row, label = row_numbers(touched)[yes], touched.indices[yes]
    defaults, group = scores.untouched()
    by_default = sparse.csr_array(reached(defaults, cuts))
    if by_default.nnz:
        given = by_default[group]
        more_rows, more_labels = row_numbers(given), given.indices
        free = ~entries_at(touched, more_rows, more_labels)[0]
        row = np.concatenate([row, more_rows[free]])
        label = np.concatenate([label, more_labels[free]])
    return label_sets(row, label, scores.shape)


def label_sets(row: Array, label: Array, shape: tuple[int, int]) -> Csr:
    """A ``csr_array`` of int64 ones."""
    sets = sparse.csr_array((np.ones(len(row), np.int64), (row, label)), shape=shape)
    sets.sort_indices()
    return sets


def untouched_rows(scores: LabelScores) -> Array:
    """The number of rows of each group that do not touch each label, shape (n_groups, q)."""
    touched, (defaults, group) = scores.touched(), scores.untouched()
    at = group[row_numbers(touched)] * touched.shape[1] + touched.indices
    rows = np.bincount(at, minlength=defaults.size).reshape(defaults.shape)
    return np.asarray(np.bincount(group, minlength=len(defaults))[:, None] - rows)


ScoresLike = LabelScores | MatrixLike


def as_label_scores(scores: ScoresLike) -> LabelScores:
    """Scores in any form: LabelScores, a dense matrix, or a sparse one with default 0."""
    if isinstance(scores, LabelScores):
        return scores
    if isinstance(scores, RankedLabels):
        raise TypeError(
            "scores must be those of all labels, as from label_scores(X); got RankedLabels"
        )
    return LabelScores(scores) if sparse.issparse(scores) else LabelScores.from_dense(scores)


def _group(group: npt.ArrayLike | None, n: int, n_groups: int) -> Array:
    """The group of each row, validated; all zeros if there is only one."""
    if group is None and n_groups > 1:
        raise ValueError(
            f"group is required: which of the {n_groups} rows of defaults each row uses"
        )
    rows: Array = np.zeros(n, np.intp) if group is None else np.asarray(group)
    if rows.ndim != 1 or rows.dtype.kind not in "iu":
        raise ValueError(f"group must be a 1-d array of integers; got {rows.dtype}")
    check_same_length(touched=n, group=len(rows))
    if n and not 0 <= rows.min() <= rows.max() < n_groups:
        raise ValueError(
            f"group must contain rows of defaults, 0 to {n_groups - 1}; "
            f"got {rows.min()} to {rows.max()}"
        )
    return rows


def checked_names(label_names: npt.ArrayLike | None, q: int) -> Array | None:
    """The names of q labels as an array, or None."""
    if label_names is None:
        return None
    names = np.asarray(label_names)
    if names.shape != (q,):
        raise ValueError(f"label_names must contain {q} names; got shape {names.shape}")
    return names
