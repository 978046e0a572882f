"""Methods that a collection can learn by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearlabel.common.validation import check_choice
from nearlabel.methods.registry import method

METHODS = ("MLkNN", "BRkNN", "MallowskNN", "MLCWkNN")
"""Methods whose answers follow from the content alone, whatever came and went before."""
DEFAULT_METHOD = {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}

_ROWS_A_NEIGHBOR, _FEWEST_NEIGHBORS = 15, 3  # where there are few rows


def estimator(settings: Mapping[str, Any]) -> Any:
    """The unfitted method of a collection, of its name and its parameters."""
    parameters = dict(settings)
    name = parameters.pop("name", None)
    model = method(check_choice(name, "method", METHODS))(**parameters)
    model.check_parameters()
    return model


def neighbors_of(n: int, settings: Mapping[str, Any]) -> int:
    """How many neighbors a method looks at that has n rows: fewer than asked for where n is small.

    A fifteenth of the rows, at least 3, is about the best with few rows (docs/collection.md).
    """
    asked: int = estimator(settings).n_neighbors
    return min(asked, max(_FEWEST_NEIGHBORS, n // _ROWS_A_NEIGHBOR))
