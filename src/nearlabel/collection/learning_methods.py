"""Methods that a collection can learn by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearlabel.common.choices import DISTANCES, SEARCHES
from nearlabel.common.validation import check_choice
from nearlabel.methods.registry import method

METHODS = ("MLkNN", "BRkNN", "MallowskNN", "MLCWkNN")
"""Methods whose answers follow from the content alone, whatever came and went before."""
DEFAULT_METHOD = {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}

_ROWS_A_NEIGHBOR = 15  # where there are few rows


def estimator(settings: Mapping[str, Any]) -> Any:
    """The unfitted method of a collection, of its name and its parameters."""
    parameters = dict(settings)
    name = parameters.pop("name", None)
    model = method(check_choice(name, "method", METHODS))(**parameters)
    model.check_parameters()
    check_choice(model.metric, "metric", DISTANCES)
    check_choice(model.search, "search", SEARCHES)
    return model


def with_other(
    settings: Mapping[str, Any], name: str | None = None, n_neighbors: int | None = None
) -> dict[str, Any]:
    """The settings of a method with another name or number of neighbors, or both.

    Another method has only the distance and the search of the one before, not its own parameters.
    """
    kept = dict(settings)
    if name is not None and name != settings["name"]:
        common = ("n_neighbors", "metric", "search")
        kept = {"name": name} | {key: settings[key] for key in common if key in settings}
    return kept if n_neighbors is None else {**kept, "n_neighbors": n_neighbors}


def estimator_of(n: int, settings: Mapping[str, Any]) -> Any:
    """The unfitted method for n rows: with few rows, it looks at fewer neighbors than asked for.

    A fifteenth of the rows is about the best with few of them. With fewer than fifteen, ML-kNN has
    too little to estimate its counts from: the vote of the nearest row, smoothed by how frequent
    tags are, takes its place (docs/collection.md).
    """
    model = estimator(settings)
    model.n_neighbors = min(model.n_neighbors, max(1, n // _ROWS_A_NEIGHBOR))
    if n < _ROWS_A_NEIGHBOR and isinstance(model, method("MLkNN")):
        return method("MallowskNN")(model.n_neighbors, metric=model.metric, search=model.search)
    return model
