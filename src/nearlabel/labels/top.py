"""The best labels of each row, found without sorting all labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, kernel_array, row_numbers
from nearlabel.common.engine import compiled_by
from nearlabel.labels.default_scores import DefaultScores, kernel_scores


def _top_of_dense_by_core(
    core: Any, dense: Floats, blocks: Iterable[slice], labels: Array, best: Floats
) -> None:
    dense = kernel_array(dense, np.float64)
    for rows in blocks:
        core.top_of_dense(dense[rows], labels[rows], best[rows])


@compiled_by(_top_of_dense_by_core)
def top_of_dense(dense: Floats, blocks: Iterable[slice], labels: Array, best: Floats) -> None:
    """Fill in the r best labels of each row of a dense matrix, and their scores, by blocks."""
    r = labels.shape[1]
    for rows in blocks:
        order = np.argsort(-dense[rows], axis=1, kind="stable")[:, :r]
        labels[rows], best[rows] = order, np.take_along_axis(dense[rows], order, axis=1)


def _top_of_touched_by_core(
    core: Any,
    touched: Csr,
    defaults: DefaultScores,
    group: Array,
    blocks: Iterable[slice],
    labels: Array,
    best: Floats,
) -> None:
    indptr, *entries, groups, values = kernel_scores(touched, defaults, group)
    order = kernel_array(defaults.order, np.int64)
    for rows in blocks:
        ends = indptr[rows.start : rows.stop + 1]
        core.top_labels(ends, *entries, groups[rows], values, order, labels[rows], best[rows])


@compiled_by(_top_of_touched_by_core)
def top_of_touched(
    touched: Csr,
    defaults: DefaultScores,
    group: Array,
    blocks: Iterable[slice],
    labels: Array,
    best: Floats,
) -> None:
    """Fill in the r best labels of each row from its touched labels and its group's defaults."""
    r = labels.shape[1]
    for rows in blocks:
        some = touched[rows]
        by_default = _best_untouched(defaults, some, group[rows], r)
        by_score = row_numbers(some), some.indices, some.data
        row, label, score = map(np.concatenate, zip(by_score, by_default, strict=True))
        order = np.lexsort((label, -score, row))
        first = np.searchsorted(row[order], np.arange(some.shape[0]))
        chosen = order[first[:, None] + np.arange(r)]
        labels[rows], best[rows] = label[chosen], score[chosen]


def _best_untouched(
    defaults: DefaultScores, touched: Csr, group: Array, r: int
) -> tuple[Array, Array, Floats]:
    """The r best labels by default of each row, those it touches left out, as triples."""
    n, q = touched.shape
    # A row that touches t labels finds its r best others within the first r + t of the order.
    depth = np.minimum(q, r + np.diff(touched.indptr))
    end = np.cumsum(depth)
    begin = end - depth
    free = np.ones(end[-1], bool)
    row = row_numbers(touched)
    place = defaults.place[group[row], touched.indices]
    near = place < depth[row]
    free[begin[row[near]] + place[near]] = False
    row = np.repeat(np.arange(n), depth)
    order = np.cumsum(free)  # of the free places, from 1 on in each row
    order -= (order - free)[begin][row]
    taken = np.flatnonzero(free & (order <= r))
    row, place = row[taken], taken - begin[row[taken]]
    label = defaults.order[group[row], place]
    return row, label, defaults.values[group[row], label]
