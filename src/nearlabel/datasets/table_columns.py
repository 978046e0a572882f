"""The role of each column of a table: a feature, a label, or another field of a row.

Some columns have a special role, by name or by an option: ``tags`` (the labels of a row in one
cell), ``label:NAME`` (one label, 0 or 1), ``id`` (the name of a row), ``split`` ("train" or
"test").
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from nearlabel.common.messages import first_twice, shown, some
from nearlabel.datasets.column_values import named_columns, no_column, source_columns
from nearlabel.datasets.data_files import ReadOptions
from nearlabel.datasets.text_lines import LABEL_MARK, DataError

FEATURE_MARK = "feature:"  # before a feature whose name would mean something else


class Source(Protocol):
    """A file, as error messages refer to it."""

    name: str
    line: int

    def error(self, message: str, line: int | None = None) -> DataError:
        """An error at the line that was read last, or at another one."""
        ...


class ColumnRoles:
    """The roles of the columns of a table.

    Attributes
    ----------
    labels : frozenset of str
        The columns that are labels.
    tags, id, split : int or None
        The positions of the columns with these roles.
    texts : list of int
        The positions of free text.
    categories : frozenset of str
        The columns that an option declares as categories.
    cells : list of int
        The positions of the other features, and of labels.
    """

    def __init__(self, file: Source, columns: list[str], options: ReadOptions) -> None:
        self._file, self._columns, self._options = file, columns, options
        self._places = {name: place for place, name in reversed([*enumerate(columns)])}
        features, plain = options.features, {name.removeprefix(FEATURE_MARK) for name in columns}
        known = None if features is None else source_columns(features, plain)
        if features is not None and options.frame:  # each column of a frame is a feature
            known = set(features)
        twice = first_twice(name for name in columns if known is None or name in known)
        if twice is not None:
            raise file.error(f"two columns have the name {shown(twice)}")
        self._ignored = frozenset(self._matching("ignore", options.ignore))
        labels, tags = self._find_labels()
        if options.labels is not None and not options.labels:  # found only to be left out
            self._ignored |= {*labels, *([tags] if tags else [])}
            labels, tags = [], None
        self.labels = frozenset(labels)
        self.tags = self._place("tags", tags)
        self.id = self._place("id", options.id or self._named("id"))
        if self._is_index(columns[0], known):
            if self.id is None:
                self.id = 0
            else:
                self._ignored |= {columns[0]}
        self.split = self._place("split", self._named("split"))
        self.texts = self._find_texts()
        self.categories = frozenset(self._features_named("categories", options.categories))
        self.cells = self._find_cells(known)

    def _is_index(self, first: str, known: set[str] | None) -> bool:
        """Whether the first column is an index written by pandas, possibly more than once."""
        named = self._options.labels or self._options.categories or ()
        is_wanted = first in (known or ()) or first in named
        return first in ("", "Unnamed: 0") and not is_wanted

    @property
    def fields(self) -> tuple[int | None, int | None, int | None]:
        """The positions of the fields other than features: tags, name and split."""
        return self.tags, self.id, self.split

    @property
    def needed(self) -> set[int | None]:
        """The positions of all columns that are read."""
        return {*self.cells, *self.texts, *self.fields}

    def _find_labels(self) -> tuple[list[str], str | None]:
        """The columns that are labels, and the one with all labels in one cell."""
        options = self._options
        if options.tags is not None or options.labels:
            return self._matching("labels", options.labels or ()), options.tags
        marked = [name for name in self._columns if name.startswith(LABEL_MARK)]
        tags = self._named("tags") or self._named("labels")
        if not marked and tags is None and options.labels is None:
            raise self._file.error(
                f"which columns are labels? There is no column 'tags' among {some(self._columns)}; "
                "pass tags= for a column of tags, or labels= for columns of 0 and 1",
                1,
            )
        return marked, None if marked else tags

    def _find_texts(self) -> list[int]:
        """The positions of free text."""
        places = []
        for name in self._features_named("text", self._options.text):
            place = self._places[name]
            if place == self.tags or name in self.labels | self._ignored:
                raise self._file.error(f"text={shown(name)}: the column is not a feature", 1)
            places.append(place)
        return places

    def _features_named(self, what: str, names: Sequence[str]) -> list[str]:
        """The features that an option names; those missing for a model are reported together."""
        if self._options.features is None:
            return self._matching(what, names)
        return [name for name in names if name in self._places]

    def _find_cells(self, known: set[str] | None) -> list[int]:
        """The positions of the other features, and of labels with their own column."""
        special = {self.tags, self.id, self.split, *self.texts}
        places = []
        for place, column in enumerate(self._columns):
            if place in special or column in self._ignored:
                continue
            is_label = column in self.labels
            if known is None or is_label or column.removeprefix(FEATURE_MARK) in known:
                places.append(place)
            marked = column.lower() in ("tags", "labels") or column.startswith(LABEL_MARK)
            if known is None and marked and not is_label:
                raise self._file.error(
                    f"the column {shown(column)} also looks like labels; pass it to ignore= to "
                    "leave it out",
                    1,
                )
        wanted = self._options.features
        if not places and not self.texts and wanted != ():
            missing = f"column for the feature {some(wanted)}" if wanted else "feature column"
            raise self._file.error(f"there is no {missing}", 1)
        return places

    def _named(self, word: str) -> str | None:
        named = (name for name in self._columns if name.lower() == word)
        return next((name for name in named if name not in self._ignored), None)

    def _place(self, what: str, name: str | None) -> int | None:
        """The position of a column that an option names."""
        if name is None or name in self._places:
            return None if name is None else self._places[name]
        raise self._file.error(no_column(what, name, self._columns), 1)

    def _matching(self, what: str, names: Sequence[str]) -> list[str]:
        """The columns that an option gives by name or pattern."""
        try:
            return named_columns(what, names, self._columns)
        except ValueError as error:
            raise self._file.error(str(error), 1) from None
