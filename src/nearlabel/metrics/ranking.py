"""Metrics of the ranking of labels for each row, and of rows for each label.

Most follow from the ranks of the true labels, which need no rows x labels matrix. In the formulas
Y is the set of a row's y labels, q the number of labels, r(l) the rank of label l, and G(l) the
number of labels of Y ranked at or above l.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Csr, Floats
from nearlabel.common.validation import check_integer, label_matrix
from nearlabel.labels.ranks import Places, at_or_above
from nearlabel.labels.scores import LabelScores, as_label_scores
from nearlabel.metrics.conventions import Rule, convention_named, rule_of
from nearlabel.metrics.label_curves import LabelAreas, label_areas


def one_error(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    """Share of rows whose top-ranked label is not a true one."""
    return checked_ranking(Y, scores).one_error(convention)


def coverage(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    """How far down the ranking one has to go to find all labels of a row: mean of max r(l) - 1."""
    return checked_ranking(Y, scores).coverage(convention)


def ranking_loss(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    """Share of pairs of a true and a false label of a row that are in the wrong order."""
    return checked_ranking(Y, scores).ranking_loss(convention)


def average_precision(Y: Any, scores: Any, *, convention: str = "paper") -> float:
    """Mean, over the labels of a row, of the share of true labels ranked at or above them."""
    return checked_ranking(Y, scores).average_precision(convention)


def mean_inverse_rank(Y: Any, scores: Any) -> float:
    """Mean over rows of the mean of 1 / r(l), with ties at the worst rank.

    Rows without labels are left out.
    """
    return checked_ranking(Y, scores).mean_inverse_rank()


def success_rate(Y: Any, scores: Any, at: int = 5) -> float:
    """Share of rows with a true label among the first `at`, with ties at the worst rank.

    Rows without labels are left out.
    """
    return checked_ranking(Y, scores).success_rate(at)


def precision_at(Y: Any, scores: Any, at: int = 5) -> float:
    """Share of true labels among the `at` best; ties go to the lower column, `at` is at most q."""
    return checked_ranking(Y, scores).precision_at(at)


def macro_average_precision(Y: Any, scores: Any) -> float:
    """Mean over labels of the average precision with which their scores rank the rows.

    For a label, it is the mean over its rows of the share of its rows among those with no smaller
    score. Labels that no row has are left out.
    """
    return checked_ranking(Y, scores).macro_average_precision()


def macro_auc(Y: Any, scores: Any) -> float:
    """Mean over labels of the area under their ROC curve.

    For a label, it is the share of pairs of a row with it and one without it in which the former
    has the greater score; a tie counts half. Labels that no row or every row has are left out.
    """
    return checked_ranking(Y, scores).macro_auc()


def checked_ranking(Y: Any, scores: Any) -> Ranking:
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

    def one_error(self, convention: str = "paper") -> float:
        """Mean of [min r(l) > 1]."""
        return _mean_of_defined(self._one_error(convention))

    def _one_error(self, convention: str) -> Floats:
        rule = rule_of("one_error", convention)
        best = self._per_row(np.minimum, self._places.ranks(rule.ties))
        return self._counted(best > 1, rule)

    def coverage(self, convention: str = "paper") -> float:
        """Mean of max r(l) - 1."""
        return _mean_of_defined(self._coverage(convention))

    def _coverage(self, convention: str) -> Floats:
        rule = rule_of("coverage", convention)
        worst = self._per_row(np.maximum, self._places.ranks(rule.ties))
        return self._counted(worst - 1 + convention_named(convention).lowest_coverage, rule)

    def ranking_loss(self, convention: str = "paper") -> float:
        """Mean of the sum of r(l) - G(l), over y (q - y)."""
        return _mean_of_defined(self._ranking_loss(convention))

    def _ranking_loss(self, convention: str) -> Floats:
        rule = rule_of("ranking_loss", convention)
        ranks = self._places.ranks(rule.ties)
        wrong = self._per_row(np.add, ranks - at_or_above(ranks, self._truth))
        pairs = self._sizes * (self._q - self._sizes)
        return self._counted(wrong / np.maximum(pairs, 1), rule)

    def average_precision(self, convention: str = "paper") -> float:
        """Mean of the mean of G(l) / r(l)."""
        return _mean_of_defined(self._average_precision(convention))

    def _average_precision(self, convention: str) -> Floats:
        rule = rule_of("average_precision", convention)
        ranks = self._places.ranks(rule.ties)
        total = self._per_row(np.add, at_or_above(ranks, self._truth) / ranks)
        return self._counted(total / np.maximum(self._sizes, 1), rule)

    def mean_inverse_rank(self) -> float:
        """Mean of the mean of 1 / r(l)."""
        return _mean_of_defined(self._mean_inverse_rank())

    def _mean_inverse_rank(self) -> Floats:
        total = self._per_row(np.add, 1 / self._places.ranks("max"))
        return self._counted(total / np.maximum(self._sizes, 1), Rule("max"))

    def success_rate(self, at: int = 5) -> float:
        """Mean of [min r(l) <= at]."""
        return _mean_of_defined(self._success_rate(at))

    def _success_rate(self, at: int) -> Floats:
        at = check_integer(at, "at", low=1)
        best = self._per_row(np.minimum, self._places.ranks("max"))
        return self._counted(best <= at, Rule("max"))

    def precision_at(self, at: int = 5) -> float:
        """Mean of the number of labels of Y with r(l) <= at, over at."""
        return _mean_of_defined(self._precision_at(at))

    def _precision_at(self, at: int) -> Floats:
        at = min(check_integer(at, "at", low=1), self._q)
        hits = self._per_row(np.add, self._places.ranks("lower") <= at)
        return self._counted(hits / at, Rule("lower", empty=0.0))

    def rows(self, metric: str, **option: Any) -> Floats:
        """The value per row, whose mean is the metric; nan for rows that are left out."""
        values: Floats = getattr(self, f"_{metric}")(**option)
        return values

    @cached_property
    def areas(self) -> LabelAreas:
        """How well each label ranks the rows."""
        return label_areas(self._truth, self._scores)

    def macro_average_precision(self) -> float:
        """Mean over labels of their average precision."""
        return _mean_of_defined(self.areas.average_precision)

    def macro_auc(self) -> float:
        """Mean over labels of their AUC."""
        return _mean_of_defined(self.areas.auc)

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


def _mean_of_defined(values: Floats) -> float:
    kept = values[~np.isnan(values)]
    return float(kept.mean()) if len(kept) else float("nan")
