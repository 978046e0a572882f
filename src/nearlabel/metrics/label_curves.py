"""How well the scores of each label order the rows: its precision-recall and its ROC curve."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, canonical_csr, row_numbers
from nearlabel.labels.ranks import at_or_above
from nearlabel.labels.row_ranks import rows_above
from nearlabel.labels.scores import LabelScores


class LabelAreas(NamedTuple):
    """Areas under the curves of each label, shape (q,); nan where one is not defined.

    In the formulas P rows carry the label and N do not. A(i) rows have a greater score than row i,
    R(i) no smaller one, among these G(i) that carry the label; i itself counts in both.
    """

    average_precision: Floats  # mean over the P rows of G(i) / R(i)
    auc: Floats  # share of the P N pairs in the right order, ties half


def label_areas(truth: Csr, scores: LabelScores) -> LabelAreas:
    """The areas of every label."""
    n, q = truth.shape
    carriers = canonical_csr(truth.T)
    label, P = row_numbers(carriers), np.diff(carriers.indptr).astype(np.int64)
    A, R = rows_above(scores, carriers)
    precision = np.bincount(label, at_or_above(R, carriers) / R, q)
    # Of all pairs with a row that carries the label the wrong ones, ties half: (A + R) / 2. Those
    # among the P rows themselves, each with itself too, are P² / 2.
    wrong = (np.bincount(label, A + R, q) - P**2) / 2
    pairs = P * (n - P)
    return LabelAreas(ratio_or_nan(precision, P), ratio_or_nan(pairs - wrong, pairs))


def ratio_or_nan(part: Array, whole: Array) -> Floats:
    """Ratio of counts, nan where there is nothing to count."""
    ratio: Floats = np.divide(part, whole, where=whole > 0, out=np.full(len(whole), np.nan))
    return ratio
