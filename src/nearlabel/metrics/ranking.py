"""Metrics of the ranking of labels for each row, and of rows for each label.

Each is a mean of values of rows, or of labels, which a method of `Ranking` computes; they are nan
where a row or label is left out.
Most follow from the ranks of the true labels, which need no rows x labels matrix. In the formulas
Y is the set of a row's y labels, q the number of labels, r(l) the rank of label l, and G(l) the
number of labels of Y ranked at or above l.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from nearlabel.common.arrays import (
    Array,
    Csr,
    Floats,
    LabelsLike,
    canonical_csr,
    row_numbers,
)
from nearlabel.common.validation import check_integer, label_matrix
from nearlabel.labels.ranks import Places, at_or_above
from nearlabel.labels.row_ranks import rows_above
from nearlabel.labels.scores import LabelScores, ScoresLike, as_label_scores
from nearlabel.metrics.conventions import Rule, convention_named, rule_of
from nearlabel.metrics.sets import mean_of_defined, ratio_or_nan


def one_error(Y: LabelsLike, scores: ScoresLike, *, convention: str = "paper") -> float:
    """Share of rows whose top-ranked label is not a true one."""
    return mean_of_defined(checked_ranking(Y, scores).one_error(convention))


def coverage(Y: LabelsLike, scores: ScoresLike, *, convention: str = "paper") -> float:
    """How far down the ranking one has to go to find all labels of a row: mean of max r(l) - 1."""
    return mean_of_defined(checked_ranking(Y, scores).coverage(convention))


def ranking_loss(Y: LabelsLike, scores: ScoresLike, *, convention: str = "paper") -> float:
    """Share of pairs of a true and a false label of a row that are in the wrong order."""
    return mean_of_defined(checked_ranking(Y, scores).ranking_loss(convention))


def average_precision(Y: LabelsLike, scores: ScoresLike, *, convention: str = "paper") -> float:
    """Mean, over the labels of a row, of the share of true labels ranked at or above them."""
    return mean_of_defined(checked_ranking(Y, scores).average_precision(convention))


def mean_inverse_rank(Y: LabelsLike, scores: ScoresLike) -> float:
    """Mean over rows of the mean of 1 / r(l), with ties at the worst rank.

    Rows without labels are left out.
    """
    return mean_of_defined(checked_ranking(Y, scores).mean_inverse_rank())


def success_rate(Y: LabelsLike, scores: ScoresLike, at: int = 5) -> float:
    """Share of rows with a true label among the first `at`, with ties at the worst rank.

    Rows without labels are left out.
    """
    return mean_of_defined(checked_ranking(Y, scores).success_rate(at))


def precision_at(Y: LabelsLike, scores: ScoresLike, at: int = 5) -> float:
    """Share of true labels among the `at` best; ties go to the lower column, `at` is at most q."""
    return mean_of_defined(checked_ranking(Y, scores).precision_at(at))


def macro_average_precision(Y: LabelsLike, scores: ScoresLike) -> float:
    """Mean over labels of the average precision with which their scores rank the rows.

    For a label, it is the mean over its rows of the share of its rows among those with no smaller
    score. Labels that no row has are left out.
    """
    return mean_of_defined(checked_ranking(Y, scores).macro_average_precision())


def macro_auc(Y: LabelsLike, scores: ScoresLike) -> float:
    """Mean over labels of the area under their ROC curve.

    For a label, it is the share of pairs of a row with it and one without it in which the former
    has the greater score; a tie counts half. Labels that no row or every row has are left out.
    """
    return mean_of_defined(checked_ranking(Y, scores).macro_auc())


def checked_ranking(Y: LabelsLike, scores: ScoresLike) -> Ranking:
    """The ranking of true labels by scores: LabelScores, array or sparse matrix with default 0."""
    scores = as_label_scores(scores)
    truth = label_matrix(Y, "Y", scores.label_names)
    if truth.shape != scores.shape:
        raise ValueError(
            f"Y and scores must have the same shape; got {truth.shape} and {scores.shape}"
        )
    return Ranking(truth, scores)


class Ranking:
    """True labels ranked by scores: ranked once, used by every metric.

    Both are trusted: a label matrix from `label_matrix`, and scores of the same shape.
    """

    def __init__(self, truth: Csr, scores: LabelScores) -> None:
        self._truth, self._scores = truth, scores
        self._sizes: Array = np.diff(truth.indptr)  # y
        self._q = int(truth.shape[1])

    @cached_property
    def _places(self) -> Places:
        return self._scores.places_of(self._truth)

    def one_error(self, convention: str = "paper") -> Floats:
        """[min r(l) > 1] of each row."""
        rule = rule_of("one_error", convention)
        best = self._per_row(np.minimum, self._places.ranks(rule.ties))
        return self._counted(best > 1, rule)

    def coverage(self, convention: str = "paper") -> Floats:
        """The largest r(l) of each row, minus 1."""
        rule = rule_of("coverage", convention)
        worst = self._per_row(np.maximum, self._places.ranks(rule.ties))
        return self._counted(worst - 1 + convention_named(convention).lowest_coverage, rule)

    def ranking_loss(self, convention: str = "paper") -> Floats:
        """The sum of r(l) - G(l), over y (q - y), of each row."""
        rule = rule_of("ranking_loss", convention)
        ranks = self._places.ranks(rule.ties)
        wrong = self._per_row(np.add, ranks - at_or_above(ranks, self._truth))
        pairs = self._sizes * (self._q - self._sizes)
        return self._counted(wrong / np.maximum(pairs, 1), rule)

    def average_precision(self, convention: str = "paper") -> Floats:
        """The mean of G(l) / r(l) of each row."""
        rule = rule_of("average_precision", convention)
        ranks = self._places.ranks(rule.ties)
        total = self._per_row(np.add, at_or_above(ranks, self._truth) / ranks)
        return self._counted(total / np.maximum(self._sizes, 1), rule)

    def mean_inverse_rank(self) -> Floats:
        """The mean of 1 / r(l) of each row."""
        total = self._per_row(np.add, 1 / self._places.ranks("max"))
        return self._counted(total / np.maximum(self._sizes, 1), Rule("max"))

    def success_rate(self, at: int = 5) -> Floats:
        """[min r(l) <= at] of each row."""
        at = check_integer(at, "at", low=1)
        best = self._per_row(np.minimum, self._places.ranks("max"))
        return self._counted(best <= at, Rule("max"))

    def precision_at(self, at: int = 5) -> Floats:
        """The number of labels of Y with r(l) <= at, over at, of each row."""
        at = min(check_integer(at, "at", low=1), self._q)
        hits = self._per_row(np.add, self._places.ranks("lower") <= at)
        return self._counted(hits / at, Rule("lower", empty=0.0))

    @cached_property
    def areas(self) -> LabelAreas:
        """How well each label ranks the rows."""
        return label_areas(self._truth, self._scores)

    def macro_average_precision(self) -> Floats:
        """The average precision of each label."""
        return self.areas.average_precision

    def macro_auc(self) -> Floats:
        """The AUC of each label."""
        return self.areas.auc

    def _per_row(self, reduce: np.ufunc, values: Array) -> Array:
        """`values` of the true labels reduced over each row; 0 for rows without labels."""
        result = np.zeros(len(self._sizes), np.result_type(values, np.int64))
        filled = self._sizes > 0
        if filled.any():
            result[filled] = reduce.reduceat(
                values, self._truth.indptr[:-1][filled], dtype=result.dtype
            )
        return result

    def _counted(self, values: Array, rule: Rule) -> Floats:
        """Values of the rows that count; nan for the others."""
        counted: Floats = values.astype(np.float64)
        empty = self._sizes == 0
        counted[empty] = np.nan if rule.empty is None else rule.empty
        if not rule.full:
            counted[self._sizes == self._q] = np.nan
        return counted


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
