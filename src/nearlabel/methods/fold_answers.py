"""What a model that has learned from the training rows of a fold says of its test rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nearlabel.common.arrays import Csr
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.needs import needs_vectors


class FoldRows(NamedTuple):
    """Training or test rows of a fold: their vectors, and their neighbors among the training rows.

    In `graph` a training row is not among its own neighbors; it holds none where no model of the
    fold reads it. `known` is what models have found out about training rows that others can use.
    """

    X: Any
    graph: NeighborGraph
    known: dict[Hashable, Any] | None = None


@dataclass(frozen=True)
class FoldAnswers:
    """The scores of test rows, and the label sets that the model decides for by them."""

    scores: LabelScores
    decide: Callable[[LabelScores], Csr]

    @cached_property
    def decided(self) -> Csr:
        """The label sets, shape (n, q)."""
        return self.decide(self.scores)


def answers_by_neighbors(model: Any, Y: Csr, train: FoldRows, test: FoldRows | None) -> FoldAnswers:
    """The answers of a neighbor method that learns from `train` with the labels Y.

    Without `test` each training row is tried as if it were new.
    """
    of_vectors = needs_vectors(model)
    if train.known is not None:
        model = model.with_known(train.X, train.known)
    model = copy(model).fit_graph(train.graph, Y, train.X if of_vectors else None)
    if test is None:
        graph = train.graph.head(min(model.n_neighbors_, train.graph.k))
        X = train.X if of_vectors else None
        scores = model._left_out_scores(graph, X, np.arange(len(graph)))
    else:
        graph = test.graph.head(model.n_neighbors_)
        scores = model.scores_from_graph(graph, test.X if of_vectors else None)
    return decided_by_neighbors(model, scores, graph)


def decided_by_neighbors(model: Any, scores: LabelScores, graph: NeighborGraph) -> FoldAnswers:
    """Answers with these scores, whose label sets a neighbor method decides."""
    return FoldAnswers(scores, lambda scores: model._decide(scores, graph))
