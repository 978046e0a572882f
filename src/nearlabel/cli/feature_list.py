"""The features that a model is fitted to, so that a column that slipped in is seen."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

from nearlabel.cli.output import counted

if TYPE_CHECKING:
    from nearlabel.common.arrays import Tree
    from nearlabel.datasets import Dataset

_MOST = 12  # that are listed


def source_columns(items: Dataset) -> list[Tree] | None:
    """The columns that features come from, what each holds, and how many values it has.

    None where features have no names, or are sparse: there may be a million of these.
    """
    from scipy import sparse

    from nearlabel.datasets.frames import is_frame, number_columns

    if items.feature_names is None or sparse.issparse(items.X):
        return None
    values: dict[str, int] = {}
    if is_frame(items.X):
        numbers = {*number_columns(items.X)}
        for name in items.X.columns:
            is_category = name not in numbers and name not in items.text
            values[name] = items.X[name].drop_nulls().n_unique() if is_category else 0
    else:
        for feature in items.feature_names.tolist():  # "key=C" and "key=D" come from one column
            name, mark, _ = feature.partition("=")
            values[name] = values.get(name, 0) + bool(mark)
    return [
        {
            "name": name,
            "kind": "text" if name in items.text else "category" if count else "number",
            "values": count or None,
        }
        for name, count in values.items()
    ]


def warn_of_binary_features(items: Dataset) -> None:
    """Warn of some features that hold 0 and 1 only, as the labels that were named do.

    Where all features do, that is what features of these items are like.
    """
    columns = source_columns(items) or []
    names = [column["name"] for column in columns if column["kind"] == "number"]
    if items.feature_names is None or not names:
        return
    from nearlabel.common.messages import some
    from nearlabel.datasets.frames import is_frame

    known = {name: place for place, name in enumerate(items.feature_names.tolist())}
    flags = []
    for name in names:
        values = items.X[name].to_numpy() if is_frame(items.X) else items.X[:, known[name]]
        flags += [name] if ((values == 0) | (values == 1)).all() else []
    if flags and len(flags) < len(names):
        warnings.warn(
            f"features that hold only 0 and 1, as the labels do: {some(flags)}; if they are "
            "labels, too, add them to --labels or to --ignore",
            stacklevel=2,
        )


def features_text(columns: Sequence[Tree]) -> str:
    """The first columns, for people."""
    texts = []
    for column in columns[:_MOST]:
        what = "text" if column["kind"] == "text" else ""
        what = counted(column["values"], "value") if column["values"] else what
        texts.append(f"{column['name']} ({what})" if what else column["name"])
    rest = [f"…and {len(columns) - _MOST:,} more"] if len(columns) > _MOST else []
    return f"features: {', '.join([*texts, *rest])}"
