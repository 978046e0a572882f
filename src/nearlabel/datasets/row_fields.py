"""The fields of rows other than features: labels, names, and the split."""

from __future__ import annotations

from array import array
from collections.abc import Sized
from dataclasses import replace

import numpy as np

from nearlabel.common.arrays import Array, Csr, text_array
from nearlabel.common.messages import shown
from nearlabel.common.tag_texts import TagCell, tag_sets
from nearlabel.datasets.column_values import Columns, SparseRows, names_of, numbered
from nearlabel.datasets.dataset import Dataset
from nearlabel.datasets.text_lines import Source


class RowFields:
    """The fields of rows other than features: labels, names and the split.

    For items of an existing model, a column named split with other values is not an error, and no
    row needs to have a label.
    """

    def __init__(self, file: Source, separator: str | None, for_model: bool = False) -> None:
        self._file, self._separator = file, separator
        self._for_model, self._is_split = for_model, True
        self._sets: dict[TagCell, int] = {}  # each distinct cell of tags, and its number
        self._set_of = array("q")
        self._names: list[str] = []
        self._train = bytearray()
        self.count = 0

    def add(self, tags: object, name: object, split: object) -> None:
        """Add a row; None for what it does not have."""
        self.count += 1
        if tags is not None:
            if isinstance(tags, list):
                if not all(isinstance(tag, str) for tag in tags):
                    raise self._file.error("labels must be a list of strings")
                tags = tuple(tags)
            elif not isinstance(tags, str):
                raise self._file.error(f"labels must be a string; got {shown(str(tags))}")
            self._set_of.append(self._sets.setdefault(tags, len(self._sets)))
        if name is not None:
            self._names.append(str(name))
        if split is not None:
            part = str(split).strip().lower()
            self._is_split = self._is_split and part in ("train", "test")
            if not self._is_split and not self._for_model:
                raise self._file.error(
                    f"split: expected train or test; got {shown(str(split))} (if it is not "
                    "a split, pass the column to ignore= to leave it out)"
                )
            self._train.append(part == "train")

    def finish(self, data: Dataset, labels: Columns | None = None) -> Dataset:
        """The data set with the fields of its rows.

        Unless the label columns are given, they are the tags that occur, sorted.
        """
        fields: dict[str, Sized] = {"labels": self._set_of, "id": self._names, "split": self._train}
        for what, cells in fields.items():
            if len(cells) not in (0, self.count):
                raise ValueError(f"not all rows have {what}")
        if self._set_of:
            Y, label_names = self._labels(labels)
            data = replace(data, Y=Y, label_names=label_names)
        return replace(
            data,
            train=np.array(self._train, dtype=bool) if self._train and self._is_split else None,
            row_names=text_array(self._names) if self._names else None,
        )

    def _labels(self, place: Columns | None) -> tuple[Csr, Array | None]:
        sets = tag_sets(self._sets, self._separator)
        known = sorted(set().union(*sets))
        place = numbered(known) if place is None else place
        unknown = next((tag for tag in known if place.get(tag) is None), None)
        if unknown is not None:
            raise ValueError(f"{shown(unknown)} is not one of its labels")
        if not place and not self._for_model:
            raise ValueError("no row has a label")
        rows = SparseRows()
        for tags in sets:
            rows.add(map(place.get, tags), [1.0] * len(tags))  # type: ignore[arg-type]
        distinct = rows.matrix(len(place)).astype(np.int8)
        return distinct[np.array(self._set_of)], names_of(place) if place else text_array([])
