"""A data set as a table of named cells, with one column of 0 and 1 for each label."""

from __future__ import annotations

from typing import Any

from nearlabel.datasets.dataset import Dataset, dense_row
from nearlabel.datasets.table_columns import FEATURE_MARK
from nearlabel.datasets.text_lines import LABEL_MARK, names_or_numbers


def table_columns(data: Dataset) -> list[str]:
    """The names of the columns, marked if they would be read as something else."""
    features = [
        FEATURE_MARK + name if _needs_mark(name) else name
        for name in names_or_numbers(data.feature_names, data.X.shape[1])
    ]
    labels = [LABEL_MARK + name for name in names_or_numbers(data.label_names, data.Y.shape[1])]
    has_name, has_split = data.row_names is not None, data.train is not None
    return [*(["id"] * has_name), *(["split"] * has_split), *features, *labels]


def table_row(data: Dataset, row: int) -> list[Any]:
    """The cells of a row; None for a missing value."""
    cells: list[Any] = [] if data.row_names is None else [str(data.row_names[row])]
    if data.train is not None:
        cells.append("train" if data.train[row] else "test")
    return cells + dense_row(data, row)


def _needs_mark(name: str) -> bool:
    """Whether a feature's name would be read as something else."""
    special = name.lower() in ("", "id", "split", "tags", "labels", "unnamed: 0")
    return special or name.startswith((LABEL_MARK, FEATURE_MARK)) or name != name.strip()
