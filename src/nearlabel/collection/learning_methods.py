"""Methods that a collection can learn by."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nearlabel.common.validation import check_choice
from nearlabel.methods.registry import method

METHODS = ("MLkNN", "BRkNN", "MallowskNN", "MLCWkNN")
"""Methods whose answers follow from the content alone, whatever came and went before."""
DEFAULT_METHOD = {"name": "MLkNN", "n_neighbors": 10, "metric": "cosine"}


def estimator(settings: Mapping[str, Any]) -> Any:
    """The unfitted method of a collection, of its name and its parameters."""
    parameters = dict(settings)
    name = parameters.pop("name")
    model = method(check_choice(name, "method", METHODS))(**parameters)
    model.check_parameters()
    return model
