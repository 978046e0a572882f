"""Where a fit gets its training rows and their neighbors: from a search, or from a given graph.

A cluster is a third source; see `nearlabel.distributed.block_learning`.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple, Protocol

from sklearn.utils.validation import validate_data

from nearlabel.common.arrays import Array
from nearlabel.common.progress import Progress
from nearlabel.common.validation import check_n_jobs, check_same_length, checked_vectors
from nearlabel.graph import NeighborGraph
from nearlabel.methods.changes import keeps_neighbors
from nearlabel.methods.needs import needs_vectors
from nearlabel.search import check_metric, check_search


class Neighborhood(NamedTuple):
    """What a method learns from.

    Attributes
    ----------
    graph : NeighborGraph
        The neighbors of the training rows that the method asked for; there may be more than k.
    counted : object or None
        What the method's `by_blocks` has counted in place of the graph.
    is_kept : bool
        Whether the model keeps the graph, to update it when its rows change.
    """

    graph: NeighborGraph
    counted: Any = None
    is_kept: bool = False


class TrainingSource(Protocol):
    """Training rows, and a way to find their neighbors.

    `searches` says whether finding them takes most of the time.
    """

    searches: bool

    def vectors(self, model: Any, n: int) -> Any:
        """The vectors of n training rows, checked, or None; the model notes their features."""

    def neighbors(
        self,
        model: Any,
        rows: Array | None,
        searching: Progress | None,
        learning: Progress | None,
    ) -> Neighborhood:
        """The neighbors of some training rows of a model, of all if None."""


class SearchedRows:
    """Vectors, among which this process searches."""

    searches = True

    def __init__(self, X: Any) -> None:
        self._X = X

    def vectors(self, model: Any, n: int) -> Any:
        """The vectors of n training rows, checked; the model notes their features."""
        return _checked(model, self._X, n)

    def neighbors(
        self,
        model: Any,
        rows: Array | None,
        searching: Progress | None,
        learning: Progress | None,
    ) -> Neighborhood:
        """The neighbors of some training rows of a model, of all if None."""
        items, k = model._items, model.n_neighbors_
        keeps = rows is None and keeps_neighbors(model, items)
        n_jobs, k = check_n_jobs(model.n_jobs), min(k, len(items) - 1)
        graph = items.left_out_neighbors(rows, k, n_jobs=n_jobs, progress=searching)
        return Neighborhood(graph, is_kept=keeps)


class GivenGraph:
    """Neighbors that were found before, and the vectors if they are given, too."""

    searches = False

    def __init__(self, graph: NeighborGraph, X: Any) -> None:
        self._graph, self._X = graph, X

    def vectors(self, model: Any, n: int) -> Any:
        """The vectors of n training rows, checked, or None; the model notes their features."""
        check_same_length(graph=len(self._graph), y=n)
        if self._X is not None:
            X = _checked(model, self._X, n)
            check_metric(model.metric)  # what a search would refuse is refused now
            check_search(model.search)
            return X
        if needs_vectors(model):
            raise ValueError(
                f"X is missing: {type(model).__name__} needs the vectors, not only a graph"
            )
        for name in ("n_features_in_", "feature_names_in_"):
            model.__dict__.pop(name, None)
        return None

    def neighbors(
        self,
        model: Any,
        rows: Array | None,
        searching: Progress | None,
        learning: Progress | None,
    ) -> Neighborhood:
        """The neighbors of some training rows of a model, of all if None."""
        graph = first_neighbors(self._graph, min(model.n_neighbors_, len(model._items) - 1))
        return Neighborhood(graph if rows is None else graph.take(rows))


def first_neighbors(graph: NeighborGraph, k: int) -> NeighborGraph:
    """The first k neighbors of a graph, or an error if it has fewer."""
    if graph.k < k:
        raise ValueError(f"graph holds {graph.k} neighbors a row; n_neighbors={k} are needed")
    return graph.head(k)


def _checked(model: Any, X: Any, n: int) -> Any:
    X = checked_vectors(partial(validate_data, model), X, "X")
    check_same_length(X=X.shape[0], y=n)
    return X
