"""Methods whose scores follow from the number of neighbors that carry each label."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from typing import Protocol

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix, row_numbers, with_data
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.scores import DefaultScores, LabelScores
from nearlabel.methods.base import NeighborClassifier


class CountScores(Protocol):
    """Scores of labels by how many neighbors of a row carry them.

    `group` is the group of each row, if the scores are not the same for all rows.
    """

    def prepare(self) -> None:
        """Compute what is cheap, so that no prediction has to."""

    def at(self, label: Array, count: Array, group: Array | int = 0) -> Floats:
        """Scores of labels with the given counts."""

    def left_out(self, label: Array, count: Array, own: Array, group: Array | int = 0) -> Floats:
        """Scores for training rows as if each were new; `own` is 1 if a row has the label."""

    def at_0(self, *, left_out: bool = False) -> Floats:
        """Scores of all labels of all groups at count 0.

        With `left_out`, those for training rows that do not have the label.
        """


class CountingMethod(NeighborClassifier):
    """A method that scores each label by how many neighbors carry it.

    Labels that no neighbor carries have the same score in all rows, or in all rows of a group.
    """

    @cached_property
    @abstractmethod
    def _by_count(self) -> CountScores:
        """The scores, from what was learned."""

    def _groups(self, X: Matrix) -> Array | None:
        """The group of each row; None if there is only one."""
        return None

    @cached_property
    def _defaults(self) -> DefaultScores:
        return self._scores_at_0(left_out=False)

    def _scores_at_0(self, *, left_out: bool) -> DefaultScores:
        """Scores of labels that no neighbor carries, a row for each group."""
        return DefaultScores(
            self._by_count.at_0(left_out=left_out).reshape(-1, self.items_.labels.shape[1])
        )

    def _prepare(self) -> None:
        """Compute now what every prediction needs, so that predictions do not modify the model."""
        self._by_count.prepare()
        _ = self._defaults

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        counts, group = neighbor_counts(graph, self.items_.labels), self._groups(X)
        of_entry = 0 if group is None else group[row_numbers(counts)]
        scores = self._by_count.at(counts.indices, counts.data, of_entry)
        return LabelScores.of(with_data(counts, scores), self._defaults, group)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        codes, group = counts_and_own(graph, self.items_.labels, rows), self._groups(X)
        of_entry = 0 if group is None else group[row_numbers(codes)]
        own, count = np.divmod(codes.data, graph.k + 1)
        scores = self._by_count.left_out(codes.indices, count, own, of_entry)
        return LabelScores.of(with_data(codes, scores), self._scores_at_0(left_out=True), group)
