"""Metrics of predicted label sets.

True and predicted labels are 0/1 matrices, or tags; with tags, `label_names` lists the labels.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.common.validation import label_matrix
from nearlabel.labels.counts import label_totals
from nearlabel.metrics.conventions import convention_named
from nearlabel.metrics.label_curves import ratio_or_nan


def hamming_loss(Y: Any, predicted: Any, *, label_names: Any = None) -> float:
    """Share of the n q decisions that are wrong."""
    return Agreement(Y, predicted, label_names).hamming_loss()


def subset_accuracy(Y: Any, predicted: Any, *, label_names: Any = None) -> float:
    """Share of rows whose label set is predicted exactly."""
    return Agreement(Y, predicted, label_names).subset_accuracy()


def jaccard(Y: Any, predicted: Any, *, convention: str = "paper", label_names: Any = None) -> float:
    """Mean over rows of ``|Y and P| / |Y or P|``."""
    return Agreement(Y, predicted, label_names).jaccard(convention)


def micro_f1(
    Y: Any, predicted: Any, *, convention: str = "paper", label_names: Any = None
) -> float:
    """F1 of all decisions together."""
    return Agreement(Y, predicted, label_names).micro_f1(convention)


def macro_f1(
    Y: Any, predicted: Any, *, convention: str = "paper", label_names: Any = None
) -> float:
    """Mean over labels of their F1."""
    return Agreement(Y, predicted, label_names).macro_f1(convention)


def example_f1(
    Y: Any, predicted: Any, *, convention: str = "paper", label_names: Any = None
) -> float:
    """Mean over rows of their F1."""
    return Agreement(Y, predicted, label_names).example_f1(convention)


class Agreement:
    """True and predicted label sets, compared once and used by every metric.

    Parameters
    ----------
    Y, predicted : 0/1 matrices, shape (n, q), or tags of n rows
    label_names : sequence of str or int, shape (q,), optional
        The labels, if Y or predicted are tags.
    """

    def __init__(self, Y: Any, predicted: Any, label_names: Any = None) -> None:
        truth = label_matrix(Y, "Y", label_names)
        names = getattr(Y, "columns", None) if label_names is None else label_names
        decided = label_matrix(predicted, "predicted", names)
        if truth.shape != decided.shape:
            raise ValueError(
                f"Y and predicted must have the same shape; got {truth.shape} and {decided.shape}"
            )
        both = truth.multiply(decided).tocsr()
        self._shape: tuple[int, int] = truth.shape
        # Per row and per label: hits, true labels, predicted labels.
        self._rows = tuple(np.diff(matrix.indptr) for matrix in (both, truth, decided))
        self._labels = tuple(label_totals(matrix) for matrix in (both, truth, decided))

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

    def hamming_loss(self) -> float:
        """Mean of [truth xor predicted]."""
        hits, true, predicted = (int(count.sum()) for count in self._labels)
        return (true + predicted - 2 * hits) / (self._shape[0] * self._shape[1])

    def _hamming_loss(self) -> Floats:
        hits, true, predicted = self._rows
        return np.asarray((true + predicted - 2 * hits) / self._shape[1])

    def subset_accuracy(self) -> float:
        """Mean of [Y = P]."""
        return float(np.mean(self._subset_accuracy()))

    def _subset_accuracy(self) -> Floats:
        hits, true, predicted = self._rows
        return np.asarray((hits == true) & (hits == predicted), np.float64)

    def jaccard(self, convention: str = "paper") -> float:
        """Mean of ``|Y and P| / |Y or P|``."""
        return float(np.mean(self._jaccard(convention)))

    def _jaccard(self, convention: str) -> Floats:
        hits, true, predicted = self._rows
        return _ratio(hits, true + predicted - hits, convention)

    def micro_f1(self, convention: str = "paper") -> float:
        """2 hits / (true + predicted), over all."""
        hits, true, predicted = (count.sum(keepdims=True) for count in self._labels)
        return float(_ratio(2 * hits, true + predicted, convention)[0])

    def macro_f1(self, convention: str = "paper") -> float:
        """2 hits / (true + predicted), mean over labels."""
        hits, true, predicted = self._labels
        return float(np.mean(_ratio(2 * hits, true + predicted, convention)))

    def example_f1(self, convention: str = "paper") -> float:
        """2 hits / (true + predicted), mean over rows."""
        return float(np.mean(self._example_f1(convention)))

    def _example_f1(self, convention: str) -> Floats:
        hits, true, predicted = self._rows
        return _ratio(2 * hits, true + predicted, convention)

    def rows(self, metric: str, **option: Any) -> Floats:
        """The value per row, whose mean is the metric."""
        values: Floats = getattr(self, f"_{metric}")(**option)
        return values

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
