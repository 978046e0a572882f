"""Methods that a collection can learn by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    return model


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
