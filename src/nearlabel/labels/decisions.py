"""Cuts of scores, learned from rows with known labels, and the best labels of each row.

Nothing here allocates rows x labels: the rows that do not touch a label share its default score,
which is one entry with many rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, entries_at, row_numbers
from nearlabel.labels.scores import LabelScores, label_sets, untouched_rows


def best_labels(scores: LabelScores, how_many: Array, preferred: Array) -> Csr:
    """The best labels of each row, `how_many` (n,) of them.

    Ties between scores are broken by the larger `preferred` (q,), then by the lower column.
    """
    order = np.lexsort((np.arange(len(preferred)), -preferred))
    by_preference = scores.with_columns(order)  # ties are broken by the lower column
    rows, labels = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    for r in np.unique(how_many[how_many > 0]):
        alike = np.flatnonzero(how_many == r)
        rows.append(np.repeat(alike, r))
        labels.append(order[by_preference.take(alike).top(int(r))[0].ravel()])
    return label_sets(np.concatenate(rows), np.concatenate(labels), scores.shape)


def f1_cuts(scores: LabelScores, Y: Csr, *, least: float = 0.0) -> Floats:
    """For each label the cut with the largest F1 on rows with known labels Y.

    Halfway between two scores; the lowest of several equally good cuts. Infinite if no cut has an
    F1 of at least `least`, or none above 0.
    """
    levels = _levels(*scored_rows(scores, Y))
    carriers = np.bincount(Y.indices, minlength=scores.shape[1])
    f1 = 2 * levels.true / (levels.given + carriers[levels.label])
    # The last of the best levels of each label.
    best = np.lexsort((np.arange(len(f1)), f1, levels.label))
    best = best[np.flatnonzero(np.diff(levels.label[best], append=-1))]
    cuts = np.full(scores.shape[1], np.inf)
    good = (f1[best] > 0) & (f1[best] >= least)
    cuts[levels.label[best]] = np.where(good, levels.cut[best], np.inf)
    return cuts


def hamming_cut(scores: LabelScores, Y: Csr) -> float:
    """The single cut for all labels with the smallest Hamming loss on rows with known labels.

    Halfway between two scores; the highest of several equally good cuts. Infinite if the loss is
    smallest without any label.
    """
    levels = _common_levels(scores, Y)
    # Correct minus incorrect labels among those that are predicted.
    return _best_cut(levels, 2 * levels.true - levels.given)


def micro_f1_cut(scores: LabelScores, Y: Csr) -> float:
    """The single cut for all labels with the largest micro F1 on rows with known labels.

    Halfway between two scores; the highest of several equally good cuts. Infinite if no cut
    predicts a correct label.
    """
    levels = _common_levels(scores, Y)
    return _best_cut(levels, 2 * levels.true / (levels.given + Y.nnz))


def _best_cut(levels: _Levels, gain: Array) -> float:
    """The cut of the first level with the largest gain; infinite if none is positive."""
    best = int(np.argmax(gain))
    return float(levels.cut[best]) if gain[best] > 0 else np.inf


@dataclass(frozen=True)
class _Levels:
    """The result of predicting scores down to a level: one entry per label and distinct score."""

    label: Array  # ordered, and by descending score for each label
    cut: Floats  # between this level's score and the next lower one
    given: Array  # labels predicted at this level and above
    true: Array  # those of them that are correct


def _common_levels(scores: LabelScores, Y: Csr) -> _Levels:
    """The levels of all labels together."""
    label, *entries = scored_rows(scores, Y)
    return _levels(np.zeros_like(label), *entries)


def _levels(label: Array, score: Floats, rows: Array, carriers: Array) -> _Levels:
    order = np.lexsort((-score, label))
    label, score = label[order], score[order]
    ends = (np.diff(label, append=-1) != 0) | (np.diff(score, append=np.nan) != 0)
    last = np.flatnonzero(ends)  # the last of equal scores of a label
    given, true = (np.cumsum(part[order])[last] for part in (rows, carriers))
    label, score = label[last], score[last]
    first = np.flatnonzero(np.diff(label, prepend=-1))
    sizes = np.diff(np.append(first, len(label)))
    given, true = (  # minus the contribution of previous labels
        part - np.repeat(np.where(first > 0, part[first - 1], 0), sizes) for part in (given, true)
    )
    lower = np.append(score[1:], 0.0)
    lowest = first + sizes - 1
    lower[lowest] = score[lowest]  # nothing is below
    cut = (score + lower) / 2
    cut = np.where(cut > lower, cut, score)  # adjacent floats have nothing in between
    return _Levels(label, cut, given, true)


def scored_rows(scores: LabelScores, Y: Csr) -> tuple[Array, Floats, Array, Array]:
    """Labels with scores, how many rows have them, and how many of these carry the label."""
    touched = scores.touched()
    row, label = row_numbers(touched), touched.indices
    carried = entries_at(Y, row, label)[0].astype(np.int64)
    score, rows = touched.data, np.ones(len(label), np.int64)
    defaults, group = scores.untouched()
    n_groups, q = defaults.shape
    if not n_groups:
        return label, score, rows, carried
    cells = n_groups * q
    touched_at = group[row] * q + label
    own_at = group[row_numbers(Y)] * q + Y.indices
    others = untouched_rows(scores).ravel()
    carriers = np.bincount(own_at, minlength=cells)
    carriers -= np.bincount(touched_at[carried == 1], minlength=cells)
    filled = np.flatnonzero(others)
    return (
        np.concatenate([label, filled % q]),
        np.concatenate([score, defaults.ravel()[filled]]),
        np.concatenate([rows, others[filled]]),
        np.concatenate([carried, carriers[filled]]),
    )
