"""Posteriors given counts, read from tables of training rows by label and count."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from nearlabel.common.arrays import Array, Floats
from nearlabel.labels.histograms import CountedRows

# As `Counts`; if there is a fifth number, c'[j] is in fractions of rows, that many per row.
Rows = tuple[Array, ...]


@dataclass(frozen=True)
class CountPosteriors:
    """P(H_1 | E_j) of labels and counts, as published.

    `posterior` is the formula of a method: a function of n, n_l, c[j] and c'[j].
    """

    counted: CountedRows
    k: int
    posterior: Callable[..., Floats]

    def rows(self, label: Any, count: Any, group: Any = 0) -> Rows:
        """The row counts of labels and counts, in the tables of some groups."""
        return self.counted.counts(label, count, group)

    def dense_rows(self) -> Rows:
        """`rows` of all labels and of counts from 0 to k, in the shape (groups q, k + 1)."""
        return self.counted.dense(self.k)

    def at(self, label: Any, count: Any, group: Any = 0) -> Floats:
        """Posteriors of new rows with the given counts of neighbors with a label."""
        return self.posterior(*self.rows(label, count, group))

    def at_0(self) -> Floats:
        """`at` count 0, of every label of every group."""
        return self.posterior(*self.counted.at_0())

    def left_out(self, label: Any, count: Any, own: Array, group: Any = 0) -> Floats:
        """Posteriors of training rows left out of the tables; `own` is 1 if one has the label."""
        return self.posterior(*self.counted.without_own(label, count, own, group))

    def left_out_at_0(self) -> Floats:
        """`left_out` at count 0 of rows without the label, of every label of every group."""
        return self.posterior(*self.counted.without_one_at_0())

    def chance_of_one_less(self, label: Any, count: Any) -> Floats:  # noqa: ARG002
        """Probability that a new row's neighbor with a label is not counted: 0."""
        return np.zeros(np.shape(count))
