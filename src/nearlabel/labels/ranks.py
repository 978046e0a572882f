"""Where labels stand in an order of scores, counted without sorting rows x labels."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    canonical_csr,
    kernel_array,
    row_numbers,
)
from nearlabel.common.engine import compiled_by
from nearlabel.common.validation import check_choice
from nearlabel.labels.default_scores import DefaultScores, kernel_scores, scores_at

Ties = Literal["max", "min", "higher", "lower"]
TIES = ("max", "min", "higher", "lower")
Standing = tuple[Array, Array, Array]  # labels above, and tied ones in lower and higher columns


@dataclass(frozen=True)
class Places:
    """Where p given labels, by row and column, stand in the order of the scores of their rows.

    Attributes
    ----------
    above : ndarray of int, shape (p,)
        Labels of the row with a greater score.
    tied_lower, tied_higher : ndarray of int, shape (p,)
        Labels with the same score in a lower, and in a higher, column.
    """

    above: Array
    tied_lower: Array
    tied_higher: Array

    def ranks(self, ties: Ties) -> Array:
        """Ranks from 1; of tied labels all the worst or best rank, or one column first."""
        check_choice(ties, "ties", TIES)
        ranks: Array = self.above + 1
        if ties in ("max", "lower"):
            ranks += self.tied_lower
        if ties in ("max", "higher"):
            ranks += self.tied_higher
        return ranks


def _at_or_above_by_core(core: Any, ranks: Array, matrix: Csr) -> Array:
    counts = np.empty(len(ranks), np.int64)
    indptr = kernel_array(matrix.indptr, np.int64)
    core.at_or_above(indptr, kernel_array(ranks, np.int64), counts)
    return counts


@compiled_by(_at_or_above_by_core)
def at_or_above(ranks: Array, matrix: Csr) -> Array:
    """How many entries of the same row of a CSR matrix have the rank of each or a better one."""
    row = row_numbers(matrix)
    keys = row * (matrix.shape[1] + 1) + ranks
    counts: Array = np.searchsorted(np.sort(keys), keys, side="right")
    counts -= matrix.indptr[row]
    return counts


def _standing_in_dense_by_core(
    core: Any, dense: Floats, blocks: Iterable[slice], truth: Csr
) -> Standing:
    indptr, labels, standing = _places_to_fill(truth)
    dense = kernel_array(dense, np.float64)
    for rows in blocks:
        core.places_in_dense(dense[rows], indptr[rows.start : rows.stop + 1], labels, *standing)
    return standing


@compiled_by(_standing_in_dense_by_core)
def standing_in_dense(dense: Floats, blocks: Iterable[slice], truth: Csr) -> Standing:
    """Where the labels of `truth` stand among the scores of their rows, all of them given."""
    parts = []
    for rows in blocks:
        wanted, scores = truth[rows], canonical_csr(np.ones(dense[rows].shape))
        row, label = row_numbers(wanted), wanted.indices
        score = dense[rows][row, label]
        parts.append(_standing_in_rows(scores, dense[rows].ravel(), row, score, label))
    return _concatenated(parts)


def _standing_in_touched_by_core(
    core: Any,
    touched: Csr,
    defaults: DefaultScores,
    group: Array,
    blocks: Iterable[slice],
    truth: Csr,
) -> Standing:
    indptr, labels, standing = _places_to_fill(truth)
    ends, *entries, groups, values = kernel_scores(touched, defaults, group)
    order = kernel_array(defaults.order, np.int64)
    for rows in blocks:
        inside = slice(rows.start, rows.stop + 1)
        scores = ends[inside], *entries, groups[rows], values, order
        core.places_in_touched(*scores, indptr[inside], labels, *standing)
    return standing


@compiled_by(_standing_in_touched_by_core)
def standing_in_touched(
    touched: Csr, defaults: DefaultScores, group: Array, blocks: Iterable[slice], truth: Csr
) -> Standing:
    """Where the labels of `truth` stand among touched scores and defaults of their rows."""
    parts = []
    for rows in blocks:
        wanted, some, of = truth[rows], touched[rows], group[rows]
        row, label = row_numbers(wanted), wanted.indices
        score = scores_at(some, defaults, of, row, label)
        # All labels by their defaults, less the touched by theirs, and the touched by their scores.
        by_default = defaults.values[of[row_numbers(some)], some.indices]
        everywhere = defaults.standing(of[row], score, label)
        replaced = _standing_in_rows(some, by_default, row, score, label)
        touched_ones = _standing_in_rows(some, some.data, row, score, label)
        above, lower, higher = (
            a - b + c for a, b, c in zip(everywhere, replaced, touched_ones, strict=True)
        )
        parts.append((above, lower, higher))
    return _concatenated(parts)


def _standing_in_rows(
    pattern: Csr, values: Floats, row: Array, score: Floats, label: Array
) -> tuple[Array, Array, Array]:
    """Among `values` at `pattern` in the same row: greater ones, and equal ones in other columns.

    Returns the numbers of greater values, of equal ones in a lower and of equal ones in a higher
    column, for each (row, score, label).
    """
    # Ranks instead of values, so that row, value and column fit into one integer key.
    distinct, code = np.unique(np.concatenate([values, score]), return_inverse=True)
    v, q = len(distinct), pattern.shape[1]
    keys = np.sort((row_numbers(pattern) * v + code[: len(values)]) * q + pattern.indices)
    base = (row * v + code[len(values) :]) * q
    first, end = np.searchsorted(keys, base), np.searchsorted(keys, base + q)
    before = np.searchsorted(keys, base + label, side="left")
    upto = np.searchsorted(keys, base + label, side="right")
    return pattern.indptr[row + 1] - end, before - first, end - upto


def _places_to_fill(truth: Csr) -> tuple[Array, Array, Standing]:
    """The labels whose places a kernel finds, and arrays for these."""
    indptr, labels = (kernel_array(part, np.int64) for part in (truth.indptr, truth.indices))
    above, lower, higher = (np.empty(truth.nnz, np.int64) for _ in range(3))
    return indptr, labels, (above, lower, higher)


def _concatenated(parts: Sequence[Standing]) -> Standing:
    above, lower, higher = (np.concatenate(column) for column in zip(*parts, strict=True))
    return above, lower, higher
