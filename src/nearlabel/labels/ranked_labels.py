"""The best labels of each row: arrays for programs, names and scores for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from operator import index
from typing import overload

from nearlabel.common import notebook_tables as html
from nearlabel.common.arrays import Array, Floats

# How much of many rows is shown.
_ROWS_IN_TEXT = 6
_LABELS_SHOWN = 20

RankedRow = list[tuple[str | int, float]]


@dataclass(frozen=True, eq=False, repr=False)
class RankedLabels:
    """The best labels of each row, best first; ties in the order of the columns.

    A sequence of rows, each a list of names and scores.

    Attributes
    ----------
    labels : ndarray of int, shape (n, top)
        Columns of the labels.
    scores : ndarray of float, shape (n, top)
    label_names : ndarray of str or None
        Names of all columns, if there are any.

    Examples
    --------
    >>> import nearlabel as nl
    >>> scores = nl.LabelScores.from_dense([[0.25, 0.5], [1, 0]], label_names=["sea", "hill"])
    >>> ranked = scores.rank()
    >>> ranked[0]
    [('hill', 0.5), ('sea', 0.25)]
    >>> [row[0] for row in ranked]
    [('hill', 0.5), ('sea', 1.0)]
    >>> ranked
    RankedLabels(n=2, top=2)
    0  hill 0.500, sea 0.250
    1  sea 1.000, hill 0.000
    """

    labels: Array
    scores: Floats
    label_names: Array | None

    @cached_property
    def names(self) -> Array:
        """Names of the labels, shape (n, top); their columns if they have no names.

        Computed on first use: the names of many rows take much more memory than the columns.
        """
        return self.labels if self.label_names is None else self.label_names[self.labels]

    def __len__(self) -> int:
        return len(self.labels)

    @overload
    def __getitem__(self, row: int) -> RankedRow: ...

    @overload
    def __getitem__(self, row: slice) -> list[RankedRow]: ...

    def __getitem__(self, row: int | slice) -> RankedRow | list[RankedRow]:
        """The names and scores of a row, best first; a list of these for a slice of rows."""
        if isinstance(row, slice):
            return [self[number] for number in range(len(self))[row]]
        labels = self.labels[index(row)]
        names = labels if self.label_names is None else self.label_names[labels]
        return list(zip(names.tolist(), self.scores[index(row)].tolist(), strict=True))

    def __iter__(self) -> Iterator[RankedRow]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        width = len(str(min(len(self), _ROWS_IN_TEXT) - 1))
        lines = [f"{type(self).__name__}(n={len(self)}, top={self.labels.shape[1]})"]
        for number, row in enumerate(self[:_ROWS_IN_TEXT]):
            shown = [f"{name} {_decimals(score)}" for name, score in row[:_LABELS_SHOWN]]
            shown += [f"… {len(row) - _LABELS_SHOWN:,} more"] * (len(row) > _LABELS_SHOWN)
            lines.append(f"{number:{width}}  {', '.join(shown)}")
        if len(self) > _ROWS_IN_TEXT:
            lines.append(html.left_out_text(len(self) - _ROWS_IN_TEXT))
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        n, top = self.labels.shape
        rows = (
            [
                html.cell(number, number=True),
                html.words_and_numbers(
                    [(name, _decimals(score)) for name, score in row[:_LABELS_SHOWN]],
                    more=max(0, top - _LABELS_SHOWN),
                ),
            ]
            for number, row in enumerate(self[: html.ROWS_SHOWN])
        )
        return html.table(
            [html.heading("row", number=True), html.heading("labels with their scores")],
            rows,
            caption=f"{type(self).__name__}: the best {top} labels of {n:,} rows",
            more=max(0, n - html.ROWS_SHOWN),
        )


@dataclass(frozen=True, eq=False, repr=False)
class CalibratedRanking(RankedLabels):
    """Ranked labels of each row, and the position of the neutral label among them.

    Attributes
    ----------
    labels, scores, names
        As in `RankedLabels`.
    neutral : ndarray of int, shape (n,)
        Number of labels before the neutral one: those that are predicted.
    """

    neutral: Array


def _decimals(score: float) -> str:
    return f"{round(score, 3) + 0.0:.3f}"  # no minus before zero
