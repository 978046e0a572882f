"""What a model that has learned from the training rows of a fold says of its test rows."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

from nearlabel.common.arrays import Csr, Matrix
from nearlabel.graph import NeighborGraph
from nearlabel.labels.scores import LabelScores
from nearlabel.methods.fitted_model import FittedModel


class FoldRows(NamedTuple):
    """Training or test rows of a fold: their vectors, and their neighbors among the training rows.

    In `graph` a training row is not among its own neighbors; it holds none where no model of the
    fold reads it. `known` is what models have found out about training rows that others can use.
    """

    X: Matrix
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


def decided_by_neighbors(
    model: FittedModel, scores: LabelScores, graph: NeighborGraph
) -> FoldAnswers:
    """Answers with these scores, whose label sets a neighbor method decides."""
    return FoldAnswers(scores, lambda scores: model._decide(scores, graph))
