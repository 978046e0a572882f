"""How well the scores of each label rank the rows: precision-recall and ROC curves."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats, canonical_csr, row_numbers
from nearlabel.labels.ranks import at_or_above
from nearlabel.labels.row_ranks import rows_above
from nearlabel.labels.scores import LabelScores


class LabelAreas(NamedTuple):
    """Areas under the curves of each label, shape (q,); nan where undefined.

    In the formulas P rows have the label and N do not. A(i) rows have a greater score than row i,
    R(i) no smaller one, and G(i) of the latter have the label; R and G include i itself.
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
    # Wrong pairs with a row that has the label, ties counted half: (A + R) / 2. Pairs among the P
    # rows themselves, including each with itself, make up P² / 2 of them.
    wrong = (np.bincount(label, A + R, q) - P**2) / 2
    pairs = P * (n - P)
    return LabelAreas(ratio_or_nan(precision, P), ratio_or_nan(pairs - wrong, pairs))


def ratio_or_nan(part: Array, whole: Array) -> Floats:
    """Ratio of counts, nan where the denominator is 0."""
    ratio: Floats = np.divide(part, whole, where=whole > 0, out=np.full(len(whole), np.nan))
    return ratio
