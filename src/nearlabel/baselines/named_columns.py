"""Labels and features of a fitted baseline by their names."""

from __future__ import annotations

from typing import Any

from nearlabel.common.messages import one_line
from nearlabel.common.validation import ArgumentError, check_integer


def label_number(model: Any, label: Any) -> int:
    """The column of a label that is given by its name or by its column."""
    q = model._n_labels
    if model.label_names_ is not None:
        for number in range(q):
            if model.name_of(number) == label:
                return number
        if isinstance(label, str):
            raise ArgumentError(
                f"label must be a name or a column of a label; got {label!r}", "label"
            )
    return check_integer(label, "label", low=0, high=q - 1)


def feature_names(model: Any) -> list[str]:
    """Names of all features for a line of text, x0 and so on where they have none."""
    names = getattr(model, "feature_names_in_", None)
    if names is None:
        return [f"x{column}" for column in range(model.n_features_in_)]
    return [one_line(str(name)) for name in names]
