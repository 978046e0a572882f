"""The decisions of a blend: cuts learned from leave-one-out probabilities."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import Csr, Floats, row_numbers
from nearlabel.labels.counts import label_totals
from nearlabel.labels.decisions import best_labels, f1_cuts, micro_f1_cut
from nearlabel.labels.scores import LabelScores, labels_from
from nearlabel.metrics import micro_f1

OBJECTIVES = ("hamming", "micro_f1", "macro_f1", "cardinality")
_LEAST_F1 = 0.1  # of a label's own cut


class LabelDecision(NamedTuple):
    """How labels are predicted from probabilities: those that reach their cut.

    For "cardinality", as many of the most probable labels as the probabilities add up to.
    """

    objective: str
    cuts: Floats  # (1,) or (q,)

    def labels(self, scores: LabelScores) -> Csr:
        """The label sets of rows, shape (n, q)."""
        if self.objective != "cardinality":
            return labels_from(scores, self.cuts)
        touched, (defaults, group) = scores.touched(), scores.untouched()
        expected = np.asarray(touched.sum(axis=1), np.float64).ravel()
        if len(defaults):  # of the labels that no neighbor of a row has
            replaced = defaults[group[row_numbers(touched)], touched.indices]
            expected += defaults.sum(axis=1)[group]
            expected -= np.bincount(row_numbers(touched), replaced, minlength=scores.shape[0])
        how_many = np.floor(expected + 0.5).astype(np.int64)
        return best_labels(scores, how_many, np.zeros(scores.shape[1], np.int64))


def learned_decision(scores: LabelScores, Y: Csr, objective: str) -> LabelDecision:
    """The best cuts for leave-one-out probabilities of rows with labels Y.

    For micro F1, labels get their own cuts only if these are better on held-out rows; otherwise
    they share one cut. For macro F1, a label that few rows have, or that no cut predicts well, gets
    the shared cut.
    """
    if objective in ("hamming", "cardinality"):
        return LabelDecision(objective, np.array([0.5]))
    shared = _cut_of_all(scores, Y)
    if objective == "macro_f1" or _is_better_by_label(scores, Y):
        return LabelDecision(objective, _cuts_of_labels(scores, Y, shared))
    return LabelDecision(objective, np.array([shared]))


def _cut_of_all(scores: LabelScores, Y: Csr) -> float:
    """The cut with the best micro F1, or the default one if no cut predicts anything right."""
    cut = micro_f1_cut(scores, Y)
    # The best cut is half the F1 that it reaches.
    return max(cut, _LEAST_F1 / 2) if np.isfinite(cut) else 0.5


def _cuts_of_labels(scores: LabelScores, Y: Csr, otherwise: float) -> Floats:
    cuts = f1_cuts(scores, Y, least=_LEAST_F1)
    known = np.isfinite(cuts) & (label_totals(Y) >= 3)
    return np.where(known, cuts, otherwise)


def _is_better_by_label(scores: LabelScores, Y: Csr) -> bool:
    """Whether cuts per label have a better micro F1 on rows that they were not learned from."""
    if scores.shape[0] < 4 or scores.shape[1] == 1:
        return False
    by_label = by_shared = 0.0
    halves = [np.arange(start, scores.shape[0], 2) for start in (0, 1)]
    for inside, outside in (halves[::-1], halves):
        learned, held = scores.take(inside), scores.take(outside)
        shared = _cut_of_all(learned, Y[inside])
        cuts = _cuts_of_labels(learned, Y[inside], shared)
        by_label += micro_f1(Y[outside], labels_from(held, cuts))
        by_shared += micro_f1(Y[outside], labels_from(held, shared))
    return by_label > by_shared
