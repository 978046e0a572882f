"""What a method asks of the base."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Needs:
    """What a method asks for.

    Attributes
    ----------
    vectors : bool or str
        The vectors, not the graph alone; or the parameter that says so.
    graph : bool
        The neighbors of queries. A method that does without them searches by itself.
    dense_scores : bool
        Room for a score of every label in every row: it has no default scores.
    counts : bool
        How often labels occur among the neighbors of training rows. Leave-one-out does not take a
        row out of the counts of the others, and so flatters it where most rows are neighbors.
    all_rows : bool
        All training rows as neighbors, where ``n_neighbors=None``.
    """

    vectors: bool | str = False
    graph: bool = True
    dense_scores: bool = False
    counts: bool = False
    all_rows: bool = False


def needs_vectors(model: Any) -> bool:
    """Whether a model looks at vectors, as it is set."""
    vectors, method = model.needs.vectors, getattr(model, "estimator", model)
    return bool(getattr(method, vectors)) if isinstance(vectors, str) else vectors
