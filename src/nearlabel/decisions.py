"""From scores to label sets: by given cuts, and cuts learnt from scores of rows with known labels.

Nothing here allocates rows x labels: the rows that do not touch a label have its default score, and
count as one entry with many rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from nearlabel.arrays import Array, Csr, Floats, entries_at, row_numbers
from nearlabel.scores import LabelScores


def labels_from(scores: LabelScores, cut: float | Floats, *, strict: bool = False) -> Csr:
    """Labels whose score reaches a cut.

    Parameters
    ----------
    scores : LabelScores of shape (n, q)
    cut : float or ndarray of shape (q,)
        One for all labels, or one a label.
    strict : bool, default=False
        Whether the score must be above the cut.

    Returns
    -------
    csr_array of int64 ones, shape (n, q)
        Labels that a row does not touch are decided by their default scores.
    """
    reached = np.greater if strict else np.greater_equal
    cuts = np.broadcast_to(cut, scores.shape[1:])
    touched = scores.touched()
    yes = reached(touched.data, cuts[touched.indices])
    row, label = row_numbers(touched)[yes], touched.indices[yes]
    if scores.defaults is not None:
        by_default = sparse.csr_array(reached(scores.defaults.values, cuts))
        if by_default.nnz:
            given = by_default[scores.group]
            more_rows, more_labels = row_numbers(given), given.indices
            free = ~entries_at(touched, more_rows, more_labels)[0]
            row = np.concatenate([row, more_rows[free]])
            label = np.concatenate([label, more_labels[free]])
    decided = sparse.csr_array((np.ones(len(row), np.int64), (row, label)), shape=scores.shape)
    decided.sort_indices()
    return decided


def best_labels(scores: LabelScores, how_many: Array, preferred: Array) -> Csr:
    """So many of the best labels of each row.

    Parameters
    ----------
    scores : LabelScores of shape (n, q)
    how_many : ndarray of int, shape (n,)
    preferred : ndarray of shape (q,)
        Of labels with equal scores the one with the greater value is better, then the lower column.

    Returns
    -------
    csr_array of int64 ones, shape (n, q)
    """
    order = np.lexsort((np.arange(len(preferred)), -preferred))
    by_preference = scores.with_columns(order)  # whose ties go to the lower column
    rows, labels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for r in np.unique(how_many[how_many > 0]):
        some = np.flatnonzero(how_many == r)
        rows.append(np.repeat(some, r))
        labels.append(order[by_preference.take(some).top(int(r))[0].ravel()])
    row, label = np.concatenate(rows), np.concatenate(labels)
    chosen = sparse.csr_array((np.ones(len(row), np.int64), (row, label)), shape=scores.shape)
    chosen.sort_indices()
    return chosen


def f1_cuts(scores: LabelScores, Y: Csr, pools: Array | None = None) -> Floats:
    """For each label the cut with the greatest F1 on rows whose labels are known.

    Parameters
    ----------
    scores : LabelScores of shape (n, q)
    Y : csr_array, shape (n, q)
        The labels that the rows carry.
    pools : ndarray of int, shape (q,), optional
        Labels of one pool share one cut, the best for all their decisions taken together; by
        default each label has its own.

    Returns
    -------
    ndarray of shape (q,)
        Halfway between two scores; of several equally good cuts the lowest. Infinite where no row
        carries the label, so that it is never given.
    """
    pools = np.arange(scores.shape[1]) if pools is None else pools
    levels = _levels(scores, Y, pools)
    carriers = np.bincount(pools[Y.indices], minlength=levels.n_pools)
    f1 = 2 * levels.true / (levels.given + carriers[levels.pool])
    # The last of the best levels of each pool.
    best = np.lexsort((np.arange(len(f1)), f1, levels.pool))
    best = best[np.flatnonzero(np.diff(levels.pool[best], append=-1))]
    cuts = np.full(levels.n_pools, np.inf)
    cuts[levels.pool[best]] = np.where(f1[best] > 0, levels.cut[best], np.inf)
    return cuts[pools]


def hamming_cut(scores: LabelScores, Y: Csr) -> float:
    """The one cut for all labels with the least Hamming loss on rows whose labels are known.

    Halfway between two scores; of several equally good cuts the highest. Infinite where the loss is
    least without any label.
    """
    levels = _levels(scores, Y, np.zeros(scores.shape[1], np.intp))
    gain = 2 * levels.true - levels.given  # right less wrong among the labels that are given
    best = int(np.argmax(gain))
    return float(levels.cut[best]) if gain[best] > 0 else np.inf


@dataclass(frozen=True)
class _Levels:
    """What is given if the scores down to some level are: one entry a pool and distinct score."""

    n_pools: int
    pool: Array  # in order, and within a pool from the greatest score down
    cut: Floats  # between this level's score and the next lower one
    given: Array  # decisions for labels at this level and above
    true: Array  # those of them that are right


def _levels(scores: LabelScores, Y: Csr, pools: Array) -> _Levels:
    label, score, rows, carriers = _entries(scores, Y)
    pool = pools[label]
    order = np.lexsort((-score, pool))
    pool, score = pool[order], score[order]
    new_pool = np.diff(pool, append=-1) != 0  # at the last entry of each pool
    last = np.flatnonzero(new_pool | (np.diff(score, append=np.nan) != 0))  # of equal scores
    given, true = (np.cumsum(part[order])[last] for part in (rows, carriers))
    pool, score = pool[last], score[last]
    first = np.flatnonzero(np.diff(pool, prepend=-1))
    sizes = np.diff(np.append(first, len(pool)))
    before = np.maximum(first - 1, 0)
    given, true = (
        part - np.repeat(np.where(first > 0, part[before], 0), sizes) for part in (given, true)
    )
    lower = np.append(score[1:], 0.0)
    lower[first[1:] - 1] = score[first[1:] - 1]  # nothing is below the lowest score of a pool
    lower[-1] = score[-1]
    cut = lower + (score - lower) / 2
    cut = np.where(cut > lower, cut, score)  # neighbors among the floats have nothing between
    return _Levels(int(pools.max()) + 1, pool, cut, given, true)


def _entries(scores: LabelScores, Y: Csr) -> tuple[Array, Floats, Array, Array]:
    """Labels with scores, how many rows have them, and how many of these carry the label."""
    touched = scores.touched()
    row, label = row_numbers(touched), touched.indices
    carried = entries_at(Y, row, label)[0].astype(np.int64)
    score, rows = touched.data, np.ones(len(label), np.int64)
    if scores.defaults is None:
        return label, score, rows, carried
    n_groups, q = scores.defaults.values.shape
    cells = n_groups * q
    touched_at = scores.group[row] * q + label
    own_at = scores.group[row_numbers(Y)] * q + Y.indices
    others = np.repeat(np.bincount(scores.group, minlength=n_groups), q)
    others -= np.bincount(touched_at, minlength=cells)
    carriers = np.bincount(own_at, minlength=cells)
    carriers -= np.bincount(touched_at[carried == 1], minlength=cells)
    some = np.flatnonzero(others)
    return (
        np.concatenate([label, some % q]),
        np.concatenate([score, scores.defaults.values.ravel()[some]]),
        np.concatenate([rows, others[some]]),
        np.concatenate([carried, carriers[some]]),
    )
