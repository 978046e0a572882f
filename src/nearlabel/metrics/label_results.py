"""Results per label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from nearlabel.common import notebook_tables as html
from nearlabel.common.arrays import Array, Floats, LabelsLike
from nearlabel.common.tag_lists import tag_array
from nearlabel.common.validation import check_choice, label_matrix
from nearlabel.labels.counts import label_totals
from nearlabel.labels.scores import ScoresLike, checked_names
from nearlabel.metrics.ranking import checked_ranking
from nearlabel.metrics.sets import Agreement, Names, ratio_or_nan

_LABELS_IN_TEXT = 20


@dataclass(frozen=True, eq=False, repr=False)
class LabelResults:
    """Results per label, one entry per label in every array; nan where undefined.

    Attributes
    ----------
    label : ndarray of str or int, shape (q,)
        Names of the labels, or their columns if they have none.
    support : ndarray of int, shape (q,)
        Number of rows with the label.
    precision : ndarray of float, shape (q,), or None
        Share of true labels among the rows for which the label is predicted; like recall and F1,
        None without predicted labels.
    recall : ndarray of float, shape (q,), or None
        Share of the rows with the label for which it is predicted.
    f1 : ndarray of float, shape (q,), or None
        Harmonic mean of precision and recall.
    average_precision : ndarray of float, shape (q,), or None
        Mean, over the rows with the label, of the precision at their score; like the AUC, None
        without scores.
    auc : ndarray of float, shape (q,), or None
        Area under the ROC curve: share of the pairs of a row with the label and one without it in
        which the former has the greater score. A tie counts half.
    """

    label: Array
    support: Array
    precision: Floats | None
    recall: Floats | None
    f1: Floats | None
    average_precision: Floats | None
    auc: Floats | None

    def to_dict(self) -> dict[str, Array]:
        """The arrays by name, without those that are None, ready for a DataFrame."""
        columns = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: column for name, column in columns.items() if column is not None}

    def sort_by(self, column: str) -> LabelResults:
        """The same results sorted by one array in ascending order, with nan last.

        Parameters
        ----------
        column : str
            Name of an array that is not None.
        """
        columns = self.to_dict()
        order = np.argsort(columns[check_choice(column, "column", columns)], kind="stable")
        return replace(self, **{name: values[order] for name, values in columns.items()})

    def __len__(self) -> int:
        return len(self.label)

    def __repr__(self) -> str:
        label, *numbers = ([name, *self._texts(name, _LABELS_IN_TEXT)] for name in self.to_dict())
        columns = [_aligned(label, str.ljust), *(_aligned(column, str.rjust) for column in numbers)]
        lines = ["  ".join(row) for row in zip(*columns, strict=True)]
        if len(self) > _LABELS_IN_TEXT:
            lines.append(html.left_out_text(len(self) - _LABELS_IN_TEXT, "labels"))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        columns = list(self.to_dict())
        texts = [self._texts(name, html.ROWS_SHOWN) for name in columns]
        return html.table(
            [html.heading(name, number=name != "label") for name in columns],
            [
                [html.cell(text, number=place > 0) for place, text in enumerate(row)]
                for row in zip(*texts, strict=True)
            ],
            caption=f"Results of {len(self):,} labels",
            more=max(0, len(self) - html.ROWS_SHOWN),
            things="labels",
        )

    def _texts(self, column: str, most: int) -> list[str]:
        """The first entries of an array, formatted."""
        values = getattr(self, column)[:most]
        return [f"{v:.3f}" if isinstance(v, float) else str(v) for v in values.tolist()]


def mean_results(parts: Sequence[LabelResults]) -> LabelResults:
    """Means over the parts of a data set in which each value is defined, and total support."""
    means: dict[str, Array] = {"support": np.sum([part.support for part in parts], axis=0)}
    for name in parts[0].to_dict().keys() - {"label", "support"}:
        values = np.array([getattr(part, name) for part in parts])
        known = ~np.isnan(values)
        means[name] = ratio_or_nan(values.sum(axis=0, where=known), known.sum(axis=0))
    return replace(parts[0], **means)


def _aligned(texts: list[str], put: Callable[[str, int], str]) -> list[str]:
    width = max(map(len, texts))
    return [put(text, width) for text in texts]


def per_label(
    Y: LabelsLike,
    scores: ScoresLike | None = None,
    predicted: LabelsLike | None = None,
    *,
    label_names: Names = None,
) -> LabelResults:
    """Compute results per label.

    Parameters
    ----------
    Y : 0/1 matrix, shape (n, q), or tags of n rows
        True labels; tags only if the labels have names.
    scores : LabelScores, array or sparse matrix with default 0, shape (n, q), optional
        Scores by which the rows are ranked, for average precision and AUC.
    predicted : 0/1 matrix, shape (n, q), or tags of n rows, optional
        Predicted labels, for precision, recall and F1.
    label_names : sequence of str or int, shape (q,), optional
        By default those of the scores, else the columns of Y if it is a DataFrame.

    Returns
    -------
    LabelResults
        A table with one row per label; ``pandas.DataFrame(results.to_dict())`` converts it.

    Notes
    -----
    As in scikit-learn per column, with ``zero_division=nan``: recall and average precision are
    undefined for a label that no row has, AUC for one that none or all have, precision for one that
    is never predicted, and F1 for one that no row has and that is never predicted.

    Examples
    --------
    >>> import nearlabel as nl
    >>> Y, scores = [[1, 0], [0, 0], [1, 0]], [[0.9, 0.2], [0.4, 0.1], [0.4, 0.3]]
    >>> nl.metrics.per_label(Y, scores, [[1, 0], [1, 0], [0, 0]], label_names=["sea", "hill"])
    label  support  precision  recall     f1  average_precision    auc
    sea          2      0.500   0.500  0.500              0.833  0.750
    hill         0        nan     nan    nan                nan    nan
    """
    if scores is None and predicted is None:
        raise ValueError("per_label needs scores, predicted or both; got neither")
    if label_names is None:
        label_names = getattr(scores, "label_names", None)
    truth = label_matrix(Y, "Y", label_names)
    if label_names is None:
        label_names = getattr(Y, "columns", None)
    q = truth.shape[1]
    names = checked_names(None if label_names is None else tag_array(list(label_names)), q)
    sets: tuple[Floats | None, ...] = (None, None, None)
    areas: tuple[Floats | None, ...] = (None, None)
    if predicted is not None:
        sets = Agreement(truth, predicted, label_names).per_label()
    if scores is not None:
        areas = checked_ranking(truth, scores).areas
    label = np.arange(q) if names is None else names
    return LabelResults(label, label_totals(truth), *sets, *areas)
