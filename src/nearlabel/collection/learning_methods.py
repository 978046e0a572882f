"""Methods that a collection can learn with."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import TYPE_CHECKING

from nearlabel.collection.choices import METHODS
from nearlabel.common.arrays import Tree
from nearlabel.common.validation import ArgumentTypeError, check_choice
from nearlabel.methods.registry import method

if TYPE_CHECKING:
    from nearlabel.methods.base import NeighborClassifier

DEFAULT_METHOD = {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}


def estimator(settings: Mapping[str, object]) -> NeighborClassifier:
    """The unfitted method of a collection, from its name and parameters."""
    from nearlabel.search import SEARCHES
    from nearlabel.search.exact.distances import SPACES

    parameters = dict(settings)
    name = parameters.pop("name", None)
    model: NeighborClassifier = method(check_choice(name, "method", METHODS))(**parameters)
    model.check_parameters()
    check_choice(model.metric, "metric", SPACES)
    check_choice(model.search, "search", SEARCHES)
    return model


def settings_of(method: object) -> Tree:
    """The name and parameters of an unfitted method, or of the default one, checked."""
    if method is None:
        return dict(DEFAULT_METHOD)
    if not isinstance(method, Mapping):
        if not hasattr(method, "get_params"):
            message = f"method must be an estimator, or its name and parameters; got {method!r}"
            raise ArgumentTypeError(message, "method")
        method = {"name": type(method).__name__, **method.get_params(deep=False)}
    estimator(method)
    return dict(method)


def with_other(
    settings: Mapping[str, object], name: str | None = None, n_neighbors: int | None = None
) -> dict[str, object]:
    """The settings of a method with another name, another number of neighbors, or both.

    A different method keeps only the metric and the search of the previous one.
    """
    chosen = dict(settings)
    if name is not None and name != settings["name"]:
        common = ("n_neighbors", "metric", "search")
        chosen = {"name": name} | {key: settings[key] for key in common if key in settings}
    return chosen if n_neighbors is None else {**chosen, "n_neighbors": n_neighbors}


def for_rows(n: int, chosen: NeighborClassifier) -> NeighborClassifier:
    """The unfitted method for n rows: with few rows, it uses fewer neighbors than the chosen one.

    About a fifteenth of few rows is best. Below fifteen rows ML-kNN has too little data to estimate
    its counts from: the vote of the nearest row, smoothed by tag frequencies, takes its place
    (docs/collection.md).
    """
    model = copy(chosen)
    rows_a_neighbor = 15  # where there are few rows
    most = max(1, n // rows_a_neighbor)
    model.n_neighbors = most if model.n_neighbors is None else min(model.n_neighbors, most)
    if n < rows_a_neighbor and isinstance(model, method("MLkNN")):
        few = {"n_neighbors": model.n_neighbors, "metric": model.metric, "search": model.search}
        model = method("MallowskNN")(**few)
    return model
