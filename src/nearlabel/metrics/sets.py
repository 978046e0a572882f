"""Metrics of predicted label sets, each a mean of values that a method of `Agreement` computes.

True and predicted labels are 0/1 matrices, or tags; with tags, `label_names` lists the labels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nearlabel.common.arrays import Array, Floats, LabelsLike
from nearlabel.common.validation import label_matrix
from nearlabel.labels.counts import label_totals
from nearlabel.metrics.conventions import convention_named

Names = Sequence[str | int] | Array | None  # of labels


def hamming_loss(Y: LabelsLike, predicted: LabelsLike, *, label_names: Names = None) -> float:
    """Share of the n q decisions that are wrong."""
    return Agreement(Y, predicted, label_names).share_of_errors()


def subset_accuracy(Y: LabelsLike, predicted: LabelsLike, *, label_names: Names = None) -> float:
    """Share of rows whose label set is predicted exactly."""
    return mean_of_defined(Agreement(Y, predicted, label_names).subset_accuracy())


def jaccard(
    Y: LabelsLike, predicted: LabelsLike, *, convention: str = "paper", label_names: Names = None
) -> float:
    """Mean over rows of ``|Y and P| / |Y or P|``."""
    return mean_of_defined(Agreement(Y, predicted, label_names).jaccard(convention))


def micro_f1(
    Y: LabelsLike, predicted: LabelsLike, *, convention: str = "paper", label_names: Names = None
) -> float:
    """F1 of all decisions together."""
    return mean_of_defined(Agreement(Y, predicted, label_names).micro_f1(convention))


def macro_f1(
    Y: LabelsLike, predicted: LabelsLike, *, convention: str = "paper", label_names: Names = None
) -> float:
    """Mean over labels of their F1."""
    return mean_of_defined(Agreement(Y, predicted, label_names).macro_f1(convention))


def example_f1(
    Y: LabelsLike, predicted: LabelsLike, *, convention: str = "paper", label_names: Names = None
) -> float:
    """Mean over rows of their F1."""
    return mean_of_defined(Agreement(Y, predicted, label_names).example_f1(convention))


class Agreement:
    """True and predicted label sets, compared once and used by every metric.

    Parameters
    ----------
    Y, predicted : 0/1 matrices, shape (n, q), or tags of n rows
    label_names : sequence of str or int, shape (q,), optional
        The labels, if Y or predicted are tags.
    """

    def __init__(self, Y: LabelsLike, predicted: LabelsLike, label_names: Names = None) -> None:
        truth = label_matrix(Y, "Y", label_names)
        names = getattr(Y, "columns", None) if label_names is None else label_names
        decided = label_matrix(predicted, "predicted", names)
        if truth.shape != decided.shape:
            raise ValueError(
                f"Y and predicted must have the same shape; got {truth.shape} and {decided.shape}"
            )
        hits = truth.multiply(decided).tocsr()
        self._shape: tuple[int, int] = truth.shape
        # Per row and per label: hits, true labels, predicted labels.
        self._rows = tuple(np.diff(matrix.indptr) for matrix in (hits, truth, decided))
        self._labels = tuple(label_totals(matrix) for matrix in (hits, truth, decided))

    @classmethod
    def of_counts(cls, n: int, labels: Array) -> Agreement:
        """What is known of n rows from hits, true and predicted labels of each label, (3, q).

        Only metrics that are no means over rows, and the Hamming loss, can be asked for.
        """
        known = cls.__new__(cls)
        known._shape, known._labels = (n, labels.shape[1]), tuple(labels)
        return known

    @property
    def label_counts(self) -> Array:
        """Hits, true and predicted labels, of each label: shape (3, q)."""
        return np.array(self._labels)

    def share_of_errors(self) -> float:
        """The mean of the Hamming losses of all rows, known from the labels alone."""
        hits, true, predicted = (int(count.sum()) for count in self._labels)
        return (true + predicted - 2 * hits) / (self._shape[0] * self._shape[1])

    def hamming_loss(self) -> Floats:
        """The share of labels in which truth and prediction differ, of each row."""
        hits, true, predicted = self._rows
        return np.asarray((true + predicted - 2 * hits) / self._shape[1])

    def subset_accuracy(self) -> Floats:
        """[Y = P] of each row."""
        hits, true, predicted = self._rows
        return np.asarray((hits == true) & (hits == predicted), np.float64)

    def jaccard(self, convention: str = "paper") -> Floats:
        """``|Y and P| / |Y or P|`` of each row."""
        hits, true, predicted = self._rows
        return _ratio(hits, true + predicted - hits, convention)

    def micro_f1(self, convention: str = "paper") -> Floats:
        """2 hits / (true + predicted), over all: a single value."""
        hits, true, predicted = (count.sum(keepdims=True) for count in self._labels)
        return _ratio(2 * hits, true + predicted, convention)

    def macro_f1(self, convention: str = "paper") -> Floats:
        """2 hits / (true + predicted) of each label."""
        hits, true, predicted = self._labels
        return _ratio(2 * hits, true + predicted, convention)

    def example_f1(self, convention: str = "paper") -> Floats:
        """2 hits / (true + predicted) of each row."""
        hits, true, predicted = self._rows
        return _ratio(2 * hits, true + predicted, convention)

    def per_label(self) -> tuple[Floats, Floats, Floats]:
        """Precision, recall and F1 per label; nan where undefined."""
        hits, true, predicted = self._labels
        pairs = ((hits, predicted), (hits, true), (2 * hits, true + predicted))
        precision, recall, f1 = (ratio_or_nan(part, whole) for part, whole in pairs)
        return precision, recall, f1


def _ratio(part: Array, whole: Array, convention: str) -> Floats:
    nothing = np.full(len(whole), convention_named(convention).agreeing_on_nothing)
    ratio: Floats = np.divide(part, whole, where=whole > 0, out=nothing)
    return ratio


def ratio_or_nan(part: Array, whole: Array) -> Floats:
    """Ratio of counts, nan where the denominator is 0."""
    ratio: Floats = np.divide(part, whole, where=whole > 0, out=np.full(len(whole), np.nan))
    return ratio


def mean_of_defined(values: Floats) -> float:
    """The mean of the values that are not nan; nan if there are none."""
    defined = values[~np.isnan(values)]
    return float(defined.mean()) if len(defined) else float("nan")
