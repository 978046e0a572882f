"""What a method needs from the base class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Needs:
    """What a method needs.

    Attributes
    ----------
    vectors : bool or str
        The vectors, not only the graph; or the name of the parameter that decides this.
    graph : bool
        The neighbors of queries. A method without them searches by itself.
    dense_scores : bool
        Room for a score of every label in every row: it has no default scores.
    counts : bool
        How often labels occur among the neighbors of training rows. Leave-one-out does not remove a
        row from the counts of the others, and so is optimistic if most rows are neighbors.
    all_rows : bool
        All training rows as neighbors, if ``n_neighbors=None``.
    """

    vectors: bool | str = False
    graph: bool = True
    dense_scores: bool = False
    counts: bool = False
    all_rows: bool = False


def needs_vectors(model: Any) -> bool:
    """Whether a model uses vectors, given its parameters."""
    vectors, method = model.needs.vectors, getattr(model, "estimator", model)
    return bool(getattr(method, vectors)) if isinstance(vectors, str) else vectors
