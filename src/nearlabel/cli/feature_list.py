"""The features that a model was fitted to, so that a column that slipped in is seen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearlabel.cli.model_columns import ModelColumn, model_columns
from nearlabel.cli.output import WIDTH, printable

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset


def feature_list(fitted: BaseEstimator, items: Dataset) -> list[Tree] | None:
    """The columns that features came from, what each holds, and how many values it has.

    None where features have no names, or are sparse: there may be a million of these.
    """
    from scipy import sparse
    from sklearn.pipeline import Pipeline

    if items.feature_names is None or sparse.issparse(items.X):
        return None
    pipeline = fitted if isinstance(fitted, Pipeline) else Pipeline([("model", fitted)])
    columns = model_columns(pipeline) or []
    if all(column.kind == "number" for column in columns):
        columns = _with_values_joined([column.name for column in columns])
    records = []
    for column in columns:
        known = None if column.values is None else [value for value in column.values if value]
        values = None if known is None else len(known)  # without the one that stands for a gap
        records.append({"name": column.name, "kind": column.kind, "values": values})
    return records


def _with_values_joined(names: Sequence[str]) -> list[ModelColumn]:
    """The columns of a table: the features ``key=C`` and ``key=D`` came from one."""
    by_source: dict[str, list[str]] = {}
    for name in names:
        source, mark, value = name.partition("=")
        by_source.setdefault(source, []).extend([value] if mark else [])
    return [
        ModelColumn(name, "category", tuple(values)) if values else ModelColumn(name)
        for name, values in by_source.items()
    ]


def warn_of_labels_among_features(items: Dataset) -> None:
    """Warn of some features that hold 0 and 1 only, as the labels that were named do.

    Where all features do, that is what features of these items are like.
    """
    from scipy import sparse

    from nearlabel.common.messages import some
    from nearlabel.datasets.frames import is_frame, number_columns

    if items.feature_names is None or sparse.issparse(items.X):
        return
    names, X = items.feature_names.tolist(), items.X
    if is_frame(X):
        names = number_columns(X)
        X = X.select(names).to_numpy()
    binary = ((X == 0) | (X == 1)).all(axis=0)
    flags = [
        name for name, is_binary in zip(names, binary, strict=True) if is_binary and "=" not in name
    ]
    if flags and not binary.all():
        warnings.warn(
            f"features that hold only 0 and 1, as the labels do: {some(flags)}; if they are "
            "labels, too, add them to --labels or to --ignore",
            stacklevel=2,
        )


def shown_features(columns: Sequence[Tree]) -> str:
    """The columns for people, in two lines at most."""
    texts = [_shown(column) for column in columns]
    room = 2 * WIDTH - len("features: …and 1,000,000 more") - 10
    count = 0
    while count < len(texts) and (room := room - len(texts[count]) - 2) > 0:
        count += 1
    count = max(1, count)
    rest = [f"…and {len(texts) - count:,} more"] if count < len(texts) else []
    return ", ".join([*texts[:count], *rest])


def _shown(column: Tree) -> str:
    name, count = printable(column["name"]), column["values"]
    if column["kind"] == "number":
        return name
    what = "words" if column["kind"] == "text" else "values"
    counted = "" if count is None else f"{count:,} {what}"
    text = ", ".join(filter(None, ("text" if column["kind"] == "text" else "", counted)))
    return f"{name} ({text})"
