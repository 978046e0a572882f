"""Metrics of rows that never stand together: exact sums over blocks of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nearlabel.common.arrays import Array, Csr, LabelsLike
from nearlabel.labels.scores import LabelScores
from nearlabel.metrics.scorers import METRICS, per_row, value_of
from nearlabel.metrics.sets import Agreement


@dataclass(frozen=True)
class MetricSums:
    """What the metrics of some rows add up to, in one convention.

    Attributes
    ----------
    rows : int
    sums : dict of str to (float, int)
        For each metric that is a mean over rows the sum, and how many rows count.
    labels : ndarray of int, shape (3, q)
        Hits, true and predicted labels, of each label.
    convention : str
    """

    rows: int
    sums: dict[str, tuple[float, int]]
    labels: Array
    convention: str

    @classmethod
    def of(
        cls, Y: Csr, scores: LabelScores, decided: LabelsLike, convention: str, at: int
    ) -> MetricSums:
        """The sums of a block of rows; as in `evaluate`."""
        sums = {}
        for name, values in per_row(Y, scores, decided, convention, at=at).items():
            defined = values[~np.isnan(values)]
            sums[name] = math.fsum(defined), len(defined)
        labels = Agreement(Y, decided).label_counts
        return cls(Y.shape[0], sums, labels, convention)

    @classmethod
    def joined(cls, parts: Sequence[MetricSums]) -> MetricSums:
        """The sums of several blocks."""
        sums = {
            name: (
                math.fsum(part.sums[name][0] for part in parts),
                sum(part.sums[name][1] for part in parts),
            )
            for name in parts[0].sums
        }
        labels = np.sum([part.labels for part in parts], axis=0)
        return cls(sum(part.rows for part in parts), sums, labels, parts[0].convention)

    def values(self) -> dict[str, float]:
        """What `evaluate` gives for all rows, without the areas under the curves of labels."""
        sets = Agreement.of_counts(self.rows, self.labels)
        values: dict[str, float] = {}
        for name in METRICS:
            if name in ("hamming_loss", "micro_f1", "macro_f1"):
                values[name] = value_of(sets, name, self.convention)
            elif name in self.sums:
                total, rows = self.sums[name]
                values[name] = total / rows if rows else math.nan
        return values
