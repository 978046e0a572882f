"""Methods within a method: they have its training items, and learn from its neighbors."""

from __future__ import annotations

from sklearn.base import clone

from nearlabel.common.progress import Progress
from nearlabel.methods.base import NeighborClassifier
from nearlabel.methods.fitted_model import OF_ITEMS, Training
from nearlabel.methods.items import Items


def unlearned(
    estimator: NeighborClassifier, outer: NeighborClassifier, items: Items, k: int
) -> NeighborClassifier:
    """A copy of a method with k neighbors among items, from which it has not learned yet.

    All else that every fitted model has, it shares with the method that it is a part of.
    """
    inner: NeighborClassifier = clone(estimator)
    shared = {name: value for name, value in vars(outer).items() if name in OF_ITEMS}
    inner.__dict__.update(shared | inner._checked_settings())
    inner.items_, inner.n_neighbors_ = items, k
    return inner


def learned(
    inner: NeighborClassifier, seen: Training, progress: Progress | None = None
) -> NeighborClassifier:
    """The method after it has learned from the first k neighbors of what the outer one has seen."""
    graph, rows = seen.graph, inner._rows_to_learn_from(seen.Y, seen.X)
    graph = graph.head(inner.n_neighbors_) if graph.k > inner.n_neighbors_ else graph
    graph = graph if rows is None else graph.take(rows)
    inner._learn_from(Training(graph, seen.Y, seen.X, rows, seen.n_jobs, progress))
    return inner
