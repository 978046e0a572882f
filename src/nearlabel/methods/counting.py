"""Methods whose scores follow from the number of neighbors that carry each label."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property

import numpy as np

from nearlabel.common.arrays import Array, Floats, Matrix, row_numbers, with_data
from nearlabel.graph import NeighborGraph
from nearlabel.labels.counts import counts_and_own, neighbor_counts
from nearlabel.labels.default_scores import DefaultScores
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.base import NeighborClassifier


class CountingMethod(NeighborClassifier):
    """A method that scores each label by how many neighbors carry it.

    Labels that no neighbor carries have the same score in all rows, or in all rows of a group.
    """

    @abstractmethod
    def _relevance(self, label: Array, count: Array, group: Array | int) -> Floats:
        """Scores of labels that `count` neighbors of a row carry."""

    @abstractmethod
    def _left_out_relevance(
        self, label: Array, count: Array, own: Array, group: Array | int
    ) -> Floats:
        """The same for training rows as if each were new; `own` is 1 if a row has the label."""

    @abstractmethod
    def _relevance_at_0(self, *, left_out: bool = False) -> Floats:
        """Scores of labels that no neighbor carries, shape (q,) or (n_groups, q).

        For training rows that do not have them either, if `left_out`.
        """

    def _groups(self, X: Matrix) -> Array | None:
        """The group of each row; None if there is only one."""
        return None

    @cached_property
    def _defaults(self) -> DefaultScores:
        return DefaultScores(np.atleast_2d(self._relevance_at_0()))

    def _prepare(self) -> None:
        """Compute now what every prediction needs, so that predictions do not modify the model."""
        _ = self._defaults

    def _scores(self, graph: NeighborGraph, X: Matrix) -> LabelScores:
        counts, group = neighbor_counts(graph, self._labels), self._groups(X)
        of_entry = 0 if group is None else group[row_numbers(counts)]
        scores = self._relevance(counts.indices, counts.data, of_entry)
        return LabelScores.of(with_data(counts, scores), self._defaults, group)

    def _left_out_scores(self, graph: NeighborGraph, X: Matrix, rows: Array) -> LabelScores:
        codes, group = counts_and_own(graph, self._labels, rows), self._groups(X)
        of_entry = 0 if group is None else group[row_numbers(codes)]
        own, count = np.divmod(codes.data, graph.k + 1)
        scores = self._left_out_relevance(codes.indices, count, own, of_entry)
        defaults = DefaultScores(np.atleast_2d(self._relevance_at_0(left_out=True)))
        return LabelScores.of(with_data(codes, scores), defaults, group)
